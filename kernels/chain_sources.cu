/* SPDX-License-Identifier: Apache-2.0 */
/* chain_sources.cu: sources of a chain's chunks, a warp for each, their failures, a lane for each,
 * and their launch. */
#include "kernels/chain_sources.h"

#include "kernels/chain_source.cuh"
#include "kernels/cuda_error.h"

using namespace wharf;

namespace
{

constexpr unsigned THREADS = 128;
constexpr unsigned WARPS = THREADS / WARP_LANES;

__global__ void __launch_bounds__(THREADS)
    sources_kernel(const __grid_constant__ wharf_device_chain chain, uint32_t n_chunks,
                   const uint8_t **in, uint64_t *in_nbytes)
{
    uint32_t i = uniform(blockIdx.x * WARPS + threadIdx.x / WARP_LANES);
    if (i >= n_chunks)
        return;
    chain_source source = find_source(chain, i);
    if (lane_id() == 0) {
        in[i] = source.in;
        in_nbytes[i] = source.in_nbytes;
    }
}

__global__ void __launch_bounds__(THREADS)
    failures_kernel(const uint8_t *const *in, const uint64_t *in_nbytes, wharf_outcome *outcomes,
                    uint32_t n_chunks)
{
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i < n_chunks && !in[i] && in_nbytes[i] != 0)
        outcomes[i] = failure_of(in_nbytes[i]);
}

} // namespace

int wharf_cuda_load_chain(void)
{
    cudaFuncAttributes attributes;
    WHARF_CUDA_TRY(
        cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(sources_kernel)));
    WHARF_CUDA_TRY(
        cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(failures_kernel)));
    return 0;
}

int wharf_cuda_start_sources(const struct wharf_device_chain *chain, uint32_t n_chunks,
                             const uint8_t **d_in, uint64_t *d_in_nbytes,
                             struct CUstream_st *stream)
{
    wharf_device_chain by_value = *chain;
    void *arguments[] = {&by_value, &n_chunks, &d_in, &d_in_nbytes};
    WHARF_CUDA_TRY(cudaLaunchKernel(reinterpret_cast<const void *>(sources_kernel),
                                    (n_chunks - 1) / WARPS + 1, THREADS, arguments, 0, stream));
    return 0;
}

int wharf_cuda_start_failures(const uint8_t *const *d_in, const uint64_t *d_in_nbytes,
                              struct wharf_outcome *d_outcomes, uint32_t n_chunks,
                              struct CUstream_st *stream)
{
    void *arguments[] = {&d_in, &d_in_nbytes, &d_outcomes, &n_chunks};
    WHARF_CUDA_TRY(cudaLaunchKernel(reinterpret_cast<const void *>(failures_kernel),
                                    (n_chunks - 1) / THREADS + 1, THREADS, arguments, 0, stream));
    return 0;
}
