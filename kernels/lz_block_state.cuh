/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_block_state.cuh: the shared memory of a block whose warps decode one stream of lz4 or snappy
 * together.  A block works like this when there are fewer chunks than warps on the GPU.
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
    /* A part's input: a word holds one bit for each byte of a lane's range. */
    static constexpr unsigned RANGE_NBYTES = 32;
    static constexpr unsigned PART_NBYTES = RANGE_NBYTES * LANES;
    /* The input loaded behind the last range, for sequences that begin in it. */
    static constexpr unsigned AHEAD_NBYTES = 512;
    /* Sequences have two bytes or more. */
    static constexpr unsigned MAX_SEQUENCES = PART_NBYTES / 2;
    /* Sequences of a batch, which are written together. */
    static constexpr unsigned LANE_SEQUENCES = 2;
    static constexpr unsigned BATCH_SEQUENCES = LANE_SEQUENCES * LANES;
    /* A lane's share of a segment, the output bytes made together, in words of four bytes. */
    static constexpr unsigned LANE_NWORDS = 4;
    static constexpr unsigned SEGMENT_NBYTES = 4 * LANE_NWORDS * LANES;
    /* Words with one bit for each byte of a segment, and groups of 32 such words. */
    static constexpr unsigned BITS_NWORDS = SEGMENT_NBYTES / 32;
    static constexpr unsigned BITS_WARPS = BITS_NWORDS / 32;
};

/* A batch has fewer bytes, so a place in it fits 16 bits. */
constexpr uint32_t BATCH_NBYTES = 1 << 16;

template <typename P>
struct alignas(16) block_shared {
    static constexpr unsigned WINDOW_NWORDS = (16 + P::PART_NBYTES + P::AHEAD_NBYTES) / 4;
    shared one;
    block_command command;
    alignas(16) uint32_t window[WINDOW_NWORDS];
    /* Where the part's sequences begin. */
    alignas(4) uint16_t places[P::MAX_SEQUENCES];
    /* Of a batch; places count from its first byte.  Bits 0 to 15: the match's distance; bits 16 to
     * 31: the match's place; bits 32 to 63: the literals' place in the part, minus the sequence's
     * place. */
    uint64_t sequences[P::BATCH_SEQUENCES];
    /* One bit for each byte of a segment that begins a sequence.  Also the number of such bits
     * before each word within its group, and in each group. */
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

/* The charge to the step budget for a part.  Each part completes at least one sequence of two
 * bytes, or the first warp takes one after it. */
constexpr uint32_t PART_STEPS = 4;

/* A part's input, with the interface that look() needs.  Places count from its first byte. */
template <typename P>
struct window_view {
    shared_ref<block_shared<P>> all;
    uint32_t skew_nbits;

    /* One lane.  32 bits from bit `ahead` on; unspecified behind the window. */
    WHARF_DEVICE_MEMBER uint32_t peek_32(uint32_t ahead) const
    {
        uint32_t p = skew_nbits + ahead;
        uint32_t i = p >> 5;
        i = i < block_shared<P>::WINDOW_NWORDS - 2 ? i : block_shared<P>::WINDOW_NWORDS - 2;
        const uint32_t *w = &all.get().window[i];
        return funnel_right(load(w), load(w + 1), p);
    }

    /* How many bytes it holds. */
    WHARF_DEVICE_MEMBER uint32_t reach() const { return P::PART_NBYTES + P::AHEAD_NBYTES; }
};

} // namespace lz
} // namespace wharf

#endif
