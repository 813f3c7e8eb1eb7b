/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_memory_measure.c: bytes a second of one client that submits batches, with sources in a file,
 * in GPU memory or in its arena, and outputs in one of the latter. */
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "daemon/base/clock.h"
#include "encoders/rle_values.h"
#include "tests/gpu/gpu_memory_parts.h"
#include "tests/gpu/gpu_pack.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_process.h"

enum {
    BATCH = 64,     /* chunks */
    DEPTH = 64,     /* batches in flight */
    N_WINDOWS = 10, /* of which the spread is given; some before them, to get ready */
    N_BEFORE = 3,
};

/* Where sources and outputs are. */
enum where { HOST, GPU, FROM_FILE };
static const char *const where_names[] = {"host", "gpu", "file"};

struct way {
    enum where from, to;
};

/* What is in flight: chunk i of all has source and output i. */
struct flood {
    const struct gpu_source *source;
    struct way way;
    struct wharf *wharf;
    struct gpu_client_memory sources, outputs; /* those on the GPU */
    int fd;                                    /* of the file */
    const uint8_t *file;                       /* where jobs find it */
    uint8_t *out;
    struct wharf_batch_chunk chunks[DEPTH * BATCH];
    struct wharf_batch batches[DEPTH];
    uint64_t in_nbytes, out_nbytes; /* of a batch, on average */
};

static size_t stride(const struct flood *flood)
{
    return (gpu_chunk_nbytes(flood->source) + 255) & ~(size_t)255;
}

static const struct gpu_packed *packed(const struct flood *flood, size_t i)
{
    return &flood->source->packed[i % flood->source->n_chunks];
}

/* A file without a name, in the page cache. */
static void open_file(struct flood *flood)
{
    char path[] = "/tmp/wharf-gpu-memory.XXXXXX";
    void *address;

    flood->fd = mkstemp(path);
    gpu_memory_must("making a file", flood->fd);
    unlink(path);
    gpu_memory_must("registering a file",
                    wharf_register_file(flood->wharf, flood->fd, WHARF_MEMORY_READ_ONLY, &address));
    flood->file = address;
}

static void get_memory(struct flood *flood, uint32_t engine)
{
    size_t in_nbytes = 0, out_nbytes = DEPTH * BATCH * stride(flood);
    void *out = NULL;

    for (size_t i = 0; i < DEPTH * BATCH; i++)
        in_nbytes += packed(flood, i)->nbytes + 64;
    flood->wharf = gpu_memory_open(engine, DEPTH, in_nbytes + out_nbytes + (64 << 20));
    if (flood->way.from == GPU)
        flood->sources = gpu_memory_register(flood->wharf, in_nbytes);
    if (flood->way.from == FROM_FILE)
        open_file(flood);
    if (flood->way.to == GPU)
        flood->outputs = gpu_memory_register(flood->wharf, out_nbytes);
    else
        gpu_memory_must("wharf_alloc", wharf_alloc(flood->wharf, out_nbytes, &out));
    flood->out = flood->way.to == GPU ? flood->outputs.at : out;
}

/* The source of chunk i, whose bytes begin `at` bytes into those on the GPU, or in the file. */
static const void *put_source(const struct flood *flood, size_t i, size_t at)
{
    const struct gpu_packed *from = packed(flood, i);
    void *in;

    if (flood->way.from == FROM_FILE) {
        if (pwrite(flood->fd, from->data, from->nbytes, (off_t)at) != (ssize_t)from->nbytes) {
            printf("# the file cannot be written\n");
            exit(1);
        }
        return flood->file + at;
    }
    if (flood->way.from == GPU) {
        uint8_t *to = flood->sources.at + at;
        gpu_memory_must_cuda("copying", gpu_client_put(to, from->data, from->nbytes));
        return to;
    }
    gpu_memory_must("wharf_alloc", wharf_alloc(flood->wharf, from->nbytes, &in));
    memcpy(in, from->data, from->nbytes);
    return in;
}

static void place_chunks(struct flood *flood)
{
    size_t at = 0;

    for (size_t i = 0; i < DEPTH * BATCH; i++) {
        flood->chunks[i] = (struct wharf_batch_chunk){
            .in = put_source(flood, i, at),
            .in_nbytes = (uint32_t)packed(flood, i)->nbytes,
            .out = flood->out + i * stride(flood),
            .out_avail = (uint32_t)gpu_chunk_nbytes(flood->source),
        };
        flood->in_nbytes += packed(flood, i)->nbytes;
        at += packed(flood, i)->nbytes + 64;
    }
}

static void make_batches(struct flood *flood)
{
    place_chunks(flood);
    flood->in_nbytes /= DEPTH;
    flood->out_nbytes = BATCH * gpu_chunk_nbytes(flood->source);
    for (unsigned i = 0; i < DEPTH; i++) {
        struct wharf_batch *batch = &flood->batches[i];
        *batch = (struct wharf_batch)WHARF_BATCH_INIT;
        batch->codec = flood->source->codec_number;
        batch->parameter = flood->source->parameter;
        batch->chunks = &flood->chunks[i * BATCH];
        batch->n_chunks = BATCH;
        batch->user_data = i;
        gpu_memory_must("submitting", wharf_submit_batch(flood->wharf, batch));
    }
}

/* Batches a second in one window. */
static double run_window(struct flood *flood, double seconds)
{
    struct wharf_completion completions[DEPTH];
    uint64_t begun_ns = wharf_now_ns(), now_ns = begun_ns, n_done = 0;

    while ((double)(now_ns - begun_ns) < 1e9 * seconds) {
        int n = wharf_wait(flood->wharf, completions, DEPTH, 1, -1);
        gpu_memory_must("waiting", n);
        for (int i = 0; i < n; i++) {
            if (completions[i].result != WHARF_OK) {
                printf("# %s\n", wharf_result_name(completions[i].result));
                exit(1);
            }
            gpu_memory_must(
                "submitting",
                wharf_submit_batch(flood->wharf, &flood->batches[completions[i].user_data]));
        }
        n_done += (unsigned)n;
        now_ns = wharf_now_ns();
    }
    return (double)n_done * 1e9 / (double)(now_ns - begun_ns);
}

static void drain(struct flood *flood)
{
    struct wharf_completion completions[DEPTH];

    while (wharf_wait(flood->wharf, completions, DEPTH, DEPTH, -1) > 0)
        ;
}

/* Of all outputs, how many are wrong. */
static unsigned count_wrong(const struct flood *flood)
{
    size_t nbytes = gpu_chunk_nbytes(flood->source);
    uint8_t *own = malloc(nbytes);
    unsigned n_wrong = 0;

    for (size_t i = 0; i < DEPTH * BATCH; i++) {
        const uint8_t *out = flood->out + i * stride(flood);
        if (flood->way.to == GPU)
            gpu_memory_must_cuda("copying", gpu_client_get(own, out, nbytes));
        n_wrong +=
            memcmp(flood->way.to == GPU ? own : out,
                   flood->source->file + i % flood->source->n_chunks * flood->source->chunk_nbytes,
                   nbytes) != 0;
    }
    free(own);
    return n_wrong;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Of the daemon with all its processes, and of this one. */
static double processor_seconds(void)
{
    return test_process_tree_seconds(gpu_memory_wharfd.pid) + (double)clock() / CLOCKS_PER_SEC;
}

/* The processor time that libdeflate takes for a GB of the output; 0: it does not know the codec.
 */
static double libdeflate_seconds(const struct gpu_source *source)
{
    struct libdeflate_decompressor *decoder = libdeflate_alloc_decompressor();
    uint8_t *out = malloc(source->chunk_nbytes);
    clock_t begun = clock();
    double gb = 0;

    for (size_t i = 0; source->codec_number == WHARF_CODEC_DEFLATE && decoder && out &&
                       clock() < begun + CLOCKS_PER_SEC;
         i++, gb += 1e-9 * (double)source->chunk_nbytes) {
        const struct gpu_packed *from = &source->packed[i % source->n_chunks];
        if (libdeflate_deflate_decompress(decoder, from->data, from->nbytes, out,
                                          source->chunk_nbytes, NULL) != LIBDEFLATE_SUCCESS)
            break;
    }
    free(out);
    libdeflate_free_decompressor(decoder);
    return gb > 0 ? (double)(clock() - begun) / CLOCKS_PER_SEC / gb : 0;
}

static void print_row(const struct flood *flood, const char *name, double seconds,
                      const double rates[N_WINDOWS], double processor_s_per_gb)
{
    const struct gpu_source *source = flood->source;
    double out_gb = 1e-9 * (double)flood->out_nbytes, in_gb = 1e-9 * (double)flood->in_nbytes;

    printf("{\"what\":\"gpu_memory\",\"source\":\"%s\",\"output\":\"%s\",\"codec\":\"%s\",\"data\":"
           "\"%s\","
           "\"chunk_nbytes\":%zu,\"n_chunks\":%d,\"batch\":%d,\"windows\":%d,\"seconds\":%.2f,"
           "\"GBps_median\":%.2f,\"GBps_min\":%.2f,\"GBps_max\":%.2f,\"GBps_in_median\":%.2f,"
           "\"processor_s_per_GB\":%.4f,\"libdeflate_s_per_GB\":%.4f,\"wrong\":%u}\n",
           where_names[flood->way.from], where_names[flood->way.to], source->codec->name, name,
           source->chunk_nbytes, DEPTH * BATCH, BATCH, N_WINDOWS, seconds,
           rates[N_WINDOWS / 2] * out_gb, rates[0] * out_gb, rates[N_WINDOWS - 1] * out_gb,
           rates[N_WINDOWS / 2] * in_gb, processor_s_per_gb, libdeflate_seconds(source),
           count_wrong(flood));
    fflush(stdout);
}

static void run(const struct gpu_source *source, const char *name, struct way way, double seconds)
{
    struct flood *flood = calloc(1, sizeof(*flood));
    double rates[N_WINDOWS], sum = 0;

    flood->source = source;
    flood->way = way;
    get_memory(flood, WHARF_ENGINE_GPU);
    make_batches(flood);
    for (unsigned i = 0; i < N_BEFORE; i++)
        run_window(flood, seconds / N_WINDOWS);
    double begun_s = processor_seconds();
    for (unsigned i = 0; i < N_WINDOWS; i++)
        sum += rates[i] = run_window(flood, seconds / N_WINDOWS);
    double gb = sum / N_WINDOWS * seconds * 1e-9 * (double)flood->out_nbytes;
    double processor_s = processor_seconds() - begun_s;
    drain(flood);
    qsort(rates, N_WINDOWS, sizeof(rates[0]), by_size);
    print_row(flood, name, seconds, rates, processor_s / gb);
    wharf_close(flood->wharf);
    if (way.from == FROM_FILE)
        close(flood->fd);
    if (way.from == GPU)
        gpu_client_free(&flood->sources);
    if (way.to == GPU)
        gpu_client_free(&flood->outputs);
    free(flood);
}

static const char *name_of(const char *path)
{
    return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

/* Chunks of a file. */
static struct gpu_source pack(const char *codec, const char *path, size_t chunk_nbytes, size_t n)
{
    struct gpu_source source = {0};
    size_t file_nbytes;
    char name[32];

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(codec, ":"), codec);
    int number = wharf_codec_from_name(name);
    int type = strchr(codec, ':') ? wharf_rle_type_from_name(strchr(codec, ':') + 1) : 0;
    source.file = test_file_read(path, &file_nbytes);
    if (number < 0 || type < 0 || !source.file || file_nbytes < chunk_nbytes) {
        printf("# %s, %s: no such codec, or the file is too short\n", codec, path);
        exit(2);
    }
    source.codec_number = (uint32_t)number;
    source.parameter = (uint32_t)type;
    source.codec = wharf_codec_find(source.codec_number);
    gpu_pack(&source, file_nbytes, chunk_nbytes, n);
    return source;
}

static void measure(const char *codec, const char *path, size_t chunk_nbytes, double seconds,
                    const struct way *ways, size_t n_ways)
{
    struct gpu_source source = pack(codec, path, chunk_nbytes, DEPTH * BATCH);

    for (size_t i = 0; i < n_ways; i++)
        run(&source, name_of(path), ways[i], seconds);
    gpu_source_free(&source);
    free((void *)source.file);
}

void gpu_memory_measure(const char *codec, const char *path, size_t chunk_nbytes, double seconds)
{
    static const struct way ways[] = {{HOST, HOST}, {HOST, GPU}, {GPU, GPU}};

    measure(codec, path, chunk_nbytes, seconds, ways, sizeof(ways) / sizeof(ways[0]));
}

/* ---- one range at a time ------------------------------------------------------------------ */

/* The median of what a call takes in so many seconds, in microseconds. */
static double median_us(double (*call)(void *context, size_t i), void *context, double seconds)
{
    static double took[1 << 16];
    uint64_t begun_ns = wharf_now_ns();
    size_t n = 0;

    while (n < sizeof(took) / sizeof(took[0]) &&
           (double)(wharf_now_ns() - begun_ns) < 1e9 * seconds) {
        took[n] = call(context, n);
        n++;
    }
    qsort(took, n, sizeof(took[0]), by_size);
    return took[n / 2];
}

/* By the daemon, from the file to the arena; and by this process, which reads and decodes. */
struct lone {
    struct flood *flood;
    struct wharf *embedded;
    uint8_t *in;
};

static double run_lone(struct wharf *wharf, struct flood *flood, size_t i, const void *in)
{
    const struct wharf_batch_chunk *chunk = &flood->chunks[i % (DEPTH * BATCH)];
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_outcome outcome;
    uint64_t begun_ns = wharf_now_ns();

    job.codec = flood->source->codec_number;
    job.parameter = flood->source->parameter;
    job.in = in;
    job.in_nbytes = chunk->in_nbytes;
    job.out = chunk->out;
    job.out_avail = chunk->out_avail;
    gpu_memory_must("decoding", wharf_decompress(wharf, &job, &outcome));
    return 1e-3 * (double)(wharf_now_ns() - begun_ns);
}

static double by_daemon(void *context, size_t i)
{
    struct lone *lone = context;

    return run_lone(lone->flood->wharf, lone->flood, i,
                    lone->flood->chunks[i % (DEPTH * BATCH)].in);
}

static double by_self(void *context, size_t i)
{
    struct lone *lone = context;
    const struct wharf_batch_chunk *chunk = &lone->flood->chunks[i % (DEPTH * BATCH)];
    uint64_t begun_ns = wharf_now_ns();

    if (pread(lone->flood->fd, lone->in, chunk->in_nbytes,
              (const uint8_t *)chunk->in - lone->flood->file) != (ssize_t)chunk->in_nbytes)
        exit(1);
    double read_us = 1e-3 * (double)(wharf_now_ns() - begun_ns);
    return read_us + run_lone(lone->embedded, lone->flood, i, lone->in);
}

static void measure_lone(const struct gpu_source *source, const char *name, double seconds)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct flood *flood = calloc(1, sizeof(*flood));
    struct lone lone = {.flood = flood, .in = malloc(source->chunk_nbytes)};

    flood->source = source;
    flood->way = (struct way){FROM_FILE, HOST};
    get_memory(flood, WHARF_ENGINE_AUTO);
    place_chunks(flood);
    options.flags = WHARF_OPEN_EMBEDDED;
    gpu_memory_must("opening", wharf_open(&options, &lone.embedded));
    median_us(by_daemon, &lone, seconds);
    double daemon_us = median_us(by_daemon, &lone, seconds);
    double self_us = median_us(by_self, &lone, seconds);
    printf("{\"what\":\"file_range\",\"codec\":\"%s\",\"data\":\"%s\",\"chunk_nbytes\":%zu,"
           "\"daemon_us\":%.1f,\"pread_and_decode_us\":%.1f}\n",
           source->codec->name, name, source->chunk_nbytes, daemon_us, self_us);
    fflush(stdout);
    wharf_close(lone.embedded);
    wharf_close(flood->wharf);
    close(flood->fd);
    free(lone.in);
    free(flood);
}

void gpu_memory_measure_files(const char *codec, const char *path, size_t chunk_nbytes,
                              double seconds)
{
    static const struct way ways[] = {{HOST, GPU}, {FROM_FILE, GPU}, {FROM_FILE, HOST}};
    struct gpu_source source = pack(codec, path, chunk_nbytes, DEPTH * BATCH);

    measure_lone(&source, name_of(path), seconds / 4);
    gpu_source_free(&source);
    free((void *)source.file);
    measure(codec, path, chunk_nbytes, seconds, ways, sizeof(ways) / sizeof(ways[0]));
}

void gpu_memory_measure_share(const char *codec, const char *path, size_t chunk_nbytes,
                              unsigned n_processes, uint32_t n_chunks, double seconds)
{
    struct gpu_source source = pack(codec, path, chunk_nbytes, n_chunks);

    gpu_memory_share(&source, name_of(path), n_processes, n_chunks, seconds);
    gpu_source_free(&source);
    free((void *)source.file);
}
