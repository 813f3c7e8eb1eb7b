/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip_block.cuh: gzip on all warps of a block, as Deflate in deflate_block.cuh; the first one
 * reads headers and trailers and adds up the checksum.
 */
#ifndef WHARF_KERNELS_GZIP_GZIP_BLOCK_CUH
#define WHARF_KERNELS_GZIP_GZIP_BLOCK_CUH

#include "kernels/deflate/deflate_block.cuh"
#include "kernels/gzip/gzip_decode.cuh"

namespace wharf
{

using gzip_block_shared = deflate_block_shared;
constexpr unsigned GZIP_BLOCK_WARPS = DEFLATE_BLOCK_WARPS;

/* collective, for the first warp. */
WHARF_DEVICE verdict gzip_block_decode(gzip_block_shared &s, const chunk_job &job)
{
    return gzip_decode_with<flate::block_state<flate::block_tuning>>(s, job);
}

/* For all other warps of the block. */
WHARF_DEVICE void gzip_block_help(gzip_block_shared &s, unsigned warp)
{
    flate::help(s, warp);
}

/* collective, for the first warp: the others may end. */
WHARF_DEVICE void gzip_block_end(gzip_block_shared &s)
{
    flate::end_help(s);
}

} // namespace wharf

#endif
