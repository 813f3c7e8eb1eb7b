/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_half_words.cuh: the words of a chain that half a warp decodes (rans_halves.cuh), on their
 * way from the input to its lanes.
 *
 * READ ME FIRST: directions.  Words are taken downwards.  Positions are in bytes from
 * word_source.aligned, as if words began at an even byte: word i ends at 2 * (skew + i + 1).
 *
 * A chain's words are loaded in blocks of 256 bytes, aligned to 256.  Block b goes to slot b %
 * RING_NSLOTS of the chain's ring.  A copy of slot 0 follows the last slot, so that the words of
 * some groups, at most a slot of them, are contiguous.  The next block below is already being
 * loaded, to registers.
 *
 * Each lane keeps the position where the word of its second coder ends; its first coder's word is
 * the one above.  From one group to the next the position moves by the takers from the second coder
 * on in the old group, plus those before it in the new one.  These bits of the two votes never
 * overlap, so one population count gives the sum.  The chain's own position, which is the same in
 * all its lanes, is computed only on demand (settle).
 *
 * Nothing here notices that the words have run out.  Words below number 0 are whatever bytes
 * precede them in the input; the caller finds a next word below -1 afterwards.
 */
#ifndef WHARF_KERNELS_RANS_RANS_HALF_WORDS_CUH
#define WHARF_KERNELS_RANS_RANS_HALF_WORDS_CUH

#include "kernels/rans/rans_words.cuh"

namespace wharf
{
namespace rans
{

constexpr unsigned HALF_LANES = WARP_LANES / 2, N_SETS = 2, LANE_CODERS = 2;

WHARF_DEVICE uint32_t half_of_lane()
{
    return lane_id() / HALF_LANES;
}

WHARF_DEVICE uint32_t lane_in_half()
{
    return lane_id() % HALF_LANES;
}

/* collective.  The least and the most of a half's lanes, in all of them. */
WHARF_DEVICE uint32_t half_min(uint32_t v)
{
    WHARF_UNROLL
    for (unsigned i = 1; i < HALF_LANES; i *= 2) {
        uint32_t other = shfl(v, lane_id() ^ i);
        v = other < v ? other : v;
    }
    return v;
}

WHARF_DEVICE uint32_t half_max(uint32_t v)
{
    return ~half_min(~v);
}

/* ---- rings ---------------------------------------------------------------------------------- */

constexpr uint32_t SLOT_NBYTES = sizeof(u32x4) * HALF_LANES;
constexpr uint32_t RING_NSLOTS = 4, WORD_RING_NBYTES = RING_NSLOTS * SLOT_NBYTES;
/* Groups between two looks at the ring. */
constexpr uint32_t STEP_NGROUPS = SLOT_NBYTES / (2 * WARP_LANES);

/* The last quad has no words: a first coder that takes none looks there, above all words. */
struct half_ring {
    u32x4 quads[(RING_NSLOTS + 1) * HALF_LANES + 1];
};

struct half_buffers {
    half_ring rings[N_SETS][2];
};

/* One lane.  Word i of the input, where that is not before its first whole word; zero for what is
 * behind its end.  Without a branch. */
WHARF_DEVICE uint32_t end_word(const input_source &in, uint32_t i)
{
    uint32_t n_words = in.end / 4, tail = 0;
    uint32_t v =
        load_nc(reinterpret_cast<const uint32_t *>(in.aligned) + (i < n_words ? i : n_words - 1));
    WHARF_UNROLL
    for (uint32_t k = 0; k < 3; k++) {
        uint32_t byte =
            load_nc(in.aligned + (4 * n_words + k < in.end ? 4 * n_words + k : in.end - 1));
        tail |= (4 * n_words + k < in.end ? byte : 0) << 8 * k;
    }
    return i < n_words ? v : i == n_words ? tail : 0;
}

/* How words come from odd bytes to even ones; no conditions, by which compilers would make a loop
 * twice. */
struct word_shift {
    uint32_t n_bits; /* 0 or 8 */
    uint32_t last;   /* all ones in a half's last lane, 0 in others */

    WHARF_DEVICE_MEMBER void init(uint32_t words_at)
    {
        n_bits = opaque(words_at % 2 * 8);
        last = opaque(lane_in_half() == HALF_LANES - 1 ? 0xffffffffu : 0);
    }
};

/* A chain's words.  The same in its lanes, but for `at` and `pending`. */
struct half_words {
    shared_ref<half_ring> ring;
    shared_cursor<uint16_t> at;    /* where the word of this lane's second coder ended last */
    uint32_t takers;               /* of that group */
    shared_cursor<uint16_t> limit; /* below it, there may be something to do before a step */
    uint32_t zero;                 /* the place in memory where position 0 would be */
    uint32_t low;                  /* the lowest position that is in the ring */
    u32x4 pending;                 /* this lane's of the block below it, as it lies in memory */
    uint32_t above; /* of words at odd bytes: what stands behind that block in memory */

    /* One lane.  This lane's quad of the block that begins at `begin`. */
    static WHARF_DEVICE_MEMBER const u32x4 *quad_at(const word_source &source, uint32_t begin)
    {
        int32_t at = (int32_t)(begin + sizeof(u32x4) * lane_in_half());
        /* For one that is not wholly input, and has no words, another one. */
        at = at < source.lowest ? source.lowest : at;
        return reinterpret_cast<const u32x4 *>(source.aligned + (uint32_t)at);
    }

    WHARF_DEVICE_MEMBER const uint16_t *begin_of_ring() const
    {
        return reinterpret_cast<const uint16_t *>(ring.get().quads);
    }

    /* One lane.  The position of `at`. */
    WHARF_DEVICE_MEMBER uint32_t place() const { return at.place() - zero; }

    /* One lane.  On to the next group's word, if these are its takers; `before` are the coders
     * before this lane's second one. */
    WHARF_DEVICE_MEMBER void advance(uint32_t next_takers, uint32_t before)
    {
        at.move(-(int)popc((takers & ~before) | (next_takers & before)));
        takers = next_takers;
    }

    /* One lane.  To where the next word ends: the same in all lanes of a half. */
    WHARF_DEVICE_MEMBER void settle(uint32_t before) { advance(0, before); }

    /* One lane.  Where no lane says yes, a step can begin: the lowest `at` is a word above where
     * its chain stands, at most. */
    WHARF_DEVICE_MEMBER bool may_lack() const { return at.is_below(limit); }

    /* One lane.  Whether a step can begin, of a chain that is settled. */
    WHARF_DEVICE_MEMBER bool has_step() const
    {
        shared_cursor<uint16_t> above_next = at;
        above_next.move(1);
        return !above_next.is_below(limit);
    }

    /* One lane.  A step begins with a slot's words in the ring, and with that many bytes of the
     * ring below the next word's end, so that it takes all words in one piece.  One word more is
     * may_lack's. */
    WHARF_DEVICE_MEMBER void set_limit()
    {
        shared_cursor<uint16_t> begin;
        begin.init(begin_of_ring());
        int32_t below = (int32_t)(low + zero - begin.place());
        limit.init(begin_of_ring(), (uint32_t)(below > 0 ? below : 0) + SLOT_NBYTES + 2);
    }

    /* collective.  For a chain whose next word is `next_word`; false if that is so near the input's
     * begin that blocks in front of it are not wholly input. */
    WHARF_DEVICE_MEMBER bool init(const input_source &in, const word_source &source,
                                  half_ring &memory, int32_t next_word)
    {
        ring.init(memory);
        uint32_t first = 2 * (uint32_t)(next_word + source.skew + 1);
        uint32_t begin = (first - 1) & -SLOT_NBYTES;
        at.init(begin_of_ring());
        at.move((int)((begin % WORD_RING_NBYTES + (first - begin)) / 2));
        zero = at.place() - first;
        takers = 0;
        low = begin + SLOT_NBYTES;
        above = 0;
        set_limit();
        if (any_lane((int32_t)begin < source.lowest))
            return false;
        if (any_lane(low + sizeof(uint32_t) > in.end)) {
            uint32_t i = begin / 4 + 4 * lane_in_half();
            pending = {end_word(in, i), end_word(in, i + 1), end_word(in, i + 2),
                       end_word(in, i + 3)};
            above = end_word(in, low / 4);
        } else {
            pending = load_nc(quad_at(source, begin));
            above = load_nc(reinterpret_cast<const uint32_t *>(source.aligned + low));
        }
        return true;
    }

    /* collective.  The pending words as the ring has them: from odd bytes to even ones.  The same
     * steps for those that are there already. */
    WHARF_DEVICE_MEMBER u32x4 shifted(const word_shift &shift, bool fills)
    {
        u32x4 v = pending;
        unsigned n = shift.n_bits;
        uint32_t next_quad = shfl(v.x, (lane_id() & HALF_LANES) | (lane_id() + 1) % HALF_LANES);
        uint32_t behind = (above & shift.last) | (next_quad & ~shift.last);
        above = fills ? next_quad : above; /* the last lane's; the others' counts for nothing */
        return {funnel_right(v.x, v.y, n), funnel_right(v.y, v.z, n), funnel_right(v.z, v.w, n),
                funnel_right(v.w, behind, n)};
    }

    /* collective.  Of a chain that is settled: takes the pending block in, where there is room for
     * it, and goes from slot 0 to its copy; between two syncwarp.  EVEN: words lie at even bytes,
     * of which there is nothing to shift. */
    template <bool EVEN>
    WHARF_DEVICE_MEMBER void fill(const word_source &source, const word_shift &shift)
    {
        bool fills = (int32_t)(place() - low) <= (int32_t)(WORD_RING_NBYTES - SLOT_NBYTES);
        u32x4 v = pending;
        if (!EVEN)
            v = shifted(shift, fills);
        low -= fills ? SLOT_NBYTES : 0;
        uint32_t begin = low % WORD_RING_NBYTES;
        u32x4 *to = ring.get().quads + lane_in_half();
        store_quad_if(fills, to, begin, v);
        store_quad_if(fills && begin == 0, to, WORD_RING_NBYTES, v);
        /* Where there was no room, the same once more. */
        load_nc_over(pending, quad_at(source, low - SLOT_NBYTES));
        bool wraps = at.nbytes_from(begin_of_ring()) < SLOT_NBYTES;
        at.move(wraps ? (int)WORD_RING_NBYTES / 2 : 0);
        zero += wraps ? WORD_RING_NBYTES : 0;
        set_limit();
    }

    /* The number of the word that is taken next, of a chain that is settled. */
    WHARF_DEVICE_MEMBER int32_t next_word(const word_source &source) const
    {
        return (int32_t)(place() / 2) - 1 - source.skew;
    }
};

} // namespace rans
} // namespace wharf

#endif
