/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_block_write.cuh: all warps of a block write a batch of sequences, one segment of output at a
 * time.
 *
 * Idea: one bit for each byte of the segment marks where sequences begin.  The number of bits set
 * up to a byte identifies its sequence.  A byte is a literal or a byte of the output before the
 * segment, which are loaded at once, or a reference to an earlier byte of the segment.  All
 * references are then followed at the same time (pointer jumping): each step replaces a reference
 * by its target's, so distances double and a step count logarithmic in the segment's size suffices.
 */
#ifndef WHARF_KERNELS_LZ_BLOCK_WRITE_CUH
#define WHARF_KERNELS_LZ_BLOCK_WRITE_CUH

#include "kernels/lz_block_state.cuh"

namespace wharf
{
namespace lz
{

/* An entry of a segment: with BYTE_KNOWN a byte, else the place in the segment to take it from. */
constexpr uint32_t BYTE_KNOWN = 0x8000;

/* The same in all lanes of all warps. */
struct block_output {
    const uint8_t *in; /* what block_sequence's places are counted from */
    uint8_t *out;
    uint32_t position; /* of the batch's first byte */
};

/* A segment: bytes `done` to done + n - 1 of the batch.  The first is at bytes[skew]. */
struct segment {
    uint8_t *to; /* where [0] would go, a multiple of 16 */
    uint32_t done, n, skew;
};

/* The lane's sequences of a batch, in order; places count from the batch's first byte.  Sequences
 * that are not of the batch are empty. */
template <typename P>
struct lane_sequences {
    uint32_t begin[P::LANE_SEQUENCES + 1]; /* and where the last one ends */
};

/* For all warps, while no bit is set.  Sets the bits of the segment.  Does not synchronise. */
template <typename P>
WHARF_DEVICE void mark_begins(block_shared<P> &s, unsigned number, const segment &seg,
                              const lane_sequences<P> &mine)
{
    WHARF_UNROLL
    for (unsigned k = 0; k < P::LANE_SEQUENCES; k++) {
        uint32_t begin = mine.begin[k], end = mine.begin[k + 1];
        if (begin >= seg.done + seg.n || end <= seg.done || begin == end)
            continue;
        if (begin <= seg.done)
            store(&s.first, number * P::LANE_SEQUENCES + k);
        uint32_t i = (begin <= seg.done ? 0 : begin - seg.done) + seg.skew;
        atomic_or(&s.begins[i >> 5], 1u << (i & 31));
    }
}

/* For all warps, after a syncblock().  Counts the bits.  Does not synchronise afterwards. */
template <typename P>
WHARF_DEVICE void rank_begins(block_shared<P> &s, unsigned warp)
{
    if (warp >= P::BITS_WARPS)
        return;
    unsigned i = 32 * warp + lane_id();
    uint32_t n = popc(load(&s.begins[i]));
    uint32_t upto = inclusive_add(n);
    store(&s.ranks[i], (uint16_t)(upto - n));
    if (lane_id() == 31)
        store(&s.group_counts[warp], upto);
}

/* The lane's bytes: [r] holds the four from byte 4 * (r * LANES + number) of the segment on. */
template <typename P>
struct lane_bytes {
    uint32_t word[P::LANE_NWORDS][4];
};

/* collective.  Makes row r of the lane's bytes. */
template <typename P>
WHARF_DEVICE void resolve_row(const block_shared<P> &s, unsigned number, unsigned r,
                              const block_output &o, const segment &seg, uint32_t (&word)[4])
{
    uint32_t last = seg.skew + seg.n - 1;
    uint32_t i = 4 * (r * P::LANES + number);
    i = i <= last ? i : last & ~3u; /* without a byte: the last ones' */
    uint32_t group = i / 1024;      /* all of the row's are in one */
    uint32_t count = load(&s.group_counts[lane_id() % P::BITS_WARPS]);
    uint32_t before = reduce_add(lane_id() < group ? count : 0);
    uint32_t begins = load(&s.begins[i / 32]);
    before += load(&s.ranks[i / 32]) + load(&s.first) - 1;
    WHARF_UNROLL
    for (unsigned k = 0; k < 4; k++) {
        uint32_t at = i + k < seg.skew ? seg.skew : i + k;
        at = at < last ? at : last;
        uint32_t whose = before + popc(begins & ((2u << (at & 31)) - 1));
        uint64_t q = load(&s.sequences[whose % P::BATCH_SEQUENCES]);
        uint32_t match = (uint32_t)q, literals = (uint32_t)(q >> 32);
        uint32_t in_batch = at - seg.skew + seg.done;
        bool is_literal = in_batch < match >> 16;
        uint32_t distance = match & 0xffff;
        bool near = !is_literal & (at - seg.skew >= distance);
        const uint8_t *from = is_literal ? o.in : o.out;
        uint32_t offset = is_literal ? literals + in_batch : o.position + in_batch - distance;
        uint32_t byte = load_part(from + (near ? 0 : offset), 0, !near);
        word[k] = near ? at - distance : byte | BYTE_KNOWN;
    }
}

/* One lane.  Stores a row of its bytes, for all lanes to read. */
template <typename P>
WHARF_DEVICE void give_row(block_shared<P> &s, unsigned number, unsigned r, const uint32_t (&w)[4])
{
    uint32_t lo = w[0] | w[1] << 16, hi = w[2] | w[3] << 16;
    store(reinterpret_cast<uint64_t *>(s.bytes) + r * P::LANES + number, (uint64_t)hi << 32 | lo);
}

/* One lane.  Follows each reference of a row by one step.  Returns whether some are left. */
template <typename P>
WHARF_DEVICE bool follow_row(const block_shared<P> &s, uint32_t (&w)[4])
{
    uint32_t known = BYTE_KNOWN;
    WHARF_UNROLL
    for (unsigned k = 0; k < 4; k++) {
        if (!(w[k] & BYTE_KNOWN))
            w[k] = load(&s.bytes[w[k]]);
        known &= w[k];
    }
    return known == 0;
}

/* For all warps.  Follows references until all bytes are known.  Synchronises before it reads. */
template <typename P>
WHARF_DEVICE void follow(block_shared<P> &s, unsigned number, unsigned n_rows, lane_bytes<P> &mine)
{
    /* A bit for each of the warp's rows that still contains a reference. */
    uint32_t open = (1u << n_rows) - 1;
    uint32_t given = open; /* rows that changed since they were stored */
    for (;;) {
        WHARF_UNROLL
        for (unsigned r = 0; r < P::LANE_NWORDS; r++)
            if (given & 1u << r)
                give_row(s, number, r, mine.word[r]);
        syncblock();
        uint32_t left = 0;
        WHARF_UNROLL
        for (unsigned r = 0; r < P::LANE_NWORDS; r++)
            if (open & 1u << r)
                left |= any_lane(follow_row(s, mine.word[r])) ? 1u << r : 0;
        if (!any_lane(syncblock_or(left != 0)))
            return;
        given = open;
        open = left;
    }
}

/* One lane. */
WHARF_DEVICE void store_row(const segment &seg, uint32_t i, const uint32_t (&w)[4])
{
    if (i >= seg.skew && i + 4 <= seg.skew + seg.n) {
        uint32_t lo = byte_perm(w[0], w[1], 0x0040), hi = byte_perm(w[2], w[3], 0x0040);
        store(reinterpret_cast<uint32_t *>(seg.to + i), byte_perm(lo, hi, 0x5410));
        return;
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < 4; k++)
        if (i + k - seg.skew < seg.n)
            store(seg.to + i + k, (uint8_t)w[k]);
}

/* For all warps.  No bit of s.begins is set.  Does not synchronise. */
template <typename P>
WHARF_DEVICE void clear_begins(block_shared<P> &s, unsigned number)
{
    if (number < P::BITS_NWORDS)
        store(&s.begins[number], 0u);
}

/*
 * For all warps.  Writes a batch that fits the output.  Its lanes have just stored the sequences in
 * s.sequences and the batch's end in s.last_end.  No bit of s.begins is set, neither on entry nor
 * on return.  Does not synchronise afterwards.  Returns the batch's size in bytes.
 */
template <typename P>
WHARF_DEVICE uint32_t write_block_batch(block_shared<P> &s, unsigned warp, const block_output &o,
                                        const lane_sequences<P> &mine)
{
    unsigned number = 32 * warp + lane_id();
    for (uint32_t done = 0;;) {
        segment seg;
        uint8_t *to = o.out + o.position + done;
        seg.skew = reinterpret_cast<uintptr_t>(to) & 15;
        seg.to = to - seg.skew;
        seg.done = done;
        seg.n = P::SEGMENT_NBYTES - seg.skew;
        mark_begins(s, number, seg, mine);
        syncblock();
        uint32_t total = uniform(load(&s.last_end));
        seg.n = total - done < seg.n ? total - done : seg.n;
        rank_begins(s, warp);
        syncblock();
        lane_bytes<P> bytes = {};
        unsigned n_rows = (seg.skew + seg.n - 1) / (4 * P::LANES) + 1;
        WHARF_UNROLL
        for (unsigned r = 0; r < P::LANE_NWORDS; r++)
            if (r < n_rows)
                resolve_row(s, number, r, o, seg, bytes.word[r]);
        follow(s, number, n_rows, bytes);
        clear_begins(s, number);
        WHARF_UNROLL
        for (unsigned r = 0; r < P::LANE_NWORDS; r++)
            if (r < n_rows)
                store_row(seg, 4 * (r * P::LANES + number), bytes.word[r]);
        done += seg.n;
        if (done == total)
            return total;
        syncblock();
    }
}

} // namespace lz
} // namespace wharf

#endif
