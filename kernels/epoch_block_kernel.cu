/* SPDX-License-Identifier: Apache-2.0 */
/* epoch_block_kernel.cu: an epoch kernel for few items, a block for each. */

/* The input that decoders see is a copy that the kernel itself has made. */
#define WHARF_INPUT_IS_COPIED

#include "kernels/epoch_block.cuh"
#include "kernels/epoch_block_kernel.h"

using namespace wharf;

namespace
{

constexpr unsigned N_THREADS = any_block_codec::WARPS * 32;

__global__ void __launch_bounds__(N_THREADS, 1)
    epoch_block_kernel(const __grid_constant__ epoch_params params)
{
    extern __shared__ __align__(128) uint8_t s_memory[];
    auto &s = *reinterpret_cast<epoch_block_shared *>(s_memory);
    run_epoch_block<any_codec>(s, params, blockIdx.x, uniform(threadIdx.x / 32));
}

} // namespace

wharf_block_kernel wharf_epoch_block_kernel()
{
    if (any_block_codec::WARPS == 1)
        return {};
    return {reinterpret_cast<const void *>(epoch_block_kernel), N_THREADS,
            sizeof(epoch_block_shared)};
}
