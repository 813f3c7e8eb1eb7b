/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_strands.cuh: a fast decoder for pieces of a rans stream (kernels/rans_pieces.h), run by all
 * warps of a GPU.
 *
 * A *strand* is one decoder of a piece.  A warp interleaves several strands, which proceed together
 * in batches, like the chains of rans_chains.cuh; the rules there about windows, and about a
 * decoder at its end, hold here too.  Strands only say whether all was good: a second kernel
 * (rans_pieces.cuh) verifies what they refuse.
 *
 * The time until a strand begins matters as much as its speed then.  Therefore
 * - little is in local memory, and for symbols of bytes nothing that the loop reads: the lanes of a
 *   full multiprocessor have 900 KiB of it for 1 KiB each, more than the caches hold.  Variables
 *   that a warp has once, and the starts and states of a window, are in shared memory where the
 *   loop of batches needs the registers;
 * - all loads that a warp begins with are issued before the tables are built, after two others that
 *   they depend on: where the fields of its splits are, and the fields;
 * - the code is short, since all warps wait for each line of it that comes from memory.  Nothing
 *   rare is here, and no branch that is not uniform (KERNELS.md, rule 9).
 */
#ifndef WHARF_KERNELS_RANS_RANS_STRANDS_CUH
#define WHARF_KERNELS_RANS_RANS_STRANDS_CUH

#include "kernels/rans/rans_strand_starts.cuh"

namespace wharf
{
namespace rans
{

/* ---- on the way ---------------------------------------------------------------------------- */

/* collective.  n batches of all strands where no window is near; whether all slots were somebody's,
 * in this lane. */
template <unsigned STRANDS>
WHARF_DEVICE bool go_strands_by_image(const strand_setting<STRANDS> &s,
                                      strand_memory<STRANDS> &memory, strands<STRANDS> &there,
                                      uint32_t n)
{
    const symbol_way<STRANDS> way = {s.in, s.words, s.out, s.n_whole, memory.buffers, *s.indexes};
    uint32_t nobodys = s.m.windows_at ? go_by_symbols<symbols_by::WINDOWS>(way, s.m, there, n)
                                      : go_by_symbols<symbols_by::SLOTS>(way, s.m, there, n);
    return nobodys >> 31 == 0;
}

/* The same with tables of bytes. */
template <lookup KIND, unsigned STRANDS>
WHARF_DEVICE bool go_strands_freely(const strand_setting<STRANDS> &s,
                                    strand_memory<STRANDS> &memory, strands<STRANDS> &there,
                                    uint32_t n)
{
    loop_chains<STRANDS> c = take_chains<STRANDS>(there);
    uint32_t nobodys = go_by_bytes<KIND>(loop_of(s, memory), c, there.group, n);
    put_chains(there, c, n * BATCH_NGROUPS);
    return nobodys >> 31 == 0;
}

/* collective.  n groups of all strands, up to the end of each one's window at most, or behind it if
 * it is the last that the strand looks at; whether all was good, in this lane.  That they had their
 * words is looked at here: all strands end with a window, but for the stream's last, and the last
 * one of a warp is another one from then on. */
template <lookup KIND, unsigned STRANDS>
WHARF_DEVICE bool look_strands(const strand_setting<STRANDS> &s, const wharf_rans_stream_job &job,
                               strand_memory<STRANDS> &memory, strands<STRANDS> &there, uint32_t n)
{
    loop_chains<STRANDS> c = take_chains<STRANDS>(there);
    passed_windows<STRANDS> windows;
    findings bad = {0, 0};
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++) {
        const window &w = there.next[k];
        windows.init(k, there.group[k], c.feed[k].next_word(s.words, memory.buffers.words[k]),
                     c.feed[k].behind.place(), w.first_group, w.first_word,
                     load(&memory.windows[k].start[lane_id()]),
                     load(&memory.windows[k].state[lane_id()]), bad);
    }
    go_looking<KIND>(loop_of(s, memory), c, there.group, windows, n, bad);
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++)
        bad.signs |= (uint32_t)(c.feed[k].next_word(s.words, memory.buffers.words[k]) + 1);
    put_chains(there, c, n);
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++)
        if (there.group[k] > there.next[k].last_group)
            next_strand_window(s.in, job, memory, there, k);
    return bad.good();
}

/* How strands go on, none behind group `end`. */
template <unsigned STRANDS>
WHARF_DEVICE chain_plan plan_strands(const strands<STRANDS> &c, uint32_t end)
{
    chain_plan plan;
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++) {
        const window &w = c.next[k];
        plan.add(c.group[k], c.end[k], w.first_group, w.last_group, w.number >= c.last[k], end);
    }
    return plan;
}

/* collective.  Behind the last whole group: what is left of the stream, by the last strand; whether
 * it ends as it should. */
template <lookup KIND, unsigned STRANDS>
WHARF_DEVICE bool end_stream(const strand_setting<STRANDS> &s, strand_memory<STRANDS> &memory,
                             strands<STRANDS> &c)
{
    constexpr unsigned k = STRANDS - 1;
    uint32_t number = WARP_LANES * s.n_whole + lane_id();
    bool is_there = number < s.in.n_symbols;
    c.feed[k].ensure(s.words, memory.buffers.words[k]);
    found f = find_at<KIND>(s, s.n_whole, c.state[k]);
    bool good = !is_there || f.nobodys >> 31 == 0;
    uint32_t behind = is_there ? state_behind(s.m, f, c.state[k]) : c.state[k];
    uint32_t takers = ballot(behind < WHARF_RANS_LOW);
    uint32_t word = c.feed[k].behind.load_before(popc(takers & lanemask_lt()));
    c.feed[k].behind.move(-(int)popc(takers));
    behind = behind < WHARF_RANS_LOW ? behind << 16 | word : behind;
    if (is_there)
        put_symbol(s.out, has_symbol_size<KIND>() ? s.m.symbol_nbytes : 1, number, f.symbol);
    good &= behind == WHARF_RANS_LOW;
    good &= c.feed[k].next_word(s.words, memory.buffers.words[k]) == -1;
    return !any_lane(!good);
}

/* collective.  Strand k becomes the first one once more. */
template <unsigned STRANDS>
WHARF_DEVICE void repeat_first_strand(strand_memory<STRANDS> &memory, strands<STRANDS> &c,
                                      unsigned k)
{
    window w = c.next[0];
    c.feed[k].become(memory.buffers.words[k], c.feed[0], memory.buffers.words[0]);
    w.start = load(&memory.windows[0].start[lane_id()]);
    w.state = load(&memory.windows[0].state[lane_id()]);
    put_window(memory, c, k, w);
    c.state[k] = c.state[0];
    c.group[k] = c.group[0];
    c.end[k] = c.end[0];
    c.last[k] = c.last[0];
}

/*
 * collective.  All strands to their ends; whether all was good.  Each turn takes every strand
 * further, to one that lies within the stream, or behind its own end as long as others have to go
 * on; but not behind the warp's last one's, where another warp delivers, or the stream ends.  One
 * that is there does from then on again what the first one does.
 */
template <lookup KIND, unsigned STRANDS>
WHARF_DEVICE bool go_to_ends(const strand_setting<STRANDS> &s, const wharf_rans_stream_job &job,
                             strand_memory<STRANDS> &memory, strands<STRANDS> &c, bool ends_stream)
{
    constexpr unsigned LAST = STRANDS - 1;
    uint32_t end = c.end[LAST];
    for (;;) {
        if (uniform(ends_stream && c.group[LAST] >= end) != 0) {
            if (!end_stream<KIND>(s, memory, c))
                return false;
            ends_stream = false;
        }
        WHARF_UNROLL
        for (unsigned k = LAST; k > 0; k--)
            if (uniform(c.group[k] >= end) != 0)
                repeat_first_strand(memory, c, k);
        chain_plan plan = plan_strands(c, end);
        uint32_t n_free = uniform(plan.free_batches()), n_looking = uniform(plan.groups<KIND>());
        bool good;
        if (n_free > 0 && KIND == lookup::REGISTERED)
            good = go_strands_by_image(s, memory, c, n_free);
        else if (n_free > 0)
            good = go_strands_freely<KIND>(s, memory, c, n_free);
        else if (n_looking > 0)
            good = look_strands<KIND>(s, job, memory, c, n_looking);
        else
            return true;
        if (any_lane(!good))
            return false;
    }
}

/* collective.  Strands that have begun, to their ends; whether all was good. */
template <lookup KIND, unsigned STRANDS>
WHARF_DEVICE bool run_strands(const strand_setting<STRANDS> &s, const wharf_rans_stream_job &job,
                              strand_memory<STRANDS> &memory, uint32_t first, strands<STRANDS> &c,
                              const strand_starts<STRANDS> &starts)
{
    if (any_lane(!join_strands<KIND>(s, memory, c, starts)) ||
        !go_to_ends<KIND>(s, job, memory, c, first + STRANDS >= job.n_pieces))
        return false;
    bool good = true;
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++)
        good &= c.group[k] >= c.end[k];
    syncwarp(); /* the buffers may be filled anew */
    return !any_lane(!good);
}

/* ---- a block ------------------------------------------------------------------------------- */

/* One warp.  What the block makes tables of, from the words of the stream in which the model
 * stands; nothing where tables are in an image. */
template <typename Tables>
WHARF_DEVICE void read_model(Tables &tables, const stream &from, const model_words &words)
{
    read_ranges(from, words, tables.ranges);
}

template <unsigned WARPS, unsigned STRANDS>
WHARF_DEVICE void read_model(image_tables<WARPS, STRANDS> &, const stream &, const model_words &)
{
}

/* All warps of a block, of which one has read the model: the model with the tables that they
 * make, */
template <lookup KIND, unsigned WARPS, typename Tables>
WHARF_DEVICE model make_block_tables(Tables &tables, const stream &from,
                                     const wharf_rans_stream_job &, unsigned warp)
{
    fill_tables<KIND, WARPS * WARP_LANES>(tables, from.n_bits, warp * WARP_LANES + lane_id());
    return with_tables<KIND>(tables, from.n_bits);
}

/* or with those that are in an image. */
template <lookup KIND, unsigned WARPS, unsigned STRANDS>
WHARF_DEVICE model make_block_tables(image_tables<WARPS, STRANDS> &, const stream &in,
                                     const wharf_rans_stream_job &job, unsigned)
{
    model m = {};
    take_image(in, job.model, m);
    return m;
}

/* This warp's buffers for indexes, if there are any. */
template <unsigned STRANDS, typename Tables>
WHARF_DEVICE index_buffers<STRANDS> *indexes_in(Tables &, unsigned)
{
    return nullptr;
}

template <unsigned STRANDS, unsigned WARPS>
WHARF_DEVICE index_buffers<STRANDS> *indexes_in(image_tables<WARPS, STRANDS> &tables, unsigned warp)
{
    return &tables.indexes[warp];
}

/* Whether strands can be made for such a model. */
template <lookup KIND>
WHARF_DEVICE bool is_for_strands(const model &m, const uint8_t *out)
{
    return KIND == lookup::REGISTERED ? has_aligned_symbols<KIND>(m, out) : m.total > 0;
}

/* All warps of a block, each with all lanes: number `block` of n_blocks.  n_decoders of them
 * decode; the others only make tables. */
template <lookup KIND, typename Tables, unsigned WARPS, unsigned STRANDS>
WHARF_DEVICE void decode_strands(strands_memory<Tables, WARPS, STRANDS> &shared, unsigned warp,
                                 unsigned n_decoders, uint32_t block, uint32_t n_blocks,
                                 const wharf_rans_stream_job &job)
{
    strand_setting<STRANDS> s = {
        stream_of(job), {}, {}, job.out, job.layout.n_symbols / WARP_LANES, {}};
    strand_memory<STRANDS> &memory = shared.warps[warp];
    stream from = KIND == lookup::REGISTERED ? s.in : model_stream(s.in, job.model);
    strands<STRANDS> c;
    strand_starts<STRANDS> starts;
    bool has_tables = false;
    s.words.init(s.in);
    s.indexes = indexes_in<STRANDS>(shared.tables, warp);
    WHARF_NO_UNROLL
    for (uint32_t first = STRANDS * (warp * n_blocks + block);;
         first += STRANDS * n_decoders * n_blocks) {
        bool decodes = warp < n_decoders && first < job.n_pieces;
        /* The last warp has nothing on its way as long as it needs registers for this; often it has
         * nothing to decode either. */
        bool reads = KIND != lookup::REGISTERED && warp == WARPS - 1 && !has_tables;
        model_words words = {};
        if (reads)
            words.load(from);
        if (decodes)
            find_places(job, memory, first, c, starts);
        if (reads)
            read_model(shared.tables, from, words);
        if (decodes)
            fetch_starts(s, memory, starts);
        if (!has_tables) {
            s.m = make_block_tables<KIND, WARPS>(shared.tables, from, job, warp);
            has_tables = true;
        }
        if (!decodes)
            return;
        bool good = begin_strands(s, memory, c, starts) && is_for_strands<KIND>(s.m, job.out);
        if (!any_lane(!good))
            good = run_strands<KIND>(s, job, memory, first, c, starts);
        uint32_t reason = any_lane(!good) ? WHARF_RANS_REFUSED : (uint32_t)WHARF_REASON_NONE;
        if (lane_id() < STRANDS && first + lane_id() < job.n_pieces)
            job.outcomes[first + lane_id()] = {reason, 8 * s.in.body_at};
        syncwarp(); /* the places may be others now */
    }
}

} // namespace rans
} // namespace wharf

#endif
