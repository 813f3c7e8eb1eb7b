/* SPDX-License-Identifier: Apache-2.0 */
/* rans_kernel.cu: a large rans stream by all warps of a GPU, which share a block's tables. */
#include <errno.h>

#include "kernels/cuda_error.h"
#include "kernels/rans/rans_pieces.cuh"

using namespace wharf;

namespace
{

/*
 * By chains: of a block that has a multiprocessor for itself, 64 of them hide each other's waiting.
 * As many warps as a block can have, of two chains each, are faster than half as many of four: 64
 * registers a thread are enough for two.
 */
constexpr unsigned WARPS = 32, CHAINS = 2;
/* What chains take longer to begin is more than they save below (160 MiB): 191 us and 1.27 TB/s, by
 * 100 and 268 MB of rand_100, instead of 84 us and 0.67. */
constexpr uint32_t MIN_NSYMBOLS = 160u << 20;
/* Else a piece by a warp: 40 warps a multiprocessor, 48 registers a thread. */
constexpr unsigned FEW_WARPS = 8, FEW_BLOCKS_PER_SM = 5;

using chains_memory = rans::chains_memory<WARPS, CHAINS>;

template <rans::lookup KIND>
__global__ void __launch_bounds__(WARPS * 32, 1) rans_kernel(wharf_rans_stream_job job)
{
    extern __shared__ __align__(128) uint8_t shared[];
    rans::decode_by_chains<KIND>(*reinterpret_cast<chains_memory *>(shared), threadIdx.x / 32,
                                 blockIdx.x, gridDim.x, job);
}

__global__ void __launch_bounds__(FEW_WARPS * 32, FEW_BLOCKS_PER_SM)
    rans_few_kernel(wharf_rans_stream_job job)
{
    __shared__ rans::warps_memory<FEW_WARPS> s;
    rans::decode_by_warps(s, threadIdx.x / 32, blockIdx.x, gridDim.x, job);
}

int count_multiprocessors(unsigned *ret_n)
{
    int device, n;
    WHARF_CUDA_TRY(cudaGetDevice(&device));
    WHARF_CUDA_TRY(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, device));
    *ret_n = (unsigned)n;
    return 0;
}

/* Blocks of the two ways: at most one for each group of pieces that a warp has. */
unsigned count_blocks(const wharf_rans_stream_job &job, unsigned pieces_a_warp, unsigned n_most)
{
    unsigned n = (job.n_pieces + pieces_a_warp - 1) / pieces_a_warp;
    return n < n_most ? n : n_most;
}

template <rans::lookup KIND>
int launch_chains(wharf_rans_stream_job job, unsigned n_multiprocessors, CUstream_st *stream)
{
    const void *kernel = reinterpret_cast<const void *>(rans_kernel<KIND>);
    void *arguments[] = {&job};
    WHARF_CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        sizeof(chains_memory)));
    WHARF_CUDA_TRY(cudaLaunchKernel(kernel, count_blocks(job, CHAINS, n_multiprocessors),
                                    WARPS * 32, arguments, sizeof(chains_memory), stream));
    return 0;
}

int launch_few(wharf_rans_stream_job job, unsigned n_multiprocessors, CUstream_st *stream)
{
    void *arguments[] = {&job};
    WHARF_CUDA_TRY(cudaLaunchKernel(reinterpret_cast<const void *>(rans_few_kernel),
                                    count_blocks(job, 1, FEW_BLOCKS_PER_SM * n_multiprocessors),
                                    FEW_WARPS * 32, arguments, 0, stream));
    return 0;
}

} // namespace

int wharf_cuda_rans_max_pieces(uint32_t *ret_n)
{
    unsigned n = 0;
    if (int rc = count_multiprocessors(&n))
        return rc;
    *ret_n = n * WARPS * CHAINS;
    return 0;
}

int wharf_cuda_decode_rans(const struct wharf_rans_stream_job *job, struct CUstream_st *stream)
{
    unsigned n = 0;
    if (int rc = count_multiprocessors(&n))
        return rc;
    if (job->layout.n_symbols < MIN_NSYMBOLS)
        return launch_few(*job, n, stream);
    return job->layout.n_bits > rans::PACKED_NBITS
               ? launch_chains<rans::lookup::RANGED>(*job, n, stream)
               : launch_chains<rans::lookup::SPREAD>(*job, n, stream);
}
