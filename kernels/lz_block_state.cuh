/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_block_state.cuh: what the warps of a block share while they decode one stream of lz4 or snappy
 * together, for chunks that are too few to give every warp of a GPU one.
 */
#ifndef WHARF_KERNELS_LZ_BLOCK_STATE_CUH
#define WHARF_KERNELS_LZ_BLOCK_STATE_CUH

#include "kernels/block_command.cuh"
#include "kernels/lz_decode.cuh"

namespace wharf
{
namespace lz
{

struct block_tuning {
    static constexpr unsigned WARPS = 16;
    static constexpr unsigned LANES = 32 * WARPS;
    /* The input of a part: each lane's range has a bit for each byte in a word. */
    static constexpr unsigned RANGE_NBYTES = 32;
    static constexpr unsigned PART_NBYTES = RANGE_NBYTES * LANES;
    /* What is seen of a sequence that begins in the last range. */
    static constexpr unsigned AHEAD_NBYTES = 512;
    /* Sequences have two bytes or more. */
    static constexpr unsigned MAX_SEQUENCES = PART_NBYTES / 2;
    /* Sequences of a batch, which become output together. */
    static constexpr unsigned LANE_SEQUENCES = 2;
    static constexpr unsigned BATCH_SEQUENCES = LANE_SEQUENCES * LANES;
    /* Bytes of output that are made together: a lane's share of them, in words of four. */
    static constexpr unsigned LANE_NWORDS = 4;
    static constexpr unsigned SEGMENT_NBYTES = 4 * LANE_NWORDS * LANES;
    /* The words in which each byte of a segment has a bit, and their groups of 32. */
    static constexpr unsigned BITS_NWORDS = SEGMENT_NBYTES / 32;
    static constexpr unsigned BITS_WARPS = BITS_NWORDS / 32;
};

/* The bytes of a batch are fewer, so that where one is fits 16 bits. */
constexpr uint32_t BATCH_NBYTES = 1 << 16;

template <typename P>
struct alignas(16) block_shared {
    static constexpr unsigned WINDOW_NWORDS = (16 + P::PART_NBYTES + P::AHEAD_NBYTES) / 4;
    shared one;
    block_command command;
    alignas(16) uint32_t window[WINDOW_NWORDS];
    /* Where the part's sequences begin. */
    alignas(4) uint16_t places[P::MAX_SEQUENCES];
    /* Of a batch; places are counted from its first byte.  Where the match begins, times 2^16, and
     * its distance; above these, where literals are in the part, less where the sequence begins. */
    uint64_t sequences[P::BATCH_SEQUENCES];
    /* A bit for each byte of a segment that begins a sequence; those before each word, in its group
     * of 32; those in each group. */
    uint32_t begins[P::BITS_NWORDS];
    uint16_t ranks[P::BITS_NWORDS];
    uint32_t group_counts[P::BITS_WARPS];
    uint32_t first; /* the sequence to which the segment's first byte belongs */
    /* What each byte of a segment is: lz_block_write.cuh. */
    alignas(16) uint16_t bytes[P::SEGMENT_NBYTES];
    /* For each warp. */
    uint32_t exits[P::WARPS], counts[P::WARPS], sums[P::WARPS], least[P::WARPS];
    /* Of the last sequence of a batch: its end in the output and in the input, and its match. */
    uint32_t last_end, last_place, last_match;
};

/* What is taken from the step budget for a part.  One leaves a sequence of two bytes behind, or the
 * first warp takes one. */
constexpr uint32_t PART_STEPS = 4;

/* The input of a part, as look() wants it: places are counted from the part's first byte. */
template <typename P>
struct window_view {
    shared_ref<block_shared<P>> all;
    uint32_t skew_nbits;

    /* One lane.  32 bits that begin `ahead` bits behind the first; of no use behind the window. */
    WHARF_DEVICE_MEMBER uint32_t peek_32(uint32_t ahead) const
    {
        uint32_t p = skew_nbits + ahead;
        uint32_t i = p >> 5;
        i = i < block_shared<P>::WINDOW_NWORDS - 2 ? i : block_shared<P>::WINDOW_NWORDS - 2;
        const uint32_t *w = &all.get().window[i];
        return funnel_right(load(w), load(w + 1), p);
    }

    /* Bytes behind the part's first that are there. */
    WHARF_DEVICE_MEMBER uint32_t reach() const { return P::PART_NBYTES + P::AHEAD_NBYTES; }
};

} // namespace lz
} // namespace wharf

#endif
