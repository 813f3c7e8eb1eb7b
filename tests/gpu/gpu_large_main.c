/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_large_main.c: large streams of Deflate, zlib and gzip through the daemon, whose whole GPU
 * decodes each, with sources and outputs in the client's arena and in its own GPU memory.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "daemon/base/clock.h"
#include "encoders/decode_job.h"
#include "kernels/cuda_error.h"
#include "tests/bench/bench_row.h"
#include "tests/gpu/gpu_gzip.h"
#include "tests/gpu/gpu_memory_parts.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_help.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_tap.h"

static const char help[] =
    "usage: wharf_gpu_large [SAMPLE NBYTES LEVEL PIECE]\n"
    "\n"
    "Decodes large streams of Deflate through a daemon, on the first GPU.\n"
    "\n"
    "With SAMPLE, a file or a kind of test data, measures: packs NBYTES like it at\n"
    "zlib's LEVEL (0 to 9, or fixed), in pieces of PIECE bytes as pigz does, and\n"
    "prints a row for each place of source and output, a row for two streams at a\n"
    "time, and one of small jobs beside them.  Without, checks streams of many\n"
    "kinds, good, cut and damaged, and reports in the Test Anything Protocol.  It is\n"
    "run from BUILD/tests or from a folder beside wharfd and wharfd-gpu.\n";

enum { REPETITIONS = 9, SMALL_NBYTES = 65536, N_SMALL = 2000 };
#define MiB ((size_t)1 << 20)

/* Where a stream and its output are. */
struct place {
    bool from_gpu, to_gpu;
};
static const struct place places[] = {{false, false}, {false, true}, {true, false}, {true, true}};
enum { N_PLACES = sizeof(places) / sizeof(places[0]) };

/* A session, with room for a stream and an output in both memories. */
struct client {
    struct wharf *wharf;
    struct gpu_client_memory device;
    uint8_t *host;
    size_t in_room;
};

static void start(void)
{
    test_wharfd_start_gpu(&gpu_memory_wharfd, "cuda",
                          "large = 2G\n[quota]\nmax_memory = 64G\nmax_arena = 16G\nmax_job = 4G\n");
}

static void finish(void)
{
    if (test_wharfd_stop(&gpu_memory_wharfd) != 0)
        test_tap_report(0, "the daemon ends as it should");
    test_wharfd_remove(&gpu_memory_wharfd);
}

static struct client open_client(size_t in_room, size_t out_room)
{
    struct client client = {
        .wharf = gpu_memory_open(WHARF_ENGINE_GPU, 0, in_room + out_room + 16 * MiB),
        .in_room = (in_room + 4095) & ~(size_t)4095,
    };
    void *host;

    client.device = gpu_memory_register(client.wharf, client.in_room + out_room);
    gpu_memory_must("wharf_alloc", wharf_alloc(client.wharf, client.in_room + out_room, &host));
    client.host = host;
    return client;
}

static void close_client(struct client *client)
{
    wharf_close(client->wharf);
    gpu_client_free(&client->device);
}

static void put(bool is_gpu, uint8_t *to, const uint8_t *from, size_t nbytes)
{
    if (is_gpu)
        gpu_memory_must_cuda("copying", gpu_client_put(to, from, nbytes));
    else
        memcpy(to, from, nbytes);
}

static bool has_bytes(bool is_gpu, const uint8_t *at, const uint8_t *want, size_t nbytes)
{
    if (!is_gpu)
        return memcmp(at, want, nbytes) == 0;
    uint8_t *own = bench_check(malloc(nbytes + 1));
    gpu_memory_must_cuda("copying", gpu_client_get(own, at, nbytes));
    bool same = memcmp(own, want, nbytes) == 0;
    free(own);
    return same;
}

static struct wharf_job job_of(const struct client *client, struct place place, uint32_t codec,
                               size_t in_nbytes, size_t out_avail)
{
    struct wharf_job job = WHARF_JOB_INIT;

    job.codec = codec;
    job.in = place.from_gpu ? client->device.at : client->host;
    job.in_nbytes = in_nbytes;
    job.out = (place.to_gpu ? client->device.at : client->host) + client->in_room;
    job.out_avail = out_avail;
    return job;
}

/* ---- measuring ------------------------------------------------------------------------------- */

struct measurement {
    const char *sample, *level;
    size_t piece_nbytes, in_nbytes, out_nbytes;
    uint8_t *plain, *packed;
};

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_row(const struct measurement *m, const char *from, const char *to,
                      unsigned n_at_once, double *ms, unsigned n_wrong)
{
    const char *slash = strrchr(m->sample, '/');
    double mb = (double)n_at_once * (double)m->out_nbytes / 1e6;

    qsort(ms, REPETITIONS, sizeof(*ms), by_size);
    printf(
        "{\"what\":\"gpu_large\",\"source\":\"%s\",\"output\":\"%s\",\"codec\":\"gzip\",\"data\":"
        "\"%s\",\"level\":\"%s\",\"piece\":%zu,\"bytes\":%zu,\"ratio\":%.3f,\"at_once\":%u,"
        "\"GBps_median\":%.2f,\"GBps_min\":%.2f,\"GBps_max\":%.2f,\"us_median\":%.1f,\"runs\":%d,"
        "\"wrong\":%u}\n",
        from, to, slash ? slash + 1 : m->sample, m->level, m->piece_nbytes, m->out_nbytes,
        (double)m->out_nbytes / (double)m->in_nbytes, n_at_once, mb / ms[REPETITIONS / 2],
        mb / ms[REPETITIONS - 1], mb / ms[0], ms[REPETITIONS / 2] * 1e3, REPETITIONS, n_wrong);
    fflush(stdout);
}

/* Runs so many jobs at once.  Milliseconds until all have ended; *n_wrong of them not as they
 * should. */
static double run(struct wharf *wharf, const struct wharf_job *jobs, unsigned n, size_t out_nbytes,
                  unsigned *n_wrong)
{
    struct wharf_completion completions[2];
    uint64_t begun_ns = wharf_now_ns();

    gpu_memory_must("submitting", wharf_submit(wharf, jobs, n));
    gpu_memory_must("waiting", wharf_wait(wharf, completions, n, n, -1));
    double ms = 1e-6 * (double)(wharf_now_ns() - begun_ns);
    for (unsigned i = 0; i < n; i++)
        *n_wrong += completions[i].result != WHARF_OK || completions[i].out_nbytes != out_nbytes ||
                    completions[i].engine != WHARF_ENGINE_GPU;
    return ms;
}

static void measure_place(const struct measurement *m, const struct client *client,
                          struct place place)
{
    struct wharf_job job = job_of(client, place, WHARF_CODEC_GZIP, m->in_nbytes, m->out_nbytes);
    double ms[REPETITIONS];
    unsigned n_wrong = 0;

    put(place.from_gpu, (uint8_t *)(uintptr_t)job.in, m->packed, m->in_nbytes);
    run(client->wharf, &job, 1, m->out_nbytes, &n_wrong);
    for (unsigned i = 0; i < REPETITIONS; i++)
        ms[i] = run(client->wharf, &job, 1, m->out_nbytes, &n_wrong);
    n_wrong += !has_bytes(place.to_gpu, job.out, m->plain, m->out_nbytes);
    print_row(m, place.from_gpu ? "gpu" : "host", place.to_gpu ? "gpu" : "host", 1, ms, n_wrong);
}

/* Two streams at a time, of which one is in host memory and one in the GPU's. */
static void measure_two(const struct measurement *m, const struct client *client)
{
    struct wharf_job jobs[2];
    double ms[REPETITIONS];
    unsigned n_wrong = 0;

    for (unsigned i = 0; i < 2; i++) {
        jobs[i] =
            job_of(client, (struct place){i, i}, WHARF_CODEC_GZIP, m->in_nbytes, m->out_nbytes);
        jobs[i].user_data = i;
    }
    for (unsigned i = 0; i < REPETITIONS; i++)
        ms[i] = run(client->wharf, jobs, 2, m->out_nbytes, &n_wrong);
    for (unsigned i = 0; i < 2; i++)
        n_wrong += !has_bytes(i, jobs[i].out, m->plain, m->out_nbytes);
    print_row(m, "both", "both", 2, ms, n_wrong);
}

/* Small jobs of another session, one after the other, first alone and then beside streams that
 * follow one another. */
static void measure_beside(const struct measurement *m, const struct client *client)
{
    struct client other = open_client(SMALL_NBYTES * 2, SMALL_NBYTES);
    size_t in_nbytes;
    uint8_t *packed = gpu_gzip_pack(m->plain, SMALL_NBYTES, "6", SMALL_NBYTES, &in_nbytes);
    struct wharf_job small =
        job_of(&other, (struct place){false, false}, WHARF_CODEC_GZIP, in_nbytes, SMALL_NBYTES);
    struct wharf_job large =
        job_of(client, (struct place){true, true}, WHARF_CODEC_GZIP, m->in_nbytes, m->out_nbytes);
    struct bench_spread spreads[2];
    struct wharf_completion completion;
    unsigned n_wrong = 0, n_streams = 0;

    memcpy(other.host, packed, in_nbytes);
    for (unsigned beside = 0; beside < 2; beside++) {
        struct bench_samples samples = bench_samples_new(N_SMALL);
        if (beside)
            gpu_memory_must("submitting", wharf_submit(client->wharf, &large, 1));
        for (unsigned i = 0; i < N_SMALL; i++) {
            double begun_us = bench_now_us();
            run(other.wharf, &small, 1, SMALL_NBYTES, &n_wrong);
            bench_samples_add(&samples, bench_now_us() - begun_us);
            if (beside && wharf_poll(client->wharf, &completion, 1) == 1) {
                n_wrong += completion.result != WHARF_OK;
                n_streams++;
                gpu_memory_must("submitting", wharf_submit(client->wharf, &large, 1));
            }
        }
        spreads[beside] = bench_samples_spread(&samples);
        bench_samples_free(&samples);
    }
    gpu_memory_must("waiting", wharf_wait(client->wharf, &completion, 1, 1, -1));
    printf("{\"what\":\"gpu_large_beside\",\"codec\":\"gzip\",\"bytes\":%d,\"samples\":%d,"
           "\"p50_us_alone\":%.1f,\"p99_us_alone\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,"
           "\"max_us\":%.1f,\"stream_bytes\":%zu,\"streams\":%u,\"wrong\":%u}\n",
           SMALL_NBYTES, N_SMALL, spreads[0].p50_us, spreads[0].p99_us, spreads[1].p50_us,
           spreads[1].p99_us, spreads[1].max_us, m->out_nbytes, n_streams, n_wrong);
    fflush(stdout);
    free(packed);
    close_client(&other);
}

static void measure(struct measurement *m)
{
    m->plain = gpu_gzip_plain(m->sample, m->out_nbytes);
    m->packed = gpu_gzip_pack(m->plain, m->out_nbytes, m->level, m->piece_nbytes, &m->in_nbytes);
    struct client client = open_client(m->in_nbytes, m->out_nbytes);
    for (unsigned i = 0; i < N_PLACES; i++)
        measure_place(m, &client, places[i]);
    measure_two(m, &client);
    measure_beside(m, &client);
    close_client(&client);
    free(m->packed);
    free(m->plain);
}

/* ---- checking -------------------------------------------------------------------------------- */

static unsigned n_wrong;

static void check(const struct client *client, struct place place, uint32_t codec,
                  const uint8_t *in, size_t in_nbytes, size_t out_avail)
{
    struct wharf_job job = job_of(client, place, codec, in_nbytes, out_avail);
    uint8_t *want_out = bench_check(malloc(out_avail + 1));
    struct wharf_decode_job here = {
        .codec = codec, .in = in, .in_nbytes = in_nbytes, .out = want_out, .out_avail = out_avail};
    struct wharf_outcome want, got;

    wharf_decode_job_run(&here, 0, &want);
    put(place.from_gpu, (uint8_t *)(uintptr_t)job.in, in, in_nbytes);
    gpu_memory_must("decoding", wharf_decompress(client->wharf, &job, &got));
    size_t n = want.result == WHARF_OK ? want.out_nbytes : 0;
    bool good = test_outcome_same(&want, &got) && has_bytes(place.to_gpu, job.out, want_out, n);
    if (!good)
        printf("# %s, not %s\n", test_outcome_text(&got).text, test_outcome_text(&want).text);
    n_wrong += !good;
    free(want_out);
}

static void check_kind(const struct client *client, const struct test_data_kind *kind,
                       unsigned number)
{
    static const uint32_t codecs[] = {WHARF_CODEC_DEFLATE, WHARF_CODEC_ZLIB, WHARF_CODEC_GZIP};
    static const int window_bits[] = {-15, 15, 15 + 16};
    enum { NBYTES = 12 << 20, N_DAMAGED = 8 };
    uint8_t *plain = test_data_new(kind, number, NBYTES), *in = bench_check(malloc(2 * NBYTES));
    struct test_random random = {number};
    z_stream stream = {0};

    if (deflateInit2(&stream, (int)(number % 10), Z_DEFLATED, window_bits[number % 3], 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        bench_die("deflateInit2");
    stream.next_in = plain;
    stream.avail_in = NBYTES;
    stream.next_out = in;
    stream.avail_out = 2 * NBYTES;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        bench_die("deflate");
    deflateEnd(&stream);
    n_wrong = 0;
    for (unsigned i = 0; i < N_PLACES; i++)
        check(client, places[i], codecs[number % 3], in, stream.total_out, NBYTES + i);
    check(client, places[number % N_PLACES], codecs[number % 3], in, stream.total_out,
          NBYTES * 3 / 4);
    check(client, places[(number + 1) % N_PLACES], codecs[number % 3], in, stream.total_out * 5 / 8,
          NBYTES);
    for (unsigned i = 0; i < N_DAMAGED; i++) {
        size_t at = i < 2 ? stream.total_out - 1 - i : test_random_below(&random, stream.total_out);
        in[at] ^= 1 << i % 8;
        check(client, places[i % N_PLACES], codecs[number % 3], in, stream.total_out, NBYTES);
        in[at] ^= 1 << i % 8;
    }
    test_tap_report(n_wrong == 0, "%s, codec %u, level %u: %u wrong", kind->name,
                    codecs[number % 3], number % 10, n_wrong);
    free(in);
    free(plain);
}

/* Streams are cancelled at any moment, and the next one is right. */
static void check_cancels(const struct client *client)
{
    enum { NBYTES = 100 << 20, N = 40 };
    size_t in_nbytes;
    uint8_t *plain = gpu_gzip_plain("text", NBYTES);
    uint8_t *in = gpu_gzip_pack(plain, NBYTES, "6", MiB, &in_nbytes);
    struct wharf_job job = job_of(client, places[0], WHARF_CODEC_GZIP, in_nbytes, NBYTES);
    struct wharf_completion completion;
    unsigned n_cancelled = 0, n_right = 0;

    memcpy(client->host, in, in_nbytes);
    for (unsigned i = 0; i < N; i++) {
        uint64_t until_ns;
        gpu_memory_must("submitting", wharf_submit(client->wharf, &job, 1));
        until_ns = wharf_now_ns() + i * 200000;
        while (wharf_now_ns() < until_ns)
            ;
        wharf_cancel(client->wharf, 0);
        gpu_memory_must("waiting", wharf_wait(client->wharf, &completion, 1, 1, -1));
        n_cancelled += completion.result == WHARF_CANCELLED;
        n_right += completion.result == WHARF_OK;
    }
    n_wrong = 0;
    check(client, places[0], WHARF_CODEC_GZIP, in, in_nbytes, NBYTES);
    test_tap_report(n_cancelled > 0 && n_cancelled + n_right == N && n_wrong == 0,
                    "%u of %d streams are cancelled, and the next one is right", n_cancelled, N);
    free(in);
    free(plain);
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    if (argc != 1 && argc != 5)
        return test_usage(help);
    start();
    if (argc == 5) {
        struct measurement m = {.sample = argv[1],
                                .out_nbytes = strtoull(argv[2], NULL, 10),
                                .level = argv[3],
                                .piece_nbytes = strtoull(argv[4], NULL, 10)};
        measure(&m);
        finish();
        return 0;
    }
    struct client client = open_client(64 * MiB, 128 * MiB);
    for (unsigned i = 0; i < test_data_n_kinds; i++)
        check_kind(&client, &test_data_kinds[i], i);
    check_cancels(&client);
    test_tap_report(test_wharfd_metric(&gpu_memory_wharfd, "wharf_gpu_streams_total", NULL) > 0,
                    "the whole GPU decoded %g streams",
                    test_wharfd_metric(&gpu_memory_wharfd, "wharf_gpu_streams_total", NULL));
    close_client(&client);
    finish();
    return test_tap_end();
}
