/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_line.cu: kernels that sum an array which stays compressed in GPU memory, and change one.
 *
 *     nvcc -std=c++17 -arch=sm_80 example_line.cu $(pkg-config --cflags --libs wharf-cuda)
 *
 * libwharf-cuda makes the streams, of bdi with lines of 128 bytes.  wharf_line.cuh reads and writes
 * them.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>
#include <wharf_assist.cuh> /* and wharf_line.cuh */
#include <wharf_cuda.h>

constexpr size_t N_VALUES = 1 << 20, NBYTES = N_VALUES * sizeof(uint64_t);
constexpr unsigned WARPS = 8, LANES_PER_LINE = 128 / 16, N_WORKERS = 1, N_ASSISTS = 3;

__global__ void add_up(wharf::line_array array, unsigned long long *sum, uint32_t *n_bad)
{
    __shared__ wharf::line_table<WHARF_CODEC_BDI> table;
    if (threadIdx.x < 32)
        wharf::fill_line_table(table, array);
    __syncthreads();

    unsigned long long own = 0;
    uint64_t team = (blockIdx.x * (uint64_t)blockDim.x + threadIdx.x) / LANES_PER_LINE;
    uint64_t n_teams = (uint64_t)gridDim.x * blockDim.x / LANES_PER_LINE;
    /* All lanes of a warp make the same number of turns, as collectives need. */
    for (uint64_t base = 0; base < array.n_lines; base += n_teams) {
        bool ok, is_mine = base + team < array.n_lines;
        wharf::u32x4 v = wharf::load_line(table, array, is_mine ? base + team : 0, &ok);
        if (is_mine)
            own += ((uint64_t)v.y << 32 | v.x) + ((uint64_t)v.w << 32 | v.z);
        if (!ok)
            atomicAdd(n_bad, 1);
    }
    atomicAdd(sum, own);
}

/* The same, with three warps of a block decoding for a fourth. */
__global__ void add_up_assisted(wharf::line_array array, unsigned long long *sum, uint32_t *n_bad)
{
    __shared__ wharf::line_assists<WHARF_CODEC_BDI, 4, N_ASSISTS> s;
    unsigned warp = threadIdx.x / 32;
    uint64_t n = wharf::count_line_groups(array), left = blockIdx.x < n ? n - blockIdx.x : 0;
    wharf::line_row row = {blockIdx.x, gridDim.x, (left + gridDim.x - 1) / gridDim.x};
    if (warp == 0)
        wharf::init_line_assists(s, array, N_WORKERS);
    __syncthreads();
    if (warp >= N_WORKERS) {
        wharf::run_line_assist(s, array, warp - N_WORKERS, row);
        return;
    }

    unsigned long long own = 0;
    for (uint64_t k = 0; k < row.n; k++) {
        bool ok;
        const wharf::u32x4 *group = wharf::wait_line_group(s, k, &ok);
        for (unsigned i = threadIdx.x; i < wharf::LINE_GROUP_NQUADS; i += N_WORKERS * 32) {
            wharf::u32x4 v = group[i];
            own += ((uint64_t)v.y << 32 | v.x) + ((uint64_t)v.w << 32 | v.z);
        }
        wharf::release_line_group(s, k);
        if (!ok)
            atomicAdd(n_bad, 1);
    }
    atomicAdd(sum, own);
}

/* Adds 1 to all values of an array in slots. */
__global__ void count_up(wharf::line_slots slots, uint32_t *n_bad)
{
    __shared__ wharf::line_table<WHARF_CODEC_BDI> table;
    __shared__ wharf::line_space spaces[WARPS];
    if (threadIdx.x < 32)
        wharf::fill_line_table(table, slots.array);
    __syncthreads();

    uint64_t team = (blockIdx.x * (uint64_t)blockDim.x + threadIdx.x) / LANES_PER_LINE;
    uint64_t n_teams = (uint64_t)gridDim.x * blockDim.x / LANES_PER_LINE;
    for (uint64_t base = 0; base < slots.array.n_lines; base += n_teams) {
        bool ok, is_mine = base + team < slots.array.n_lines;
        wharf::u32x4 v =
            wharf::load_changing_line(table, slots.array, is_mine ? base + team : 0, &ok);
        uint64_t a = ((uint64_t)v.y << 32 | v.x) + 1, b = ((uint64_t)v.w << 32 | v.z) + 1;
        v = {(uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32)};
        /* A line that is bad stays so. */
        uint64_t line = is_mine && ok ? base + team : wharf::LINE_NONE;
        if (!wharf::store_line<WHARF_CODEC_BDI>(spaces[threadIdx.x / 32], slots, line, v))
            atomicAdd(n_bad, 1);
    }
}

static void must(int error, const char *what)
{
    if (error == 0)
        return;
    fprintf(stderr, "example_line: %s: error %d\n", what, error);
    exit(EXIT_FAILURE);
}

/* Waits for a kernel, and prints its sum. */
static bool is_sum(const char *what, const unsigned long long *sum, uint64_t want)
{
    must((int)cudaGetLastError(), what);
    must((int)cudaDeviceSynchronize(), what);
    bool is_right = *sum == want;
    printf("%s: %llu, %s\n", what, *sum, is_right ? "right" : "WRONG");
    fflush(stdout);
    return is_right;
}

/* Allocates memory that both CPU and GPU can access. */
template <typename T>
static T *allocate(size_t n)
{
    void *p = nullptr;
    must((int)cudaMallocManaged(&p, n * sizeof(T)), "cudaMallocManaged");
    return static_cast<T *>(p);
}

/* The arrays of a batch of one chunk, in memory that the GPU can access. */
struct one_chunk {
    const void *in;
    size_t in_nbytes;
    void *out;
    size_t out_avail;
    struct wharf_outcome outcome;
};

static one_chunk *encode(const uint64_t *values, uint32_t layout)
{
    one_chunk *chunk = allocate<one_chunk>(1);
    struct wharf_cuda_encoding encoding = WHARF_CUDA_ENCODING_INIT;
    struct wharf_cuda *cuda;
    encoding.codec = WHARF_CODEC_BDI;
    encoding.layout = layout;
    must(wharf_cuda_encode_bound(&encoding, NBYTES, &chunk->out_avail), "wharf_cuda_encode_bound");
    chunk->in = values;
    chunk->in_nbytes = NBYTES;
    chunk->out = allocate<uint8_t>(chunk->out_avail);
    encoding.n_chunks = 1;
    encoding.in = &chunk->in;
    encoding.in_nbytes = &chunk->in_nbytes;
    encoding.out = &chunk->out;
    encoding.out_avail = &chunk->out_avail;
    encoding.outcomes = &chunk->outcome;
    must(wharf_cuda_open(&cuda), "wharf_cuda_open");
    must(wharf_cuda_encode(cuda, &encoding, nullptr), "wharf_cuda_encode");
    must((int)cudaDeviceSynchronize(), "encoding");
    must((int)chunk->outcome.result, "result of encoding");
    wharf_cuda_close(cuda);
    return chunk;
}

int main()
{
    uint64_t *values = allocate<uint64_t>(N_VALUES), *error = allocate<uint64_t>(1), want = 0;
    unsigned long long *sums = allocate<unsigned long long>(3);
    uint32_t *n_bad = allocate<uint32_t>(1);
    wharf::line_array array;
    wharf::line_slots slots;

    for (size_t i = 0; i < N_VALUES; i++)
        want += values[i] = UINT64_C(1000000007) * (i / 16) + i * i % 200;
    one_chunk *packed = encode(values, WHARF_LINE_PACKED);
    one_chunk *in_slots = encode(values, WHARF_LINE_SLOTS);
    *error = UINT64_MAX;
    must(
        wharf::open_line_array(&array, packed->out, packed->out, packed->outcome.out_nbytes, error),
        "open_line_array");
    must(wharf::open_line_slots(&slots, in_slots->out, in_slots->out, in_slots->outcome.out_nbytes,
                                error),
         "open_line_slots");
    sums[0] = sums[1] = sums[2] = *n_bad = 0;
    printf("%zu bytes in %zu\n", NBYTES, (size_t)packed->outcome.out_nbytes);
    add_up<<<64, WARPS * 32>>>(array, &sums[0], n_bad);
    bool is_right = is_sum("add_up", &sums[0], want);
    count_up<<<64, WARPS * 32>>>(slots, n_bad);
    add_up<<<64, WARPS * 32>>>(slots.array, &sums[1], n_bad);
    is_right = is_sum("count_up and add_up", &sums[1], want + N_VALUES) && is_right;
    add_up_assisted<<<64, (N_WORKERS + N_ASSISTS) * 32>>>(array, &sums[2], n_bad);
    is_right = is_sum("add_up_assisted", &sums[2], want) && is_right;
    if (*n_bad != 0 || *error != UINT64_MAX)
        printf("%u loads and stores found bad lines, line %llu first\n", *n_bad,
               (unsigned long long)*error);
    return is_right && *n_bad == 0 && *error == UINT64_MAX ? EXIT_SUCCESS : EXIT_FAILURE;
}
