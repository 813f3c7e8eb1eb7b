/* SPDX-License-Identifier: Apache-2.0 */
/* zlib_block.cuh: zlib on all warps of a block. */
#ifndef WHARF_KERNELS_ZLIB_ZLIB_BLOCK_CUH
#define WHARF_KERNELS_ZLIB_ZLIB_BLOCK_CUH

#include "kernels/deflate/deflate_block.cuh"
#include "kernels/zlib/zlib_decode.cuh"

namespace wharf
{

WHARF_BLOCK_AROUND_DEFLATE(ZLIB, zlib)

} // namespace wharf

#endif
