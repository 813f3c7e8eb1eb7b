/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_halves.cuh: four decoders of one stream of bytes in a warp, each by half of its lanes.
 *
 * A half is 16 lanes, each with two neighbouring coders of a chain (rans_chains.cuh says what that
 * is), and it runs two chains by turns, each a *set*: of set s the low half has chain 2 * s, the
 * high half chain 2 * s + 1.  A group of all chains is four look-ups a lane, as it is with a coder
 * of each chain a lane.  But what a lane's two coders have in common is done once for both:
 *
 *   - a chain's takers, 32 bits, come from two votes; the words before a lane's first coder are
 *     counted once, and the second one's are one more if the first takes one;
 *   - the two symbols are one store;
 *   - all that a chain has is in its own lanes' registers, and what is done now and then, such as
 *     bringing words or reading a split, two chains do side by side.
 *
 * Four coders a lane would be fewer instructions still, but then each look at words goes to four
 * places, which fall on the same banks of shared memory more often than stores are saved.
 *
 * A chain goes from a split's window to the end of the window of the split with which the next one
 * began, and verifies all windows that it passes; so if none refuses, one decoder that runs through
 * would have gone through their very states.  A chain at its end goes on, without storing anything,
 * until all are at theirs.
 */
#ifndef WHARF_KERNELS_RANS_RANS_HALVES_CUH
#define WHARF_KERNELS_RANS_RANS_HALVES_CUH

#include "kernels/rans/rans_loops.cuh"

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

/* ---- words ---------------------------------------------------------------------------------- */

/*
 * READ ME FIRST: directions.  Words are taken downwards.  Positions are in bytes from
 * word_source.aligned, as if words began at an even byte: word i ends at 2 * (skew + i + 1).
 *
 * A chain's words come in blocks of 256 bytes that begin at multiples of that, block b to slot b %
 * RING_NSLOTS of its ring.  Slot 0 is there once more behind the last one, so that the words of
 * some groups, as many as a slot holds at most, are in one piece.  The block below all these is on
 * its way in registers.
 *
 * Nothing here says that words have run out: those below number 0 are whatever stands there in the
 * input, and whoever took some finds a next word below -1.
 */
constexpr uint32_t SLOT_NBYTES = sizeof(u32x4) * HALF_LANES;
constexpr uint32_t RING_NSLOTS = 4, WORD_RING_NBYTES = RING_NSLOTS * SLOT_NBYTES;
/* Groups between two looks at the ring. */
constexpr uint32_t STEP_NGROUPS = SLOT_NBYTES / (2 * WARP_LANES);

struct half_ring {
    u32x4 quads[(RING_NSLOTS + 1) * HALF_LANES];
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

/* A chain's words.  The same in its lanes, but for `pending`. */
struct half_words {
    shared_ref<half_ring> ring;
    uint32_t place; /* where the next word ends */
    uint32_t low;   /* the lowest position that is in the ring */
    u32x4 pending;  /* this lane's of the block below it, as it lies in memory */
    uint32_t above; /* of words at odd bytes: what stands behind that block in memory */

    /* One lane.  This lane's quad of the block that begins at `begin`. */
    static WHARF_DEVICE_MEMBER const u32x4 *quad_at(const word_source &source, uint32_t begin)
    {
        int32_t at = (int32_t)(begin + sizeof(u32x4) * lane_in_half());
        /* For one that is not wholly input, and has no words, another one. */
        at = at < source.lowest ? source.lowest : at;
        return reinterpret_cast<const u32x4 *>(source.aligned + at);
    }

    /* collective.  For a chain whose next word is `next_word`; false if that is so near the input's
     * begin that blocks in front of it are not wholly input. */
    WHARF_DEVICE_MEMBER bool init(const input_source &in, const word_source &source,
                                  half_ring &memory, int32_t next_word)
    {
        ring.init(memory);
        place = 2 * (uint32_t)(next_word + source.skew + 1);
        uint32_t begin = (place - 1) & -SLOT_NBYTES;
        low = begin + SLOT_NBYTES;
        above = 0;
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
        uint32_t next = shfl(v.x, (lane_id() & HALF_LANES) | (lane_id() + 1) % HALF_LANES);
        uint32_t behind = (above & shift.last) | (next & ~shift.last);
        above = fills ? next : above; /* the last lane's; the others' counts for nothing */
        return {funnel_right(v.x, v.y, n), funnel_right(v.y, v.z, n), funnel_right(v.z, v.w, n),
                funnel_right(v.w, behind, n)};
    }

    /* Whether a step's words are in the ring. */
    WHARF_DEVICE_MEMBER bool has_step() const
    {
        return (int32_t)(place - low) >= (int32_t)SLOT_NBYTES;
    }

    /* collective.  Takes the pending block in, where there is room for it; between two syncwarp. */
    WHARF_DEVICE_MEMBER void fill(const word_source &source, const word_shift &shift)
    {
        bool fills = (int32_t)(place - low) <= (int32_t)(WORD_RING_NBYTES - SLOT_NBYTES);
        u32x4 v = shifted(shift, fills);
        low -= fills ? SLOT_NBYTES : 0;
        u32x4 *to = ring.get().quads + (low % WORD_RING_NBYTES / sizeof(u32x4) + lane_in_half());
        if (fills)
            store(to, v);
        if (fills && low % WORD_RING_NBYTES == 0)
            store(to + RING_NSLOTS * HALF_LANES, v);
        /* Where there was no room, the same once more. */
        load_nc_over(pending, quad_at(source, low - SLOT_NBYTES));
    }

    /* One lane.  Where the next word ends in the ring, in front of a step. */
    WHARF_DEVICE_MEMBER shared_cursor<uint16_t> cursor() const
    {
        shared_cursor<uint16_t> c;
        c.init(reinterpret_cast<const uint16_t *>(ring.get().quads));
        c.move((int)(((place - SLOT_NBYTES) % WORD_RING_NBYTES + SLOT_NBYTES) / 2));
        return c;
    }

    /* The number of the word that is taken next. */
    WHARF_DEVICE_MEMBER int32_t next_word(const word_source &source) const
    {
        return (int32_t)(place / 2) - 1 - source.skew;
    }
};

/* ---- groups --------------------------------------------------------------------------------- */

/* A table of fewer than 2^PACKED_NBITS entries is there so many times, each entry's copies side by
 * side: then lanes, each with copies of its own, meet less often on a bank of shared memory. */
WHARF_DEVICE uint32_t n_copies(uint32_t n_bits)
{
    return 1u << (PACKED_NBITS - n_bits);
}

/* What does not change in loops. */
struct half_setting {
    word_source words;
    word_shift shift;
    shared_table slots; /* PACKED entries, with copies */
    uint32_t copy;      /* where this lane's copy is among an entry's, in bytes */
    uint32_t n_bits;
    uint8_t *out;
    uint32_t n_whole; /* groups of 32 symbols */
    uint32_t before;  /* of a chain's takers, the coders before this lane's */
    uint32_t select;  /* byte_perm's: of two votes, this half's parts */

    WHARF_DEVICE_MEMBER void init(const word_source &source, const uint32_t *packed, uint32_t n,
                                  uint8_t *to, uint32_t n_groups)
    {
        words = source;
        slots.init(packed);
        copy = 4 * (lane_id() & (n_copies(n) - 1));
        n_bits = n;
        out = to;
        n_whole = n_groups;
        before = 0x00010001u * ((1u << lane_in_half()) - 1);
        select = half_of_lane() == 0 ? 0x5410 : 0x7632;
    }

    /* One lane.  Where in the table a state's entry is; NBITS 0: any n. */
    template <unsigned NBITS>
    WHARF_DEVICE_MEMBER uint32_t place_of(uint32_t state) const
    {
        uint32_t n = NBITS ? NBITS : n_bits;
        uint32_t at = (state & ((1u << n) - 1)) * 4 * n_copies(n);
        return NBITS == PACKED_NBITS ? at : at | copy;
    }
};

/* What does, of this lane's chains: one a set. */
struct half_chains {
    uint32_t state[N_SETS][LANE_CODERS];
    half_words words[N_SETS];
    uint32_t group[N_SETS];   /* that comes next */
    bool stores[N_SETS];      /* not at its end */
    uint32_t nobodys[N_SETS]; /* the highest bit is set if a slot was */
};

/* Entries, and later symbols, of a group of all chains. */
struct half_entries {
    uint32_t of[N_SETS][LANE_CODERS];
};

/* Where the words are that come next. */
struct half_cursors {
    shared_cursor<uint16_t> of[N_SETS];
    uint32_t begin[N_SETS];

    /* collective.  In front of a step: sees to it that its words are there. */
    WHARF_DEVICE_MEMBER void init(const half_setting &setting, half_chains &c)
    {
        while (any_lane(!c.words[0].has_step() || !c.words[1].has_step())) {
            syncwarp(); /* every lane's loads of words that go, before the stores */
            WHARF_UNROLL
            for (unsigned s = 0; s < N_SETS; s++)
                c.words[s].fill(setting.words, setting.shift);
            syncwarp(); /* the stores, before any lane's loads */
        }
        WHARF_UNROLL
        for (unsigned s = 0; s < N_SETS; s++) {
            of[s] = c.words[s].cursor();
            begin[s] = of[s].place();
        }
    }

    /* One lane.  Where the next word ends now. */
    WHARF_DEVICE_MEMBER uint32_t place(const half_chains &c, unsigned s) const
    {
        return c.words[s].place - (begin[s] - of[s].place());
    }

    /* Behind a step. */
    WHARF_DEVICE_MEMBER void end(half_chains &c) const
    {
        WHARF_UNROLL
        for (unsigned s = 0; s < N_SETS; s++)
            c.words[s].place = place(c, s);
    }
};

/* One lane.  The entries of the states' slots, and the states behind them. */
template <unsigned NBITS>
WHARF_DEVICE half_entries decode_symbols(const half_setting &setting,
                                         uint32_t state[N_SETS][LANE_CODERS])
{
    uint32_t n = NBITS ? NBITS : setting.n_bits;
    half_entries e;
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++)
        WHARF_UNROLL
    for (unsigned j = 0; j < LANE_CODERS; j++)
        e.of[s][j] = setting.slots.load_word(setting.place_of<NBITS>(state[s][j]));
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++)
        WHARF_UNROLL
    for (unsigned j = 0; j < LANE_CODERS; j++) {
        found f = found_packed(e.of[s][j]);
        state[s][j] = f.frequency * ((state[s][j] >> n) - f.excess) + f.place;
    }
    return e;
}

/* collective.  Coders with states below WHARF_RANS_LOW take a word each.  `before` gets how many of
 * their chain's go to those in front of this lane's. */
WHARF_DEVICE void take_words(const half_setting &setting, uint32_t state[N_SETS][LANE_CODERS],
                             half_cursors &cursors, uint32_t before[N_SETS])
{
    uint32_t votes[N_SETS][LANE_CODERS], words[N_SETS][LANE_CODERS];
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++)
        WHARF_UNROLL
    for (unsigned j = 0; j < LANE_CODERS; j++)
        votes[s][j] = ballot(state[s][j] < WHARF_RANS_LOW);
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++) {
        uint32_t takers = byte_perm(votes[s][0], votes[s][1], setting.select);
        shared_cursor<uint16_t> at = cursors.of[s];
        before[s] = popc(takers & setting.before);
        at.move(-(int)before[s]);
        cursors.of[s].move(-(int)popc(takers));
        words[s][0] = at.load_before(0);
        if (state[s][0] < WHARF_RANS_LOW)
            at.move(-1);
        words[s][1] = at.load_before(0);
    }
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++)
        WHARF_UNROLL
    for (unsigned j = 0; j < LANE_CODERS; j++)
        state[s][j] = state[s][j] < WHARF_RANS_LOW ? state[s][j] << 16 | words[s][j] : state[s][j];
}

/* One lane.  A group's symbols to their places, but of chains at their ends. */
WHARF_DEVICE void store_symbols(const half_chains &c, uint8_t *const to[N_SETS], uint32_t ahead,
                                const half_entries &e)
{
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++)
        store_pair_if(c.stores[s], to[s] + WARP_LANES * ahead,
                      byte_perm(e.of[s][0], e.of[s][1], 0x0040));
}

/* One lane.  Where the symbols of the next groups go; and n groups more are done. */
WHARF_DEVICE void advance(const half_setting &setting, half_chains &c, uint8_t *to[N_SETS],
                          uint32_t n)
{
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++) {
        to[s] = setting.out + (WARP_LANES * c.group[s] + LANE_CODERS * lane_in_half());
        c.group[s] += n;
    }
}

/* collective.  n steps of all chains where no window is near. */
template <unsigned NBITS>
WHARF_DEVICE void go_freely(const half_setting &setting, half_chains &c, uint32_t n)
{
    uint8_t *to[N_SETS];
    advance(setting, c, to, STEP_NGROUPS * n);
    WHARF_NO_UNROLL
    for (; n > 0; n--) {
        half_cursors cursors;
        cursors.init(setting, c);
        WHARF_UNROLL
        for (uint32_t t = 0; t < STEP_NGROUPS; t++) {
            uint32_t before[N_SETS];
            half_entries e = decode_symbols<NBITS>(setting, c.state);
            WHARF_UNROLL
            for (unsigned s = 0; s < N_SETS; s++)
                c.nobodys[s] |= e.of[s][0] | e.of[s][1];
            take_words(setting, c.state, cursors, before);
            store_symbols(c, to, t, e);
        }
        cursors.end(c);
        WHARF_UNROLL
        for (unsigned s = 0; s < N_SETS; s++)
            to[s] += WARP_LANES * STEP_NGROUPS;
    }
}

/* ---- windows -------------------------------------------------------------------------------- */

/* A split: starts and states are this lane's coders', all else is the same in a half. */
struct half_window {
    uint32_t number;  /* n_splits: there is none */
    uint32_t next_at; /* bit of the body where the next one's starts are */
    uint32_t first_group, last_group;
    int32_t first_word;
    uint32_t start[LANE_CODERS], state[LANE_CODERS];

    /* There is none any more. */
    WHARF_DEVICE_MEMBER void close(uint32_t n_splits)
    {
        number = n_splits;
        first_group = last_group = start[0] = start[1] = NO_GROUP;
        first_word = 0;
    }
};

/* collective.  The n groups in front of each chain's that joins: in its window a coder has its
 * state from its start on, and its first symbol is in the group behind.  Where windows are shorter
 * than n nothing happens in front of them. */
WHARF_DEVICE void join_windows(const half_setting &setting, half_chains &c,
                               const half_window w[N_SETS], const bool joins[N_SETS], uint32_t n)
{
    uint32_t state[N_SETS][LANE_CODERS], start[N_SETS][LANE_CODERS];
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++)
        WHARF_UNROLL
    for (unsigned j = 0; j < LANE_CODERS; j++) {
        start[s][j] = joins[s] ? w[s].start[j] - c.group[s] + n : (uint32_t)NO_WINDOW;
        state[s][j] = WHARF_RANS_LOW;
    }
    WHARF_NO_UNROLL
    for (uint32_t first = 0; first < n; first += STEP_NGROUPS) {
        half_cursors cursors;
        cursors.init(setting, c);
        WHARF_NO_UNROLL
        for (uint32_t t = first; t < first + STEP_NGROUPS && t < n; t++) {
            uint32_t next[N_SETS][LANE_CODERS], before[N_SETS];
            WHARF_UNROLL
            for (unsigned s = 0; s < N_SETS; s++)
                WHARF_UNROLL
            for (unsigned j = 0; j < LANE_CODERS; j++)
                next[s][j] = state[s][j];
            half_entries e = decode_symbols<0>(setting, next);
            WHARF_UNROLL
            for (unsigned s = 0; s < N_SETS; s++)
                WHARF_UNROLL
            for (unsigned j = 0; j < LANE_CODERS; j++) {
                bool runs = t > start[s][j];
                c.nobodys[s] |= runs ? e.of[s][j] : 0;
                state[s][j] = runs ? next[s][j] : (uint32_t)WHARF_RANS_LOW;
                state[s][j] = t == start[s][j] ? w[s].state[j] : state[s][j];
            }
            take_words(setting, state, cursors, before);
        }
        cursors.end(c);
    }
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++)
        WHARF_UNROLL
    for (unsigned j = 0; j < LANE_CODERS; j++)
        c.state[s][j] = joins[s] ? state[s][j] : c.state[s][j];
}

/*
 * collective.  n groups of all chains, in which each passes one window at most: what exact_group
 * looks at follows from what passed_windows says, for a lane's coders.  False if something was bad
 * in this lane.
 */
WHARF_DEVICE bool look_at_windows(const half_setting &setting, half_chains &c,
                                  const half_window w[N_SETS], uint32_t n)
{
    uint8_t *to[N_SETS];
    uint32_t start[N_SETS][LANE_CODERS], cut[N_SETS];
    findings bad = {0, 0};
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++) {
        bool has_window = c.stores[s] && w[s].first_group != NO_GROUP;
        /* Where the word above the window's first one ends. */
        cut[s] = has_window ? 2 * (uint32_t)(w[s].first_word + setting.words.skew + 2)
                            : c.words[s].place - 2 * NO_WINDOW;
        WHARF_UNROLL
        for (unsigned j = 0; j < LANE_CODERS; j++)
            start[s][j] = has_window ? w[s].start[j] - c.group[s] : (uint32_t)NO_WINDOW;
        bool is_before = has_window && c.group[s] <= w[s].first_group;
        uint32_t above = (uint32_t)(c.words[s].next_word(setting.words) - w[s].first_word);
        bad.signs |= is_before ? above : 0;
    }
    advance(setting, c, to, n);
    WHARF_NO_UNROLL
    for (uint32_t first = 0; first < n; first += STEP_NGROUPS) {
        half_cursors cursors;
        cursors.init(setting, c);
        WHARF_NO_UNROLL
        for (uint32_t t = first; t < first + STEP_NGROUPS && t < n; t++) {
            uint32_t behind[N_SETS][LANE_CODERS], before[N_SETS], place[N_SETS];
            half_entries e = decode_symbols<0>(setting, c.state);
            WHARF_UNROLL
            for (unsigned s = 0; s < N_SETS; s++) {
                c.nobodys[s] |= e.of[s][0] | e.of[s][1];
                behind[s][0] = c.state[s][0];
                behind[s][1] = c.state[s][1];
                place[s] = cursors.place(c, s);
            }
            take_words(setting, c.state, cursors, before);
            WHARF_UNROLL
            for (unsigned s = 0; s < N_SETS; s++) {
                place[s] -= 2 * before[s];
                WHARF_UNROLL
                for (unsigned j = 0; j < LANE_CODERS; j++) {
                    bool takes = behind[s][j] < WHARF_RANS_LOW;
                    /* Both negative, or none: the word is the window's first one or below, the
                     * start has come. */
                    uint32_t by_cut = place[s] - cut[s], by_start = start[s][j] - (t + 1);
                    bad.signs |= takes ? by_cut ^ by_start : 0;
                    bad.differences |= start[s][j] == t ? behind[s][j] ^ w[s].state[j] : 0;
                    place[s] -= takes ? 2 : 0;
                }
            }
            store_symbols(c, to, 0, e);
            to[0] += WARP_LANES;
            to[1] += WARP_LANES;
        }
        cursors.end(c);
    }
    return bad.good();
}

} // namespace rans
} // namespace wharf

#endif
