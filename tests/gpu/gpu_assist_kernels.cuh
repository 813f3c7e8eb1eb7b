/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_assist_kernels.cuh: kernels of the study of assist warps, one for each consumer and way to
 * read, with the blocks that a multiprocessor holds of them.
 */
#ifndef WHARF_TESTS_GPU_ASSIST_KERNELS_CUH
#define WHARF_TESTS_GPU_ASSIST_KERNELS_CUH

#include <cuda_runtime.h>

#include "tests/gpu/gpu_assist_read.cuh"

namespace wharf
{

constexpr unsigned STUDY_WARPS = 8, STUDY_THREADS = STUDY_WARPS * WARP_LANES;
constexpr unsigned STUDY_N_STAGES = 8; /* of assist warps */

/* What a launch reads: `n_groups` groups from `first` on. */
struct study_input {
    const u32x4 *raw;
    uint32_t share; /* of 65536: how much of the raw array `ideal` reads */
    uint32_t first;
    uint32_t n_groups;
    line_array array;
};

__device__ inline study_part study_own_warp()
{
    return {blockIdx.x * STUDY_WARPS + uniform(threadIdx.x / WARP_LANES), gridDim.x * STUDY_WARPS};
}

template <typename C, bool IS_IDEAL>
__global__ void __launch_bounds__(STUDY_THREADS)
    study_raw_kernel(const __grid_constant__ study_input input,
                     const __grid_constant__ study_memory memory)
{
    __shared__ study_shared shared;
    C consumer;
    consumer.memory = memory;
    consumer.begin(shared, threadIdx.x, blockDim.x);
    __syncthreads();
    study_read_raw<C, IS_IDEAL>(consumer, input.raw, input.n_groups, input.share, study_own_warp());
    __syncthreads();
    consumer.end(shared, threadIdx.x, blockDim.x);
}

template <typename C, uint32_t CODEC>
__global__ void __launch_bounds__(STUDY_THREADS, 4)
    study_load_kernel(const __grid_constant__ study_input input,
                      const __grid_constant__ study_memory memory)
{
    __shared__ study_shared shared;
    __shared__ line_table<CODEC> table;
    C consumer;
    consumer.memory = memory;
    consumer.begin(shared, threadIdx.x, blockDim.x);
    if (threadIdx.x < WARP_LANES)
        fill_line_table(table, input.array);
    __syncthreads();
    study_read_lines(consumer, table, input.array, input.n_groups, study_own_warp());
    __syncthreads();
    consumer.end(shared, threadIdx.x, blockDim.x);
}

template <typename C, uint32_t CODEC>
__global__ void __launch_bounds__(STUDY_THREADS, 5)
    study_groups_kernel(const __grid_constant__ study_input input,
                        const __grid_constant__ study_memory memory)
{
    __shared__ study_shared shared;
    __shared__ line_table<CODEC> table;
    __shared__ line_group_space spaces[STUDY_WARPS];
    uint32_t warp = uniform(threadIdx.x / WARP_LANES);
    C consumer;
    consumer.memory = memory;
    consumer.begin(shared, threadIdx.x, blockDim.x);
    if (warp == 0)
        fill_line_table(table, input.array);
    init_line_group_space(spaces[warp]);
    __syncthreads();
    study_read_groups(consumer, table, spaces[warp], input.array, input.first, input.n_groups,
                      study_own_warp());
    __syncthreads();
    consumer.end(shared, threadIdx.x, blockDim.x);
}

template <uint32_t CODEC, unsigned N_WORKERS>
struct study_assists {
    line_assists<CODEC, STUDY_N_STAGES, STUDY_WARPS - N_WORKERS, STUDY_TYPE> warps;
    study_shared consumer;
};

template <typename C, uint32_t CODEC>
__global__ void __launch_bounds__(STUDY_THREADS)
    study_assists_kernel(const __grid_constant__ study_input input,
                         const __grid_constant__ study_memory memory)
{
    extern __shared__ __align__(128) unsigned char bytes[];
    auto &shared = *reinterpret_cast<study_assists<CODEC, C::N_WORKERS> *>(bytes);
    uint32_t warp = uniform(threadIdx.x / WARP_LANES);
    line_row row = study_row<C>({blockIdx.x, gridDim.x}, input.n_groups);
    C consumer;
    consumer.memory = memory;
    consumer.begin(shared.consumer, threadIdx.x, blockDim.x);
    if (warp == 0)
        init_line_assists(shared.warps, input.array, C::N_WORKERS);
    __syncthreads();
    if (warp < C::N_WORKERS)
        study_work(consumer, shared.warps, row, {warp, C::N_WORKERS});
    else
        run_line_assist(shared.warps, input.array, warp - C::N_WORKERS, row);
    __syncthreads();
    consumer.end(shared.consumer, threadIdx.x, blockDim.x);
}

/* ---- the hog --------------------------------------------------------------------------------- */

constexpr unsigned STUDY_HOG_STAGES = 4, STUDY_HOG_NQUADS = 1024; /* of a copy: 16 KiB */

struct study_hog_shared {
    u32x4 stages[STUDY_HOG_STAGES][STUDY_HOG_NQUADS];
    shared_barrier came[STUDY_HOG_STAGES];
};

/* What host and hog tell each other. */
struct study_hog_words {
    uint32_t stop;
    uint32_t n_begun; /* blocks */
    uint64_t n_read;  /* bytes */
    uint64_t ns;      /* for how long, at most of all blocks */
};

/* What the hog reads: numbers without any order, since what is all the same comes quicker than
 * memory gives it. */
__global__ void __launch_bounds__(STUDY_THREADS) study_hog_fill_kernel(u32x4 *quads, uint32_t n)
{
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        uint32_t x = i * 2654435761u ^ i >> 7, y = x * 2246822519u ^ x >> 13;
        uint32_t z = y * 3266489917u ^ y >> 16, w = z * 668265263u ^ z >> 15;
        store(quads + i, u32x4{x, y, z, w});
    }
}

/*
 * One warp a block.  Brings memory to shared memory, 64 KiB at a time, until words->stop is set or
 * `limit_ns` are over.  So it takes bandwidth, and next to no instructions.  Each block reads a
 * part of its own: of blocks that read the same, those behind find it in the cache, catch up with
 * the first, and then all read what memory gives once.  n_copies is at least the number of blocks.
 */
__global__ void __launch_bounds__(WARP_LANES)
    study_hog_kernel(const u32x4 *quads, uint32_t n_copies, study_hog_words *words,
                     uint64_t limit_ns)
{
    extern __shared__ __align__(128) unsigned char bytes[];
    auto &shared = *reinterpret_cast<study_hog_shared *>(bytes);
    uint64_t begin = time_ns(), n = 0;
    uint32_t part = n_copies / gridDim.x, first = blockIdx.x * part, at = 0;
    if (lane_id() == 0) {
        for (unsigned i = 0; i < STUDY_HOG_STAGES; i++)
            barrier_init(&shared.came[i], 1);
        atomicAdd(&words->n_begun, 1u);
    }
    syncblock();
    while (load_shared_by_device(&words->stop) == 0 && time_ns() - begin < limit_ns) {
        for (unsigned i = 0; i < STUDY_HOG_STAGES; i++) {
            uint32_t turn = (uint32_t)(n / STUDY_HOG_STAGES);
            while (turn > 0 && !barrier_try(&shared.came[i], (turn - 1) & 1))
                ;
            copy_ahead(shared.stages[i], quads + (uint64_t)(first + at) * STUDY_HOG_NQUADS,
                       16 * STUDY_HOG_NQUADS, &shared.came[i]);
            at = (at + 1) % part;
            n++;
        }
    }
    /* Nothing may come after the block's end. */
    for (unsigned i = 0; i < STUDY_HOG_STAGES && n > 0; i++)
        while (!barrier_try(&shared.came[i], (n / STUDY_HOG_STAGES - 1) & 1))
            ;
    if (lane_id() == 0) {
        atomicAdd(reinterpret_cast<unsigned long long *>(&words->n_read),
                  (unsigned long long)(n * 16 * STUDY_HOG_NQUADS));
        atomicMax(reinterpret_cast<unsigned long long *>(&words->ns),
                  (unsigned long long)(time_ns() - begin));
    }
}

} // namespace wharf

#endif
