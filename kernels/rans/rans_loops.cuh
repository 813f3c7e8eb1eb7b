/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_loops.cuh: the loops of several decoders of one stream, side by side in a warp: chains of a
 * chunk (rans_chains.cuh), or strands of a stream that the whole GPU decodes (rans_strands.cuh).
 *
 * Idea: in one decoder, the look-up, the new state, the vote and the load of words depend on each
 * other, some 130 cycles a group.  So a warp interleaves CHAINS decoders, step by step, and each
 * one's latency is hidden by the steps of the others.
 *
 * The structs here hold only what changes in the loops.  Anything more would take registers from
 * them, and the compiler would no longer interleave the chains but put one after another.
 */
#ifndef WHARF_KERNELS_RANS_RANS_LOOPS_CUH
#define WHARF_KERNELS_RANS_RANS_LOOPS_CUH

#include "kernels/rans/rans_groups.cuh"
#include "kernels/rans/rans_words.cuh"

namespace wharf
{
namespace rans
{

/* Shared memory of a warp's chains: their words. */
template <unsigned CHAINS>
struct chain_buffers {
    word_buffer words[CHAINS];
};

/* If symbols have one of several distributions: the indexes of a batch, also in shared memory. */
template <unsigned CHAINS>
struct index_buffers {
    alignas(8) uint8_t of[CHAINS][BATCH_NGROUPS * WARP_LANES];
};

/* What does not change in a loop.  The same in all lanes. */
template <unsigned CHAINS>
struct loop_setting {
    const stream &in;
    const model &m;
    const word_source &words;
    chain_buffers<CHAINS> &buffers;
    uint8_t *out;
};

/* What changes in a loop. */
template <unsigned CHAINS>
struct loop_chains {
    uint32_t state[CHAINS]; /* this lane's */
    word_feed feed[CHAINS];
};

/* One lane. */
WHARF_DEVICE uint32_t slot_of(const model &m, uint32_t state)
{
    return opaque(state & ((1u << m.n_bits) - 1));
}

/* One lane.  Looks up the slots of all chains' states, for this lane's symbols of these groups. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE void find_all(const loop_setting<CHAINS> &s, const uint32_t group[CHAINS],
                           const uint32_t state[CHAINS], found f[CHAINS])
{
    uint32_t slots[CHAINS];
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        slots[k] = slot_of(s.m, state[k]);
    if (!has_symbol_size<KIND>())
        find_bytes<KIND, CHAINS>(s.m, slots, f);
    else
        WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        f[k] = find<KIND>(s.m, s.in, WARP_LANES * group[k] + lane_id(), slots[k]);
}

/* collective.  Ensures that the words of a batch are in the buffers, for all chains. */
template <unsigned CHAINS>
WHARF_DEVICE void ensure_words(const loop_setting<CHAINS> &s, loop_chains<CHAINS> &c)
{
    bool all = true;
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        all &= c.feed[k].has_batch(s.buffers.words[k]);
    /* Mostly all have, and one branch costs less than one for each chain. */
    if (!any_lane(!all))
        return;
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        c.feed[k].ensure(s.words, s.buffers.words[k]);
}

/* ---- where nothing is near ------------------------------------------------------------------ */

/* By how many groups the loop is unrolled.  With four chains, more than four groups would exceed
 * the instruction cache. */
template <unsigned CHAINS>
WHARF_CONSTEXPR uint32_t in_a_row()
{
    return CHAINS < 4 ? BATCH_NGROUPS : BATCH_NGROUPS / 2;
}

/* collective.  Decodes the next group of all chains to `to`.  Each lane stores single bytes:
 * combining those of four groups takes longer.  Returns `nobodys`, with the highest bit set if a
 * slot belongs to no symbol. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE uint32_t free_group(const model &m, loop_chains<CHAINS> &c, uint8_t *const to[CHAINS],
                                 uint32_t ahead, uint32_t nobodys)
{
    uint32_t slots[CHAINS], takers[CHAINS], words[CHAINS];
    found f[CHAINS];
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        slots[k] = slot_of(m, c.state[k]);
    find_bytes<KIND, CHAINS>(m, slots, f);
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        nobodys |= f[k].nobodys;
        c.state[k] = state_behind(m, f[k], c.state[k]);
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        takers[k] = ballot(c.state[k] < WHARF_RANS_LOW);
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        words[k] = c.feed[k].behind.load_before(popc(takers[k] & lanemask_lt()));
        c.feed[k].behind.move(-(int)popc(takers[k]));
        store_byte(to[k] + WARP_LANES * ahead, f[k].symbol);
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        c.state[k] = c.state[k] < WHARF_RANS_LOW ? c.state[k] << 16 | words[k] : c.state[k];
    return nobodys;
}

/* collective.  Decodes n batches of bytes of all chains, from `group` on.  Returns a word whose
 * highest bit is set if a slot of this lane belongs to no symbol. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE uint32_t go_by_bytes(const loop_setting<CHAINS> &s, loop_chains<CHAINS> &c,
                                  const uint32_t group[CHAINS], uint32_t n)
{
    uint32_t nobodys = 0;
    uint8_t *to[CHAINS];
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        to[k] = s.out + (WARP_LANES * group[k] + lane_id());
    WHARF_NO_UNROLL
    for (; n > 0; n--) {
        ensure_words(s, c);
        WHARF_NO_UNROLL
        for (uint32_t i = 0; i < BATCH_NGROUPS; i += in_a_row<CHAINS>()) {
            WHARF_UNROLL
            for (uint32_t j = 0; j < in_a_row<CHAINS>(); j++)
                nobodys = free_group<KIND>(s.m, c, to, j, nobodys);
            WHARF_UNROLL
            for (unsigned k = 0; k < CHAINS; k++)
                to[k] += WARP_LANES * in_a_row<CHAINS>();
        }
    }
    return nobodys;
}

/* ---- where windows are passed --------------------------------------------------------------- */

/* A number of a group, or of a word, that no run reaches: there is no window. */
constexpr int32_t NO_WINDOW = 1 << 28;

/* Whether anything was bad in this lane, gathered with few instructions. */
struct findings {
    uint32_t signs;       /* the highest bit is set if something was */
    uint32_t differences; /* or any bit */

    WHARF_DEVICE_MEMBER bool good() const { return (signs >> 31 | differences) == 0; }
};

/*
 * The windows that chains pass in a run of groups, one of each chain at most.  In the run a lane
 * takes a word from number cut(s) on downwards just when its start has come, the first time with
 * the split's state; and that word is there when the run begins, if that is in front of the window.
 * In front of the window it stays there, since no lane's start has come.
 *
 * What exact_group looks at follows.  In the window's first group words above cut(s) go to lanes
 * that start later, and all from there on to lanes that start now, who come behind the others: so
 * the first of them takes cut(s).  In the next groups there is no word left above it.  All of that
 * holds in front of the window and behind it as well, as far as there is no other one.
 */
template <unsigned CHAINS>
struct passed_windows {
    uint32_t start[CHAINS], state[CHAINS]; /* this lane's; starts count from the run's begin */
    uint32_t cut[CHAINS];                  /* the place behind the word above cut(s) */

    /* Before a run from `group` on, where word number next_word ends at `place` and is next: of a
     * window of which this lane has at_start and at_state. */
    WHARF_DEVICE_MEMBER void init(unsigned k, uint32_t group, int32_t next_word, uint32_t place,
                                  uint32_t first_group, int32_t first_word, uint32_t at_start,
                                  uint32_t at_state, findings &bad)
    {
        int32_t above = next_word - first_word;
        above = above < NO_WINDOW ? above : NO_WINDOW;
        start[k] = at_start - group;
        state[k] = at_state;
        cut[k] = place - 2 * (uint32_t)above + 2;
        bad.signs |= group <= first_group ? (uint32_t)above : 0;
    }

    /* There is none. */
    WHARF_DEVICE_MEMBER void init_none(unsigned k, uint32_t place)
    {
        start[k] = NO_WINDOW;
        state[k] = 0;
        cut[k] = place - 2 * NO_WINDOW;
    }

    /* One lane, in group j, with chain k's state before it takes a word that ends at `place`, if it
     * takes one. */
    WHARF_DEVICE_MEMBER void look(unsigned k, uint32_t j, uint32_t at_state, uint32_t place,
                                  findings &bad) const
    {
        /* Both negative, or none: the word is cut(s) or below, the start has come. */
        uint32_t by_cut = place - cut[k], by_start = start[k] - (j + 1);
        bad.signs |= at_state < WHARF_RANS_LOW ? by_cut ^ by_start : 0;
        bad.differences |= start[k] == j ? at_state ^ state[k] : 0;
    }

    /* The run goes on n groups later. */
    WHARF_DEVICE_MEMBER void move(uint32_t n)
    {
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++)
            start[k] -= n;
    }
};

/* collective.  Ensures that the words of a batch are in the buffers, where windows are passed. */
template <unsigned CHAINS>
WHARF_DEVICE void ensure_looking(const loop_setting<CHAINS> &s, loop_chains<CHAINS> &c,
                                 passed_windows<CHAINS> &w)
{
    uint32_t place[CHAINS];
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        place[k] = c.feed[k].behind.place();
    ensure_words(s, c);
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        w.cut[k] += c.feed[k].behind.place() - place[k];
}

/* collective.  Group j from those on that `to` is for; `at` are their numbers. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE void look_group(const loop_setting<CHAINS> &s, loop_chains<CHAINS> &c,
                             const uint32_t at[CHAINS], uint8_t *const to[CHAINS],
                             const passed_windows<CHAINS> &w, uint32_t j, findings &bad)
{
    uint32_t takers[CHAINS], words[CHAINS];
    found f[CHAINS];
    find_all<KIND, CHAINS>(s, at, c.state, f);
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        bad.signs |= f[k].nobodys;
        c.state[k] = state_behind(s.m, f[k], c.state[k]);
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        takers[k] = ballot(c.state[k] < WHARF_RANS_LOW);
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        uint32_t before = popc(takers[k] & lanemask_lt());
        words[k] = c.feed[k].behind.load_before(before);
        w.look(k, j, c.state[k], c.feed[k].behind.place() - 2 * before, bad);
        c.feed[k].behind.move(-(int)popc(takers[k]));
        if (has_symbol_size<KIND>())
            put_symbol(s.out, s.m.symbol_nbytes, WARP_LANES * at[k] + lane_id(), f[k].symbol);
        else
            store_byte(to[k] + WARP_LANES * j, f[k].symbol);
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        c.state[k] = c.state[k] < WHARF_RANS_LOW ? c.state[k] << 16 | words[k] : c.state[k];
}

/* collective.  n groups of all chains, from `group` on. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE void go_looking(const loop_setting<CHAINS> &s, loop_chains<CHAINS> &c,
                             const uint32_t group[CHAINS], passed_windows<CHAINS> &w, uint32_t n,
                             findings &bad)
{
    uint8_t *to[CHAINS];
    uint32_t at[CHAINS];
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        at[k] = group[k];
        to[k] = s.out + (WARP_LANES * group[k] + lane_id());
    }
    if (!has_symbol_size<KIND>()) {
        WHARF_NO_UNROLL
        for (; n >= BATCH_NGROUPS; n -= BATCH_NGROUPS) {
            ensure_looking(s, c, w);
            WHARF_NO_UNROLL
            for (uint32_t i = 0; i < BATCH_NGROUPS; i += in_a_row<CHAINS>()) {
                WHARF_UNROLL
                for (uint32_t j = 0; j < in_a_row<CHAINS>(); j++)
                    look_group<KIND>(s, c, at, to, w, j, bad);
                w.move(in_a_row<CHAINS>());
                WHARF_UNROLL
                for (unsigned k = 0; k < CHAINS; k++)
                    to[k] += WARP_LANES * in_a_row<CHAINS>();
            }
        }
    }
    WHARF_NO_UNROLL
    for (uint32_t i = 0; i < n; i++) {
        if (i % BATCH_NGROUPS == 0)
            ensure_looking(s, c, w);
        look_group<KIND>(s, c, at, to, w, 0, bad);
        w.move(1);
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++) {
            to[k] += WARP_LANES;
            at[k]++;
        }
    }
}

/* ---- where chains begin --------------------------------------------------------------------- */

/* The windows that chains begin with, in a run of groups that ends with all of them. */
template <unsigned CHAINS>
struct joined_windows {
    uint32_t start[CHAINS], state[CHAINS]; /* this lane's; starts count from the run's begin */
};

/*
 * collective.  The n groups in front of `group`: in chain k's window a lane has its state from its
 * start on, and its first symbol is in the group behind.  Where windows are shorter than n, nothing
 * happens in front of them; where there is none, in no group.  The highest bit is set if a slot of
 * this lane was nobody's.
 */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE uint32_t go_joining(const loop_setting<CHAINS> &s, loop_chains<CHAINS> &c,
                                 const uint32_t group[CHAINS], const joined_windows<CHAINS> &w,
                                 uint32_t n)
{
    uint32_t nobodys = 0;
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        c.state[k] = WHARF_RANS_LOW;
    WHARF_NO_UNROLL
    for (uint32_t j = 0; j < n; j++) {
        uint32_t at[CHAINS], takers[CHAINS], words[CHAINS];
        found f[CHAINS];
        if (j % BATCH_NGROUPS == 0)
            ensure_words(s, c);
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++) {
            at[k] = group[k] - n + j;
            at[k] = at[k] < group[k] ? at[k] : 0; /* perhaps in front of all groups */
        }
        find_all<KIND, CHAINS>(s, at, c.state, f);
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++) {
            bool runs = j > w.start[k];
            nobodys |= runs ? f[k].nobodys : 0;
            c.state[k] = runs ? state_behind(s.m, f[k], c.state[k]) : WHARF_RANS_LOW;
            c.state[k] = j == w.start[k] ? w.state[k] : c.state[k];
            takers[k] = ballot(c.state[k] < WHARF_RANS_LOW);
        }
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++) {
            words[k] = c.feed[k].behind.load_before(popc(takers[k] & lanemask_lt()));
            c.feed[k].behind.move(-(int)popc(takers[k]));
        }
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++)
            c.state[k] = c.state[k] < WHARF_RANS_LOW ? c.state[k] << 16 | words[k] : c.state[k];
    }
    return nobodys;
}

} // namespace rans
} // namespace wharf

#endif
