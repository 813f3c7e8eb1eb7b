/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_line_main.cu: what kernels gain that read arrays which stay compressed.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cuda_runtime.h>

extern "C" {
#include "encoders/line/line.h"
#include "tests/lib/test_lines_mix.h"
}
#include "kernels/line/wharf_assist.cuh"
#include "tests/lib/test_help.h"

using namespace wharf;

static const char help[] =
    "usage: wharf_gpu_line [MIB [CODEC]]\n"
    "\n"
    "Times kernels that read arrays which stay compressed, of MIB without compression (256), by\n"
    "CODEC or by all codecs of lines.\n"
    "Each consumer reads one array raw, by load_line(), group by group, and by assist warps; "
    "`ideal`\n"
    "reads the compressed bytes and decodes nothing.  All must come to one sum.  Prints a row of\n"
    "JSON for each.\n"
    "\n"
    "  sum      every byte once, from memory of the GPU\n"
    "  gather   lines in a random order\n"
    "  update   1 more in every value, in place; compressed in slots\n"
    "  cached   `sum` of 80 MB again and again, which the second-level cache holds only\n"
    "           compressed\n"
    "  link     `sum` from memory of the host\n";

namespace
{

#define MUST(call)                                                                                 \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error_));        \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

/* What is known of palette's values; of the other codecs there is nothing to know. */
constexpr uint32_t TYPE = WHARF_LINE_BF16;
constexpr unsigned WARPS = 8, LINE_NBYTES = 128, TEAM = LINE_NBYTES / 16;
int n_multiprocessors;

__device__ uint64_t add_quad(u32x4 v)
{
    return ((uint64_t)v.y << 32 | v.x) + ((uint64_t)v.w << 32 | v.z);
}

__device__ void add_to(unsigned long long *sum, uint64_t own)
{
    for (unsigned n = 16; n > 0; n /= 2)
        own += __shfl_xor_sync(0xffffffffu, own, n);
    if (threadIdx.x % 32 == 0)
        atomicAdd(sum, (unsigned long long)own);
}

/* Lines in an order that looks random; each one once, since the prime does not divide n. */
__device__ uint64_t scatter(uint64_t i, uint64_t n)
{
    return i * 2654435761u % n;
}

__global__ void sum_raw(const u32x4 *quads, uint64_t n, unsigned long long *sum)
{
    uint64_t own = 0, stride = (uint64_t)gridDim.x * blockDim.x;
    uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
    for (; i + 3 * stride < n; i += 4 * stride) {
        u32x4 a = load_nc(quads + i), b = load_nc(quads + i + stride),
              c = load_nc(quads + i + 2 * stride), d = load_nc(quads + i + 3 * stride);
        own += add_quad(a) + add_quad(b) + add_quad(c) + add_quad(d);
    }
    for (; i < n; i += stride)
        own += add_quad(load_nc(quads + i));
    add_to(sum, own);
}

template <uint32_t CODEC, bool SCATTERED>
__global__ void __launch_bounds__(WARPS * 32, 4)
    sum_by_load(const __grid_constant__ line_array array, unsigned long long *sum)
{
    __shared__ line_table<CODEC> table;
    if (threadIdx.x < 32)
        fill_line_table(table, array);
    __syncthreads();
    uint64_t own = 0, team = (blockIdx.x * (uint64_t)blockDim.x + threadIdx.x) / TEAM;
    uint64_t n_teams = (uint64_t)gridDim.x * blockDim.x / TEAM;
    for (uint64_t base = 0; base < array.n_lines; base += n_teams) {
        bool ok, is_mine = base + team < array.n_lines;
        uint64_t line = is_mine ? base + team : 0;
        u32x4 v = load_line<CODEC, TYPE>(table, array,
                                         SCATTERED ? scatter(line, array.n_lines) : line, &ok);
        own += is_mine ? add_quad(v) : 0;
    }
    add_to(sum, own);
}

__global__ void gather_raw(const u32x4 *quads, uint64_t n_lines, unsigned long long *sum)
{
    uint64_t own = 0, team = (blockIdx.x * (uint64_t)blockDim.x + threadIdx.x) / TEAM;
    uint64_t n_teams = (uint64_t)gridDim.x * blockDim.x / TEAM;
    for (; team < n_lines; team += n_teams)
        own += add_quad(load_nc(quads + scatter(team, n_lines) * TEAM + threadIdx.x % TEAM));
    __syncwarp();
    add_to(sum, own);
}

template <uint32_t CODEC, unsigned N_WORKERS, unsigned N_ASSISTS, unsigned N_STAGES>
__global__ void __launch_bounds__((N_WORKERS + N_ASSISTS) * 32)
    sum_by_assists(const __grid_constant__ line_array array, unsigned long long *sum)
{
    extern __shared__ __align__(128) unsigned char memory[];
    using assists = line_assists<CODEC, N_STAGES, N_ASSISTS, TYPE>;
    assists &s = *reinterpret_cast<assists *>(memory);
    uint32_t warp = uniform(threadIdx.x / 32);
    uint64_t n = count_line_groups(array), first = blockIdx.x;
    line_row row = {first, gridDim.x, first < n ? (n - first + gridDim.x - 1) / gridDim.x : 0};
    if (warp == 0)
        init_line_assists(s, array, N_WORKERS);
    __syncthreads();
    if (warp >= N_WORKERS) {
        run_line_assist(s, array, warp - N_WORKERS, row);
        return;
    }
    uint64_t own = 0;
    for (uint64_t k = 0; k < row.n; k++) {
        bool ok;
        const u32x4 *group = wait_line_group(s, k, &ok);
        for (unsigned i = warp * 32 + lane_id(); i < LINE_GROUP_NQUADS; i += N_WORKERS * 32)
            own += add_quad(load(group + i));
        release_line_group(s, k);
    }
    add_to(sum, own);
}

template <uint32_t CODEC>
__global__ void __launch_bounds__(WARPS * 32, 5)
    sum_by_groups(const __grid_constant__ line_array array, unsigned long long *sum)
{
    __shared__ line_table<CODEC> table;
    __shared__ line_group_space spaces[WARPS];
    uint32_t warp = uniform(threadIdx.x / 32);
    if (warp == 0)
        fill_line_table(table, array);
    init_line_group_space(spaces[warp]);
    __syncthreads();
    uint64_t n = count_line_groups(array), first = blockIdx.x * WARPS + warp;
    uint64_t stride = (uint64_t)gridDim.x * WARPS, own = 0;
    line_row row = {first, stride, first < n ? (n - first + stride - 1) / stride : 0};
    visit_line_groups<CODEC, TYPE>(table, spaces[warp], array, row,
                                   [&](uint64_t, const u32x4 &quad) { own += add_quad(quad); });
    add_to(sum, own);
}

__device__ u32x4 one_more(u32x4 v)
{
    uint64_t a = ((uint64_t)v.y << 32 | v.x) + 1, b = ((uint64_t)v.w << 32 | v.z) + 1;
    return {(uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32)};
}

__global__ void update_raw(u32x4 *quads, uint64_t n)
{
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += stride)
        quads[i] = one_more(quads[i]);
}

template <uint32_t CODEC>
__global__ void __launch_bounds__(WARPS * 32, 4)
    update_slots(const __grid_constant__ line_slots slots, unsigned long long *)
{
    __shared__ line_table<CODEC> table;
    __shared__ line_space spaces[WARPS];
    if (threadIdx.x < 32)
        fill_line_table(table, slots.array);
    __syncthreads();
    uint64_t team = (blockIdx.x * (uint64_t)blockDim.x + threadIdx.x) / TEAM;
    uint64_t n_teams = (uint64_t)gridDim.x * blockDim.x / TEAM;
    for (uint64_t base = 0; base < slots.array.n_lines; base += n_teams) {
        bool ok, is_mine = base + team < slots.array.n_lines;
        uint64_t line = is_mine ? base + team : 0;
        u32x4 v = load_changing_line<CODEC, TYPE>(table, slots.array, line, &ok);
        store_line<CODEC>(spaces[threadIdx.x / 32], slots, is_mine && ok ? line : LINE_NONE,
                          one_more(v));
    }
}

/* ---- measuring ------------------------------------------------------------------------------ */

template <typename F>
float median_ms(const F &run)
{
    cudaEvent_t begin, end;
    std::vector<float> times;
    MUST(cudaEventCreate(&begin));
    MUST(cudaEventCreate(&end));
    for (int i = 0; i < 13; i++) {
        float ms;
        MUST(cudaEventRecord(begin));
        run();
        MUST(cudaGetLastError());
        MUST(cudaEventRecord(end));
        MUST(cudaEventSynchronize(end));
        MUST(cudaEventElapsedTime(&ms, begin, end));
        if (i >= 3)
            times.push_back(ms);
    }
    std::sort(times.begin(), times.end());
    MUST(cudaEventDestroy(begin));
    MUST(cudaEventDestroy(end));
    return times[times.size() / 2];
}

struct bench {
    const char *codec;
    const char *data;
    double ratio;
    std::vector<uint8_t> raw;
    std::vector<uint8_t> stream;
    unsigned long long *d_sum;
    uint64_t *d_error;
    uint64_t want;
    double raw_ms; /* of the consumer at hand */
    int n_wrong;

    void row(const char *consumer, const char *how, double ms, bool is_right)
    {
        if (strcmp(how, "raw") == 0)
            raw_ms = ms;
        n_wrong += !is_right;
        printf("{\"what\": \"line consumer\", \"consumer\": \"%s\", \"how\": \"%s\", \"codec\": "
               "\"%s\", \"data\": \"%s\", \"ratio\": %.3f, \"raw_nbytes\": %zu, \"ms\": %.4f, "
               "\"GBps_raw\": %.0f, \"gain\": %.3f, \"right\": %s}\n",
               consumer, how, codec, data, ratio, raw.size(), ms, (double)raw.size() / ms / 1e6,
               raw_ms / ms, is_right ? "true" : "false");
        fflush(stdout);
    }

    template <typename F>
    void take(const char *consumer, const char *how, const F &run)
    {
        double ms = median_ms(run);
        unsigned long long sum;
        MUST(cudaMemset(d_sum, 0, sizeof(sum)));
        run();
        MUST(cudaMemcpy(&sum, d_sum, sizeof(sum), cudaMemcpyDeviceToHost));
        uint64_t error;
        MUST(cudaMemcpy(&error, d_error, sizeof(error), cudaMemcpyDeviceToHost));
        bool is_ideal = strcmp(how, "ideal") == 0;
        row(consumer, how, ms, (is_ideal || sum == want) && error == UINT64_MAX);
    }
};

unsigned blocks_of(const void *kernel, unsigned n_threads, size_t shared)
{
    int n = 0;
    if (shared > 48 * 1024)
        MUST(
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, kernel, (int)n_threads, shared));
    return (unsigned)(n > 0 ? n : 1) * (unsigned)n_multiprocessors;
}

template <uint32_t CODEC, unsigned N_WORKERS, unsigned N_ASSISTS, unsigned N_STAGES>
void take_assists(bench &b, const char *consumer, const line_array &array)
{
    auto *kernel = sum_by_assists<CODEC, N_WORKERS, N_ASSISTS, N_STAGES>;
    size_t shared = sizeof(line_assists<CODEC, N_STAGES, N_ASSISTS, TYPE>);
    unsigned n_threads = (N_WORKERS + N_ASSISTS) * 32;
    unsigned blocks = blocks_of(reinterpret_cast<const void *>(kernel), n_threads, shared);
    char how[40];
    snprintf(how, sizeof(how), "assists %u+%u/%u", N_WORKERS, N_ASSISTS, N_STAGES);
    b.take(consumer, how, [&] { kernel<<<blocks, n_threads, shared>>>(array, b.d_sum); });
}

template <uint32_t CODEC>
void take_sums(bench &b, const char *consumer, const u32x4 *raw, const line_array &array)
{
    unsigned blocks = 8 * (unsigned)n_multiprocessors;
    uint64_t n = b.raw.size() / 16;
    b.take(consumer, "raw", [&] { sum_raw<<<blocks, 256>>>(raw, n, b.d_sum); });
    b.take(consumer, "ideal", [&] {
        sum_raw<<<blocks, 256>>>(reinterpret_cast<const u32x4 *>(array.stream), array.nbytes / 16,
                                 b.d_sum);
    });
    unsigned load_blocks =
        blocks_of(reinterpret_cast<const void *>(sum_by_load<CODEC, false>), WARPS * 32, 0);
    b.take(consumer, "load",
           [&] { sum_by_load<CODEC, false><<<load_blocks, WARPS * 32>>>(array, b.d_sum); });
    unsigned group_blocks =
        blocks_of(reinterpret_cast<const void *>(sum_by_groups<CODEC>), WARPS * 32, 0);
    b.take(consumer, "groups",
           [&] { sum_by_groups<CODEC><<<group_blocks, WARPS * 32>>>(array, b.d_sum); });
    take_assists<CODEC, 1, 3, 4>(b, consumer, array);
    take_assists<CODEC, 1, 7, 8>(b, consumer, array);
    take_assists<CODEC, 2, 6, 6>(b, consumer, array);
}

line_array open_device(const bench &b, const uint8_t *d_stream)
{
    line_array array;
    if (open_line_array(&array, b.stream.data(), d_stream, b.stream.size(), b.d_error) != 0)
        exit(EXIT_FAILURE);
    return array;
}

template <uint32_t CODEC>
void take_updates(bench &b, const uint8_t *d_raw)
{
    struct wharf_line_choice choice = {CODEC, LINE_NBYTES, WHARF_LINE_SLOTS, 0};
    std::vector<uint8_t> stream(b.raw.size() + b.raw.size() / 32 + 4096);
    size_t nbytes;
    if (wharf_line_encode(&choice, b.raw.data(), b.raw.size(), stream.data(), stream.size(),
                          &nbytes) < 0)
        exit(EXIT_FAILURE);
    uint8_t *d_stream, *d_copy;
    MUST(cudaMalloc(&d_stream, nbytes));
    MUST(cudaMalloc(&d_copy, b.raw.size()));
    MUST(cudaMemcpy(d_stream, stream.data(), nbytes, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(d_copy, d_raw, b.raw.size(), cudaMemcpyDeviceToDevice));
    line_slots slots;
    if (open_line_slots(&slots, stream.data(), d_stream, nbytes, b.d_error) != 0)
        exit(EXIT_FAILURE);
    unsigned blocks = blocks_of(reinterpret_cast<const void *>(update_slots<CODEC>), WARPS * 32, 0);
    uint64_t n = b.raw.size() / 16;
    double raw_ms = median_ms([&] {
        update_raw<<<16 * (unsigned)n_multiprocessors, 256>>>(reinterpret_cast<u32x4 *>(d_copy), n);
    });
    double ms = median_ms([&] { update_slots<CODEC><<<blocks, WARPS * 32>>>(slots, b.d_sum); });
    unsigned long long sums[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        MUST(cudaMemset(b.d_sum, 0, 8));
        if (i == 0)
            sum_raw<<<64, 256>>>(reinterpret_cast<const u32x4 *>(d_copy), n, b.d_sum);
        else
            sum_by_load<CODEC, false><<<64, WARPS * 32>>>(slots.array, b.d_sum);
        MUST(cudaMemcpy(&sums[i], b.d_sum, 8, cudaMemcpyDeviceToHost));
    }
    b.row("update", "raw", raw_ms, true);
    b.row("update", "load and store", ms, sums[0] == sums[1]);
    MUST(cudaFree(d_stream));
    MUST(cudaFree(d_copy));
}

/* From memory of the host, which the kernels read over the link. */
template <uint32_t CODEC>
void take_link(bench &b)
{
    uint8_t *raw, *stream;
    MUST(cudaHostAlloc(&raw, b.raw.size(), cudaHostAllocMapped));
    MUST(cudaHostAlloc(&stream, b.stream.size() + 256, cudaHostAllocMapped));
    memcpy(raw, b.raw.data(), b.raw.size());
    memcpy(stream, b.stream.data(), b.stream.size());
    take_sums<CODEC>(b, "link", reinterpret_cast<const u32x4 *>(raw), open_device(b, stream));
    MUST(cudaFreeHost(raw));
    MUST(cudaFreeHost(stream));
}

template <uint32_t CODEC>
void encode(bench &b)
{
    struct wharf_line_choice choice = {CODEC, LINE_NBYTES, WHARF_LINE_PACKED, 0};
    b.stream.resize(b.raw.size() + b.raw.size() / 32 + 4096);
    size_t nbytes;
    if (wharf_line_encode(&choice, b.raw.data(), b.raw.size(), b.stream.data(), b.stream.size(),
                          &nbytes) < 0)
        exit(EXIT_FAILURE);
    b.stream.resize(nbytes);
    b.ratio = (double)b.raw.size() / (double)nbytes;
    b.want = 0;
    for (size_t at = 0; at < b.raw.size(); at += 8) {
        uint64_t value;
        memcpy(&value, &b.raw[at], 8);
        b.want += value;
    }
}

template <uint32_t CODEC>
int run_codec(const char *name, enum test_lines_mix mix, size_t nbytes, bool is_small)
{
    static const char *const names[] = {"mixed", "runs", "random"};
    bench b = {};
    b.codec = name;
    b.data = names[mix];
    b.raw.resize(nbytes);
    test_lines_mix_fill(CODEC, mix, b.raw.data(), nbytes);
    encode<CODEC>(b);
    uint8_t *d_raw, *d_stream;
    MUST(cudaMalloc(&b.d_sum, 8));
    MUST(cudaMalloc(&b.d_error, 8));
    MUST(cudaMemset(b.d_error, 0xff, 8));
    MUST(cudaMalloc(&d_raw, nbytes));
    MUST(cudaMalloc(&d_stream, b.stream.size() + 256));
    MUST(cudaMemcpy(d_raw, b.raw.data(), nbytes, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(d_stream, b.stream.data(), b.stream.size(), cudaMemcpyHostToDevice));
    line_array array = open_device(b, d_stream);
    const u32x4 *raw = reinterpret_cast<const u32x4 *>(d_raw);
    take_sums<CODEC>(b, is_small ? "cached" : "sum", raw, array);
    if (!is_small) {
        unsigned blocks = 8 * (unsigned)n_multiprocessors;
        b.take("gather", "raw", [&] { gather_raw<<<blocks, 256>>>(raw, array.n_lines, b.d_sum); });
        b.take("gather", "load",
               [&] { sum_by_load<CODEC, true><<<blocks, WARPS * 32>>>(array, b.d_sum); });
        take_link<CODEC>(b);
        take_updates<CODEC>(b, d_raw);
    }
    MUST(cudaFree(d_raw));
    MUST(cudaFree(d_stream));
    MUST(cudaFree(b.d_sum));
    MUST(cudaFree(b.d_error));
    return b.n_wrong;
}

template <uint32_t CODEC>
int run_all(const char *name, size_t nbytes)
{
    int n_wrong = 0;
    for (unsigned mix = 0; mix < TEST_LINES_MIX_N; mix++) {
        bool has_runs = CODEC == WHARF_CODEC_BDI || CODEC == WHARF_CODEC_BEST;
        if (mix == TEST_LINES_MIX_RUNS && !has_runs)
            continue;
        n_wrong += run_codec<CODEC>(name, (enum test_lines_mix)mix, nbytes, false);
    }
    return n_wrong + run_codec<CODEC>(name, TEST_LINES_MIX_LINES, 80000000 / 4096 * 4096, true);
}

} // namespace

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    size_t nbytes = (argc > 1 ? strtoul(argv[1], nullptr, 10) : 256) << 20;
    if (nbytes == 0 || argc > 3)
        return test_usage(help);
    MUST(cudaDeviceGetAttribute(&n_multiprocessors, cudaDevAttrMultiProcessorCount, 0));
    static const struct {
        const char *name;
        int (*run)(const char *name, size_t nbytes);
    } codecs[] = {
        {"bdi", run_all<WHARF_CODEC_BDI>},   {"palette", run_all<WHARF_CODEC_PALETTE>},
        {"fpc", run_all<WHARF_CODEC_FPC>},   {"cpack", run_all<WHARF_CODEC_CPACK>},
        {"best", run_all<WHARF_CODEC_BEST>},
    };
    int n_wrong = 0;
    for (const auto &codec : codecs)
        if (argc < 3 || strcmp(argv[2], codec.name) == 0)
            n_wrong += codec.run(codec.name, nbytes);
    return n_wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
