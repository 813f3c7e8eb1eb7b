/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_chain_main.c: streams that were compressed twice, as ORC's are, by a batch and a chain behind
 * it, through libwharf-cuda's calls.
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
#include "tests/gpu/gpu_pack.h"
#include "tests/lib/test_chain.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_help.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_tap.h"

static const char help[] =
    "usage: wharf_gpu_chain [CODEC [FILE NBYTES STREAM BLOCK WAYS]]\n"
    "\n"
    "Decodes streams that were compressed twice on the first GPU, through libwharf-cuda.\n"
    "\n"
    "With FILE, measures: FILE in streams of STREAM bytes of CODEC, cut into blocks of BLOCK\n"
    "bytes, each by Deflate at zlib's level 6, or as it is where that is not shorter; as many\n"
    "streams as have NBYTES; from GPU memory to GPU memory, by WAYS CUDA streams at once.\n"
    "Without, checks good, damaged and cut streams of CODEC, or of several, and reports in the\n"
    "Test Anything Protocol.\n";

enum { REPETITIONS = 9, LEVEL = 6, MAX_WAYS = 8 };

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

static void *managed(size_t nbytes)
{
    void *p;

    must(cudaMallocManaged(&p, nbytes ? nbytes : 1, cudaMemAttachGlobal));
    return p;
}

static void *device_memory(size_t nbytes)
{
    void *p;

    must(cudaMalloc(&p, nbytes ? nbytes : 1));
    return p;
}

/* ---- streams --------------------------------------------------------------------------------- */

/* A stream of the second codec, in blocks. */
struct stream {
    const uint8_t *plain;
    size_t plain_nbytes, nbytes;
    size_t n_blocks;
    uint8_t **blocks;
    size_t *block_nbytes;
    bool *is_stored;
};

/* ORC's zlib has no header. */
static size_t pack_block(const uint8_t *in, size_t nbytes, uint8_t *out)
{
    z_stream zlib = {0};

    if (deflateInit2(&zlib, LEVEL, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        bench_die("deflateInit2");
    zlib.next_in = (Bytef *)(uintptr_t)in;
    zlib.avail_in = (uInt)nbytes;
    zlib.next_out = out;
    zlib.avail_out = (uInt)nbytes - 1;
    bool fits = deflate(&zlib, Z_FINISH) == Z_STREAM_END;
    size_t n = zlib.total_out;
    deflateEnd(&zlib);
    if (fits)
        return n;
    memcpy(out, in, nbytes);
    return nbytes;
}

static struct stream stream_new(const struct gpu_source *source, const uint8_t *plain,
                                size_t plain_nbytes, size_t block_nbytes)
{
    const struct wharf_encoder_options options = {
        .name = source->encoder, .parameter = source->parameter, .level = WHARF_LEVEL_DEFAULT};
    struct stream stream = {.plain = plain, .plain_nbytes = plain_nbytes};
    uint8_t *packed =
        test_pack(source->codec_number, &options, plain, plain_nbytes, &stream.nbytes);

    stream.n_blocks = (stream.nbytes + block_nbytes - 1) / block_nbytes;
    stream.blocks = bench_check(calloc(stream.n_blocks + 1, sizeof(*stream.blocks)));
    stream.block_nbytes = bench_check(calloc(stream.n_blocks + 1, sizeof(*stream.block_nbytes)));
    stream.is_stored = bench_check(calloc(stream.n_blocks + 1, sizeof(*stream.is_stored)));
    for (size_t i = 0; i < stream.n_blocks; i++) {
        size_t at = i * block_nbytes;
        size_t n = stream.nbytes - at < block_nbytes ? stream.nbytes - at : block_nbytes;
        stream.blocks[i] = bench_check(malloc(n));
        stream.block_nbytes[i] = pack_block(packed + at, n, stream.blocks[i]);
        stream.is_stored[i] = stream.block_nbytes[i] == n;
    }
    free(packed);
    return stream;
}

static void stream_free(struct stream *stream)
{
    for (size_t i = 0; i < stream->n_blocks; i++)
        free(stream->blocks[i]);
    free(stream->blocks);
    free(stream->block_nbytes);
    free(stream->is_stored);
}

/* ---- what the GPU is given ------------------------------------------------------------------- */

/* Streams in GPU memory, and the batches and the chain that decode them; arrays are managed. */
struct work {
    struct wharf_cuda_batch deflate, stored, second;
    struct wharf_cuda_chain chain;
    size_t n_streams, n_blocks, n_deflate, in_nbytes;
    const void **in;
    size_t *in_nbytes_of, *avail;
    void **middle;
    struct wharf_outcome *block_outcomes;
    uint32_t *order, *offsets;
    void **out;
    size_t *out_avail;
    struct wharf_outcome *outcomes;
    void **places; /* of streams in the middle, on the host */
};

static void *scratch_for(size_t nbytes)
{
    void *scratch = device_memory(nbytes);

    must(cudaMemset(scratch, 0x5a, nbytes));
    return scratch;
}

static void set_batch(struct work *w, struct wharf_cuda_batch *batch, uint32_t codec, size_t from,
                      size_t to)
{
    *batch = (struct wharf_cuda_batch)WHARF_CUDA_BATCH_INIT;
    batch->codec = codec;
    batch->n_chunks = to - from;
    batch->in = w->in + from;
    batch->in_nbytes = w->in_nbytes_of + from;
    batch->out = w->middle + from;
    batch->out_avail = w->avail + from;
    batch->outcomes = w->block_outcomes + from;
    must_call(wharf_cuda_decode_scratch(cuda, batch, &batch->scratch_nbytes));
    batch->scratch = scratch_for(batch->scratch_nbytes);
}

static void set_chain(struct work *w, const struct gpu_source *source)
{
    w->chain = (struct wharf_cuda_chain)WHARF_CUDA_CHAIN_INIT;
    w->chain.n_parts = w->n_blocks;
    w->chain.parts = w->middle;
    w->chain.parts_avail = w->avail;
    w->chain.part_outcomes = w->block_outcomes;
    w->chain.order = w->n_deflate < w->n_blocks ? w->order : NULL;
    w->chain.offsets = w->offsets;
    w->second = (struct wharf_cuda_batch)WHARF_CUDA_BATCH_INIT;
    w->second.codec = source->codec_number;
    w->second.parameter = source->parameter;
    w->second.n_chunks = w->n_streams;
    w->second.out = w->out;
    w->second.out_avail = w->out_avail;
    w->second.outcomes = w->outcomes;
    must_call(wharf_cuda_chain_scratch(cuda, &w->second, &w->second.scratch_nbytes));
    w->second.scratch = scratch_for(w->second.scratch_nbytes);
}

static size_t count_blocks(const struct stream *streams, size_t n_distinct, size_t n, bool stored)
{
    size_t n_blocks = 0;

    for (size_t s = 0; s < n; s++)
        for (size_t i = 0; i < streams[s % n_distinct].n_blocks; i++)
            n_blocks += streams[s % n_distinct].is_stored[i] == stored;
    return n_blocks;
}

/* Each block and each stream has memory of its own, so that a memory checker sees its ends. */
static void place_stream(struct work *w, const struct stream *stream, size_t s,
                         size_t *next_deflate, size_t *next_stored, size_t block_nbytes)
{
    uint8_t *middle = device_memory(stream->nbytes);
    uint32_t at = w->offsets[s];

    must(cudaMemset(middle, 0xa5, stream->nbytes));
    for (size_t i = 0; i < stream->n_blocks; i++) {
        size_t k = stream->is_stored[i] ? (*next_stored)++ : (*next_deflate)++;
        size_t nbytes = stream->block_nbytes[i], from = i * block_nbytes;
        void *in = device_memory(nbytes);
        must(cudaMemcpy(in, stream->blocks[i], nbytes, cudaMemcpyHostToDevice));
        w->in[k] = in;
        w->in_nbytes_of[k] = nbytes;
        w->middle[k] = middle + from;
        w->avail[k] = stream->nbytes - from < block_nbytes ? stream->nbytes - from : block_nbytes;
        w->order[at++] = (uint32_t)k;
        w->in_nbytes += nbytes;
    }
    w->places[s] = middle;
    w->offsets[s + 1] = at;
    w->out_avail[s] = stream->plain_nbytes;
    w->out[s] = device_memory(stream->plain_nbytes);
    must(cudaMemset(w->out[s], 0xa5, stream->plain_nbytes));
}

static void work_init(struct work *w, const struct gpu_source *source, const struct stream *streams,
                      size_t n_distinct, size_t n_streams, size_t block_nbytes)
{
    size_t n_stored = count_blocks(streams, n_distinct, n_streams, true);
    size_t next_deflate = 0, next_stored;

    *w = (struct work){.n_streams = n_streams};
    next_stored = w->n_deflate = count_blocks(streams, n_distinct, n_streams, false);
    w->n_blocks = w->n_deflate + n_stored;
    w->in = managed(w->n_blocks * sizeof(*w->in));
    w->in_nbytes_of = managed(w->n_blocks * sizeof(*w->in_nbytes_of));
    w->avail = managed(w->n_blocks * sizeof(*w->avail));
    w->middle = managed(w->n_blocks * sizeof(*w->middle));
    w->block_outcomes = managed(w->n_blocks * sizeof(*w->block_outcomes));
    w->order = managed(w->n_blocks * sizeof(*w->order));
    w->offsets = managed((n_streams + 1) * sizeof(*w->offsets));
    w->out = managed(n_streams * sizeof(*w->out));
    w->out_avail = managed(n_streams * sizeof(*w->out_avail));
    w->outcomes = managed(n_streams * sizeof(*w->outcomes));
    w->places = bench_check(calloc(n_streams, sizeof(*w->places)));
    w->offsets[0] = 0;
    for (size_t s = 0; s < n_streams; s++)
        place_stream(w, &streams[s % n_distinct], s, &next_deflate, &next_stored, block_nbytes);
    memset(w->block_outcomes, 0xa5, w->n_blocks * sizeof(*w->block_outcomes));
    memset(w->outcomes, 0xa5, n_streams * sizeof(*w->outcomes));
    set_batch(w, &w->deflate, WHARF_CODEC_DEFLATE, 0, w->n_deflate);
    set_batch(w, &w->stored, WHARF_CODEC_STORED, w->n_deflate, w->n_blocks);
    set_chain(w, source);
}

static void work_deinit(struct work *w)
{
    for (size_t i = 0; i < w->n_blocks; i++)
        must(cudaFree((void *)(uintptr_t)w->in[i]));
    for (size_t s = 0; s < w->n_streams; s++) {
        must(cudaFree(w->places[s]));
        must(cudaFree(w->out[s]));
    }
    void *all[] = {(void *)w->in,     w->in_nbytes_of, w->avail,           w->middle,
                   w->block_outcomes, w->order,        w->offsets,         w->out,
                   w->out_avail,      w->outcomes,     w->deflate.scratch, w->stored.scratch,
                   w->second.scratch};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        must(cudaFree(all[i]));
    free(w->places);
}

static void start_first(const struct work *w, cudaStream_t stream)
{
    must_call(wharf_cuda_decode(cuda, &w->deflate, stream));
    must_call(wharf_cuda_decode(cuda, &w->stored, stream));
}

static void start_second(const struct work *w, cudaStream_t stream)
{
    must_call(wharf_cuda_decode_chain(cuda, &w->chain, &w->second, stream));
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* A copy of what is in GPU memory. */
static uint8_t *fetch(const void *d, size_t nbytes)
{
    uint8_t *copy = bench_check(malloc(nbytes + 1));

    if (nbytes > 0)
        must(cudaMemcpy(copy, d, nbytes, cudaMemcpyDeviceToHost));
    return copy;
}

static bool is_filled(const uint8_t *bytes, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++)
        if (bytes[i] != 0xa5)
            return false;
    return true;
}

/* Whether a stream's outcome and bytes are the CPU engine's, by the blocks' outcomes. */
static bool is_right(const struct work *w, size_t s)
{
    const void *d_in;
    struct wharf_decode_job job = {.codec = w->second.codec,
                                   .setting = {.parameter = w->second.parameter},
                                   .out_avail = w->out_avail[s]};
    struct wharf_outcome want;
    uint8_t *in = NULL, *out = fetch(w->out[s], w->out_avail[s]);
    uint8_t *want_out = bench_check(malloc(w->out_avail[s] + 1));
    bool has_source = test_chain_source(&w->chain, s, &d_in, &job.in_nbytes, &want);

    if (has_source) {
        job.in = in = fetch(d_in, job.in_nbytes);
        job.out = want_out;
        wharf_decode_job_run(&job, 0, &want);
    }
    bool right = test_outcome_same(&want, &w->outcomes[s]) &&
                 (has_source || is_filled(out, w->out_avail[s])) &&
                 (want.result != WHARF_OK || memcmp(out, want_out, want.out_nbytes) == 0);
    if (!right)
        printf("# stream %zu: %s, not %s\n", s, test_outcome_text(&w->outcomes[s]).text,
               test_outcome_text(&want).text);
    free(want_out);
    free(out);
    free(in);
    return right;
}

/* Whether a block's outcome is the CPU engine's. */
static bool is_right_block(const struct work *w, size_t i)
{
    uint8_t *in = fetch(w->in[i], w->in_nbytes_of[i]);
    uint8_t *out = bench_check(malloc(w->avail[i] + 1));
    struct wharf_decode_job job = {.codec =
                                       i < w->n_deflate ? WHARF_CODEC_DEFLATE : WHARF_CODEC_STORED,
                                   .in = in,
                                   .in_nbytes = w->in_nbytes_of[i],
                                   .out = out,
                                   .out_avail = w->avail[i]};
    struct wharf_outcome want;

    wharf_decode_job_run(&job, 0, &want);
    free(out);
    free(in);
    return test_outcome_same(&want, &w->block_outcomes[i]);
}

static unsigned count_wrong(const struct work *w, unsigned *ret_n_failed)
{
    unsigned n_wrong = 0;

    *ret_n_failed = 0;
    for (size_t i = 0; i < w->n_blocks; i++)
        n_wrong += !is_right_block(w, i);
    for (size_t s = 0; s < w->n_streams; s++) {
        n_wrong += !is_right(w, s);
        *ret_n_failed += w->outcomes[s].result != WHARF_OK;
    }
    return n_wrong;
}

/* Damages a bit of some blocks, or cuts them off, or moves them. */
static void damage(struct work *w, struct test_random *random)
{
    for (size_t s = 0; s < w->n_streams; s++) {
        size_t from = w->offsets[s], n = w->offsets[s + 1] - from;
        size_t i = n ? w->order[from + test_random_below(random, n)] : 0;
        if (n == 0 || s % 3 == 0)
            continue;
        uint8_t *in = fetch(w->in[i], w->in_nbytes_of[i]);
        switch (s % 8) {
        case 1:
            w->in_nbytes_of[i] /= 2;
            break;
        case 2:
            w->middle[i] = (uint8_t *)w->middle[i] + 1;
            w->avail[i]--;
            break;
        default:
            in[test_random_below(random, w->in_nbytes_of[i])] ^= 1 << s % 8;
            must(cudaMemcpy((void *)(uintptr_t)w->in[i], in, w->in_nbytes_of[i],
                            cudaMemcpyHostToDevice));
        }
        free(in);
    }
}

enum { N_CHECKED = 64, BLOCK = 700 };

static cudaGraphExec_t capture(const struct work *w, cudaStream_t stream)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    start_first(w, stream);
    start_second(w, stream);
    must(cudaStreamEndCapture(stream, &graph));
    must(cudaGraphInstantiate(&exec, graph, 0));
    must(cudaGraphDestroy(graph));
    return exec;
}

/* Good by a call; the same by a graph; damaged by the graph again. */
static void check_codec(const char *name)
{
    struct test_random random = {7};
    struct gpu_source source = {0};
    struct stream streams[N_CHECKED];
    uint8_t *plains[N_CHECKED];
    cudaStream_t stream;
    struct work w;
    unsigned n_failed[3], n_wrong[3];

    gpu_source_choose(&source, name);
    for (unsigned s = 0; s < N_CHECKED; s++) {
        size_t n = s == 5 ? 0 : 1 + test_random_below(&random, 20000);
        plains[s] = test_data_new(&test_data_kinds[s % test_data_n_kinds], s, n);
        n = test_data_fit(source.codec_number, source.parameter, plains[s], n);
        streams[s] = stream_new(&source, plains[s], n, BLOCK);
    }
    work_init(&w, &source, streams, N_CHECKED, N_CHECKED, BLOCK);
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    must(cudaDeviceSynchronize());
    start_first(&w, stream);
    start_second(&w, stream);
    must(cudaStreamSynchronize(stream));
    n_wrong[0] = count_wrong(&w, &n_failed[0]);
    cudaGraphExec_t graph = capture(&w, stream);
    for (unsigned round = 1; round < 3; round++) {
        if (round == 2)
            damage(&w, &random);
        for (size_t s = 0; s < N_CHECKED; s++)
            must(cudaMemset(w.out[s], 0xa5, w.out_avail[s]));
        memset(w.outcomes, 0xa5, N_CHECKED * sizeof(*w.outcomes));
        must(cudaDeviceSynchronize());
        must(cudaGraphLaunch(graph, stream));
        must(cudaStreamSynchronize(stream));
        n_wrong[round] = count_wrong(&w, &n_failed[round]);
    }
    test_tap_report(n_wrong[0] + n_failed[0] == 0, "%s: %u of %d wrong", name, n_wrong[0],
                    N_CHECKED);
    test_tap_report(n_wrong[1] + n_failed[1] == 0, "%s, by a graph: %u wrong", name, n_wrong[1]);
    test_tap_report(n_wrong[2] == 0 && n_failed[2] > N_CHECKED / 4, "%s, %u damaged: %u wrong",
                    name, n_failed[2], n_wrong[2]);
    must(cudaGraphExecDestroy(graph));
    must(cudaStreamDestroy(stream));
    work_deinit(&w);
    for (unsigned s = 0; s < N_CHECKED; s++) {
        stream_free(&streams[s]);
        free(plains[s]);
    }
}

/* ---- measuring ------------------------------------------------------------------------------- */

struct measurement {
    struct gpu_source source;
    const char *name, *file_name;
    size_t nbytes, stream_nbytes, block_nbytes;
    unsigned n_ways;
};

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* Milliseconds of all ways, and of the first step where there is one way. */
static void time_once(const struct work *ways, unsigned n_ways, const cudaStream_t *streams,
                      const cudaEvent_t *events, float *ret_ms, float *ret_first_ms)
{
    cudaEvent_t begin = events[MAX_WAYS], middle = events[MAX_WAYS + 1];

    must(cudaEventRecord(begin, streams[0]));
    for (unsigned i = 1; i < n_ways; i++)
        must(cudaStreamWaitEvent(streams[i], begin, 0));
    for (unsigned i = 0; i < n_ways; i++) {
        start_first(&ways[i], streams[i]);
        if (i == 0)
            must(cudaEventRecord(middle, streams[0]));
        start_second(&ways[i], streams[i]);
        must(cudaEventRecord(events[i], streams[i]));
    }
    for (unsigned i = 1; i < n_ways; i++)
        must(cudaStreamWaitEvent(streams[0], events[i], 0));
    must(cudaEventRecord(events[0], streams[0]));
    must(cudaStreamSynchronize(streams[0]));
    must(cudaEventElapsedTime(ret_ms, begin, events[0]));
    must(cudaEventElapsedTime(ret_first_ms, begin, middle));
}

static void time_all(const struct work *ways, unsigned n_ways, float *ms, float *first_ms)
{
    cudaStream_t streams[MAX_WAYS];
    cudaEvent_t events[MAX_WAYS + 2];
    float not_counted;

    for (unsigned i = 0; i < n_ways; i++)
        must(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    for (unsigned i = 0; i < MAX_WAYS + 2; i++)
        must(cudaEventCreate(&events[i]));
    must(cudaDeviceSynchronize());
    time_once(ways, n_ways, streams, events, &not_counted, &not_counted);
    for (unsigned i = 0; i < REPETITIONS; i++)
        time_once(ways, n_ways, streams, events, &ms[i], &first_ms[i]);
    qsort(ms, REPETITIONS, sizeof(*ms), compare_floats);
    qsort(first_ms, REPETITIONS, sizeof(*first_ms), compare_floats);
    for (unsigned i = 0; i < n_ways; i++)
        must(cudaStreamDestroy(streams[i]));
    for (unsigned i = 0; i < MAX_WAYS + 2; i++)
        must(cudaEventDestroy(events[i]));
}

/* Of some streams the bytes, of all the outcomes. */
static unsigned count_bad(const struct work *w, const struct stream *streams, size_t n_distinct)
{
    unsigned n_bad = 0;

    for (size_t s = 0; s < w->n_streams; s++) {
        const struct stream *stream = &streams[s % n_distinct];
        bool good =
            w->outcomes[s].result == WHARF_OK && w->outcomes[s].out_nbytes == stream->plain_nbytes;
        if (good && (s < 8 || s % 61 == 0 || s + 1 == w->n_streams)) {
            uint8_t *out = fetch(w->out[s], stream->plain_nbytes);
            good = memcmp(out, stream->plain, stream->plain_nbytes) == 0;
            free(out);
        }
        n_bad += !good;
    }
    return n_bad;
}

static void print_row(const struct measurement *m, const struct work *ways, const float *ms,
                      const float *first_ms, unsigned n_bad)
{
    const char *slash = strrchr(m->file_name, '/');
    size_t n_streams = 0, n_blocks = 0, n_stored = 0, in_nbytes = 0;
    struct cudaDeviceProp device;

    for (unsigned i = 0; i < m->n_ways; i++) {
        n_streams += ways[i].n_streams;
        n_blocks += ways[i].n_blocks;
        n_stored += ways[i].n_blocks - ways[i].n_deflate;
        in_nbytes += ways[i].in_nbytes;
    }
    double nbytes = (double)n_streams * (double)m->stream_nbytes, mb = nbytes / 1e6;
    must(cudaGetDeviceProperties(&device, 0));
    printf("{\"peer\":\"wharf\",\"mode\":\"chain\",\"codec\":\"deflate, %s\",\"data\":\"%s\","
           "\"level\":%d,\"chunk\":%zu,\"block\":%zu,\"chunks\":%zu,\"blocks\":%zu,\"stored\":%zu,"
           "\"bytes\":%.0f,\"ratio\":%.3f,\"ways\":%u,\"GBps_median\":%.2f,\"GBps_min\":%.2f,"
           "\"GBps_max\":%.2f,\"us_median\":%.1f,\"first_us_median\":%.1f,\"runs\":%d,"
           "\"wrong\":%u,\"device\":\"%s\"}\n",
           m->name, slash ? slash + 1 : m->file_name, LEVEL, m->stream_nbytes, m->block_nbytes,
           n_streams, n_blocks, n_stored, nbytes, nbytes / (double)in_nbytes, m->n_ways,
           mb / ms[REPETITIONS / 2], mb / ms[REPETITIONS - 1], mb / ms[0],
           ms[REPETITIONS / 2] * 1e3, first_ms[REPETITIONS / 2] * 1e3, REPETITIONS, n_bad,
           device.name);
    fflush(stdout);
}

static uint8_t *read_file(const char *name, size_t *ret_nbytes)
{
    FILE *file = fopen(name, "rb");

    if (!file || fseek(file, 0, SEEK_END) != 0)
        bench_die(name);
    size_t nbytes = (size_t)ftell(file);
    uint8_t *data = bench_check(malloc(nbytes + 1));
    rewind(file);
    if (fread(data, 1, nbytes, file) != nbytes)
        bench_die(name);
    fclose(file);
    *ret_nbytes = nbytes;
    return data;
}

static void measure(struct measurement *m)
{
    size_t file_nbytes, n_streams = m->nbytes / m->stream_nbytes;
    uint8_t *file = read_file(m->file_name, &file_nbytes);
    size_t n_distinct = file_nbytes / m->stream_nbytes;
    struct stream *streams = bench_check(calloc(n_distinct + 1, sizeof(*streams)));
    struct work ways[MAX_WAYS];
    float ms[REPETITIONS], first_ms[REPETITIONS];
    unsigned n_bad = 0;

    if (n_distinct == 0 || n_streams < m->n_ways)
        bench_die("less data than a stream has");
    for (size_t s = 0; s < n_distinct; s++)
        streams[s] =
            stream_new(&m->source, file + s * m->stream_nbytes, m->stream_nbytes, m->block_nbytes);
    for (unsigned i = 0; i < m->n_ways; i++)
        work_init(&ways[i], &m->source, streams, n_distinct, n_streams / m->n_ways,
                  m->block_nbytes);
    time_all(ways, m->n_ways, ms, first_ms);
    for (unsigned i = 0; i < m->n_ways; i++)
        n_bad += count_bad(&ways[i], streams, n_distinct);
    print_row(m, ways, ms, first_ms, n_bad);
    for (unsigned i = 0; i < m->n_ways; i++)
        work_deinit(&ways[i]);
    for (size_t s = 0; s < n_distinct; s++)
        stream_free(&streams[s]);
    free(streams);
    free(file);
}

/* What stands behind Deflate. */
static const char *const checked[] = {"rle2:i64", "rle2:i32", "rle1:i64", "byterle",
                                      "boolrle",  "lz4",      "snappy",   "zstd"};

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    if (argc > 2 && argc != 7)
        return test_usage(help);
    must(cudaSetDevice(0));
    must_call(wharf_cuda_open(&cuda));
    if (argc == 7) {
        struct measurement m = {.name = argv[1],
                                .file_name = argv[2],
                                .nbytes = strtoul(argv[3], NULL, 10),
                                .stream_nbytes = strtoul(argv[4], NULL, 10),
                                .block_nbytes = strtoul(argv[5], NULL, 10),
                                .n_ways = (unsigned)strtoul(argv[6], NULL, 10)};
        if (m.stream_nbytes == 0 || m.block_nbytes == 0 || m.n_ways == 0 || m.n_ways > MAX_WAYS)
            return test_usage(help);
        gpu_source_choose(&m.source, m.name);
        measure(&m);
        wharf_cuda_close(cuda);
        return 0;
    }
    if (argc == 2)
        check_codec(argv[1]);
    for (size_t i = 0; argc == 1 && i < sizeof(checked) / sizeof(checked[0]); i++)
        check_codec(checked[i]);
    wharf_cuda_close(cuda);
    return test_tap_end();
}
