/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_memory_measure.c: bytes a second of one client that submits batches, with sources and outputs
 * in GPU memory or in its arena. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/wharf.h"
#include "daemon/base/clock.h"
#include "encoders/rle_values.h"
#include "tests/gpu/gpu_memory_parts.h"
#include "tests/gpu/gpu_pack.h"
#include "tests/lib/test_file.h"

enum {
    BATCH = 64,     /* chunks */
    DEPTH = 64,     /* batches in flight */
    N_WINDOWS = 10, /* of which the spread is given; some before them, to get ready */
    N_BEFORE = 3,
};

/* Where sources and outputs are. */
struct way {
    int from_gpu, to_gpu;
};

/* What is in flight: chunk i of all has source and output i. */
struct flood {
    const struct gpu_source *source;
    struct way way;
    struct wharf *wharf;
    struct gpu_client_memory sources, outputs; /* those on the GPU */
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

static void get_memory(struct flood *flood, uint32_t engine)
{
    size_t in_nbytes = 0, out_nbytes = DEPTH * BATCH * stride(flood);
    void *out = NULL;

    for (size_t i = 0; i < DEPTH * BATCH; i++)
        in_nbytes += packed(flood, i)->nbytes + 64;
    flood->wharf = gpu_memory_open(engine, DEPTH, in_nbytes + out_nbytes + (64 << 20));
    if (flood->way.from_gpu)
        flood->sources = gpu_memory_register(flood->wharf, in_nbytes);
    if (flood->way.to_gpu)
        flood->outputs = gpu_memory_register(flood->wharf, out_nbytes);
    else
        gpu_memory_must("wharf_alloc", wharf_alloc(flood->wharf, out_nbytes, &out));
    flood->out = flood->way.to_gpu ? flood->outputs.at : out;
}

/* The source of chunk i, whose bytes begin `at` bytes into those on the GPU. */
static const void *put_source(const struct flood *flood, size_t i, size_t at)
{
    const struct gpu_packed *from = packed(flood, i);
    void *in;

    if (flood->way.from_gpu) {
        uint8_t *to = flood->sources.at + at;
        gpu_memory_must_cuda("copying", gpu_client_put(to, from->data, from->nbytes));
        return to;
    }
    gpu_memory_must("wharf_alloc", wharf_alloc(flood->wharf, from->nbytes, &in));
    memcpy(in, from->data, from->nbytes);
    return in;
}

static void make_batches(struct flood *flood)
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
        if (flood->way.to_gpu)
            gpu_memory_must_cuda("copying", gpu_client_get(own, out, nbytes));
        n_wrong +=
            memcmp(flood->way.to_gpu ? own : out,
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

static void run(const struct gpu_source *source, const char *name, struct way way, double seconds)
{
    struct flood *flood = calloc(1, sizeof(*flood));
    double rates[N_WINDOWS];

    flood->source = source;
    flood->way = way;
    get_memory(flood, WHARF_ENGINE_GPU);
    make_batches(flood);
    for (unsigned i = 0; i < N_BEFORE; i++)
        run_window(flood, seconds / N_WINDOWS);
    for (unsigned i = 0; i < N_WINDOWS; i++)
        rates[i] = run_window(flood, seconds / N_WINDOWS);
    drain(flood);
    qsort(rates, N_WINDOWS, sizeof(rates[0]), by_size);
    double out_gb = 1e-9 * (double)flood->out_nbytes, in_gb = 1e-9 * (double)flood->in_nbytes;
    printf("{\"what\":\"gpu_memory\",\"source\":\"%s\",\"output\":\"%s\",\"codec\":\"%s\",\"data\":"
           "\"%s\","
           "\"chunk_nbytes\":%zu,\"n_chunks\":%d,\"batch\":%d,\"windows\":%d,\"seconds\":%.2f,"
           "\"GBps_median\":%.2f,\"GBps_min\":%.2f,\"GBps_max\":%.2f,\"GBps_in_median\":%.2f,"
           "\"wrong\":%u}\n",
           way.from_gpu ? "gpu" : "host", way.to_gpu ? "gpu" : "host", source->codec->name, name,
           source->chunk_nbytes, DEPTH * BATCH, BATCH, N_WINDOWS, seconds,
           rates[N_WINDOWS / 2] * out_gb, rates[0] * out_gb, rates[N_WINDOWS - 1] * out_gb,
           rates[N_WINDOWS / 2] * in_gb, count_wrong(flood));
    fflush(stdout);
    wharf_close(flood->wharf);
    if (way.from_gpu)
        gpu_client_free(&flood->sources);
    if (way.to_gpu)
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

void gpu_memory_measure(const char *codec, const char *path, size_t chunk_nbytes, double seconds)
{
    static const struct way ways[] = {{0, 0}, {0, 1}, {1, 1}};
    struct gpu_source source = pack(codec, path, chunk_nbytes, DEPTH * BATCH);

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        run(&source, name_of(path), ways[i], seconds);
    gpu_source_free(&source);
    free((void *)source.file);
}

void gpu_memory_measure_share(const char *codec, const char *path, size_t chunk_nbytes,
                              unsigned n_processes, uint32_t n_chunks, double seconds)
{
    struct gpu_source source = pack(codec, path, chunk_nbytes, n_chunks);

    gpu_memory_share(&source, name_of(path), n_processes, n_chunks, seconds);
    gpu_source_free(&source);
    free((void *)source.file);
}
