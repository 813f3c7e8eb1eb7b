/* SPDX-License-Identifier: Apache-2.0 */
/* epoch_encode_kernel.cu: an epoch kernel that encodes lines, a warp for each item. */
#define WHARF_LINE_ESCAPES_APART

#include "kernels/epoch_block_kernel.h"
#include "kernels/epoch_encode.cuh"

using namespace wharf;

namespace
{

/* A block fits wherever the epoch kernel leaves one of its own four warps out, whose shared memory
 * is for three of these; and its registers, which are bounded as if there were only such blocks. */
constexpr unsigned WARPS = WHARF_EPOCH_ENCODE_WARPS;
constexpr unsigned BLOCKS_PER_SM = kernel_shape<any_codec>::BLOCKS_PER_SM;
static_assert(WARPS * sizeof(epoch_encode_shared) <=
              kernel_shape<any_codec>::WARPS * kernel_shape<any_codec>::SHARED_NBYTES);

struct block_memory {
    epoch_encode_shared of_warp[WARPS];
};

__global__ void __launch_bounds__(WARPS * 32, BLOCKS_PER_SM)
    epoch_encode_kernel(const __grid_constant__ epoch_params params)
{
    extern __shared__ __align__(128) uint8_t s_memory[];
    unsigned in_block = uniform(threadIdx.x / 32);
    auto &memory = *reinterpret_cast<block_memory *>(s_memory);
    run_encode_warp(memory.of_warp[in_block], params, in_block * gridDim.x + blockIdx.x);
}

} // namespace

wharf_block_kernel wharf_epoch_encode_kernel()
{
    return {reinterpret_cast<const void *>(epoch_encode_kernel), WARPS * 32, sizeof(block_memory)};
}
