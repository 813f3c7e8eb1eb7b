/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_chains.cuh: several decoders of one stream side by side in a warp, as fast as it goes.
 *
 * A *chain* is one decoder on its way, 32 coders by 32 lanes: state, look-up, state, vote, word
 * hang on each other, some 130 cycles a group.  So a warp runs CHAINS of them by turns, each from
 * a split's window to the end of the window of the split with which the next chain began.
 *
 * They are for streams of bytes with one distribution, and only say whether all was good: what they
 * refuse is gone through again from the start by walk_groups, which alone judges.  As
 * rans_pieces.cuh says, each verifies every window that it passes, and that of the next chain's
 * split; so if none refuses, one decoder that runs through would have gone through their very
 * states.
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

/* Shared memory of a warp's chains. */
template <unsigned CHAINS>
struct chain_buffers {
    word_buffer words[CHAINS];
};

/* Where a chain begins: a split, and the bit of the body at which its starts stand; split 0 is the
 * stream. */
struct split_place {
    uint32_t number, starts_at;
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
    uint32_t n_bits, total; /* of the model */
    bool is_full;
    shared_ref<model_tables<PACKED_NBITS>> tables;
    shared_ref<chain_buffers<CHAINS>> buffers;
    word_source words;
    uint8_t *out;
    uint32_t n_whole; /* groups of 32 symbols */
};

/*
 * Of the steps below only free_batches is inlined, and chains lie in local memory between them.
 * Else what other steps need takes registers from that loop, and the compiler puts one chain's part
 * behind another's, so that they wait for each other after all; it does so too in a function of its
 * own, which gets the registers that callers leave.
 */

/* The model, as far as it is needed here. */
template <unsigned CHAINS>
WHARF_DEVICE model near_model(const chain_setting<CHAINS> &s)
{
    model m = {};
    m.n_bits = uniform(s.n_bits);
    m.total = uniform(s.total);
    m.is_full = s.is_full;
    return with_tables(m, s.tables.get());
}

/* ---- where nothing is near ------------------------------------------------------------------ */

/* What changes where nothing is near. */
template <unsigned CHAINS>
struct free_chains {
    uint32_t state[CHAINS];
    word_feed feed[CHAINS];
};

/* collective.  The next group of all chains, to `to`: a byte a lane, since bringing four groups'
 * together takes longer and makes the loop longer.  Returns `nobodys`, with the highest bit set if
 * a slot was. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE uint32_t free_group(const model &m, free_chains<CHAINS> &c, uint8_t *const to[CHAINS],
                                 uint32_t ahead, uint32_t nobodys)
{
    uint32_t takers[CHAINS], words[CHAINS];
    found f[CHAINS];
    /* Step by step for all, so that each step of one is hidden by the others'. */
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        f[k] = find_byte<KIND>(m, opaque(c.state[k] & ((1u << m.n_bits) - 1)));
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
    model m = near_model(s);
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

/* collective.  This lane's coder of chain k, in state `state`, takes a word if it has to; the
 * number of the word that it would take. */
template <unsigned CHAINS>
WHARF_DEVICE int32_t take_word(const chain_setting<CHAINS> &s, chains<CHAINS> &c, unsigned k,
                               uint32_t state, bool takes)
{
    uint32_t takers = ballot(takes);
    unsigned before = popc(takers & lanemask_lt());
    uint32_t word = c.feed[k].behind.load_before(before);
    int32_t number = c.feed[k].next_word(s.words, s.buffers.get().words[k]) - (int32_t)before;
    c.state[k] = takes ? state << 16 | word : state;
    c.feed[k].behind.move(-(int)popc(takers));
    return number;
}

/*
 * collective.  A group of chain k, with a look at its window; whether it was good.  A lane takes
 * a word from number cut(s) on downwards just when its start has come, the first time with the
 * split's state, and that word is still there when the window begins.  What careful_group looks at
 * follows: the word cut(s) itself is taken by the first of those that start first.
 */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE bool window_group(const chain_setting<CHAINS> &s, const model &m, chains<CHAINS> &c,
                               unsigned k)
{
    const split &w = c.window[k];
    uint32_t group = c.group[k];
    uint32_t place = WARP_LANES * group + lane_id();
    c.feed[k].ensure(s.words, s.buffers.get().words[k]);
    found f = find_byte<KIND>(m, c.state[k] & ((1u << m.n_bits) - 1));
    bool good = f.nobodys >> 31 == 0;
    uint32_t state = state_behind(m, f, c.state[k]);
    bool takes = state < WHARF_RANS_LOW;
    int64_t cut = w.first_word;
    if (group == w.first_group)
        good &= c.feed[k].next_word(s.words, s.buffers.get().words[k]) >= cut;
    int32_t number = take_word(s, c, k, state, takes);
    good &= w.start != group || state == w.state;
    good &= !takes || (number <= cut) == (w.start <= group);
    store(s.out + place, (uint8_t)f.symbol);
    if (group == w.last_group)
        next_window(s.in, c, k);
    c.group[k]++;
    return good;
}

/* collective.  A batch of the chains that are not at their ends. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE_NOINLINE bool window_batch(chain_setting<CHAINS> s, chains<CHAINS> &there)
{
    model m = near_model(s);
    chains<CHAINS> c = there;
    bool good = true;
    bool goes[CHAINS];
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        goes[k] = c.group[k] < c.end[k];
    WHARF_NO_UNROLL
    for (uint32_t j = 0; j < BATCH_NGROUPS; j++) {
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++) {
            if (goes[k])
                good &= window_group<KIND>(s, m, c, k);
        }
    }
    there = c;
    return !any_lane(!good);
}

/* ---- beginning ----------------------------------------------------------------------------- */

/* collective.  A group of the window that chain k begins with: a lane has its state from its start
 * on, and its first symbol is in the group behind. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE bool join_group(const chain_setting<CHAINS> &s, const model &m, chains<CHAINS> &c,
                             unsigned k)
{
    const split &w = c.window[k];
    uint32_t group = c.group[k];
    c.feed[k].ensure(s.words, s.buffers.get().words[k]);
    found f = find_byte<KIND>(m, c.state[k] & ((1u << m.n_bits) - 1));
    uint32_t state = state_behind(m, f, c.state[k]);
    state = group > w.start ? state : group == w.start ? w.state : WHARF_RANS_LOW;
    take_word(s, c, k, state, state < WHARF_RANS_LOW);
    c.group[k]++;
    return group <= w.start || f.nobodys >> 31 == 0;
}

/* collective.  All chains through the windows that they begin with, but those that begin with the
 * stream.  Windows lie before the last whole group, as begin_chains saw to. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE_NOINLINE bool join_chains(chain_setting<CHAINS> s, chains<CHAINS> &there)
{
    model m = near_model(s);
    chains<CHAINS> c = there;
    bool good = true, any = true;
    while (any) {
        any = false;
        WHARF_UNROLL
        for (unsigned k = 0; k < CHAINS; k++)
            if (c.window[k].number > 0 && c.group[k] <= c.window[k].last_group) {
                good &= join_group<KIND>(s, m, c, k);
                any = true;
            }
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        /* The same one often, that the next chain began with. */
        if (k + 1 < CHAINS && c.window[k].number + 1 == c.last[k])
            c.window[k] = c.window[k + 1 < CHAINS ? k + 1 : k];
        else
            next_window(s.in, c, k);
    }
    there = c;
    return !any_lane(!good);
}

/* collective.  Chain k of a stream at its beginning. */
template <unsigned CHAINS>
WHARF_DEVICE void begin_with_stream(const chain_setting<CHAINS> &s, chains<CHAINS> &c, unsigned k)
{
    const stream &in = s.in;
    uint32_t at = in.body_at + 4 * lane_id();
    close_split(in, c.window[k]);
    c.window[k].number = 0;
    c.window[k].starts_at = in.starts_at;
    c.state[k] = le16_at(in, at) << 16 | le16_at(in, at + 2);
    c.group[k] = 0;
    c.feed[k].init(in, s.words, s.buffers.get().words[k], in.n_words - 1);
}

/* collective.  Chain k at a split, whose window it has. */
template <unsigned CHAINS>
WHARF_DEVICE void begin_with_split(const chain_setting<CHAINS> &s, chains<CHAINS> &c, unsigned k)
{
    c.state[k] = WHARF_RANS_LOW;
    c.group[k] = c.window[k].first_group;
    c.feed[k].init(s.in, s.words, s.buffers.get().words[k], (int32_t)c.window[k].first_word);
}

/* Where chain k begins to deliver, behind the window that it begins with. */
template <unsigned CHAINS>
WHARF_DEVICE uint32_t first_group_of(const chains<CHAINS> &c, unsigned k)
{
    return c.window[k].number > 0 ? c.window[k].last_group + 1 : 0;
}

/* collective.  What chains share, for a stream whose model is made. */
template <unsigned CHAINS>
WHARF_DEVICE chain_setting<CHAINS> make_setting(const stream &in, const model &m,
                                                model_tables<PACKED_NBITS> &tables,
                                                chain_buffers<CHAINS> &buffers, uint8_t *out)
{
    chain_setting<CHAINS> s = {
        in, m.n_bits, m.total, m.is_full, {}, {}, {}, out, in.n_symbols / WARP_LANES};
    s.tables.init(tables);
    s.buffers.init(buffers);
    s.words.init(in);
    return s;
}

/* collective.  Chains at `places`, each to where the next one begins to deliver.  False if a window
 * is so near the end that a batch behind it would be too long. */
template <unsigned CHAINS>
WHARF_DEVICE_NOINLINE bool begin_chains(chain_setting<CHAINS> s, chains<CHAINS> &there,
                                        const split_place places[CHAINS])
{
    chains<CHAINS> c;
    bool good = true;
    begin_with_stream(s, c, 0);
    good = !any_lane(c.state[0] < WHARF_RANS_LOW);
    WHARF_UNROLL
    for (unsigned k = 1; k < CHAINS; k++) {
        c.window[k] = read_split(s.in, places[k].number, places[k].starts_at);
        good &= c.window[k].last_group + 1 + BATCH_NGROUPS <= s.n_whole;
        begin_with_split(s, c, k);
        c.last[k - 1] = places[k].number;
        c.end[k - 1] = first_group_of(c, k);
    }
    uint32_t begin = first_group_of(c, CHAINS - 1);
    uint32_t n = s.n_whole > begin ? s.n_whole - begin : 0;
    c.last[CHAINS - 1] = s.in.n_splits;
    c.end[CHAINS - 1] = begin + n - n % BATCH_NGROUPS;
    there = c;
    return good;
}

/* ---- all ----------------------------------------------------------------------------------- */

/* What chains refuse: no reason of the data's. */
constexpr uint32_t REFUSED = 0xfffffffeu;

/* Batches that all chains can go on freely, and whether any has to go on at all. */
template <unsigned CHAINS>
WHARF_DEVICE uint32_t count_free(const chain_setting<CHAINS> &s, const chains<CHAINS> &c,
                                 bool &ret_any)
{
    uint32_t n_left = 0, n_free = 0xffffffffu;
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        uint32_t near = c.window[k].first_group < s.n_whole ? c.window[k].first_group : s.n_whole;
        uint32_t free = near > c.group[k] ? near - c.group[k] : 0;
        uint32_t left = c.end[k] > c.group[k] ? c.end[k] - c.group[k] : 0;
        n_free = free < n_free ? free : n_free;
        n_left = left > n_left ? left : n_left;
    }
    n_left = (n_left + BATCH_NGROUPS - 1) / BATCH_NGROUPS;
    n_free /= BATCH_NGROUPS;
    ret_any = n_left > 0;
    return n_free < n_left ? n_free : n_left;
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
WHARF_DEVICE uint32_t run_chains(const chain_setting<CHAINS> &s, chains<CHAINS> &c, watcher &watch)
{
    bool any;
    if (!join_chains<KIND>(s, c))
        return REFUSED;
    for (uint32_t n = count_free(s, c, any); any; n = count_free(s, c, any)) {
        n = n < MAX_NBATCHES ? n : MAX_NBATCHES;
        uint32_t reason = watch.goes_on(CHAINS * BATCH_NGROUPS * (n > 0 ? n : 1));
        if (reason != WHARF_REASON_NONE)
            return reason;
        if (!(n > 0 ? free_batches<KIND>(s, c, n) : window_batch<KIND>(s, c)))
            return REFUSED;
    }
    return WHARF_REASON_NONE;
}

} // namespace rans
} // namespace wharf

#endif
