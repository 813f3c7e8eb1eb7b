/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_block_state.cuh: what the warps of a block share while they decode one stream together,
 * for chunks that are too few to give every warp of a GPU one.
 */
#ifndef WHARF_KERNELS_DEFLATE_BLOCK_STATE_CUH
#define WHARF_KERNELS_DEFLATE_BLOCK_STATE_CUH

#include "kernels/block_command.cuh"
#include "kernels/deflate/deflate_decode.cuh"

namespace wharf
{
namespace flate
{

/* Larger tables, of which there is one pair a block. */
struct block_one_tuning : tuning {
    static constexpr unsigned LITLEN_ROOT = 11;
    static constexpr unsigned DISTANCE_ROOT = 9;
};

struct block_tuning {
    /* The first warp's own: headers, tables, the exact path. */
    using one = block_one_tuning;
    static constexpr unsigned WARPS = 16;
    static constexpr unsigned LANES = 32 * WARPS;
    /* Symbols for which a lane has room, and the bits of its range. */
    static constexpr unsigned MAX_TOKENS = 60;
    static constexpr unsigned MIN_RANGE_NBITS = 128;
    static constexpr unsigned FIRST_RANGE_NBITS = 416;
    static constexpr unsigned MAX_RANGE_NBITS = 512;
    /* Passes over the ranges until those that have not fallen into step by then are left for the
     * next round. */
    static constexpr unsigned MAX_PASSES = 16;
    /* Bytes of output that are made together: a lane's share of them, in words of four. */
    static constexpr unsigned LANE_NWORDS = 8;
    static constexpr unsigned SEGMENT_NBYTES = 4 * LANE_NWORDS * LANES;
    static constexpr unsigned STRETCH_NBYTES = 4 * LANE_NWORDS * 32; /* a warp's */
};

template <typename P>
struct alignas(16) block_shared {
    /* All ranges, the bits before the first in its quad, and what is looked at behind the last. */
    static constexpr unsigned WINDOW_NWORDS =
        (P::LANES * P::MAX_RANGE_NBITS + 128 + 128 + 127) / 128 * 4;
    shared<typename P::one> one;
    block_command command;
    uint32_t window[WINDOW_NWORDS];
    uint32_t tokens[P::MAX_TOKENS][P::LANES];
    /* What each byte of a segment is: deflate_block_write.cuh. */
    alignas(16) uint16_t bytes[P::SEGMENT_NBYTES];
    uint32_t ends[P::LANES];
    /* For each warp. */
    uint32_t first_apart[P::WARPS], first_end[P::WARPS], sums[P::WARPS], counts[P::WARPS];
    uint16_t carry[P::WARPS];
    /* Of the last range that counts. */
    uint32_t last_at, last_ended;
};

/* In place of state, for the first warp. */
template <typename P>
struct block_state : state<typename P::one> {
    shared_ref<block_shared<P>> all;
};

/* What is taken from the step budget for a part: a part but a body's last leaves behind at least
 * lane 0's range, or MAX_TOKENS symbols, and there is no body without a part. */
constexpr uint32_t PART_STEPS = 4;

} // namespace flate
} // namespace wharf

#endif
