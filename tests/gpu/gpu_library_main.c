/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_library_main.c: libwharf-cuda as several programs in one would use it, on the first GPU.
 */
#include <cuda_runtime_api.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cuda/wharf_cuda.h"
#include "encoders/decode_job.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_help.h"
#include "tests/lib/test_lines.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_rans.h"
#include "tests/lib/test_tap.h"

static const char help[] =
    "usage: wharf_gpu_library [ROUNDS]\n"
    "\n"
    "Uses libwharf-cuda as several programs in one would, on the first GPU, for ROUNDS (20).\n"
    "\n"
    "Threads with streams of their own decode other codecs at the same time, by calls and by\n"
    "graphs that are replayed on other data; lines are encoded and decoded on the GPU; and no\n"
    "call synchronises.  Reports in the Test Anything Protocol.\n";

enum { N_THREADS = 8, N_CHUNKS = 300, N_PLAIN = 20000, N_CODECS = 5 };

static const uint32_t codecs[N_CODECS] = {WHARF_CODEC_DEFLATE, WHARF_CODEC_LZ4, WHARF_CODEC_RANS,
                                          WHARF_CODEC_RLE2, WHARF_CODEC_BEST};
static struct wharf_cuda *cuda;
static unsigned n_rounds = 20;

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

/* A batch in managed memory, which both sides read: good chunks, cut off ones and damaged ones. */
struct work {
    const void *in[N_CHUNKS];
    void *out[N_CHUNKS];
    size_t in_nbytes[N_CHUNKS], out_avail[N_CHUNKS];
    struct wharf_outcome outcomes[N_CHUNKS];
    uint8_t plain[N_CHUNKS][N_PLAIN];
};

static void *managed(size_t nbytes)
{
    void *p;
    must(cudaMallocManaged(&p, nbytes, cudaMemAttachGlobal));
    return p;
}

static void fill(struct work *work, uint8_t *sources, size_t room, uint32_t codec, uint64_t seed)
{
    for (unsigned i = 0; i < N_CHUNKS; i++) {
        const struct test_data_kind *kind = &test_data_kinds[(seed + i) % test_data_n_kinds];
        uint8_t *plain = test_data_new(kind, seed * 1000 + i % 7, N_PLAIN);
        size_t n = test_data_fit(codec, 0, plain, N_PLAIN - i % 50 * 8), nbytes;
        uint8_t *packed = test_pack(codec, NULL, plain, n, &nbytes);
        uint8_t *to = sources + i * room;
        if (nbytes > room)
            exit(3);
        memcpy(to, packed, nbytes);
        if (i % 5 == 3 && nbytes > 0)
            to[(seed + i) % nbytes] ^= 1u << i % 8;
        work->in[i] = to;
        work->in_nbytes[i] = i % 5 == 2 ? nbytes / 2 : nbytes;
        work->out[i] = work->plain[i];
        work->out_avail[i] = i % 5 == 1 && n > 0 ? n - 1 : n;
        free(packed);
        free(plain);
    }
    memset(work->outcomes, 0xa5, sizeof(work->outcomes));
    memset(work->plain, 0xa5, sizeof(work->plain));
}

/* How many chunks have other outcomes or bytes than the CPU engine gives. */
static unsigned count_wrong(const struct work *work, uint32_t codec)
{
    static _Thread_local uint8_t want_out[N_PLAIN];
    unsigned n_wrong = 0;

    for (unsigned i = 0; i < N_CHUNKS; i++) {
        struct wharf_decode_job job = {.codec = codec,
                                       .in = work->in[i],
                                       .in_nbytes = work->in_nbytes[i],
                                       .out = want_out,
                                       .out_avail = work->out_avail[i]};
        struct wharf_outcome want;
        wharf_decode_job_run(&job, 0, &want);
        n_wrong +=
            !test_outcome_same(&want, &work->outcomes[i]) ||
            (want.result == WHARF_OK && memcmp(want_out, work->plain[i], want.out_nbytes) != 0);
    }
    return n_wrong;
}

static struct wharf_cuda_batch batch_of(struct work *work, uint32_t codec)
{
    struct wharf_cuda_batch batch = WHARF_CUDA_BATCH_INIT;

    batch.codec = codec;
    batch.n_chunks = N_CHUNKS;
    batch.in = work->in;
    batch.in_nbytes = work->in_nbytes;
    batch.out = work->out;
    batch.out_avail = work->out_avail;
    batch.outcomes = work->outcomes;
    must_call(wharf_cuda_decode_scratch(cuda, &batch, &batch.scratch_nbytes));
    must(cudaMalloc(&batch.scratch, batch.scratch_nbytes));
    return batch;
}

static cudaGraphExec_t capture(const struct wharf_cuda_batch *batch, cudaStream_t stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    must_call(wharf_cuda_decode(cuda, batch, stream));
    must(cudaStreamEndCapture(stream, &graph));
    must(cudaGraphInstantiate(&exec, graph, 0));
    must(cudaGraphDestroy(graph));
    return exec;
}

/* One thread: a codec, a stream, a scratch; by calls and by replays of one graph in turn. */
static void *decode_for_long(void *argument)
{
    unsigned number = *(const unsigned *)argument, *n_wrong = calloc(1, sizeof(*n_wrong));
    uint32_t codec = codecs[number % N_CODECS];
    size_t room = 2 * N_PLAIN + 1024;
    cudaStream_t stream;

    must(cudaSetDevice(0));
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    struct work *work = managed(sizeof(*work));
    uint8_t *sources = managed(N_CHUNKS * room);
    struct wharf_cuda_batch batch = batch_of(work, codec);
    cudaGraphExec_t graph = capture(&batch, stream);
    for (unsigned round = 0; round < n_rounds; round++) {
        fill(work, sources, room, codec, number + round);
        if (round % 2)
            must(cudaGraphLaunch(graph, stream));
        else
            must_call(wharf_cuda_decode(cuda, &batch, stream));
        must(cudaStreamSynchronize(stream));
        *n_wrong += count_wrong(work, codec);
    }
    must(cudaGraphExecDestroy(graph));
    must(cudaFree(batch.scratch));
    must(cudaFree(sources));
    must(cudaFree(work));
    must(cudaStreamDestroy(stream));
    return n_wrong;
}

static void test_threads(void)
{
    pthread_t threads[N_THREADS];
    unsigned numbers[N_THREADS], n_wrong = 0;

    for (unsigned i = 0; i < N_THREADS; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, decode_for_long, &numbers[i]) != 0)
            exit(3);
    }
    for (unsigned i = 0; i < N_THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        n_wrong += *(unsigned *)result;
        free(result);
    }
    test_tap_report(n_wrong == 0, "%d threads, %u rounds each, calls and graphs: %u chunks wrong",
                    N_THREADS, n_rounds, n_wrong);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Each chunk that is good is good with the size that was told, and fills it. */
static unsigned count_wrong_sizes(uint32_t codec)
{
    size_t room = 2 * N_PLAIN + 1024;
    struct work *work = managed(sizeof(*work));
    uint8_t *sources = managed(N_CHUNKS * room);
    size_t *sizes = managed(N_CHUNKS * sizeof(*sizes));
    unsigned n_wrong = 0;

    fill(work, sources, room, codec, codec);
    struct wharf_cuda_batch batch = batch_of(work, codec);
    must_call(wharf_cuda_sizes(cuda, &batch, sizes, NULL));
    for (unsigned i = 0; i < N_CHUNKS; i++)
        work->out_avail[i] = N_PLAIN;
    must_call(wharf_cuda_decode(cuda, &batch, NULL));
    must(cudaDeviceSynchronize());
    for (unsigned i = 0; i < N_CHUNKS; i++)
        n_wrong += work->outcomes[i].result == WHARF_OK && work->outcomes[i].out_nbytes != sizes[i];
    must(cudaFree(batch.scratch));
    must(cudaFree(sizes));
    must(cudaFree(sources));
    must(cudaFree(work));
    return n_wrong;
}

static void test_sizes(void)
{
    unsigned n_wrong = 0, n = 0;

    for (uint32_t codec = 0; codec <= WHARF_CODEC_PALETTE; codec++)
        if (wharf_cuda_can_size(codec)) {
            n_wrong += count_wrong_sizes(codec);
            n++;
        }
    test_tap_report(n_wrong == 0 && n == 13, "sizes of outputs, of %u codecs: %u wrong", n,
                    n_wrong);
}

/* ---- encoding -------------------------------------------------------------------------------- */

/* Encodes a chunk on the GPU and decodes it there; both as the processor does. */
static bool encodes(const struct wharf_line_choice *choice, const uint8_t *raw, size_t n)
{
    struct wharf_cuda_encoding encoding = WHARF_CUDA_ENCODING_INIT;
    size_t want_nbytes, bound;
    uint8_t *want = test_lines_encode(choice, raw, n, &want_nbytes);
    struct work *work = managed(sizeof(*work));

    encoding.codec = choice->codec;
    encoding.line_nbytes = choice->line_nbytes;
    encoding.layout = choice->layout;
    encoding.type = choice->type;
    must_call(wharf_cuda_encode_bound(&encoding, n, &bound));
    uint8_t *in = managed(n + 1), *out = managed(bound + 16);
    memcpy(in, raw, n);
    work->in[0] = in;
    work->in_nbytes[0] = n;
    work->out[0] = out;
    work->out_avail[0] = bound;
    encoding.n_chunks = 1;
    encoding.in = work->in;
    encoding.in_nbytes = work->in_nbytes;
    encoding.out = work->out;
    encoding.out_avail = work->out_avail;
    encoding.outcomes = work->outcomes;
    must_call(wharf_cuda_encode(cuda, &encoding, NULL));
    must(cudaDeviceSynchronize());
    bool good = work->outcomes[0].result == WHARF_OK &&
                work->outcomes[0].out_nbytes == want_nbytes && memcmp(out, want, want_nbytes) == 0;
    must(cudaFree(in));
    must(cudaFree(out));
    must(cudaFree(work));
    free(want);
    return good;
}

static void test_encoders(void)
{
    enum { N_RAW = 100001 };
    uint8_t *raw = malloc(N_RAW);
    unsigned n_wrong = 0;

    if (!raw)
        exit(3);
    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        struct wharf_line_choice choice = test_lines_choice(c);
        for (unsigned kind = 0; kind < TEST_LINES_N_KINDS; kind++) {
            test_lines_fill((enum test_lines_kind)kind, c, raw, N_RAW);
            n_wrong += !encodes(&choice, raw, N_RAW - 997 * c);
        }
    }
    free(raw);
    test_tap_report(n_wrong == 0, "%d choices of lines have the processor's bytes: %u wrong",
                    TEST_LINES_N_CHOICES, n_wrong);
}

/* ---- one large stream ------------------------------------------------------------------------ */

enum { N_STREAM = 32 << 20, N_SPLITS = 8448, N_TIMES = 20 };

/* Decodes by the plan and compares; microseconds of one of N_TIMES calls behind each other, or less
 * than 0 when anything is wrong. */
static float decode_stream(const struct wharf_cuda_rans_plan *plan, const uint8_t *d_in,
                           const uint8_t *plain, const struct wharf_outcome *want)
{
    uint8_t *out = managed(N_STREAM);
    struct wharf_outcome *outcome = managed(sizeof(*outcome));
    size_t nbytes = wharf_cuda_rans_scratch(plan);
    void *scratch;
    cudaEvent_t begin, end;
    float ms;

    must(cudaMalloc(&scratch, nbytes));
    must(cudaEventCreate(&begin));
    must(cudaEventCreate(&end));
    for (unsigned i = 0; i <= N_TIMES; i++) {
        if (i == 1)
            must(cudaEventRecord(begin, NULL));
        must_call(wharf_cuda_rans_decode(plan, d_in, out, outcome, scratch, nbytes, NULL));
    }
    must(cudaEventRecord(end, NULL));
    must(cudaDeviceSynchronize());
    must(cudaEventElapsedTime(&ms, begin, end));
    bool good = test_outcome_same(want, outcome) &&
                (want->result != WHARF_OK || memcmp(out, plain, N_STREAM) == 0);
    must(cudaEventDestroy(begin));
    must(cudaEventDestroy(end));
    must(cudaFree(scratch));
    must(cudaFree(outcome));
    must(cudaFree(out));
    return good ? 1000 * ms / N_TIMES : -1;
}

static void test_stream(void)
{
    uint8_t *plain = test_data_new(test_data_find("text"), 1, N_STREAM), *d_in;
    uint8_t *want_out = malloc(N_STREAM);
    size_t nbytes;
    uint8_t *stream = test_rans_encode(plain, N_STREAM, 11, N_SPLITS, &nbytes);
    struct wharf_cuda_rans_plan *plan;
    struct wharf_outcome outcome;

    if (!want_out)
        exit(3);
    must(cudaMalloc((void **)&d_in, nbytes));
    for (unsigned i = 0; i < 3; i++) {
        struct wharf_decode_job job = {.codec = WHARF_CODEC_RANS,
                                       .in = stream,
                                       .in_nbytes = nbytes,
                                       .out = want_out,
                                       .out_avail = N_STREAM};
        struct wharf_outcome want;
        /* Late words, since those of the splits are verified by the plan. */
        if (i > 0)
            stream[nbytes - i * (nbytes / 7)] ^= 4;
        wharf_decode_job_run(&job, 0, &want);
        must(cudaMemcpy(d_in, stream, nbytes, cudaMemcpyHostToDevice));
        must_call(
            wharf_cuda_rans_plan_new(cuda, 0, NULL, stream, nbytes, N_STREAM, &plan, &outcome));
        float us = decode_stream(plan, d_in, plain, &want);
        wharf_cuda_rans_plan_free(plan);
        test_tap_report(us >= 0, "a stream of %d bytes, %s: %.1f us, %.0f GB/s", N_STREAM,
                        test_outcome_text(&want).text, us, N_STREAM / us / 1e3);
    }
    must(cudaFree(d_in));
    free(stream);
    free(want_out);
    free(plain);
}

/* ---- what calls do not do -------------------------------------------------------------------- */

struct filter {
    atomic_bool open;
};

static void wait_for_fd_filter(void *argument)
{
    struct filter *filter = argument;
    while (!atomic_load(&filter->open))
        ;
}

/* A call comes back while what is before it in its stream has not ended. */
static void test_call_does_not_wait(void)
{
    struct filter filter = {false};
    size_t room = 2 * N_PLAIN + 1024;
    cudaStream_t stream;
    struct work *work = managed(sizeof(*work));
    uint8_t *sources = managed(N_CHUNKS * room);
    struct wharf_cuda_batch batch = batch_of(work, WHARF_CODEC_DEFLATE);

    fill(work, sources, room, WHARF_CODEC_DEFLATE, 1);
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    must(cudaLaunchHostFunc(stream, wait_for_fd_filter, &filter));
    must_call(wharf_cuda_decode(cuda, &batch, stream));
    bool is_waiting = cudaStreamQuery(stream) == cudaErrorNotReady;
    atomic_store(&filter.open, true);
    must(cudaStreamSynchronize(stream));
    test_tap_report(is_waiting && count_wrong(work, WHARF_CODEC_DEFLATE) == 0,
                    "a call returns before its stream gets there");
    batch.scratch_nbytes--;
    test_tap_report(wharf_cuda_decode(cuda, &batch, stream) == -ENOSPC, "too little scratch");
    must(cudaFree(batch.scratch));
    must(cudaFree(sources));
    must(cudaFree(work));
    must(cudaStreamDestroy(stream));
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    if (argc > 2 || (argc == 2 && (n_rounds = (unsigned)strtoul(argv[1], NULL, 10)) == 0))
        return test_usage(help);
    must(cudaSetDevice(0));
    must_call(wharf_cuda_open(&cuda));
    test_call_does_not_wait();
    test_encoders();
    test_sizes();
    test_stream();
    test_threads();
    wharf_cuda_close(cuda);
    return test_tap_end();
}
