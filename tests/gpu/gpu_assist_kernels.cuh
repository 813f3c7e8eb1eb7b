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
/* Of assist warps: a block has one worker, since a block's shared memory is its limit. */
constexpr unsigned STUDY_N_WORKERS = 1, STUDY_N_ASSISTS = 7, STUDY_N_STAGES = 8;

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

template <uint32_t CODEC>
struct study_assists {
    line_assists<CODEC, STUDY_N_STAGES, STUDY_N_ASSISTS, STUDY_TYPE> warps;
    study_shared consumer;
};

template <typename C, uint32_t CODEC>
__global__ void __launch_bounds__((STUDY_N_WORKERS + STUDY_N_ASSISTS) * WARP_LANES)
    study_assists_kernel(const __grid_constant__ study_input input,
                         const __grid_constant__ study_memory memory)
{
    extern __shared__ __align__(128) unsigned char bytes[];
    auto &shared = *reinterpret_cast<study_assists<CODEC> *>(bytes);
    uint32_t warp = uniform(threadIdx.x / WARP_LANES);
    line_row row = study_row<C>({blockIdx.x, gridDim.x}, input.n_groups);
    C consumer;
    consumer.memory = memory;
    consumer.begin(shared.consumer, threadIdx.x, blockDim.x);
    if (warp == 0)
        init_line_assists(shared.warps, input.array, STUDY_N_WORKERS);
    __syncthreads();
    if (warp < STUDY_N_WORKERS)
        study_work(consumer, shared.warps, row, {warp, STUDY_N_WORKERS});
    else
        run_line_assist(shared.warps, input.array, warp - STUDY_N_WORKERS, row);
    __syncthreads();
    consumer.end(shared.consumer, threadIdx.x, blockDim.x);
}

/* ---- the hog --------------------------------------------------------------------------------- */

/* Reads memory again and again until *stop is set or `limit_ns` are over.  *n_read: quads. */
__global__ void __launch_bounds__(STUDY_THREADS)
    study_hog_kernel(const u32x4 *quads, uint32_t n, const uint32_t *stop, uint32_t *n_begun,
                     uint64_t limit_ns, uint64_t *n_read)
{
    uint64_t begin = time_ns(), own = 0;
    uint32_t stride = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    if (threadIdx.x == 0) {
        atomicAdd(n_begun, 1u);
        fence_system();
    }
    while (load_shared_by_device(stop) == 0 && time_ns() - begin < limit_ns) {
        for (unsigned turn = 0; turn < 32; turn++) {
            u32x4 all[8];
            WHARF_UNROLL
            for (unsigned m = 0; m < 8; m++)
                all[m] = load_nc(quads + (i + m * stride) % n);
            WHARF_UNROLL
            for (unsigned m = 0; m < 8; m++)
                sum += all[m].x;
            i = (i + 8 * stride) % n;
            own += 8;
        }
    }
    if (sum == 1)
        own++; /* so that nothing is left out */
    atomicAdd(reinterpret_cast<unsigned long long *>(n_read), (unsigned long long)own);
}

} // namespace wharf

#endif
