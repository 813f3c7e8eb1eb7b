/* SPDX-License-Identifier: Apache-2.0 */
/* rans_kernel.cu: a rans stream by all warps of a GPU, which share a block's tables. */
#include <errno.h>

#include "kernels/cuda_error.h"
#include "kernels/rans/rans_strands.cuh"

using namespace wharf;

namespace
{

/*
 * Much to do: a block has a multiprocessor for itself, and as many warps as a block can have, of
 * two strands each, which hide each other's waiting: 64 registers a thread are enough for two. With
 * at most half as many pieces each strand has a warp for itself: the windows, in which a group
 * costs more, are half as many, and it begins sooner.  So it always is with symbols whose model is
 * an image: several strands would look at windows at different times, and wait for each other.
 */
constexpr unsigned WARPS = 32, STRANDS = 2;
/* Output of a stream from which on two strands a warp are faster. */
constexpr uint64_t LARGE_NBYTES = 160 << 20;
/* Of few pieces each strand has a warp for itself, and what counts is how soon it is at its end: as
 * few as possible on a multiprocessor.  All warps of a block, some of which may have no strand,
 * make its tables. */
constexpr unsigned FEW_WARPS = 16;
constexpr unsigned VERIFIERS = 8;

/* Shared memory of a block of both kernels, by where symbols are looked up. */
template <rans::lookup KIND>
struct memory_of {
    template <unsigned N>
    using many = rans::strands_memory<rans::many_tables, WARPS, N>;
    using few = rans::strands_memory<rans::few_tables, FEW_WARPS, 1>;
};

template <>
struct memory_of<rans::lookup::REGISTERED> {
    template <unsigned W, unsigned S>
    using of = rans::strands_memory<rans::image_tables<W, S>, W, S>;
    template <unsigned N>
    using many = of<WARPS, N>;
    using few = of<FEW_WARPS, 1>;
};

template <rans::lookup KIND, unsigned N>
__global__ void __launch_bounds__(memory_of<KIND>::template many<N>::N_WARPS * 32, 1)
    many_kernel(const __grid_constant__ wharf_rans_stream_job job)
{
    extern __shared__ __align__(128) uint8_t shared[];
    using memory = typename memory_of<KIND>::template many<N>;
    rans::decode_strands<KIND>(*reinterpret_cast<memory *>(shared), uniform(threadIdx.x / 32),
                               memory::N_WARPS, blockIdx.x, gridDim.x, job);
}

template <rans::lookup KIND>
__global__ void __launch_bounds__(FEW_WARPS * 32, 1)
    few_kernel(const __grid_constant__ wharf_rans_stream_job job, unsigned n_decoders)
{
    __shared__ __align__(128) typename memory_of<KIND>::few s;
    rans::decode_strands<KIND>(s, uniform(threadIdx.x / 32), n_decoders, blockIdx.x, gridDim.x,
                               job);
}

__global__ void __launch_bounds__(VERIFIERS * 32)
    verify_kernel(const __grid_constant__ wharf_rans_stream_job job)
{
    __shared__ rans::verify_memory<VERIFIERS> s;
    rans::verify_pieces(s, threadIdx.x / 32, blockIdx.x, gridDim.x, job);
}

constexpr unsigned SETTLERS = 8;

__global__ void __launch_bounds__(SETTLERS * 32)
    settle_kernel(const __grid_constant__ wharf_rans_stream_job job, wharf_outcome *d_outcome)
{
    __shared__ rans::first_bad_memory s;
    rans::settle_pieces(s, uniform(threadIdx.x / 32), SETTLERS, job, d_outcome);
}

int count_multiprocessors(unsigned *ret_n)
{
    int device, n;
    WHARF_CUDA_TRY(cudaGetDevice(&device));
    WHARF_CUDA_TRY(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, device));
    *ret_n = (unsigned)n;
    return 0;
}

unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

template <rans::lookup KIND, unsigned N>
int launch_many(wharf_rans_stream_job job, unsigned n_multiprocessors, CUstream_st *stream)
{
    using memory = typename memory_of<KIND>::template many<N>;
    const void *kernel = reinterpret_cast<const void *>(many_kernel<KIND, N>);
    void *arguments[] = {&job};
    unsigned n_blocks = least((job.n_pieces + N - 1) / N, n_multiprocessors);
    WHARF_CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        (int)sizeof(memory)));
    WHARF_CUDA_TRY(cudaLaunchKernel(kernel, n_blocks, memory::N_WARPS * 32, arguments,
                                    sizeof(memory), stream));
    return 0;
}

template <rans::lookup KIND>
int launch_few(wharf_rans_stream_job job, unsigned n_decoders, unsigned n_multiprocessors,
               CUstream_st *stream)
{
    void *arguments[] = {&job, &n_decoders};
    WHARF_CUDA_TRY(cudaLaunchKernel(reinterpret_cast<const void *>(few_kernel<KIND>),
                                    least(job.n_pieces, n_multiprocessors), FEW_WARPS * 32,
                                    arguments, 0, stream));
    return 0;
}

} // namespace

int wharf_cuda_rans_max_pieces(uint64_t out_nbytes, bool is_of_bytes, uint32_t *ret_n)
{
    unsigned n = 0;
    if (int rc = count_multiprocessors(&n))
        return rc;
    *ret_n = n * WARPS * (is_of_bytes && out_nbytes >= LARGE_NBYTES ? STRANDS : 1);
    return 0;
}

int wharf_cuda_decode_rans(const struct wharf_rans_stream_job *job, struct CUstream_st *stream)
{
    unsigned n = 0;
    if (int rc = count_multiprocessors(&n))
        return rc;
    bool is_long = job->layout.n_bits > rans::PACKED_NBITS;
    bool is_of_bytes = job->layout.symbol_nbytes == 1 && job->layout.n_distributions == 1;
    unsigned n_decoders = (job->n_pieces + n - 1) / n;
    if (n_decoders > WARPS && is_of_bytes)
        return is_long ? launch_many<rans::lookup::RANGED, STRANDS>(*job, n, stream)
                       : launch_many<rans::lookup::SPREAD, STRANDS>(*job, n, stream);
    if (n_decoders > FEW_WARPS)
        return !is_of_bytes ? launch_many<rans::lookup::REGISTERED, 1>(*job, n, stream)
               : is_long    ? launch_many<rans::lookup::RANGED, 1>(*job, n, stream)
                            : launch_many<rans::lookup::SPREAD, 1>(*job, n, stream);
    return !is_of_bytes ? launch_few<rans::lookup::REGISTERED>(*job, n_decoders, n, stream)
           : is_long    ? launch_few<rans::lookup::BUCKET>(*job, n_decoders, n, stream)
                        : launch_few<rans::lookup::PACKED>(*job, n_decoders, n, stream);
}

int wharf_cuda_verify_rans(const struct wharf_rans_stream_job *job, struct CUstream_st *stream)
{
    unsigned n = 0;
    wharf_rans_stream_job by_value = *job;
    void *arguments[] = {&by_value};
    if (int rc = count_multiprocessors(&n))
        return rc;
    WHARF_CUDA_TRY(cudaLaunchKernel(reinterpret_cast<const void *>(verify_kernel),
                                    least(job->n_pieces, n), VERIFIERS * 32, arguments, 0, stream));
    return 0;
}

int wharf_cuda_settle_rans(const struct wharf_rans_stream_job *job, struct wharf_outcome *d_outcome,
                           struct CUstream_st *stream)
{
    wharf_rans_stream_job by_value = *job;
    void *arguments[] = {&by_value, &d_outcome};
    WHARF_CUDA_TRY(cudaLaunchKernel(reinterpret_cast<const void *>(settle_kernel), 1, SETTLERS * 32,
                                    arguments, 0, stream));
    return 0;
}

int wharf_cuda_load_rans(void)
{
    using rans::lookup;
    const void *kernels[] = {
        reinterpret_cast<const void *>(many_kernel<lookup::RANGED, STRANDS>),
        reinterpret_cast<const void *>(many_kernel<lookup::SPREAD, STRANDS>),
        reinterpret_cast<const void *>(many_kernel<lookup::REGISTERED, 1>),
        reinterpret_cast<const void *>(many_kernel<lookup::RANGED, 1>),
        reinterpret_cast<const void *>(many_kernel<lookup::SPREAD, 1>),
        reinterpret_cast<const void *>(few_kernel<lookup::REGISTERED>),
        reinterpret_cast<const void *>(few_kernel<lookup::BUCKET>),
        reinterpret_cast<const void *>(few_kernel<lookup::PACKED>),
        reinterpret_cast<const void *>(verify_kernel),
        reinterpret_cast<const void *>(settle_kernel),
    };
    cudaFuncAttributes attributes;
    for (const void *kernel : kernels)
        WHARF_CUDA_TRY(cudaFuncGetAttributes(&attributes, kernel));
    return 0;
}
