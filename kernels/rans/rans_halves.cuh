/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_halves.cuh: four decoders (chains, rans_chains.cuh) of one stream of bytes in a warp, each
 * in one half of the warp.
 *
 * A half is 16 lanes, and each lane has two neighbouring coders of a chain.  A half runs two chains
 * in turn, one of each *set*: the low half has chain 2 * s of set s, the high half chain 2 * s + 1.
 * A group of all four chains takes four look-ups a lane, as many as with one coder of each chain in
 * each lane.  But work that a lane's two coders share is done once:
 *
 *   - a chain's takers, 32 bits, come from two votes, and words are counted once for both coders;
 *   - the two symbols are one store; the symbols of four groups are exchanged between four
 *     neighbouring lanes and make one store of 8 bytes a lane;
 *   - a chain's variables are in the registers of its own lanes only, and rare work, such as
 *     loading words or reading a split, is done for two chains at the same time.
 *
 * Four coders a lane would take fewer instructions still.  But then each load of words goes to four
 * places, and these conflict in the banks of shared memory more than the saved stores gain.
 *
 * Invariant: a chain goes from a split's window to the end of the window of the split with which
 * the next chain began, and verifies all windows that it passes.  So if no chain refuses, one
 * decoder that ran through the whole stream would have had the same states.  A chain at its end
 * proceeds, without storing, until all chains are at theirs.
 */
#ifndef WHARF_KERNELS_RANS_RANS_HALVES_CUH
#define WHARF_KERNELS_RANS_RANS_HALVES_CUH

#include "kernels/rans/rans_half_words.cuh"
#include "kernels/rans/rans_loops.cuh"

namespace wharf
{
namespace rans
{

/* ---- groups --------------------------------------------------------------------------------- */

/* A table of fewer than 2^PACKED_NBITS entries is there so many times, each entry's copies side by
 * side: then lanes, each with copies of its own, meet less often on a bank of shared memory. */
WHARF_DEVICE uint32_t n_copies(uint32_t n_bits)
{
    return 1u << (PACKED_NBITS - n_bits);
}

/* Of all entries and copies. */
constexpr uint32_t SLOTS_NBYTES = 4u << PACKED_NBITS;

/* What does not change in loops. */
struct half_setting {
    word_source words;
    word_shift shift;
    shared_table slots; /* PACKED entries, with copies */
    uint32_t slot_step; /* 2^13-n: bytes from an entry to the next */
    uint32_t slot_base; /* see place_of */
    uint32_t n_bits;
    uint8_t *out;
    uint32_t n_whole; /* groups of 32 symbols */
    uint32_t before;  /* of a chain's takers, the coders before this lane's second one */
    uint32_t select;  /* byte_perm's: of two votes, this half's parts */
    uint32_t owns, sends, keeps, gives, low, high; /* byte_perm's of store_fours */
    int32_t fours_at; /* where its stores go, seen from where a pair's would */

    WHARF_DEVICE_MEMBER void init(const word_source &source, const uint32_t *packed, uint32_t n,
                                  uint8_t *to, uint32_t n_groups)
    {
        words = source;
        slots.init(packed);
        slot_step = uniform(opaque(4 * n_copies(n)));
        slot_base = 4 * (lane_id() & (n_copies(n) - 1)) - SLOTS_NBYTES * (1u << PACKED_NBITS);
        n_bits = n;
        out = to;
        n_whole = n_groups;
        before = 0x00010001u * ((1u << lane_in_half()) - 1) | 1u << lane_in_half();
        select = half_of_lane() == 0 ? 0x5410 : 0x7632;
        owns = opaque(lane_id() & 2 ? 0x7654 : 0x3210);
        sends = opaque(lane_id() & 2 ? 0x3210 : 0x7654);
        keeps = opaque((lane_id() & 2 ? 0x1054 : 0x5410) + (lane_id() & 1 ? 0x2222 : 0));
        gives = opaque(keeps ^ 0x2222);
        low = opaque(lane_id() & 1 ? 0x1054 : 0x5410);
        high = opaque(low ^ 0x2222);
        fours_at = (int32_t)(WARP_LANES * (lane_id() & 3) + 8 * (lane_in_half() / 4)) -
                   (int32_t)(LANE_CODERS * lane_in_half());
    }

    /* One lane.  A state without its slot, less what the multiplication by the frequency takes off
     * again (found_packed); NBITS 0: any n. */
    template <unsigned NBITS>
    WHARF_DEVICE_MEMBER uint32_t upper_of(uint32_t state) const
    {
        return opaque((state >> (NBITS ? NBITS : n_bits)) - (1u << PACKED_NBITS));
    }

    /*
     * One lane.  Where in the table a state's entry is, whose upper_of is `upper`.  The state times
     * the entries' distance, less what its upper bits have in that: two multiplications, for which
     * there is a unit that has little else to do.
     */
    WHARF_DEVICE_MEMBER uint32_t place_of(uint32_t state, uint32_t upper) const
    {
        return multiply_add(upper, 0u - SLOTS_NBYTES, multiply_add(state, slot_step, slot_base));
    }
};

/* What does, of this lane's chains: one a set. */
struct half_chains {
    uint32_t state[N_SETS][LANE_CODERS];
    half_words words[N_SETS];
    uint32_t group[N_SETS]; /* that comes next */
    bool stores[N_SETS];    /* not at its end */
};

/* Entries, and later symbols, of a group of all chains. */
struct half_entries {
    uint32_t of[N_SETS][LANE_CODERS];
};

/* One lane.  Behind a loop of groups. */
WHARF_DEVICE void settle_words(const half_setting &setting, half_chains &c)
{
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++)
        c.words[s].settle(setting.before);
}

/* collective.  In front of a step: sees to it that its words are there. */
template <bool EVEN>
WHARF_DEVICE void ensure_step(const half_setting &setting, half_chains &c)
{
    if (!any_lane(c.words[0].may_lack() || c.words[1].may_lack()))
        return;
    settle_words(setting, c);
    do {
        syncwarp(); /* every lane's loads of words that go, before the stores */
        WHARF_UNROLL
        for (unsigned s = 0; s < N_SETS; s++)
            c.words[s].template fill<EVEN>(setting.words, setting.shift);
        syncwarp(); /* the stores, before any lane's loads */
    } while (any_lane(!c.words[0].has_step() || !c.words[1].has_step()));
}

/* One lane.  The entries of the states' slots, of which the upper bits are made `upper`. */
template <unsigned NBITS>
WHARF_DEVICE half_entries find_entries(const half_setting &setting,
                                       const uint32_t state[N_SETS][LANE_CODERS],
                                       uint32_t upper[N_SETS][LANE_CODERS])
{
    half_entries e;
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++)
        WHARF_UNROLL
    for (unsigned j = 0; j < LANE_CODERS; j++) {
        upper[s][j] = setting.upper_of<NBITS>(state[s][j]);
        e.of[s][j] = setting.slots.load_word(setting.place_of(state[s][j], upper[s][j]));
    }
    return e;
}

/* One lane.  The entries of the states' slots, and the states behind them. */
template <unsigned NBITS>
WHARF_DEVICE half_entries decode_symbols(const half_setting &setting,
                                         uint32_t state[N_SETS][LANE_CODERS])
{
    uint32_t upper[N_SETS][LANE_CODERS];
    half_entries e = find_entries<NBITS>(setting, state, upper);
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++)
        WHARF_UNROLL
    for (unsigned j = 0; j < LANE_CODERS; j++) {
        found f = found_packed(e.of[s][j]);
        state[s][j] = f.frequency * upper[s][j] + f.place;
    }
    return e;
}

/* Words for a lane's coders, of which those take theirs whose states are below WHARF_RANS_LOW. */
struct half_takes {
    uint32_t words[N_SETS][LANE_CODERS];
};

/* collective.  Counts who takes a word in this group, and loads the words. */
WHARF_DEVICE half_takes count_takers(const half_setting &setting,
                                     const uint32_t state[N_SETS][LANE_CODERS],
                                     half_words of[N_SETS])
{
    uint32_t votes[N_SETS][LANE_CODERS];
    half_takes takes;
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++)
        WHARF_UNROLL
    for (unsigned j = 0; j < LANE_CODERS; j++)
        votes[s][j] = ballot(state[s][j] < WHARF_RANS_LOW);
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++) {
        of[s].advance(byte_perm(votes[s][0], votes[s][1], setting.select), setting.before);
        takes.words[s][0] = of[s].at.load_behind();
        takes.words[s][1] = of[s].at.load_before(0);
    }
    return takes;
}

/* One lane. */
WHARF_DEVICE void take_words(uint32_t state[N_SETS][LANE_CODERS], const half_takes &takes)
{
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++)
        WHARF_UNROLL
    for (unsigned j = 0; j < LANE_CODERS; j++)
        state[s][j] =
            state[s][j] < WHARF_RANS_LOW ? state[s][j] << 16 | takes.words[s][j] : state[s][j];
}

/* collective.  Both. */
WHARF_DEVICE void renormalise(const half_setting &setting, uint32_t state[N_SETS][LANE_CODERS],
                              half_words of[N_SETS])
{
    half_takes takes = count_takers(setting, state, of);
    take_words(state, takes);
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

/* One lane.  A group's two symbols of a lane, and no more: entries' highest bits are 0. */
WHARF_DEVICE uint32_t pair_of(const half_entries &e, unsigned set)
{
    return signed_perm(e.of[set][0], e.of[set][1], 0xfb40);
}

/*
 * collective.  Symbols of four groups of a chain each half, to an address that is a multiple of 8.
 * A lane has a pair of each group; it gives those of two groups to one neighbour of four and of one
 * to another, and stores what it then has, four pairs of one group: lane k of four that of group k.
 */
WHARF_DEVICE void store_fours(const half_setting &setting, bool stores, uint8_t *to,
                              const uint32_t pairs[4])
{
    uint32_t first = multiply_add(pairs[1], 1u << 16, pairs[0]);
    uint32_t second = multiply_add(pairs[3], 1u << 16, pairs[2]);
    uint32_t own = byte_perm(first, second, setting.owns);
    uint32_t other = shfl_xor<2>(byte_perm(first, second, setting.sends));
    uint32_t kept = byte_perm(own, other, setting.keeps);
    uint32_t given = shfl_xor<1>(byte_perm(own, other, setting.gives));
    store_eight_if(stores, to, byte_perm(kept, given, setting.low),
                   byte_perm(kept, given, setting.high));
}

/* collective.  n steps of all chains where no window is near.  FOURS: the output lies at a multiple
 * of 8.  EVEN: words lie at even bytes. */
template <unsigned NBITS, bool FOURS, bool EVEN>
WHARF_DEVICE void go_freely(const half_setting &setting, half_chains &c, uint32_t n)
{
    uint8_t *to[N_SETS];
    advance(setting, c, to, STEP_NGROUPS * n);
    if (FOURS) {
        WHARF_UNROLL
        for (unsigned s = 0; s < N_SETS; s++)
            to[s] += setting.fours_at;
    }
    WHARF_NO_UNROLL
    for (; n > 0; n--) {
        uint32_t pairs[N_SETS][STEP_NGROUPS];
        ensure_step<EVEN>(setting, c);
        WHARF_UNROLL
        for (uint32_t t = 0; t < STEP_NGROUPS; t++) {
            half_entries e = decode_symbols<NBITS>(setting, c.state);
            WHARF_UNROLL
            for (unsigned s = 0; s < N_SETS; s++) {
                pairs[s][t] = pair_of(e, s);
            }
            renormalise(setting, c.state, c.words);
            WHARF_UNROLL
            for (unsigned s = 0; s < N_SETS; s++)
                if (!FOURS)
                    store_pair_if(c.stores[s], to[s] + WARP_LANES * t, pairs[s][t]);
        }
        WHARF_UNROLL
        for (unsigned s = 0; s < N_SETS; s++) {
            if (FOURS)
                store_fours(setting, c.stores[s], to[s], pairs[s]);
            to[s] += WARP_LANES * STEP_NGROUPS;
        }
    }
    settle_words(setting, c);
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
 * than n nothing happens in front of them.  The half that `leads` has the stream's first chain as
 * its first one, which joins none and is n groups further afterwards. */
template <unsigned NBITS>
WHARF_DEVICE void join_windows(const half_setting &setting, half_chains &c,
                               const half_window w[N_SETS], const bool joins[N_SETS], bool leads,
                               uint32_t n)
{
    /* Groups from 1 on: whoever leads has started before. */
    uint32_t start[N_SETS][LANE_CODERS];
    uint8_t *to[N_SETS];
    WHARF_UNROLL
    for (unsigned s = 0; s < N_SETS; s++)
        WHARF_UNROLL
    for (unsigned j = 0; j < LANE_CODERS; j++)
        start[s][j] = joins[s] ? w[s].start[j] - c.group[s] + n + 1 : NO_GROUP;
    start[0][0] = leads ? 0 : start[0][0];
    start[0][1] = leads ? 0 : start[0][1];
    advance(setting, c, to, 0);
    c.group[0] += leads ? n : 0;
    WHARF_NO_UNROLL
    for (uint32_t first = 0; first < n; first += STEP_NGROUPS) {
        ensure_step<false>(setting, c);
        uint32_t end = first + STEP_NGROUPS < n ? first + STEP_NGROUPS : n;
        WHARF_NO_UNROLL
        for (uint32_t t = first + 1; t <= end; t++) {
            uint32_t upper[N_SETS][LANE_CODERS];
            half_entries e = find_entries<NBITS>(setting, c.state, upper);
            WHARF_UNROLL
            for (unsigned s = 0; s < N_SETS; s++)
                WHARF_UNROLL
            for (unsigned j = 0; j < LANE_CODERS; j++) {
                found f = found_packed(e.of[s][j]);
                bool runs = t > start[s][j];
                multiply_add_if(runs, c.state[s][j], f.frequency, upper[s][j], f.place);
                set_if(t == start[s][j], c.state[s][j], w[s].state[j]);
            }
            renormalise(setting, c.state, c.words);
            store_pair_if(leads, to[0], byte_perm(e.of[0][0], e.of[0][1], 0x0040));
            to[0] += WARP_LANES;
        }
    }
    settle_words(setting, c);
}

/*
 * collective.  n groups of all chains, in which each passes one window at most: what exact_group
 * looks at follows from what passed_windows says, for a lane's coders.  False if something was bad
 * in this lane.
 */
template <unsigned NBITS>
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
                            : c.words[s].place() - 2 * NO_WINDOW;
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
        uint32_t end = first + STEP_NGROUPS < n ? first + STEP_NGROUPS : n, cut_at[N_SETS];
        ensure_step<false>(setting, c);
        WHARF_UNROLL
        for (unsigned s = 0; s < N_SETS; s++)
            cut_at[s] = cut[s] - (c.words[s].place() - c.words[s].at.place());
        WHARF_NO_UNROLL
        for (uint32_t t = first; t < end; t++) {
            half_entries e = decode_symbols<NBITS>(setting, c.state);
            half_takes takes = count_takers(setting, c.state, c.words);
            WHARF_UNROLL
            for (unsigned s = 0; s < N_SETS; s++) {
                WHARF_UNROLL
                for (unsigned j = 0; j < LANE_CODERS; j++) {
                    /* Both negative, or none: the word is the window's first one or below, the
                     * start has come.  A first coder's word is above the second one's. */
                    uint32_t by_cut = c.words[s].at.place() - (cut_at[s] - (j == 0 ? 2 : 0));
                    uint32_t by_start = start[s][j] - (t + 1), behind = c.state[s][j];
                    or_difference_if(behind < WHARF_RANS_LOW, bad.signs, by_cut, by_start);
                    or_difference_if(start[s][j] == t, bad.differences, behind, w[s].state[j]);
                }
            }
            take_words(c.state, takes);
            store_symbols(c, to, 0, e);
            to[0] += WARP_LANES;
            to[1] += WARP_LANES;
        }
    }
    settle_words(setting, c);
    return bad.good();
}

} // namespace rans
} // namespace wharf

#endif
