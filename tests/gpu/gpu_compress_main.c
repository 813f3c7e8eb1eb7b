/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_compress_main.c: a client that has lines compressed by the daemon's GPU, in its arena and in
 * its own GPU memory.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "encoders/encode_job.h"
#include "tests/bench/bench_row.h"
#include "tests/gpu/gpu_memory_parts.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_help.h"
#include "tests/lib/test_lines.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_tap.h"

static const char help[] =
    "usage: wharf_gpu_compress [--engine simt] [--warps N] check N\n"
    "       wharf_gpu_compress [--engine simt] [--warps N] speed SECONDS CHUNK\n"
    "       wharf_gpu_compress [--engine simt] [--warps N] beside SECONDS CHUNK\n"
    "\n"
    "Has the daemon compress by bdi, fpc, cpack, best and palette on its GPU.  The modes:\n"
    "\n"
    "  check     N rounds of all encoders: the processor's bytes, or a clear result\n"
    "  speed     bytes of sources a second, from the arena to the arena, and in GPU memory\n"
    "  beside    latencies of single decodes alone, beside background jobs that compress,\n"
    "            and beside normal ones, which nothing throttles\n"
    "\n"
    "check reports in the Test Anything Protocol, the others print one JSON object a line.\n"
    "N warps compress (32).  It is run from BUILD/tests or from a folder beside wharfd and\n"
    "wharfd-gpu.  With --engine simt there is no GPU memory.\n";

#define MiB ((size_t)1 << 20)

enum {
    DEPTH = 256,    /* jobs in flight */
    N_WINDOWS = 10, /* of which the spread is given; some before them, to get ready */
    N_BEFORE = 2,
    N_TURNS = 5,            /* of each kind of latencies */
    MOST_NBYTES = 300 << 10 /* of a source that is checked */
};

static uint32_t engine = WHARF_ENGINE_GPU;
static unsigned n_warps = 32;
static const uint32_t codecs[] = {WHARF_CODEC_BDI, WHARF_CODEC_FPC, WHARF_CODEC_CPACK,
                                  WHARF_CODEC_BEST, WHARF_CODEC_PALETTE};
enum { N_CODECS = sizeof(codecs) / sizeof(codecs[0]) };

static void start(void)
{
    char config[128];

    snprintf(config, sizeof(config),
             "compress = %u\n[quota]\nmax_memory = 64G\nmax_arena = 8G\nmax_compress = 16M\n",
             n_warps);
    test_wharfd_start_gpu(&gpu_memory_wharfd, engine == WHARF_ENGINE_GPU ? "cuda" : "simt", config);
}

static double metric(const char *name)
{
    return test_wharfd_metric(&gpu_memory_wharfd, name, NULL);
}

/* Memory for sources or streams: of the arena, or of the GPU. */
static uint8_t *get_memory(struct wharf *wharf, bool on_gpu, size_t nbytes)
{
    void *memory = NULL;

    if (on_gpu)
        return gpu_memory_register(wharf, nbytes).at;
    gpu_memory_must("wharf_alloc", wharf_alloc(wharf, nbytes, &memory));
    return memory;
}

static void put(uint8_t *to, bool on_gpu, const void *from, size_t nbytes)
{
    if (on_gpu)
        gpu_memory_must_cuda("copying", gpu_client_put(to, from, nbytes));
    else
        memcpy(to, from, nbytes);
}

static void get(void *to, bool on_gpu, const uint8_t *from, size_t nbytes)
{
    if (on_gpu)
        gpu_memory_must_cuda("copying", gpu_client_get(to, from, nbytes));
    else
        memcpy(to, from, nbytes);
}

static struct wharf_job job_of(uint32_t codec, uint32_t encoder, const uint8_t *in,
                               size_t in_nbytes, uint8_t *out, size_t out_avail)
{
    struct wharf_job job = WHARF_JOB_INIT;

    job.codec = codec;
    job.encoder = encoder;
    job.flags = WHARF_JOB_COMPRESS;
    job.in = in;
    job.in_nbytes = in_nbytes;
    job.out = out;
    job.out_avail = out_avail;
    return job;
}

static struct wharf_completion run(struct wharf *wharf, const struct wharf_job *job)
{
    struct wharf_completion completion;

    gpu_memory_must("submitting", wharf_submit(wharf, job, 1) - 1);
    gpu_memory_must("waiting", wharf_wait(wharf, &completion, 1, 1, -1) - 1);
    return completion;
}

/* ---- check --------------------------------------------------------------------------------- */

struct check {
    struct wharf *wharf;
    bool from_gpu, to_gpu;
    uint8_t *in, *out; /* as jobs have them */
    unsigned n_jobs, n_wrong;
};

static uint8_t raw[MOST_NBYTES + 16], made[2 * MOST_NBYTES];

static bool is_right(const struct check *check, const struct wharf_job *job, const uint8_t *want,
                     size_t nbytes)
{
    struct wharf_completion completion = run(check->wharf, job);

    if (completion.engine != engine)
        return false;
    if (job->out_avail < nbytes)
        return completion.result == WHARF_OUTPUT_TOO_SMALL &&
               completion.reason == WHARF_REASON_OUTPUT_FULL && completion.out_nbytes == 0;
    if (completion.result != WHARF_OK || completion.in_nbytes != job->in_nbytes ||
        completion.out_nbytes != nbytes)
        return false;
    get(made, check->to_gpu, job->out, nbytes);
    return memcmp(made, want, nbytes) == 0;
}

/* One source by one encoder: exactly as much room as it takes, and a byte less. */
static void check_one(struct check *check, uint32_t codec, uint32_t encoder, size_t nbytes,
                      size_t in_shift, size_t out_shift)
{
    const struct wharf_encode_choice choice = {codec, 0, encoder, 0};
    struct wharf_line_choice lines;
    size_t want_nbytes;

    if (!wharf_encode_lines(&choice, &lines))
        exit(1);
    uint8_t *want = test_lines_encode(&lines, raw, nbytes, &want_nbytes);
    struct wharf_job job =
        job_of(codec, encoder, check->in + in_shift, nbytes, check->out + out_shift, want_nbytes);
    put(check->in + in_shift, check->from_gpu, raw, nbytes);
    check->n_wrong += !is_right(check, &job, want, want_nbytes);
    job.out_avail--;
    check->n_wrong += !is_right(check, &job, want, want_nbytes);
    check->n_jobs += 2;
    free(want);
}

static void check_all(struct check *check, unsigned round)
{
    static const size_t sizes[] = {0, 1, 31, 129, 4095, 4096, 4097, 65536, 100001, MOST_NBYTES};
    unsigned n = round;

    for (unsigned c = 0; c < N_CODECS; c++) {
        const struct wharf_codec_ops *ops = wharf_codec_find(codecs[c])->ops;
        for (const struct wharf_encoder_row *row = ops->encoder_rows; row->name; row++, n++) {
            size_t nbytes = sizes[n % (sizeof(sizes) / sizeof(sizes[0]))];
            test_lines_fill((enum test_lines_kind)(n % TEST_LINES_N_KINDS), n, raw, nbytes);
            check_one(check, codecs[c], wharf_encoder_number(ops, row), nbytes, n % 3 ? 0 : n % 16,
                      n % 4 ? 0 : (n / 4) % 16);
        }
    }
}

static void check_way(bool from_gpu, bool to_gpu, unsigned n_rounds)
{
    struct check check = {
        .wharf = gpu_memory_open(engine, 64, 16 * MiB),
        .from_gpu = from_gpu,
        .to_gpu = to_gpu,
    };

    check.in = get_memory(check.wharf, from_gpu, sizeof(raw));
    check.out = get_memory(check.wharf, to_gpu, sizeof(made));
    for (unsigned round = 0; round < n_rounds; round++)
        check_all(&check, 37 * round);
    test_tap_report(check.n_wrong == 0, "%u jobs from %s to %s memory give the processor's bytes",
                    check.n_jobs, from_gpu ? "GPU" : "host", to_gpu ? "GPU" : "host");
    wharf_close(check.wharf);
}

static int check_them(unsigned n_rounds)
{
    bool has_gpu = engine == WHARF_ENGINE_GPU;

    start();
    for (unsigned way = 0; way < (has_gpu ? 4 : 1); way++)
        check_way(way & 1, way & 2, n_rounds);
    test_tap_report(metric("wharf_gpu_workers_ended_total") == 0, "and no worker has ended");
    test_wharfd_finish(&gpu_memory_wharfd);
    return test_tap_end();
}

/* ---- jobs without an end ------------------------------------------------------------------- */

/* DEPTH jobs of a codec in flight, each with its own source and stream. */
struct flood {
    struct wharf *wharf;
    struct wharf_job jobs[DEPTH];
    size_t chunk_nbytes, bound;
    uint64_t out_nbytes, n_done; /* of streams, and how many */
    bool on_gpu, stop;
    pthread_t thread;
};

static enum test_lines_kind kind_of(uint32_t codec)
{
    return codec == WHARF_CODEC_PALETTE ? TEST_LINES_WEIGHTS : TEST_LINES_MIXED;
}

static void flood_begin(struct flood *flood, uint32_t codec, size_t chunk_nbytes, bool on_gpu,
                        uint32_t job_class)
{
    size_t bound;
    uint8_t *data = malloc(chunk_nbytes);

    *flood = (struct flood){.chunk_nbytes = chunk_nbytes, .on_gpu = on_gpu};
    gpu_memory_must(
        "wharf_compress_bound",
        wharf_encode_bound(&(struct wharf_encode_choice){.codec = codec}, chunk_nbytes, &bound));
    flood->bound = (bound + 255) & ~(size_t)255;
    flood->wharf =
        gpu_memory_open(engine, 2 * DEPTH, DEPTH * (chunk_nbytes + flood->bound) + 64 * MiB);
    uint8_t *in = get_memory(flood->wharf, on_gpu, DEPTH * chunk_nbytes);
    uint8_t *out = get_memory(flood->wharf, on_gpu, DEPTH * flood->bound);
    for (unsigned i = 0; i < DEPTH; i++) {
        test_lines_fill(kind_of(codec), i, data, chunk_nbytes);
        put(in + i * chunk_nbytes, on_gpu, data, chunk_nbytes);
        flood->jobs[i] = job_of(codec, 0, in + i * chunk_nbytes, chunk_nbytes,
                                out + i * flood->bound, flood->bound);
        flood->jobs[i].user_data = i;
        flood->jobs[i].job_class = job_class;
    }
    gpu_memory_must("submitting", wharf_submit(flood->wharf, flood->jobs, DEPTH) - DEPTH);
    free(data);
}

/* Takes what is done, and submits it again if `again`.  Returns how many. */
static int flood_turn(struct flood *flood, bool again)
{
    struct wharf_completion completions[DEPTH];
    int n = wharf_wait(flood->wharf, completions, DEPTH, 1, -1);

    gpu_memory_must("waiting", n);
    for (int i = 0; i < n; i++) {
        if (completions[i].result != WHARF_OK || completions[i].engine != engine)
            bench_die(wharf_result_name(completions[i].result));
        flood->out_nbytes += completions[i].out_nbytes;
        if (again)
            gpu_memory_must("submitting",
                            wharf_submit(flood->wharf, &flood->jobs[completions[i].user_data], 1));
    }
    flood->n_done += (unsigned)n;
    return n;
}

static void flood_end(struct flood *flood)
{
    for (unsigned left = DEPTH; left > 0;)
        left -= (unsigned)flood_turn(flood, false);
    wharf_close(flood->wharf);
}

/* ---- speed --------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(uint32_t codec, bool on_gpu, double seconds, size_t chunk_nbytes)
{
    struct flood *flood = malloc(sizeof(*flood));
    double rates[N_WINDOWS];

    flood_begin(flood, codec, chunk_nbytes, on_gpu, WHARF_CLASS_NORMAL);
    for (int i = -N_BEFORE; i < N_WINDOWS; i++) {
        uint64_t begun_ns = wharf_now_ns(), now_ns = begun_ns, n_before = flood->n_done;
        for (; (double)(now_ns - begun_ns) < 1e9 * seconds / N_WINDOWS; now_ns = wharf_now_ns())
            flood_turn(flood, true);
        if (i >= 0)
            rates[i] = (double)(flood->n_done - n_before) * (double)chunk_nbytes /
                       (double)(now_ns - begun_ns);
    }
    double ratio = (double)flood->n_done * (double)chunk_nbytes / (double)flood->out_nbytes;
    flood_end(flood);
    free(flood);
    qsort(rates, N_WINDOWS, sizeof(rates[0]), by_size);
    printf("{\"what\":\"gpu_compress\",\"memory\":\"%s\",\"codec\":\"%s\",\"data\":\"%s\","
           "\"warps\":%u,\"chunk_nbytes\":%zu,\"in_flight\":%d,\"windows\":%d,\"seconds\":%.2f,"
           "\"ratio\":%.3f,\"GBps_median\":%.2f,\"GBps_min\":%.2f,\"GBps_max\":%.2f}\n",
           on_gpu ? "gpu" : "host", wharf_codec_name(codec),
           codec == WHARF_CODEC_PALETTE ? "weights" : "mixed", n_warps, chunk_nbytes, DEPTH,
           N_WINDOWS, seconds, ratio, rates[N_WINDOWS / 2], rates[0], rates[N_WINDOWS - 1]);
    fflush(stdout);
}

static int measure_all(double seconds, size_t chunk_nbytes)
{
    bool has_gpu = engine == WHARF_ENGINE_GPU;

    start();
    for (unsigned on_gpu = 0; on_gpu <= has_gpu; on_gpu++)
        for (unsigned i = 0; i < N_CODECS; i++)
            measure(codecs[i], on_gpu, seconds, chunk_nbytes);
    test_wharfd_finish(&gpu_memory_wharfd);
    return 0;
}

/* ---- beside -------------------------------------------------------------------------------- */

static void *flood_on(void *data)
{
    struct flood *flood = data;

    while (!__atomic_load_n(&flood->stop, __ATOMIC_RELAXED))
        flood_turn(flood, true);
    flood_end(flood);
    return NULL;
}

/* Single interactive decodes for so long. */
static void sample(struct wharf *wharf, const struct wharf_job *job, double seconds,
                   struct bench_samples *samples)
{
    double end_us = bench_now_us() + 1e6 * seconds;

    for (double begun_us = bench_now_us(); begun_us < end_us; begun_us = bench_now_us()) {
        struct wharf_completion completion = run(wharf, job);
        if (completion.result != WHARF_OK)
            bench_die("a chunk was not decoded");
        bench_samples_add(samples, bench_now_us() - begun_us);
    }
}

enum kind { ALONE, BACKGROUND, NORMAL, N_KINDS };
static const char *const kinds[] = {"alone", "beside background", "beside normal"};

static void sample_kind(enum kind kind, struct wharf *wharf, const struct wharf_job *job,
                        double seconds, size_t chunk_nbytes, struct bench_samples *samples)
{
    struct flood *flood = malloc(sizeof(*flood));

    if (kind != ALONE) {
        flood_begin(flood, WHARF_CODEC_BDI, chunk_nbytes, false,
                    kind == BACKGROUND ? WHARF_CLASS_BACKGROUND : WHARF_CLASS_NORMAL);
        if (pthread_create(&flood->thread, NULL, flood_on, flood))
            bench_die("no thread");
    }
    sample(wharf, job, seconds, samples);
    if (kind != ALONE) {
        __atomic_store_n(&flood->stop, true, __ATOMIC_RELAXED);
        pthread_join(flood->thread, NULL);
        printf("# %s: %.2f GB/s compressed\n", kinds[kind],
               1e-9 * (double)flood->n_done * (double)chunk_nbytes / seconds);
    }
    free(flood);
}

static int measure_beside(double seconds, size_t chunk_nbytes)
{
    static const uint32_t decoded[] = {WHARF_CODEC_DEFLATE, WHARF_CODEC_LZ4};
    enum { NBYTES = 65536 };

    start();
    for (unsigned c = 0; c < sizeof(decoded) / sizeof(decoded[0]); c++) {
        struct wharf *wharf = gpu_memory_open(engine, 8, 16 * MiB);
        uint8_t *plain = test_data_new(test_data_find("text"), 1, NBYTES);
        struct bench_samples samples[N_KINDS];
        size_t nbytes;
        uint8_t *stream = test_pack(decoded[c], NULL, plain, NBYTES, &nbytes);
        struct wharf_job job = WHARF_JOB_INIT;
        job.codec = decoded[c];
        uint8_t *in = get_memory(wharf, false, nbytes);
        memcpy(in, stream, nbytes);
        job.in = in;
        job.in_nbytes = nbytes;
        job.out = get_memory(wharf, false, NBYTES);
        job.out_avail = NBYTES;
        job.job_class = WHARF_CLASS_INTERACTIVE;
        for (unsigned kind = 0; kind < N_KINDS; kind++)
            samples[kind] = bench_samples_new((size_t)(1e6 * seconds));
        for (unsigned turn = 0; turn < N_TURNS; turn++)
            for (unsigned kind = 0; kind < N_KINDS; kind++)
                sample_kind(kind, wharf, &job, seconds / N_TURNS, chunk_nbytes, &samples[kind]);
        for (unsigned kind = 0; kind < N_KINDS; kind++) {
            struct bench_spread times = bench_samples_spread(&samples[kind]);
            printf("{\"what\":\"interactive\",\"how\":\"%s\",\"codec\":\"%s\",\"data\":\"text\","
                   "\"nbytes\":%d,\"beside\":\"bdi\",\"warps\":%u,\"chunk_nbytes\":%zu,\"n\":%zu,"
                   "\"turns\":%d,"
                   "\"min_us\":%.2f,\"p50_us\":%.2f,\"p99_us\":%.2f,\"max_us\":%.2f,"
                   "\"p50_least_us\":%.2f,\"p50_most_us\":%.2f}\n",
                   kinds[kind], wharf_codec_name(decoded[c]), NBYTES, n_warps, chunk_nbytes,
                   samples[kind].n, N_TURNS, times.min_us, times.p50_us, times.p99_us, times.max_us,
                   times.p50_least_us, times.p50_most_us);
            bench_samples_free(&samples[kind]);
        }
        printf("# withdrawn %.0f, throttled %.0f\n", metric("wharf_gpu_idle_work_withdrawn_total"),
               metric("wharf_gpu_idle_work_throttled_total"));
        fflush(stdout);
        wharf_close(wharf);
        free(stream);
        free(plain);
    }
    test_wharfd_finish(&gpu_memory_wharfd);
    return 0;
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    if (argc > 2 && strcmp(argv[1], "--engine") == 0 && strcmp(argv[2], "simt") == 0) {
        engine = WHARF_ENGINE_SIMT;
        argv += 2;
        argc -= 2;
    }
    if (argc > 2 && strcmp(argv[1], "--warps") == 0) {
        n_warps = (unsigned)atoi(argv[2]);
        argv += 2;
        argc -= 2;
    }
    if (argc == 3 && strcmp(argv[1], "check") == 0)
        return check_them((unsigned)atoi(argv[2]));
    if (argc == 4 && strcmp(argv[1], "speed") == 0)
        return measure_all(atof(argv[2]), (size_t)atol(argv[3]));
    if (argc == 4 && strcmp(argv[1], "beside") == 0)
        return measure_beside(atof(argv[2]), (size_t)atol(argv[3]));
    return test_usage(help);
}
