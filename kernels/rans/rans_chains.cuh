/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_chains.cuh: several decoders of one stream side by side in a warp, as fast as it goes.
 *
 * A *chain* is one decoder on its way, 32 coders by 32 lanes: state, look-up, state, vote, word
 * hang on each other, some 130 cycles a group.  So a warp runs CHAINS of them by turns, each from
 * a split's window to the end of the window of the split with which the next chain began.
 *
 * They are for streams of bytes with one distribution, and for those with registered models, and
 * only say whether all was good: what they refuse is gone through again from the start by
 * walk_groups, which alone judges.  As rans_pieces.cuh says, each verifies every window that it
 * passes, and that of the next chain's split; so if none refuses, one decoder that runs through
 * would have gone through their very states.
 *
 * All chains go on together, by batches of BATCH_NGROUPS groups.  One that is at its end goes on as
 * well where that needs no look: it then delivers symbols that the next one delivers too.
 */
#ifndef WHARF_KERNELS_RANS_RANS_CHAINS_CUH
#define WHARF_KERNELS_RANS_RANS_CHAINS_CUH

#include "kernels/rans/rans_groups.cuh"
#include "kernels/rans/rans_words.cuh"

namespace wharf
{
namespace rans
{

/* As many as hide each other's waiting: 16 warps of them are faster than 24 of two. */
constexpr unsigned N_CHAINS = 4;

/* Shared memory of a warp's chains: their words, */
template <unsigned CHAINS>
struct chain_buffers {
    word_buffer words[CHAINS];
};

/* and where symbols have one of several distributions, the indexes of a batch. */
template <unsigned CHAINS>
struct index_buffers {
    alignas(8) uint8_t of[CHAINS][BATCH_NGROUPS * WARP_LANES];
};

/* Chains on their way; `state`, and a window's start and state, are this lane's, all else is the
 * same in all lanes. */
template <unsigned CHAINS>
struct chains {
    uint32_t state[CHAINS];
    word_feed feed[CHAINS];
    uint32_t group[CHAINS]; /* that comes next */
    uint32_t end[CHAINS];   /* the group at which the chain ends */
    uint32_t last[CHAINS];  /* the split whose window is the chain's last one to verify */
    split window[CHAINS];   /* that comes next, or is being passed */
};

/* What all chains share. */
template <unsigned CHAINS>
struct chain_setting {
    const stream &in;
    const model &whole;
    uint8_t *out;
    uint32_t n_whole; /* groups of 32 symbols */
    word_source words;
    shared_ref<chain_buffers<CHAINS>> buffers;
    /* What the kind of look-up has of these. */
    shared_ref<model_tables<PACKED_NBITS>> tables;
    shared_ref<index_buffers<CHAINS>> indexes;
};

/*
 * Of the steps below only free_batches is inlined, and chains lie in local memory between them.
 * Else what other steps need takes registers from that loop, and the compiler puts one chain's part
 * behind another's, so that they wait for each other after all; it does so too in a function of its
 * own, which gets the registers that callers leave.
 */

/* The model, as far as it is needed here. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE model near_model(const chain_setting<CHAINS> &s)
{
    if (KIND == lookup::REGISTERED)
        return s.whole;
    model m = {};
    m.n_bits = uniform(s.whole.n_bits);
    m.total = uniform(s.whole.total);
    return with_tables(m, s.tables.get());
}

/* ---- where nothing is near ------------------------------------------------------------------ */

/* What changes where nothing is near. */
template <unsigned CHAINS>
struct free_chains {
    uint32_t state[CHAINS];
    word_feed feed[CHAINS];
};

/* One lane. */
WHARF_DEVICE uint32_t slot_of(const model &m, uint32_t state)
{
    return opaque(state & ((1u << m.n_bits) - 1));
}

/* collective.  The next group of all chains, to `to`: a byte a lane, since bringing four groups'
 * together takes longer and makes the loop longer.  Returns `nobodys`, with the highest bit set if
 * a slot was. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE uint32_t free_group(const model &m, free_chains<CHAINS> &c, uint8_t *const to[CHAINS],
                                 uint32_t ahead, uint32_t nobodys)
{
    uint32_t slots[CHAINS], takers[CHAINS], words[CHAINS];
    found f[CHAINS];
    /* Step by step for all, so that each step of one is hidden by the others'. */
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

/* collective.  n batches of all chains.  Whether all slots were somebody's. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE bool free_batches(chain_setting<CHAINS> s, chains<CHAINS> &there, uint32_t n)
{
    model m = near_model<KIND>(s);
    chain_buffers<CHAINS> &buffers = s.buffers.get();
    word_source words = s.words;
    uint32_t nobodys = 0;
    free_chains<CHAINS> c;
    uint8_t *to[CHAINS];
    n = uniform(n);
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        c.state[k] = there.state[k];
        c.feed[k] = there.feed[k];
        to[k] = s.out + (WARP_LANES * there.group[k] + lane_id());
        there.group[k] += n * BATCH_NGROUPS;
    }
    WHARF_NO_UNROLL
    for (; n > 0; n--) {
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++)
            c.feed[k].ensure(words, buffers.words[k]);
        WHARF_UNROLL
        for (uint32_t j = 0; j < BATCH_NGROUPS; j++)
            nobodys = free_group<KIND>(m, c, to, j, nobodys);
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++)
            to[k] += WARP_LANES * BATCH_NGROUPS;
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        there.state[k] = c.state[k];
        there.feed[k] = c.feed[k];
    }
    return !any_lane(nobodys >> 31);
}

/* The same for any kind of tables: rans_symbols.cuh has another for registered models. */
template <lookup KIND>
struct free_step {
    template <unsigned CHAINS>
    static WHARF_DEVICE_MEMBER bool go(const chain_setting<CHAINS> &s, chains<CHAINS> &c,
                                       uint32_t n)
    {
        return free_batches<KIND>(s, c, n);
    }
};

/* ---- windows ------------------------------------------------------------------------------- */

/* collective.  Goes on to the window that chain k verifies next, if one is left. */
template <unsigned CHAINS>
WHARF_DEVICE void next_window(const stream &in, chains<CHAINS> &c, unsigned k)
{
    if (c.window[k].number >= c.last[k])
        close_split(in, c.window[k]);
    else
        next_split(in, c.window[k]);
}

/* collective.  Sees to it that a batch's words of all chains are at hand. */
template <unsigned CHAINS>
WHARF_DEVICE void ensure_words(const chain_setting<CHAINS> &s, chains<CHAINS> &c)
{
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        c.feed[k].ensure(s.words, s.buffers.get().words[k]);
}

/* collective.  This lane's coder of chain k, in state `state`, takes a word if it has to; how many
 * lanes before it do. */
template <unsigned CHAINS>
WHARF_DEVICE unsigned take_word(chains<CHAINS> &c, unsigned k, uint32_t state, bool takes,
                                uint32_t takers)
{
    unsigned before = popc(takers & lanemask_lt());
    uint32_t word = c.feed[k].behind.load_before(before);
    c.state[k] = takes ? state << 16 | word : state;
    c.feed[k].behind.move(-(int)popc(takers));
    return before;
}

/*
 * collective.  A group of those chains that are not at their ends, with a look at their windows;
 * whether it was good in this lane.  A lane takes a word from number cut(s) on downwards just when
 * its start has come, the first time with the split's state, and that word is still there when the
 * window begins.  What careful_group looks at follows: the word cut(s) itself is taken by the first
 * of those that start first.  `next_word` has the numbers of the words that come next.
 */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE bool window_group(const model &m, const chain_setting<CHAINS> &s, chains<CHAINS> &c,
                               int32_t next_word[CHAINS])
{
    found f[CHAINS];
    uint32_t number[CHAINS], behind[CHAINS], takers[CHAINS];
    bool goes[CHAINS], good = true;
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        number[k] = WARP_LANES * c.group[k] + lane_id();
        f[k] = find<KIND>(m, s.in, number[k], slot_of(m, c.state[k]));
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        goes[k] = c.group[k] < c.end[k];
        behind[k] = state_behind(m, f[k], c.state[k]);
        takers[k] = ballot(goes[k] && behind[k] < WHARF_RANS_LOW);
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        const split &w = c.window[k];
        uint32_t group = c.group[k];
        int32_t cut = (int32_t)w.first_word;
        bool takes = goes[k] && behind[k] < WHARF_RANS_LOW;
        bool right = f[k].nobodys >> 31 == 0;
        right &= w.start != group || behind[k] == w.state;
        right &= group != w.first_group || next_word[k] >= cut;
        uint32_t state = goes[k] ? behind[k] : c.state[k];
        int32_t word = next_word[k] - (int32_t)take_word(c, k, state, takes, takers[k]);
        right &= !takes || (word <= cut) == (w.start <= group);
        good &= right || !goes[k];
        next_word[k] -= (int32_t)popc(takers[k]);
        if (goes[k])
            put_symbol(s.out, has_symbol_size<KIND>() ? m.symbol_nbytes : 1, number[k],
                       f[k].symbol);
    }
    return good;
}

/* collective.  n batches of the chains that are not at their ends. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE_NOINLINE bool window_batches(chain_setting<CHAINS> s, chains<CHAINS> &there,
                                          uint32_t n)
{
    model m = near_model<KIND>(s);
    chains<CHAINS> c = there;
    bool good = true;
    int32_t next_word[CHAINS];
    n = uniform(n);
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        next_word[k] = c.feed[k].next_word(s.words, s.buffers.get().words[k]);
    WHARF_NO_UNROLL
    for (uint32_t j = 0; j < n * BATCH_NGROUPS; j++) {
        if (j % BATCH_NGROUPS == 0)
            ensure_words(s, c);
        good &= window_group<KIND>(m, s, c, next_word);
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++) {
            if (c.group[k] == c.window[k].last_group && c.group[k] < c.end[k])
                next_window(s.in, c, k);
            c.group[k] += c.group[k] < c.end[k];
        }
    }
    there = c;
    return !any_lane(!good);
}

/* ---- beginning ----------------------------------------------------------------------------- */

/* collective.  A group of the windows that chains begin with: a lane has its state from its start
 * on, and its first symbol is in the group behind. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE bool join_group(const model &m, const stream &in, chains<CHAINS> &c)
{
    found f[CHAINS];
    uint32_t behind[CHAINS], takers[CHAINS];
    bool takes[CHAINS], good = true;
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        f[k] = find<KIND>(m, in, WARP_LANES * c.group[k] + lane_id(), slot_of(m, c.state[k]));
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        const split &w = c.window[k];
        uint32_t group = c.group[k];
        bool joins = w.number > 0 && group <= w.last_group;
        good &= !joins || group <= w.start || f[k].nobodys >> 31 == 0;
        behind[k] = group > w.start ? state_behind(m, f[k], c.state[k]) : WHARF_RANS_LOW;
        behind[k] = group == w.start ? w.state : behind[k];
        behind[k] = joins ? behind[k] : c.state[k];
        takes[k] = behind[k] < WHARF_RANS_LOW;
        takers[k] = ballot(takes[k]);
        c.group[k] += joins;
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        take_word(c, k, behind[k], takes[k], takers[k]);
    return good;
}

/* collective.  All chains through the windows that they begin with, but those that begin with the
 * stream; `last` is the split that the last one ends with. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE_NOINLINE bool join_chains(chain_setting<CHAINS> s, chains<CHAINS> &there,
                                       const split &last)
{
    model m = near_model<KIND>(s);
    chains<CHAINS> c = there;
    uint32_t n = 0;
    bool good = true;
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        uint32_t more = c.window[k].last_group - c.window[k].first_group + 1;
        n = c.window[k].number > 0 && more > n ? more : n;
    }
    n = uniform(n);
    WHARF_NO_UNROLL
    for (uint32_t j = 0; j < n; j++) {
        if (j % BATCH_NGROUPS == 0)
            ensure_words(s, c);
        good &= join_group<KIND>(m, s.in, c);
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        /* The same one often, that the next chain began with. */
        if (c.window[k].number + 1 == c.last[k])
            c.window[k] = k + 1 < CHAINS ? c.window[k + 1 < CHAINS ? k + 1 : k] : last;
        else
            next_window(s.in, c, k);
    }
    there = c;
    return !any_lane(!good);
}

/* collective.  What chains share, for a stream whose model is made, but for what is looked up in.
 */
template <unsigned CHAINS>
WHARF_DEVICE chain_setting<CHAINS> make_setting(const stream &in, const model &m,
                                                chain_buffers<CHAINS> &buffers, uint8_t *out)
{
    chain_setting<CHAINS> s = {in, m, out, in.n_symbols / WARP_LANES, {}, {}, {}, {}};
    s.words.init(in);
    s.buffers.init(buffers);
    return s;
}

/* The split that stands for the stream's beginning, or for its end. */
WHARF_DEVICE split edge_split(const stream &in, uint32_t number)
{
    split s = {};
    close_split(in, s);
    s.number = number;
    s.starts_at = in.starts_at;
    return s;
}

/* collective.  Chains from each of `at` to where the next one of it begins to deliver: CHAINS + 1
 * splits in order, of which some may be the same.  False if they do not lie within whole groups,
 * or a state is none. */
template <unsigned CHAINS>
WHARF_DEVICE_NOINLINE bool begin_chains(chain_setting<CHAINS> s, chains<CHAINS> &there,
                                        const split at[CHAINS + 1])
{
    const stream &in = s.in;
    chains<CHAINS> c;
    first_blocks blocks[CHAINS];
    int32_t next_word[CHAINS];
    bool good = true;
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        c.window[k] = at[k];
        next_word[k] = at[k].number > 0 ? (int32_t)at[k].first_word : in.n_words - 1;
        blocks[k].load(in, s.words, next_word[k]);
        blocks[k].load_below(s.words);
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        uint32_t state = in.body_at + 4 * lane_id();
        bool joins = at[k].number > 0;
        c.state[k] = joins ? WHARF_RANS_LOW : le16_at(in, state) << 16 | le16_at(in, state + 2);
        good &= c.state[k] >= WHARF_RANS_LOW && (!joins || at[k].last_group < s.n_whole);
        c.group[k] = joins ? at[k].first_group : 0;
        c.feed[k].init(s.words, s.buffers.get().words[k], next_word[k], blocks[k]);
        c.last[k] = at[k + 1].number;
        c.end[k] = at[k + 1].number == 0             ? 0
                   : at[k + 1].number == in.n_splits ? s.n_whole
                                                     : at[k + 1].last_group + 1;
        good &= c.end[k] <= s.n_whole;
    }
    there = c;
    return !any_lane(!good);
}

/* ---- all ----------------------------------------------------------------------------------- */

/* What chains refuse: no reason of the data's. */
constexpr uint32_t REFUSED = 0xfffffffeu;

/* How all chains go on: batches freely, or if there are none batches with a look at windows; none
 * of both at the end. */
struct chain_plan {
    uint32_t n_free, n_looking;
};

template <unsigned CHAINS>
WHARF_DEVICE chain_plan plan_chains(const chain_setting<CHAINS> &s, const chains<CHAINS> &c)
{
    uint32_t n_left = 0, n_near = 0, n_free = 0xffffffffu;
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        uint32_t near = c.window[k].first_group < s.n_whole ? c.window[k].first_group : s.n_whole;
        uint32_t behind = c.window[k].last_group < c.end[k] ? c.window[k].last_group + 1 : c.end[k];
        uint32_t free = near > c.group[k] ? near - c.group[k] : 0;
        uint32_t left = c.end[k] > c.group[k] ? c.end[k] - c.group[k] : 0;
        uint32_t until = behind > c.group[k] ? behind - c.group[k] : 0;
        n_free = free < n_free ? free : n_free;
        n_left = left > n_left ? left : n_left;
        n_near = free < BATCH_NGROUPS && until > n_near ? until : n_near;
    }
    n_free = n_free < n_left ? n_free : n_left;
    n_left = n_near > 0 ? n_near : n_left;
    return {n_free / BATCH_NGROUPS, (n_left + BATCH_NGROUPS - 1) / BATCH_NGROUPS};
}

/* Batches in one go: in between it is looked whether to go on. */
constexpr uint32_t MAX_NBATCHES = 32;

/* collective.  Whether all chains ended as they should, and where the last one stands, for
 * walk_groups. */
template <unsigned CHAINS>
WHARF_DEVICE_NOINLINE bool end_chains(chain_setting<CHAINS> s, const chains<CHAINS> &c, walk &ret_w)
{
    bool good = true;
    int32_t next_word = 0;
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        next_word = c.feed[k].next_word(s.words, s.buffers.get().words[k]);
        /* What is left of the stream after all chains is for who walks on from the last one. */
        good &=
            (c.window[k].first_group == NO_GROUP || c.last[k] == s.in.n_splits) && next_word >= -1;
    }
    ret_w = {s.out, c.state[CHAINS - 1], next_word, c.group[CHAINS - 1], c.window[CHAINS - 1]};
    syncwarp(); /* the buffers' memory may be used otherwise */
    return good;
}

/* collective.  Chains that begin_chains has begun, to their ends; the reason why not. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE uint32_t run_chains(const chain_setting<CHAINS> &s, chains<CHAINS> &c,
                                 const split &last, watcher &watch)
{
    if (!join_chains<KIND>(s, c, last))
        return REFUSED;
    for (;;) {
        chain_plan plan = plan_chains(s, c);
        uint32_t n = plan.n_free > 0 ? plan.n_free : plan.n_looking;
        n = n < MAX_NBATCHES ? n : MAX_NBATCHES;
        if (n == 0)
            return WHARF_REASON_NONE;
        uint32_t reason = watch.goes_on(CHAINS * BATCH_NGROUPS * n);
        if (reason != WHARF_REASON_NONE)
            return reason;
        if (!(plan.n_free > 0 ? free_step<KIND>::go(s, c, n) : window_batches<KIND>(s, c, n)))
            return REFUSED;
    }
}

} // namespace rans
} // namespace wharf

#endif
