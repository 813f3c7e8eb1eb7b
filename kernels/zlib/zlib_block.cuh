/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib_block.cuh: zlib on all warps of a block, as Deflate in deflate_block.cuh; the first one
 * reads headers and trailers and adds up the checksum.
 */
#ifndef WHARF_KERNELS_ZLIB_ZLIB_BLOCK_CUH
#define WHARF_KERNELS_ZLIB_ZLIB_BLOCK_CUH

#include "kernels/deflate/deflate_block.cuh"
#include "kernels/zlib/zlib_decode.cuh"

namespace wharf
{

using zlib_block_shared = deflate_block_shared;
constexpr unsigned ZLIB_BLOCK_WARPS = DEFLATE_BLOCK_WARPS;

/* collective, for the first warp. */
WHARF_DEVICE verdict zlib_block_decode(zlib_block_shared &s, const chunk_job &job)
{
    return zlib_decode_with<flate::block_state<flate::block_tuning>>(s, job);
}

/* For all other warps of the block. */
WHARF_DEVICE void zlib_block_help(zlib_block_shared &s, unsigned warp)
{
    flate::help(s, warp);
}

/* collective, for the first warp: the others may end. */
WHARF_DEVICE void zlib_block_end(zlib_block_shared &s)
{
    flate::end_help(s);
}

} // namespace wharf

#endif
