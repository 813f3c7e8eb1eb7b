/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snappy_block.cuh: decodes snappy by a block of 16 warps for each chunk, where chunks are few
 * (lz_block.cuh).
 */
#ifndef WHARF_KERNELS_SNAPPY_SNAPPY_BLOCK_CUH
#define WHARF_KERNELS_SNAPPY_SNAPPY_BLOCK_CUH

#include "kernels/lz_block.cuh"
#include "kernels/snappy/snappy_decode.cuh"

namespace wharf
{

WHARF_LZ_BLOCK(SNAPPY, snappy, 3)

} // namespace wharf

#endif
