/* SPDX-License-Identifier: Apache-2.0 */
/* gzip_block.cuh: gzip on all warps of a block. */
#ifndef WHARF_KERNELS_GZIP_GZIP_BLOCK_CUH
#define WHARF_KERNELS_GZIP_GZIP_BLOCK_CUH

#include "kernels/deflate/deflate_block.cuh"
#include "kernels/gzip/gzip_decode.cuh"

namespace wharf
{

WHARF_BLOCK_AROUND_DEFLATE(GZIP, gzip)

} // namespace wharf

#endif
