/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_kernel.cu: the kernels of Blosc's batches, one for each phase of blosc/blosc_batch.cuh, and
 * their launch, one behind the other.
 *
 * A kernel that has nothing to do ends at once.  No block waits for another.
 */
#include "kernels/blosc_kernel.h"

#include "kernels/blosc/blosc_batch.cuh"
#include "kernels/cuda_error.h"
#include "kernels/kernel_shape.cuh"

using namespace wharf;
using namespace wharf::blosc;

namespace
{

constexpr unsigned WARPS = 4;

/* Of a block that orders: room for a block of 128 KiB, where the GPU has as much. */
constexpr unsigned MOST_STAGE_NBYTES = 144 << 10;

template <typename Inside>
constexpr size_t SHARED_NBYTES = round_up(sizeof(typename Inside::shared), 128);
template <typename Inside>
constexpr size_t SCRATCH_NBYTES = round_up(Inside::SCRATCH_NBYTES, 256);

__global__ void __launch_bounds__(WARPS * 32, 4) blosc_plan_kernel(const __grid_constant__ work w)
{
    plan_warp(w, uniform(threadIdx.x / 32) * gridDim.x + blockIdx.x, gridDim.x * WARPS);
}

template <typename Inside>
__global__ void __launch_bounds__(WARPS * 32, Inside::WARPS_PER_SM / WARPS)
    blosc_decode_kernel(const __grid_constant__ work w, uint8_t *scratch)
{
    extern __shared__ __align__(128) uint8_t s_memory[];
    unsigned in_block = uniform(threadIdx.x / 32);
    auto &s =
        *reinterpret_cast<typename Inside::shared *>(s_memory + in_block * SHARED_NBYTES<Inside>);
    /* The first items go to the first warps of all blocks, so that few spread over all
     * multiprocessors. */
    uint32_t warp = in_block * gridDim.x + blockIdx.x;
    decode_warp<Inside>(s, w, warp, gridDim.x * WARPS, scratch + warp * SCRATCH_NBYTES<Inside>);
}

__global__ void __launch_bounds__(ORDER_WARPS * 32, 1)
    blosc_order_kernel(const __grid_constant__ work w)
{
    extern __shared__ __align__(128) uint8_t s_memory[];
    __shared__ order_shared s;
    order_block(s, s_memory, w, threadIdx.x / 32, blockIdx.x, gridDim.x);
}

__global__ void __launch_bounds__(WARPS * 32, 4) blosc_settle_kernel(const __grid_constant__ work w)
{
    settle_warp(w, uniform(threadIdx.x / 32) * gridDim.x + blockIdx.x, gridDim.x * WARPS);
}

/* Loads a kernel; how many blocks of it the GPU holds at once. */
template <typename Kernel>
int fit(Kernel kernel, unsigned n_warps, size_t shared_nbytes, unsigned *ret_n_blocks)
{
    int device, n_sms, n;
    const void *function = reinterpret_cast<const void *>(kernel);
    WHARF_CUDA_TRY(cudaGetDevice(&device));
    WHARF_CUDA_TRY(cudaDeviceGetAttribute(&n_sms, cudaDevAttrMultiProcessorCount, device));
    WHARF_CUDA_TRY(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        (int)shared_nbytes));
    WHARF_CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, function, (int)n_warps * 32,
                                                                 shared_nbytes));
    if (n < 1)
        return wharf_cuda_fail(cudaErrorInvalidConfiguration, "fitting a kernel into this GPU");
    *ret_n_blocks = (unsigned)(n * n_sms);
    return 0;
}

/* Only as large as a block's shared memory may be here. */
int choose_stage(unsigned *ret_nbytes)
{
    int device, most;
    WHARF_CUDA_TRY(cudaGetDevice(&device));
    WHARF_CUDA_TRY(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    unsigned nbytes = ((unsigned)most - sizeof(order_shared)) / 1024 * 1024;
    *ret_nbytes = nbytes < MOST_STAGE_NBYTES ? nbytes : MOST_STAGE_NBYTES;
    return 0;
}

unsigned at_most(unsigned n_blocks, uint32_t n_chunks)
{
    uint32_t n = (n_chunks - 1) / WARPS + 1;
    return n < n_blocks ? n : n_blocks;
}

template <typename Inside>
int launch_decode(const work &w, unsigned n_blocks, uint8_t *d_scratch, CUstream_st *stream)
{
    blosc_decode_kernel<Inside>
        <<<n_blocks, WARPS * 32, WARPS * SHARED_NBYTES<Inside>, stream>>>(w, d_scratch);
    WHARF_CUDA_TRY(cudaGetLastError());
    return 0;
}

} // namespace

int wharf_cuda_load_blosc(struct wharf_blosc_shape *ret_shape)
{
    unsigned n = 0;
    if (int rc = choose_stage(&ret_shape->stage_nbytes))
        return rc;
    if (int rc = fit(blosc_plan_kernel, WARPS, 0, &ret_shape->n_plan_blocks))
        return rc;
    if (int rc = fit(blosc_decode_kernel<light>, WARPS, WARPS * SHARED_NBYTES<light>,
                     &ret_shape->n_light_blocks))
        return rc;
    if (int rc = fit(blosc_decode_kernel<of_zlib>, WARPS, WARPS * SHARED_NBYTES<of_zlib>,
                     &ret_shape->n_zlib_blocks))
        return rc;
    if (int rc = fit(blosc_decode_kernel<of_zstd>, WARPS, WARPS * SHARED_NBYTES<of_zstd>,
                     &ret_shape->n_zstd_blocks))
        return rc;
    if (int rc = fit(blosc_order_kernel, ORDER_WARPS, ret_shape->stage_nbytes,
                     &ret_shape->n_order_blocks))
        return rc;
    return fit(blosc_settle_kernel, WARPS, 0, &n);
}

size_t wharf_cuda_blosc_scratch_nbytes(const struct wharf_blosc_shape *shape, uint32_t n_chunks)
{
    return work_nbytes(n_chunks) + shape->n_zstd_blocks * WARPS * SCRATCH_NBYTES<of_zstd>;
}

int wharf_cuda_launch_blosc(const struct wharf_blosc_shape *shape,
                            const struct wharf_device_arrays *arrays,
                            const struct wharf_device_batch *batch, void *d_scratch,
                            struct CUstream_st *stream)
{
    uint8_t *scratch = static_cast<uint8_t *>(d_scratch);
    uint32_t n_chunks = arrays ? arrays->n_chunks : batch->n_chunks;
    work w = lay_out(scratch, n_chunks);
    w.stage_nbytes = shape->stage_nbytes;
    w.outcomes = arrays ? arrays->outcomes : batch->outcomes;
    if (arrays)
        w.arrays = *arrays;
    else
        w.chunks = const_cast<wharf_device_chunk *>(batch->chunks); /* only read then */
    unsigned n_plan_blocks = at_most(shape->n_plan_blocks, n_chunks);
    WHARF_CUDA_TRY(cudaMemsetAsync(w.state, 0, sizeof(*w.state), stream));
    blosc_plan_kernel<<<n_plan_blocks, WARPS * 32, 0, stream>>>(w);
    WHARF_CUDA_TRY(cudaGetLastError());
    if (int rc = launch_decode<light>(w, shape->n_light_blocks, nullptr, stream))
        return rc;
    if (int rc = launch_decode<of_zlib>(w, shape->n_zlib_blocks, nullptr, stream))
        return rc;
    if (int rc = launch_decode<of_zstd>(w, shape->n_zstd_blocks, scratch + work_nbytes(n_chunks),
                                        stream))
        return rc;
    blosc_order_kernel<<<shape->n_order_blocks, ORDER_WARPS * 32, shape->stage_nbytes, stream>>>(w);
    WHARF_CUDA_TRY(cudaGetLastError());
    blosc_settle_kernel<<<n_plan_blocks, WARPS * 32, 0, stream>>>(w);
    WHARF_CUDA_TRY(cudaGetLastError());
    return 0;
}

int wharf_cuda_get_blosc_info(const struct wharf_blosc_shape *shape, unsigned n_sms,
                              struct wharf_cuda_kernel_info *ret_info)
{
    cudaFuncAttributes attributes;
    WHARF_CUDA_TRY(cudaFuncGetAttributes(
        &attributes, reinterpret_cast<const void *>(blosc_decode_kernel<light>)));
    *ret_info = {(unsigned)attributes.numRegs, (unsigned)attributes.localSizeBytes,
                 (unsigned)SHARED_NBYTES<light>, 0, shape->n_light_blocks / n_sms * WARPS};
    return 0;
}
