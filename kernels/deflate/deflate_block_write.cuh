/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_block_write.cuh: all warps of a block turn tokens into output, one segment at a time.
 *
 * Each byte of the segment has an entry of 16 bits in shared memory.  First, lanes store a mark
 * where each of their tokens begins: its literal, or its distance.  Then each byte takes the last
 * mark at or before it and becomes a literal, a byte loaded from the output before the segment, or
 * a reference to an earlier byte of the segment.  Finally, all references are followed at the same
 * time (pointer jumping): each step replaces a reference by its target's entry, so distances double
 * until all bytes are known.
 */
#ifndef WHARF_KERNELS_DEFLATE_BLOCK_WRITE_CUH
#define WHARF_KERNELS_DEFLATE_BLOCK_WRITE_CUH

#include "kernels/deflate/deflate_block_state.cuh"

namespace wharf
{
namespace flate
{

/* An entry of a segment is a mark, and later, where that is a distance, the place in the segment to
 * take the byte from; or nothing. */
constexpr uint32_t NO_MARK = 0xffff;

/* The lane's tokens that are still to be written. */
struct token_cursor {
    uint32_t k, n;
    uint32_t begin; /* the next one's first byte, counted from the part's first */
};

/* A segment: bytes `done` to done + n - 1 of the part.  The first is at bytes[skew]. */
struct segment {
    uint8_t *out;
    uint32_t to;       /* where [0] would go in the output; as an address a multiple of 16 */
    uint32_t position; /* of the output, of the segment's first byte */
    uint32_t done, n, skew;
};

/* A token of a lane's column. */
struct column_token {
    uint32_t mark, length;
};

/* One lane.  Token k of its column; without one, any. */
template <typename P>
WHARF_DEVICE column_token take_token(const block_shared<P> &s, unsigned number, uint32_t k)
{
    k = k < P::MAX_TOKENS ? k : 0;
    column_token token = {load(&s.marks[k][number]), load(&s.lengths[k][number])};
    token.length = token.mark & BYTE_KNOWN ? 1 : token.length + WHARF_DEFLATE_MIN_MATCH;
    return token;
}

/*
 * One lane.  Marks the beginnings of its tokens that have bytes in the segment.  False: a distance
 * reaches before the stream's first byte.
 */
template <typename P>
WHARF_DEVICE bool mark_tokens(block_shared<P> &s, unsigned number, const segment &seg,
                              token_cursor &c)
{
    bool good = true;
    uint32_t end = seg.done + seg.n;
    column_token ahead = take_token(s, number, c.k);
    while (c.k < c.n && c.begin < end) {
        uint32_t mark = ahead.mark, behind = c.begin + ahead.length;
        ahead = take_token(s, number, c.k + 1);
        if (!(mark & BYTE_KNOWN) && mark >= seg.position - seg.done + c.begin) {
            good = false;
            mark = BYTE_KNOWN;
        }
        uint32_t i = seg.skew + c.begin - seg.done;
        if (c.begin < seg.done)
            i = 0; /* it began before: what the first stretch begins with */
        store(c.begin < seg.done ? &s.carry[0] : &s.bytes[i], (uint16_t)mark);
        uint32_t last = seg.skew + (behind < end ? behind : end) - 1 - seg.done;
        if (last / P::STRETCH_NBYTES != i / P::STRETCH_NBYTES)
            store(&s.carry[last / P::STRETCH_NBYTES], (uint16_t)mark);
        if (behind > end)
            break;
        c.begin = behind;
        c.k++;
    }
    /* Entries behind the segment's end belong to no token. */
    if (number == 0 && seg.skew + seg.n < P::SEGMENT_NBYTES)
        store(&s.bytes[seg.skew + seg.n], (uint16_t)BYTE_KNOWN);
    return good;
}

/* collective.  Spreads the marks: each byte without a mark takes the last one before it. */
template <typename P>
WHARF_DEVICE void spread_marks(const block_shared<P> &s, unsigned warp,
                               uint32_t (&word)[4 * P::LANE_NWORDS])
{
    const uint16_t *from = s.bytes + warp * P::STRETCH_NBYTES + 4 * lane_id();
    uint32_t carry = load(&s.carry[warp]);
    WHARF_UNROLL
    for (unsigned r = 0; r < P::LANE_NWORDS; r++) {
        uint64_t marks = load(reinterpret_cast<const uint64_t *>(from + 128 * r));
        uint32_t mark[4], last = NO_MARK;
        WHARF_UNROLL
        for (unsigned k = 0; k < 4; k++) {
            uint32_t m = (uint32_t)(marks >> 16 * k) & 0xffff;
            last = m == NO_MARK ? last : m;
            mark[k] = last;
        }
        uint32_t have = ballot(last != NO_MARK);
        uint32_t below = have & lanemask_lt();
        uint32_t before = shfl(last, 31 - clz(below | 1));
        before = below ? before : carry;
        WHARF_UNROLL
        for (unsigned k = 0; k < 4; k++)
            word[4 * r + k] = mark[k] == NO_MARK ? before : mark[k];
        uint32_t final = shfl(last, 31 - clz(have | 1));
        carry = have ? final : carry;
    }
}

/* One lane.  Turns marks into known bytes and references. */
template <typename P>
WHARF_DEVICE void resolve_marks(const segment &seg, unsigned warp,
                                uint32_t (&word)[4 * P::LANE_NWORDS])
{
    uint32_t first = warp * P::STRETCH_NBYTES + 4 * lane_id();
    WHARF_UNROLL
    for (unsigned j = 0; j < 4 * P::LANE_NWORDS; j++) {
        uint32_t source = first + j / 4 * 128 + j % 4 - 1 - word[j];
        bool match = !(word[j] & BYTE_KNOWN);
        bool near = (int32_t)source >= (int32_t)seg.skew;
        word[j] = match && near ? source : word[j];
        if (match && !near)
            word[j] = load(seg.out + (seg.to + source)) | BYTE_KNOWN;
    }
}

/* For all warps.  Follows references until all bytes are known.  Synchronises before it reads. */
template <typename P>
WHARF_DEVICE void follow(block_shared<P> &s, unsigned warp, uint32_t (&word)[4 * P::LANE_NWORDS])
{
    uint16_t *to = s.bytes + warp * P::STRETCH_NBYTES + 4 * lane_id();
    /* A bit for each of the warp's rows that still contains a reference. */
    uint32_t open = (1u << P::LANE_NWORDS) - 1;
    uint32_t given = open; /* rows that changed since they were stored */
    for (;;) {
        WHARF_UNROLL
        for (unsigned r = 0; r < P::LANE_NWORDS; r++) {
            if (!(given & 1u << r))
                continue;
            uint32_t lo = word[4 * r] | word[4 * r + 1] << 16;
            uint32_t hi = word[4 * r + 2] | word[4 * r + 3] << 16;
            store(reinterpret_cast<uint64_t *>(to + 128 * r), (uint64_t)hi << 32 | lo);
        }
        syncblock();
        uint32_t left = 0;
        WHARF_UNROLL
        for (unsigned r = 0; r < P::LANE_NWORDS; r++) {
            if (!(open & 1u << r))
                continue;
            uint32_t known = BYTE_KNOWN;
            WHARF_UNROLL
            for (unsigned k = 0; k < 4; k++) {
                if (!(word[4 * r + k] & BYTE_KNOWN))
                    word[4 * r + k] = load(&s.bytes[word[4 * r + k]]);
                known &= word[4 * r + k];
            }
            left |= any_lane(known == 0) ? 1u << r : 0;
        }
        if (!any_lane(syncblock_or(left != 0)))
            return;
        given = open;
        open = left;
    }
}

/* One lane. */
template <typename P>
WHARF_DEVICE void store_words(const segment &seg, unsigned warp,
                              const uint32_t (&word)[4 * P::LANE_NWORDS])
{
    uint8_t *to = seg.out + seg.position - seg.skew;
    WHARF_UNROLL
    for (unsigned r = 0; r < P::LANE_NWORDS; r++) {
        uint32_t i = warp * P::STRETCH_NBYTES + 128 * r + 4 * lane_id();
        const uint32_t *w = word + 4 * r;
        if (i >= seg.skew && i + 4 <= seg.skew + seg.n) {
            uint32_t lo = byte_perm(w[0], w[1], 0x0040), hi = byte_perm(w[2], w[3], 0x0040);
            store(reinterpret_cast<uint32_t *>(to + i), byte_perm(lo, hi, 0x5410));
        } else {
            WHARF_UNROLL
            for (unsigned k = 0; k < 4; k++)
                if (i + k - seg.skew < seg.n)
                    store(to + i + k, (uint8_t)w[k]);
        }
    }
}

/*
 * For all warps.  Writes the tokens of a part, nbytes bytes, to out[position]; they must fit.  The
 * lane's n_tokens tokens are in its column; their output begins at byte `begin` of the part. False:
 * a distance reaches before the stream's first byte, and the bytes written are meaningless.
 */
template <typename P>
WHARF_DEVICE bool write_part(block_shared<P> &s, unsigned warp, uint8_t *out, uint32_t position,
                             uint32_t nbytes, uint32_t n_tokens, uint32_t begin)
{
    static_assert(P::STRETCH_NBYTES > WHARF_DEFLATE_MAX_MATCH + 16);
    unsigned number = 32 * warp + lane_id();
    token_cursor cursor = {0, n_tokens, begin};
    bool good = true;
    for (uint32_t done = 0; done < nbytes;) {
        segment seg;
        seg.out = out;
        seg.position = position + done;
        seg.skew = reinterpret_cast<uintptr_t>(out + seg.position) & 15;
        seg.to = seg.position - seg.skew;
        seg.done = done;
        seg.n = nbytes - done < P::SEGMENT_NBYTES - seg.skew ? nbytes - done
                                                             : P::SEGMENT_NBYTES - seg.skew;
        u32x4 *clear = reinterpret_cast<u32x4 *>(s.bytes);
        WHARF_UNROLL
        for (unsigned k = 0; k < P::LANE_NWORDS / 2; k++)
            store(clear + k * P::LANES + number, u32x4{~0u, ~0u, ~0u, ~0u});
        if (lane_id() == 0)
            store(&s.carry[warp], (uint16_t)NO_MARK);
        syncblock();
        good &= mark_tokens(s, number, seg, cursor);
        syncblock();
        uint32_t word[4 * P::LANE_NWORDS];
        spread_marks(s, warp, word);
        resolve_marks<P>(seg, warp, word);
        follow(s, warp, word);
        store_words<P>(seg, warp, word);
        done += seg.n;
    }
    return !syncblock_or(!good);
}

} // namespace flate
} // namespace wharf

#endif
