/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_chains.cuh: several decoders of one stream, interleaved in a warp.  For streams of bytes
 * with one distribution, and for streams with registered models.
 *
 * A *chain* is one decoder, 32 coders in 32 lanes.  A warp runs CHAINS of them (rans_loops.cuh).
 * Each goes from a split's window to the end of the window of the split with which the next chain
 * began.
 *
 * Invariant: each chain verifies every window that it passes, also that of the next chain's split.
 * So if no chain refuses, one decoder that ran through the whole stream would have had the same
 * states.  Chains only say whether all was good; if not, walk_groups decodes the stream again from
 * its start and alone reports errors.
 *
 * All chains proceed together, mostly in batches of BATCH_NGROUPS groups.  A chain at its end
 * proceeds too: it then writes symbols that the next chain also writes, with the same values.
 */
#ifndef WHARF_KERNELS_RANS_RANS_CHAINS_CUH
#define WHARF_KERNELS_RANS_RANS_CHAINS_CUH

#include "kernels/rans/rans_loops.cuh"

namespace wharf
{
namespace rans
{

/* As many as hide each other's latency: 16 warps with four are faster than 24 with two. */
constexpr unsigned N_CHAINS = 4;

/* The chains of a warp.  `state`, and a window's start and state, are this lane's; all else is the
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
 * Of the steps below only free_batches is inlined, and between them the chains are in local memory.
 * Inlining the others would take registers from the loop of free_batches, and so would calling it,
 * because a function gets only the registers that its callers leave.
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

/* What changes in loops, from chains and back. */
template <unsigned CHAINS, typename Chains>
WHARF_DEVICE loop_chains<CHAINS> take_chains(const Chains &there)
{
    loop_chains<CHAINS> c;
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        c.state[k] = there.state[k];
        c.feed[k] = there.feed[k];
    }
    return c;
}

template <unsigned CHAINS, typename Chains>
WHARF_DEVICE void put_chains(Chains &there, const loop_chains<CHAINS> &c, uint32_t n_groups)
{
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        there.state[k] = c.state[k];
        there.feed[k] = c.feed[k];
        there.group[k] += n_groups;
    }
}

/* collective.  Decodes n batches of all chains, where no window or end is near.  Returns whether
 * all slots belong to symbols. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE bool free_batches(chain_setting<CHAINS> s, chains<CHAINS> &there, uint32_t n)
{
    model m = near_model<KIND>(s);
    loop_setting<CHAINS> setting = {s.in, m, s.words, s.buffers.get(), s.out};
    loop_chains<CHAINS> c = take_chains<CHAINS>(there);
    n = uniform(n);
    uint32_t nobodys = go_by_bytes<KIND>(setting, c, there.group, n);
    put_chains(there, c, n * BATCH_NGROUPS);
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
WHARF_DEVICE void next_chain_window(const stream &in, chains<CHAINS> &c, unsigned k)
{
    if (c.window[k].number >= c.last[k])
        close_split(in, c.window[k]);
    else
        next_split(in, c.window[k]);
}

/* collective.  Decodes n groups of all chains: at most to the end of each one's window, or beyond
 * it if it is the last window that the chain verifies.  Returns whether all was good. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE_NOINLINE bool look_chains(chain_setting<CHAINS> s, chains<CHAINS> &there, uint32_t n)
{
    model m = near_model<KIND>(s);
    loop_setting<CHAINS> setting = {s.in, m, s.words, s.buffers.get(), s.out};
    loop_chains<CHAINS> c = take_chains<CHAINS>(there);
    passed_windows<CHAINS> windows;
    findings bad = {0, 0};
    n = uniform(n);
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        const split &w = there.window[k];
        uint32_t place = c.feed[k].behind.place();
        if (w.first_group == NO_GROUP)
            windows.init_none(k, place);
        else
            windows.init(k, there.group[k], c.feed[k].next_word(s.words, setting.buffers.words[k]),
                         place, w.first_group, (int32_t)w.first_word, w.start, w.state, bad);
    }
    go_looking<KIND>(setting, c, there.group, windows, n, bad);
    put_chains(there, c, n);
    WHARF_NO_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        if (there.group[k] > there.window[k].last_group)
            next_chain_window(s.in, there, k);
    return !any_lane(!bad.good());
}

/* ---- beginning ----------------------------------------------------------------------------- */

/* collective.  All chains through the windows that they begin with, but those that begin with the
 * stream; `last` is the split that the last one ends with. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE_NOINLINE bool join_chains(chain_setting<CHAINS> s, chains<CHAINS> &there,
                                       const split &last)
{
    model m = near_model<KIND>(s);
    loop_setting<CHAINS> setting = {s.in, m, s.words, s.buffers.get(), s.out};
    loop_chains<CHAINS> c = take_chains<CHAINS>(there);
    joined_windows<CHAINS> windows;
    uint32_t n = 0;
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        const split &w = there.window[k];
        uint32_t more = w.number > 0 ? w.last_group - w.first_group + 1 : 0;
        n = more > n ? more : n;
    }
    n = uniform(n);
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        const split &w = there.window[k];
        windows.start[k] = w.number > 0 ? w.start - there.group[k] + n : NO_WINDOW;
        windows.state[k] = w.state;
    }
    uint32_t nobodys = go_joining<KIND>(setting, c, there.group, windows, n);
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        c.state[k] = there.window[k].number > 0 ? c.state[k] : there.state[k];
    put_chains(there, c, 0);
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        /* The same one often, that the next chain began with. */
        if (there.window[k].number + 1 == there.last[k])
            there.window[k] = k + 1 < CHAINS ? there.window[k + 1 < CHAINS ? k + 1 : k] : last;
        else
            next_chain_window(s.in, there, k);
    }
    return !any_lane(nobodys >> 31);
}

/* collective.  What chains share, for a stream whose model is made, but for what is looked up
 * in. */
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
        c.group[k] = joins ? at[k].last_group + 1 : 0;
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

/* How all chains go on: batches freely, or if there are none groups with a look at windows; none of
 * both at the end. */
struct chain_plan {
    uint32_t n_left = 0, n_free = 0xffffffffu, n_looking = 0xffffffffu, n_most = 0xffffffffu;

    /* A chain at `group` that ends at `end`, of which the next window is that, perhaps the last
     * that it looks at, and which has to stop in front of n_whole. */
    WHARF_DEVICE_MEMBER void add(uint32_t group, uint32_t end, uint32_t first_group,
                                 uint32_t last_group, bool is_last, uint32_t n_whole)
    {
        uint32_t near = first_group < n_whole ? first_group : n_whole;
        uint32_t behind = last_group < n_whole ? last_group + 1 : n_whole;
        uint32_t free = near > group ? near - group : 0;
        uint32_t left = end > group ? end - group : 0;
        uint32_t until = behind > group ? behind - group : 0;
        uint32_t most = is_last ? n_whole - group : until;
        n_left = left > n_left ? left : n_left;
        n_free = free < n_free ? free : n_free;
        n_looking = until < n_looking ? until : n_looking;
        n_most = most < n_most ? most : n_most;
    }

    /* Batches to go freely. */
    WHARF_DEVICE_MEMBER uint32_t free_batches() const
    {
        return (n_free < n_left ? n_free : n_left) / BATCH_NGROUPS;
    }

    /* Groups to look at, if there are none of these: of bytes whole batches if there is no other
     * window behind. */
    template <lookup KIND>
    WHARF_DEVICE_MEMBER uint32_t groups() const
    {
        uint32_t n = n_looking < n_left ? n_looking : n_left;
        uint32_t batches = (n + BATCH_NGROUPS - 1) / BATCH_NGROUPS * BATCH_NGROUPS;
        return !has_symbol_size<KIND>() && batches <= n_most ? batches : n;
    }
};

template <unsigned CHAINS>
WHARF_DEVICE chain_plan plan_chains(const chain_setting<CHAINS> &s, const chains<CHAINS> &c)
{
    chain_plan plan;
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        const split &w = c.window[k];
        plan.add(c.group[k], c.end[k], w.first_group, w.last_group, w.number >= c.last[k],
                 s.n_whole);
    }
    return plan;
}

/* Batches in one go: in between it is looked whether to go on. */
constexpr uint32_t MAX_NBATCHES = 32;

/* collective.  Whether chain k ended as it should, and where it stands, for walk_groups. */
template <unsigned CHAINS>
WHARF_DEVICE bool end_chain(const chain_setting<CHAINS> &s, const chains<CHAINS> &c, unsigned k,
                            walk &ret_w)
{
    int32_t next_word = c.feed[k].next_word(s.words, s.buffers.get().words[k]);
    ret_w = {s.out, c.state[k], next_word, c.group[k], c.window[k]};
    /* What is left of the stream after all chains is for who walks on from the last one. */
    return c.group[k] >= c.end[k] && next_word >= -1 &&
           (c.window[k].first_group == NO_GROUP || c.last[k] == s.in.n_splits);
}

/* collective.  Whether all chains ended as they should. */
template <unsigned CHAINS>
WHARF_DEVICE_NOINLINE bool end_chains(chain_setting<CHAINS> s, const chains<CHAINS> &c, walk &ret_w)
{
    bool good = true;
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++)
        good &= end_chain(s, c, k, ret_w);
    syncwarp(); /* the buffers' memory may be used otherwise */
    return good;
}

/*
 * collective.  Chains that stand behind the last whole group cannot go on as long as others have
 * to, so from then on they do again what the first one does; chain k stands before chain k + 1.
 * `ret_w` is where the last one stood.  False if one did not end as it should.
 */
template <unsigned CHAINS>
WHARF_DEVICE_NOINLINE bool repeat_first_chain(chain_setting<CHAINS> s, chains<CHAINS> &c,
                                              bool &is_ended, walk &ret_w)
{
    bool good = true;
    chain_buffers<CHAINS> &buffers = s.buffers.get();
    WHARF_NO_UNROLL
    for (unsigned k = CHAINS - 1; k > 0; k--) {
        if (c.group[k] < s.n_whole)
            continue;
        walk w;
        good &= end_chain(s, c, k, w);
        if (k == CHAINS - 1 && !is_ended) {
            ret_w = w;
            is_ended = true;
        }
        c.feed[k].become(buffers.words[k], c.feed[0], buffers.words[0]);
        c.state[k] = c.state[0];
        c.group[k] = c.group[0];
        c.end[k] = c.end[0];
        c.last[k] = c.last[0];
        c.window[k] = c.window[0];
    }
    return good;
}

/* Whether a chain stands behind the last whole group, and another one is not at its end. */
template <unsigned CHAINS>
WHARF_DEVICE bool is_to_repeat(const chain_setting<CHAINS> &s, const chains<CHAINS> &c)
{
    bool is_behind = false, is_on_its_way = false;
    WHARF_UNROLL
    for (unsigned k = 0; k < CHAINS; k++) {
        is_behind |= c.group[k] >= s.n_whole;
        is_on_its_way |= c.group[k] < c.end[k];
    }
    return is_behind && is_on_its_way;
}

/* collective.  Chains that begin_chains has begun, to their ends; where the last one ended, or the
 * reason why not. */
template <lookup KIND, unsigned CHAINS>
WHARF_DEVICE uint32_t run_chains(const chain_setting<CHAINS> &s, chains<CHAINS> &c,
                                 const split &last, watcher &watch, walk &ret_w)
{
    bool is_ended = false;
    walk w;
    if (!join_chains<KIND>(s, c, last))
        return REFUSED;
    for (;;) {
        if (is_to_repeat(s, c) && !repeat_first_chain(s, c, is_ended, ret_w))
            return REFUSED;
        chain_plan plan = plan_chains(s, c);
        uint32_t most = MAX_NBATCHES * BATCH_NGROUPS;
        uint32_t n_free = plan.free_batches();
        uint32_t n = n_free > 0 ? n_free * BATCH_NGROUPS : plan.groups<KIND>();
        n = n < most ? n : most;
        if (n == 0)
            return end_chains(s, c, is_ended ? w : ret_w) ? (uint32_t)WHARF_REASON_NONE : REFUSED;
        uint32_t reason = watch.goes_on(CHAINS * n, n_free > 0 ? CHAINS * n : 4 * CHAINS * n);
        if (reason != WHARF_REASON_NONE)
            return reason;
        if (!(n_free > 0 ? free_step<KIND>::go(s, c, n / BATCH_NGROUPS)
                         : look_chains<KIND>(s, c, n)))
            return REFUSED;
    }
}

} // namespace rans
} // namespace wharf

#endif
