/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_block_state.cuh: the shared memory of a block whose warps decode one stream together.  A
 * block works like this when there are fewer chunks than warps on the GPU.
 */
#ifndef WHARF_KERNELS_DEFLATE_BLOCK_STATE_CUH
#define WHARF_KERNELS_DEFLATE_BLOCK_STATE_CUH

#include "kernels/block_command.cuh"
#include "kernels/deflate/deflate_decode.cuh"

namespace wharf
{
namespace flate
{

/* Larger tables than one warp has: a block needs only one pair. */
struct block_one_tuning : tuning {
    static constexpr unsigned LITLEN_ROOT = 11;
    static constexpr unsigned DISTANCE_ROOT = 9;
    static constexpr unsigned ROUNDS = 4; /* of what it writes alone, which is little */
};

/* A block alone on a multiprocessor: in epoch kernels, and for one large stream. */
struct block_tuning {
    /* The first warp's own: headers, tables, the exact path. */
    using one = block_one_tuning;
    static constexpr unsigned WARPS = 16;
    static constexpr unsigned LANES = 32 * WARPS;
    /* The symbols that a lane's column can hold, those that it should have, and the bits of its
     * range. */
    static constexpr unsigned MAX_TOKENS = 60;
    static constexpr unsigned AIM_TOKENS = 45;
    static constexpr unsigned MIN_RANGE_NBITS = 128;
    static constexpr unsigned FIRST_RANGE_NBITS = 416;
    static constexpr unsigned MAX_RANGE_NBITS = 512;
    /* The most passes over a part.  Ranges not synchronised by then go into the next part. */
    static constexpr unsigned MAX_PASSES = 16;
    /* A lane's share of a segment, the output bytes made together, in words of four bytes. */
    static constexpr unsigned LANE_NWORDS = 8;
    static constexpr unsigned SEGMENT_NBYTES = 4 * LANE_NWORDS * LANES;
    static constexpr unsigned STRETCH_NBYTES = 4 * LANE_NWORDS * 32; /* a warp's */
};

/* One of two on a multiprocessor, in batches. */
struct pair_tuning : block_tuning {
    static constexpr unsigned MAX_TOKENS = 45;
    static constexpr unsigned AIM_TOKENS = 28;
    static constexpr unsigned FIRST_RANGE_NBITS = 352;
    static constexpr unsigned MAX_RANGE_NBITS = 448;
};

/* Above this ratio of output to input, one warp decodes instead of the whole block. */
constexpr uint32_t BLOCK_MOST_RATIO = 32;

template <typename P>
struct alignas(16) block_shared {
    /* All ranges, the bits before the first within its quad, and the look-ahead of the last. */
    static constexpr unsigned WINDOW_NWORDS =
        (P::LANES * P::MAX_RANGE_NBITS + 128 + 128 + 127) / 128 * 4;
    shared<typename P::one> one;
    block_command command;
    /* Tokens, a column for each lane: the marks that deflate_block_write.cuh explains, and a
     * match's length - 3. */
    uint16_t marks[P::MAX_TOKENS][P::LANES];
    uint8_t lengths[P::MAX_TOKENS][P::LANES];
    /* Find and write use this place in turn. */
    union {
        alignas(16) uint32_t window[WINDOW_NWORDS];
        /* What each byte of a segment is: deflate_block_write.cuh. */
        alignas(16) uint16_t bytes[P::SEGMENT_NBYTES];
    };
    uint32_t ends[P::LANES];
    /* For each warp. */
    uint32_t first_apart[P::WARPS], first_end[P::WARPS], sums[P::WARPS], counts[P::WARPS];
    uint16_t carry[P::WARPS];
    /* Of the last range that counts. */
    uint32_t last_at, last_ended;
};

/* The first warp's counterpart of `state`. */
template <typename P>
struct block_state : state<typename P::one> {
    shared_ref<block_shared<P>> all;
};

/* What a byte of output, or a token, is: with BYTE_KNOWN a byte, else a distance - 1. */
constexpr uint32_t BYTE_KNOWN = 0x8000;

/* The charge to the step budget for a part.  Every part except a body's last completes at least
 * lane 0's range or MAX_TOKENS symbols, and every body has a part. */
constexpr uint32_t PART_STEPS = 4;

} // namespace flate
} // namespace wharf

#endif
