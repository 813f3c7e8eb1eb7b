/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_inflate_main.c: one large stream of Deflate by the whole GPU, through libwharf-cuda's call.
 */
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "clientlib/cuda/wharf_cuda.h"
#include "encoders/decode_job.h"
#include "tests/bench/bench_row.h"
#include "tests/gpu/gpu_gzip.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_help.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_tap.h"

static const char help[] =
    "usage: wharf_gpu_inflate [SAMPLE NBYTES LEVEL PIECE]\n"
    "\n"
    "Decodes large streams of Deflate by the first GPU, through libwharf-cuda.\n"
    "\n"
    "With SAMPLE, a file or a kind of test data, measures: packs NBYTES like it at\n"
    "zlib's LEVEL (0 to 9, or fixed), in pieces of PIECE bytes as pigz does, and\n"
    "prints a row of the whole GPU and, up to 256 MiB, one of a block of warps.\n"
    "Without, checks streams of many kinds, good, cut and damaged, and reports in\n"
    "the Test Anything Protocol.\n";

enum { REPETITIONS = 9 };

static struct wharf_cuda *cuda;

static void must(cudaError_t error)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(error));
    exit(3);
}

static void must_call(int rc)
{
    if (rc == 0)
        return;
    fprintf(stderr, "libwharf-cuda: %s\n", wharf_cuda_error_message());
    exit(3);
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* A stream in GPU memory, and what it takes to decode it. */
struct device_stream {
    struct wharf_cuda_deflate_stream stream;
    void *d_in;
    struct wharf_outcome *outcome;
};

static struct device_stream lend(uint32_t codec, const uint8_t *in, size_t in_nbytes,
                                 size_t out_avail)
{
    struct device_stream d = {.stream = WHARF_CUDA_DEFLATE_STREAM_INIT};

    d.stream.codec = codec;
    d.stream.in_nbytes = in_nbytes;
    d.stream.out_avail = out_avail;
    must(cudaMalloc(&d.d_in, in_nbytes + 1));
    must(cudaMalloc(&d.stream.out, out_avail + 1));
    must(cudaMallocManaged((void **)&d.outcome, sizeof(*d.outcome), cudaMemAttachGlobal));
    must(cudaMemcpy(d.d_in, in, in_nbytes, cudaMemcpyHostToDevice));
    must(cudaMemset(d.stream.out, 0xa5, out_avail + 1));
    d.stream.in = d.d_in;
    d.stream.outcome = d.outcome;
    must_call(wharf_cuda_inflate_scratch(cuda, &d.stream, &d.stream.scratch_nbytes));
    must(cudaMalloc(&d.stream.scratch, d.stream.scratch_nbytes));
    must(cudaMemset(d.stream.scratch, 0x5a, d.stream.scratch_nbytes));
    return d;
}

static void give_back(struct device_stream *d)
{
    must(cudaFree(d->d_in));
    must(cudaFree(d->stream.out));
    must(cudaFree(d->outcome));
    must(cudaFree(d->stream.scratch));
}

/* Whether `out` is what the GPU has written, and nothing behind it. */
static bool has_bytes(const struct device_stream *d, const uint8_t *out, size_t nbytes)
{
    uint8_t *got = bench_check(malloc(d->stream.out_avail + 1));

    must(cudaMemcpy(got, d->stream.out, d->stream.out_avail + 1, cudaMemcpyDeviceToHost));
    bool same = memcmp(got, out, nbytes) == 0 && got[d->stream.out_avail] == 0xa5;
    free(got);
    return same;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* A call whose work is measured. */
typedef void start_fn(void *context);

static void start_inflate(void *context)
{
    const struct device_stream *d = context;
    must_call(wharf_cuda_inflate(cuda, &d->stream, NULL));
}

static void start_batch(void *context)
{
    must_call(wharf_cuda_decode(cuda, context, NULL));
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Milliseconds of each call behind the first one, the shortest first. */
static void time_calls(start_fn *start, void *context, float *ms)
{
    cudaEvent_t begin, end;

    must(cudaEventCreate(&begin));
    must(cudaEventCreate(&end));
    for (unsigned i = 0; i <= REPETITIONS; i++) {
        must(cudaEventRecord(begin, NULL));
        start(context);
        must(cudaEventRecord(end, NULL));
        must(cudaEventSynchronize(end));
        if (i > 0)
            must(cudaEventElapsedTime(&ms[i - 1], begin, end));
    }
    qsort(ms, REPETITIONS, sizeof(*ms), compare_floats);
    must(cudaEventDestroy(begin));
    must(cudaEventDestroy(end));
}

/* What was asked for, and what came of it. */
struct measurement {
    const char *sample, *level;
    size_t piece_nbytes, in_nbytes, out_nbytes, scratch_nbytes;
};

static void print_row(const struct measurement *m, const char *call, const float *ms, bool is_wrong)
{
    const char *slash = strrchr(m->sample, '/');
    double mb = (double)m->out_nbytes / 1e6;
    struct cudaDeviceProp device;

    must(cudaGetDeviceProperties(&device, 0));
    printf("{\"peer\":\"wharf\",\"mode\":\"stream\",\"codec\":\"gzip\",\"data\":\"%s\",\"level\":"
           "\"%s\","
           "\"piece\":%zu,\"bytes\":%zu,\"ratio\":%.3f,\"GBps_median\":%.2f,\"GBps_min\":%.2f,"
           "\"GBps_max\":%.2f,\"us_median\":%.1f,\"runs\":%d,\"wrong\":%d,\"device\":\"%s\","
           "\"call\":\"%s\",\"scratch\":%zu}\n",
           slash ? slash + 1 : m->sample, m->level, m->piece_nbytes, m->out_nbytes,
           (double)m->out_nbytes / (double)m->in_nbytes, mb / ms[REPETITIONS / 2],
           mb / ms[REPETITIONS - 1], mb / ms[0], ms[REPETITIONS / 2] * 1e3, REPETITIONS, is_wrong,
           device.name, call, m->scratch_nbytes);
    fflush(stdout);
}

/* Whether the stream came out as it went in. */
static bool is_right(const struct device_stream *d, const uint8_t *plain, size_t nbytes)
{
    return d->outcome->result == WHARF_OK && d->outcome->in_nbytes == d->stream.in_nbytes &&
           d->outcome->out_nbytes == nbytes && has_bytes(d, plain, nbytes);
}

/* The same stream as a batch of one chunk. */
static void measure_batch(struct measurement *m, const struct device_stream *d,
                          const uint8_t *plain)
{
    struct arrays {
        const void *in;
        void *out;
        size_t in_nbytes, out_avail;
    } * arrays;
    struct wharf_cuda_batch batch = WHARF_CUDA_BATCH_INIT;
    float ms[REPETITIONS];

    must(cudaMallocManaged((void **)&arrays, sizeof(*arrays), cudaMemAttachGlobal));
    *arrays =
        (struct arrays){d->stream.in, d->stream.out, d->stream.in_nbytes, d->stream.out_avail};
    batch.codec = d->stream.codec;
    batch.n_chunks = 1;
    batch.in = &arrays->in;
    batch.in_nbytes = &arrays->in_nbytes;
    batch.out = &arrays->out;
    batch.out_avail = &arrays->out_avail;
    batch.outcomes = d->outcome;
    must_call(wharf_cuda_decode_scratch(cuda, &batch, &batch.scratch_nbytes));
    must(cudaMalloc(&batch.scratch, batch.scratch_nbytes));
    time_calls(start_batch, &batch, ms);
    m->scratch_nbytes = batch.scratch_nbytes;
    print_row(m, "wharf_cuda_decode", ms, !is_right(d, plain, m->out_nbytes));
    must(cudaFree(batch.scratch));
    must(cudaFree(arrays));
}

static void measure(struct measurement *m)
{
    uint8_t *plain = gpu_gzip_plain(m->sample, m->out_nbytes);
    uint8_t *in = gpu_gzip_pack(plain, m->out_nbytes, m->level, m->piece_nbytes, &m->in_nbytes);
    struct device_stream d = lend(WHARF_CODEC_GZIP, in, m->in_nbytes, m->out_nbytes);
    float ms[REPETITIONS];

    time_calls(start_inflate, &d, ms);
    m->scratch_nbytes = d.stream.scratch_nbytes;
    print_row(m, "wharf_cuda_inflate", ms, !is_right(&d, plain, m->out_nbytes));
    if (m->out_nbytes <= WHARF_CUDA_MAX_CHUNK_NBYTES && m->in_nbytes <= WHARF_CUDA_MAX_CHUNK_NBYTES)
        measure_batch(m, &d, plain);
    give_back(&d);
    free(in);
    free(plain);
}

/* ---- checking -------------------------------------------------------------------------------- */

static unsigned n_wrong;

static void check(uint32_t codec, const uint8_t *in, size_t in_nbytes, size_t out_avail)
{
    struct device_stream d = lend(codec, in, in_nbytes, out_avail);
    uint8_t *want_out = bench_check(malloc(out_avail + 1));
    struct wharf_decode_job job = {
        .codec = codec, .in = in, .in_nbytes = in_nbytes, .out = want_out, .out_avail = out_avail};
    struct wharf_outcome want;

    wharf_decode_job_run(&job, 0, &want);
    must_call(wharf_cuda_inflate(cuda, &d.stream, NULL));
    must(cudaDeviceSynchronize());
    size_t n = want.result == WHARF_OK ? want.out_nbytes : 0;
    bool good = test_outcome_same(&want, d.outcome) && has_bytes(&d, want_out, n);
    if (!good)
        fprintf(stderr, "%s, not %s\n", test_outcome_text(d.outcome).text,
                test_outcome_text(&want).text);
    n_wrong += !good;
    free(want_out);
    give_back(&d);
}

struct shape {
    int level, strategy;
    size_t flush_nbytes;
    int flush;
};
static const struct shape shapes[] = {
    {1, Z_DEFAULT_STRATEGY, 0, 0},
    {6, Z_DEFAULT_STRATEGY, 0, 0},
    {9, Z_DEFAULT_STRATEGY, 0, 0},
    {0, Z_DEFAULT_STRATEGY, 0, 0},
    {6, Z_FIXED, 0, 0},
    {6, Z_HUFFMAN_ONLY, 0, 0},
    {6, Z_DEFAULT_STRATEGY, 500, Z_BLOCK},
    {6, Z_DEFAULT_STRATEGY, 50000, Z_SYNC_FLUSH},
    {6, Z_FIXED, 5000, Z_SYNC_FLUSH},
};
enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]), N_DAMAGED = 12 };
static const uint32_t codecs[] = {WHARF_CODEC_DEFLATE, WHARF_CODEC_ZLIB, WHARF_CODEC_GZIP};
static const int window_bits[] = {-15, 15, 15 + 16};

static size_t pack_shape(const struct shape *shape, int bits, const uint8_t *plain, size_t nbytes,
                         uint8_t *out, size_t avail)
{
    z_stream stream = {0};

    if (deflateInit2(&stream, shape->level, Z_DEFLATED, bits, 8, shape->strategy) != Z_OK)
        bench_die("deflateInit2");
    stream.next_in = (Bytef *)(uintptr_t)plain;
    stream.next_out = out;
    stream.avail_out = (uInt)avail;
    for (size_t at = 0; shape->flush_nbytes && at + shape->flush_nbytes < nbytes;
         at += shape->flush_nbytes) {
        stream.avail_in = (uInt)shape->flush_nbytes;
        deflate(&stream, shape->flush);
    }
    stream.avail_in = (uInt)(nbytes - stream.total_in);
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        bench_die("deflate");
    deflateEnd(&stream);
    return stream.total_out;
}

static void check_kind(const struct test_data_kind *kind, unsigned number)
{
    enum { NBYTES = 6 << 20 };
    const struct shape *shape = &shapes[number % N_SHAPES];
    unsigned c = number % 3;
    size_t avail = NBYTES + NBYTES / 2;
    uint8_t *plain = test_data_new(kind, number, NBYTES), *in = bench_check(malloc(2 * avail));
    size_t n = pack_shape(shape, window_bits[c], plain, NBYTES, in, avail);
    struct test_random random = {number};

    n_wrong = 0;
    check(codecs[c], in, n, NBYTES);
    check(codecs[c], in, n, NBYTES * 3 / 4);
    check(codecs[c], in, n * 5 / 8, NBYTES);
    for (unsigned i = 0; i < N_DAMAGED; i++) {
        size_t at = i < 4 ? n - 1 - i : test_random_below(&random, n);
        in[at] ^= 1 << i % 8;
        check(codecs[c], in, n, NBYTES);
        in[at] ^= 1 << i % 8;
    }
    if (codecs[c] == WHARF_CODEC_GZIP) {
        /* Another member, and what is none. */
        size_t more = pack_shape(&shapes[1], window_bits[c], plain, NBYTES / 2, in + n, avail);
        memcpy(in + n + more, "no member", 9);
        check(codecs[c], in, n + more + 9, 2 * NBYTES);
        in[n - 6] ^= 1;
        check(codecs[c], in, n + more, 2 * NBYTES);
    }
    test_tap_report(n_wrong == 0, "%s, codec %u, level %d, strategy %d, flushes %zu: %u wrong",
                    kind->name, codecs[c], shape->level, shape->strategy, shape->flush_nbytes,
                    n_wrong);
    free(in);
    free(plain);
}

/* A graph with the call, replayed on other streams that lie in the same place, and two streams of
 * CUDA at once. */
static void check_graph(void)
{
    enum { NBYTES = 3 << 20 };
    uint8_t *plain = test_data_new(test_data_find("text"), 3, NBYTES);
    uint8_t *in = bench_check(malloc(2 * NBYTES));
    size_t n = pack_shape(&shapes[1], 15 + 16, plain, NBYTES, in, 2 * NBYTES);
    struct device_stream d[2];
    cudaStream_t streams[2];
    cudaGraphExec_t graphs[2];
    unsigned wrong = 0;

    for (unsigned i = 0; i < 2; i++) {
        cudaGraph_t graph;
        d[i] = lend(WHARF_CODEC_GZIP, in, n, NBYTES);
        must(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        must(cudaStreamBeginCapture(streams[i], cudaStreamCaptureModeThreadLocal));
        must_call(wharf_cuda_inflate(cuda, &d[i].stream, streams[i]));
        must(cudaStreamEndCapture(streams[i], &graph));
        must(cudaGraphInstantiate(&graphs[i], graph, 0));
        must(cudaGraphDestroy(graph));
    }
    for (unsigned round = 0; round < 8; round++) {
        /* In every other round the second stream's checksum is wrong. */
        in[n - 8] ^= 1;
        must(cudaMemcpy(d[1].d_in, in, n, cudaMemcpyHostToDevice));
        for (unsigned i = 0; i < 2; i++) {
            must(cudaMemset(d[i].stream.out, 0xa5, NBYTES + 1));
            must(cudaDeviceSynchronize());
        }
        for (unsigned i = 0; i < 2; i++)
            must(cudaGraphLaunch(graphs[i], streams[i]));
        must(cudaDeviceSynchronize());
        wrong += !is_right(&d[0], plain, NBYTES);
        wrong += round % 2 ? !is_right(&d[1], plain, NBYTES)
                           : d[1].outcome->reason != WHARF_REASON_GZIP_CHECKSUM;
    }
    for (unsigned i = 0; i < 2; i++) {
        must(cudaGraphExecDestroy(graphs[i]));
        must(cudaStreamDestroy(streams[i]));
        give_back(&d[i]);
    }
    test_tap_report(wrong == 0, "graphs in two streams, replayed on other data: %u wrong", wrong);
    free(in);
    free(plain);
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    if (argc != 1 && argc != 5)
        return test_usage(help);
    must(cudaSetDevice(0));
    must_call(wharf_cuda_open(&cuda));
    if (argc == 5) {
        struct measurement m = {.sample = argv[1],
                                .level = argv[3],
                                .out_nbytes = strtoul(argv[2], NULL, 10),
                                .piece_nbytes = strtoul(argv[4], NULL, 10)};
        if (m.out_nbytes == 0 || m.piece_nbytes == 0)
            return test_usage(help);
        measure(&m);
        wharf_cuda_close(cuda);
        return 0;
    }
    for (unsigned i = 0; i < 3 * N_SHAPES; i++)
        check_kind(&test_data_kinds[(i / N_SHAPES * 5 + i) % test_data_n_kinds], i + i / N_SHAPES);
    check_graph();
    wharf_cuda_close(cuda);
    return test_tap_end();
}
