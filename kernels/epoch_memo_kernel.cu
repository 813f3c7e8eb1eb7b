/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_memo_kernel.cu: the epoch kernel that keeps decoded chunks.  It is a kernel of its own, so
 * that its registers cost nothing where none are kept.
 */

/* The input that decoders see is a copy that the kernel itself has made. */
#define WHARF_INPUT_IS_COPIED

#include "kernels/epoch_block_kernel.h"
#include "kernels/epoch_warp.cuh"

using namespace wharf;

namespace
{

using shape = kernel_shape<any_codec>;

__global__ void __launch_bounds__(shape::THREADS, shape::BLOCKS_PER_SM)
    epoch_memo_kernel(const __grid_constant__ epoch_params params)
{
    extern __shared__ __align__(128) uint8_t s_memory[];
    unsigned in_block = uniform(threadIdx.x / 32);
    auto &s = *reinterpret_cast<any_codec::shared *>(s_memory + in_block * shape::SHARED_NBYTES);
    run_epoch_warp<any_codec, true>(s, params, blockIdx.x * shape::WARPS + in_block);
}

} // namespace

wharf_block_kernel wharf_epoch_memo_kernel()
{
    return {reinterpret_cast<const void *>(epoch_memo_kernel), shape::THREADS,
            shape::WARPS * shape::SHARED_NBYTES};
}
