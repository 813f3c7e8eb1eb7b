/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvcomp_damage: gives damaged chunks of Deflate, gzip, LZ4, Snappy and zstd to NVIDIA's nvCOMP on
 * the first GPU.  tests/bench/damage-run starts it, and restarts it after a chunk that ended its
 * context.  `make nvcomp-damage NVCOMP_HOME=FOLDER` builds it with an unpacked nvCOMP.
 */
#include <cuda_runtime.h>
#include <nvcomp/deflate.h>
#include <nvcomp/gzip.h>
#include <nvcomp/lz4.h>
#include <nvcomp/snappy.h>
#include <nvcomp/zstd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/bench/damage_files.h"
#include "tests/lib/test_help.h"

static const char help[] =
    "usage: nvcomp_damage CORPUS RESULTS FIRST BATCH\n"
    "\n"
    "Gives nvCOMP the chunks of a corpus that `damage make` has made, in batches from chunk\n"
    "FIRST on, and writes what it said of each to RESULTS.  Exit status 3: the context is gone.\n";

enum { CONTEXT_KILLED = 3, CANNOT = 4, ALIGN = 256 };

/* What fails after a batch was started is the batch's doing. */
static void check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "nvcomp_damage: %s: %s\n", what, cudaGetErrorString(error));
    exit(error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver ||
                 error == cudaErrorMemoryAllocation
             ? CANNOT
             : CONTEXT_KILLED);
}

static void check(nvcompStatus_t status, const char *what)
{
    if (status == nvcompSuccess)
        return;
    fprintf(stderr, "nvcomp_damage: %s: status %d\n", what, (int)status);
    exit(status == nvcompErrorCudaError ? CONTEXT_KILLED : CANNOT);
}

/* A batch's arrays, in memory of the GPU's, for all batches. */
struct arrays {
    size_t n, out_stride, in_avail, temp_nbytes;
    uint8_t *in, *out, *temp;
    void **in_at, **out_at;
    size_t *in_nbytes, *out_avail, *out_nbytes;
    nvcompStatus_t *status;
};

template <class T>
static T *device(size_t n)
{
    void *p = nullptr;
    check(cudaMalloc(&p, (n ? n : 1) * sizeof(T)), "memory");
    return static_cast<T *>(p);
}

#define CALLS(NAME)                                                                                \
    static void temp_##NAME(arrays &a)                                                             \
    {                                                                                              \
        check(nvcompBatched##NAME##DecompressGetTempSize(                                          \
                  a.n, a.out_stride, nvcompBatched##NAME##DecompressDefaultOpts, &a.temp_nbytes,   \
                  a.n *a.out_stride, 0),                                                           \
              "scratch");                                                                          \
    }                                                                                              \
    static nvcompStatus_t decode_##NAME(const arrays &a, size_t n)                                 \
    {                                                                                              \
        return nvcompBatched##NAME##DecompressAsync(                                               \
            const_cast<const void *const *>(a.in_at), a.in_nbytes, a.out_avail, a.out_nbytes, n,   \
            a.temp, a.temp_nbytes, a.out_at, nvcompBatched##NAME##DecompressDefaultOpts, a.status, \
            nullptr);                                                                              \
    }
CALLS(Deflate)
CALLS(Gzip)
CALLS(LZ4)
CALLS(Snappy)
CALLS(Zstd)

/* By the numbers of encoders/wharf_codec.h. */
struct row {
    uint32_t codec;
    void (*temp)(arrays &);
    nvcompStatus_t (*decode)(const arrays &, size_t);
};
static const row rows[] = {
    {1, temp_Deflate, decode_Deflate}, {3, temp_Gzip, decode_Gzip},  {9, temp_LZ4, decode_LZ4},
    {10, temp_Snappy, decode_Snappy},  {16, temp_Zstd, decode_Zstd},
};

static size_t round_up(size_t nbytes)
{
    return (nbytes + ALIGN - 1) / ALIGN * ALIGN;
}

static arrays make_arrays(const damage_corpus *corpus, size_t batch, const row &row)
{
    arrays a = {};
    size_t most_in = 1, most_out = 1;

    for (uint64_t i = 0; i < corpus->n_chunks; i++) {
        most_in = std::max<size_t>(most_in, corpus->chunks[i].in_nbytes);
        most_out = std::max<size_t>(most_out, corpus->chunks[i].out_avail);
    }
    a.n = batch;
    a.out_stride = round_up(most_out);
    a.in_avail = round_up(most_in);
    row.temp(a);
    a.in = device<uint8_t>(batch * a.in_avail);
    a.out = device<uint8_t>(batch * a.out_stride);
    a.temp = device<uint8_t>(a.temp_nbytes);
    a.in_at = device<void *>(batch);
    a.out_at = device<void *>(batch);
    a.in_nbytes = device<size_t>(batch);
    a.out_avail = device<size_t>(batch);
    a.out_nbytes = device<size_t>(batch);
    a.status = device<nvcompStatus_t>(batch);
    return a;
}

template <class T>
static void send(T *to, const std::vector<T> &from)
{
    check(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice), "copy");
}

template <class T>
static std::vector<T> fetch(const T *from, size_t n)
{
    std::vector<T> to(n);
    check(cudaMemcpy(to.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost), "copy");
    return to;
}

static void load(const arrays &a, const damage_corpus *corpus, uint64_t first, size_t n)
{
    std::vector<uint8_t> image(n * a.in_avail);
    std::vector<void *> in(n), out(n);
    std::vector<size_t> in_nbytes(n), out_avail(n);

    for (size_t i = 0; i < n; i++) {
        const damage_chunk &chunk = corpus->chunks[first + i];
        memcpy(&image[i * a.in_avail], damage_stream(corpus, first + i), chunk.in_nbytes);
        in[i] = a.in + i * a.in_avail;
        out[i] = a.out + i * a.out_stride;
        in_nbytes[i] = chunk.in_nbytes;
        out_avail[i] = chunk.out_avail;
    }
    send(a.in, image);
    send(a.in_at, in);
    send(a.out_at, out);
    send(a.in_nbytes, in_nbytes);
    send(a.out_avail, out_avail);
}

static void note(const arrays &a, const damage_corpus *corpus, damage_results *results,
                 uint64_t first, size_t n)
{
    std::vector<nvcompStatus_t> status = fetch(a.status, n);
    std::vector<size_t> out_nbytes = fetch(a.out_nbytes, n);
    std::vector<uint8_t> out = fetch(a.out, n * a.out_stride);

    for (size_t i = 0; i < n; i++) {
        damage_result result = {};
        result.state = status[i] == nvcompSuccess ? DAMAGE_ACCEPTED : DAMAGE_REFUSED;
        if (status[i] == nvcompSuccess) {
            size_t said = std::min<size_t>(out_nbytes[i], corpus->chunks[first + i].out_avail);
            result.out_nbytes = out_nbytes[i];
            result.sum = damage_sum(&out[i * a.out_stride], said);
        }
        results->results[first + i] = result;
    }
}

static int run(const damage_corpus *corpus, damage_results *results, uint64_t first, size_t batch)
{
    for (const row &row : rows) {
        if (row.codec != corpus->codec)
            continue;
        arrays a = make_arrays(corpus, batch, row);
        for (; first < corpus->n_chunks; first += batch) {
            size_t n = std::min<uint64_t>(batch, corpus->n_chunks - first);
            __atomic_store_n(&results->at, first, __ATOMIC_RELEASE);
            load(a, corpus, first, n);
            check(row.decode(a, n), "decode");
            check(cudaDeviceSynchronize(), "decode");
            note(a, corpus, results, first, n);
        }
        return 0;
    }
    fprintf(stderr, "nvcomp_damage: nvCOMP has no such codec\n");
    return CANNOT;
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    if (argc != 5 || strtoull(argv[4], nullptr, 10) == 0)
        return test_usage(help);
    return run(static_cast<const damage_corpus *>(damage_map(argv[1], 0)),
               static_cast<damage_results *>(damage_map(argv[2], 1)),
               strtoull(argv[3], nullptr, 10), strtoull(argv[4], nullptr, 10));
}
