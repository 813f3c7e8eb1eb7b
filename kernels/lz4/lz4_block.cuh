/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz4_block.cuh: decodes lz4 by a block of 16 warps for each chunk, where chunks are few
 * (lz_block.cuh).
 */
#ifndef WHARF_KERNELS_LZ4_LZ4_BLOCK_CUH
#define WHARF_KERNELS_LZ4_LZ4_BLOCK_CUH

#include "kernels/lz4/lz4_decode.cuh"
#include "kernels/lz_block.cuh"

namespace wharf
{

WHARF_LZ_BLOCK(LZ4, lz4, 2)

} // namespace wharf

#endif
