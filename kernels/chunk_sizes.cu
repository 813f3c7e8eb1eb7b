/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_sizes.cu: sizes of outputs, a lane for each chunk, and their launch. */
#include "kernels/chunk_sizes.h"

#include "kernels/chunk_size.cuh"
#include "kernels/cuda_error.h"

using namespace wharf;

namespace
{

constexpr unsigned THREADS = 128;

__global__ void __launch_bounds__(THREADS)
    sizes_kernel(const __grid_constant__ wharf_device_arrays arrays, uint64_t *sizes)
{
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i < arrays.n_chunks)
        sizes[i] = size_of_output(arrays, i);
}

} // namespace

int wharf_cuda_load_sizes(void)
{
    cudaFuncAttributes attributes;
    WHARF_CUDA_TRY(
        cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(sizes_kernel)));
    return 0;
}

int wharf_cuda_start_sizes(const struct wharf_device_arrays *arrays, uint64_t *d_sizes,
                           struct CUstream_st *stream)
{
    wharf_device_arrays by_value = *arrays;
    void *arguments[] = {&by_value, &d_sizes};
    WHARF_CUDA_TRY(cudaLaunchKernel(reinterpret_cast<const void *>(sizes_kernel),
                                    (arrays->n_chunks - 1) / THREADS + 1, THREADS, arguments, 0,
                                    stream));
    return 0;
}
