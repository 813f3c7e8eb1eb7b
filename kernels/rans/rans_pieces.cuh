/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_pieces.cuh: pieces of a large rans stream, kernels/rans_pieces.h, by the warps of a block,
 * which share the tables.  A warp decodes one piece, or several that follow each other as chains
 * (rans_chains.cuh); what these refuse it decodes again one by one, and that alone judges.
 *
 * A piece decodes its first split's window without delivering it, up to the end of the window of
 * the split that the next piece begins with, and verifies all windows that it passes, that one too.
 * So as long as all pieces before one are good, that one begins where one decoder that runs through
 * would be, with its states, and its first failure is the stream's.
 */
#ifndef WHARF_KERNELS_RANS_RANS_PIECES_CUH
#define WHARF_KERNELS_RANS_RANS_PIECES_CUH

#include "kernels/rans/rans_chains.cuh"
#include "kernels/rans_pieces.h"

namespace wharf
{
namespace rans
{

WHARF_DEVICE stream stream_of(const wharf_rans_stream_job &job)
{
    const wharf_rans_layout &l = job.layout;
    stream in = {{},
                 l.n_bits,
                 l.symbol_nbytes,
                 l.n_distributions,
                 l.alphabet,
                 l.model_nbytes,
                 l.indexes_at,
                 l.body_at,
                 l.n_splits,
                 l.n_symbols,
                 l.n_groups,
                 l.cut_nbits,
                 l.group_nbits,
                 l.cuts_at,
                 l.groups_at,
                 l.starts_at,
                 l.split_states_at,
                 l.words_at,
                 l.n_words,
                 {}};
    in.source.init(job.in, job.in_nbytes);
    return in;
}

/*
 * collective.  A group of the window that a piece begins with: a lane has its state from its start
 * on, and its first symbol is in the group behind.  False when the split cannot be right.
 */
template <lookup KIND>
WHARF_DEVICE bool join_group(const stream &in, const model &m, walk &w)
{
    uint32_t number = WARP_LANES * w.group + lane_id();
    bool decodes = w.group > w.next.start;
    found f = {0, 1, 0, 0};
    if (decodes && number < in.n_symbols)
        f = find<KIND>(m, in, number, w.state & ((1u << m.n_bits) - 1));
    if (any_lane(f.nobodys >> 31 || (decodes && number >= in.n_symbols)))
        return false;
    if (decodes)
        w.state = state_behind(m, f, w.state);
    else if (w.group == w.next.start)
        w.state = w.next.state;
    bool takes = w.group >= w.next.start && w.state < WHARF_RANS_LOW;
    uint32_t takers = ballot(takes);
    if ((int32_t)popc(takers) > w.next_word + 1)
        return false;
    if (takes)
        w.state = w.state << 16 |
                  le16_at(in, in.words_at + 2 * (uint32_t)(w.next_word -
                                                           (int32_t)popc(takers & lanemask_lt())));
    w.next_word -= (int32_t)popc(takers);
    w.group++;
    return true;
}

/* collective.  Where a piece begins to deliver; the reason if it cannot. */
template <lookup KIND>
WHARF_DEVICE uint32_t begin_piece(const stream &in, const model &m, const wharf_rans_piece &piece,
                                  walk &w)
{
    if (piece.number == 0) {
        begin_walk(in, w.out, w);
        return any_lane(w.state < WHARF_RANS_LOW) ? WHARF_REASON_RANS_STATE : WHARF_REASON_NONE;
    }
    w.next.number = piece.number - 1;
    w.next.starts_at = piece.starts_at;
    next_split(in, w.next);
    w.next_word = (int32_t)w.next.first_word;
    w.group = w.next.first_group;
    w.state = WHARF_RANS_LOW;
    for (uint32_t end = w.next.last_group; w.group <= end;)
        if (!join_group<KIND>(in, m, w))
            return WHARF_REASON_RANS_SPLIT;
    next_split(in, w.next);
    return WHARF_REASON_NONE;
}

/* collective.  Piece number i; `ret_bit` is where its failure stands. */
template <lookup KIND>
WHARF_DEVICE uint32_t walk_piece(const stream &in, const model &m, word_ring &ring,
                                 const wharf_rans_stream_job &job, uint32_t i, uint32_t &ret_bit)
{
    bool is_last = i + 1 == job.n_pieces;
    uint32_t end_group = in.n_groups;
    watcher watch;
    walk w;
    watch.init(step_budget(job.in_nbytes, in.n_symbols), {nullptr, 0});
    w.out = job.out;
    ret_bit = 8 * in.body_at;
    uint32_t reason = begin_piece<KIND>(in, m, job.pieces[i], w);
    if (reason != WHARF_REASON_NONE)
        return reason;
    if (!is_last) {
        split next;
        next.number = job.pieces[i + 1].number - 1;
        next.starts_at = job.pieces[i + 1].starts_at;
        next_split(in, next);
        end_group = next.last_group + 1;
    }
    reason = walk_groups<KIND>(in, m, ring, watch, w, end_group, ret_bit);
    return reason == WHARF_REASON_NONE && is_last ? end_walk(in, w, ret_bit) : reason;
}

/* collective.  The same, with the outcome to its place.  Not inlined: see rans_chains.cuh. */
WHARF_DEVICE_NOINLINE void decode_piece(const stream &in, const model &m, word_ring &ring,
                                        const wharf_rans_stream_job &job, uint32_t i)
{
    uint32_t bit;
    uint32_t reason = m.kind == lookup::PACKED
                          ? walk_piece<lookup::PACKED>(in, m, ring, job, i, bit)
                          : walk_piece<lookup::BUCKET>(in, m, ring, job, i, bit);
    if (lane_id() == 0)
        job.outcomes[i] = {reason, bit};
}

/* collective.  Of a stream whose model is bad. */
WHARF_DEVICE void refuse_pieces(const wharf_rans_stream_job &job, uint32_t first, uint32_t n)
{
    if (lane_id() < n)
        job.outcomes[first + lane_id()] = {WHARF_REASON_RANS_MODEL, 8 * WHARF_RANS_HEADER_NBYTES};
}

/* A model that a block's first warp makes. */
struct block_model {
    model_tables<PACKED_NBITS> tables;
    model m;
    bool good;
};

/* All warps of a block.  The model with its tables, unless it is bad. */
WHARF_DEVICE model make_for_block(const stream &in, block_model &s, unsigned warp)
{
    if (warp == 0) {
        model m;
        bool good = make_model(in, s.tables, nullptr, m);
        if (lane_id() == 0) {
            s.m = m;
            s.good = good;
        }
    }
    syncblock();
    /* So that the compiler sees that they are in shared memory. */
    return with_tables(s.m, s.tables);
}

/* ---- one by a warp -------------------------------------------------------------------------- */

/* Shared memory of a block. */
template <unsigned WARPS>
struct warps_memory {
    block_model model;
    word_ring rings[WARPS];
};

/* All warps of a block, each with all lanes: number `block` of n_blocks. */
template <unsigned WARPS>
WHARF_DEVICE void decode_by_warps(warps_memory<WARPS> &s, unsigned warp, uint32_t block,
                                  uint32_t n_blocks, const wharf_rans_stream_job &job)
{
    stream in = stream_of(job);
    model m = make_for_block(in, s.model, warp);
    for (uint32_t i = warp * n_blocks + block; i < job.n_pieces; i += n_blocks * WARPS)
        if (s.model.good)
            decode_piece(in, m, s.rings[warp], job, i);
        else
            refuse_pieces(job, i, 1);
}

/* ---- several by a warp ------------------------------------------------------------------------
 */

/* collective.  Where a piece begins. */
WHARF_DEVICE split split_of(const stream &in, const wharf_rans_piece &piece)
{
    split s = edge_split(in, 0);
    if (piece.number == 0)
        return s;
    uint32_t at = piece.starts_at + 4;
    uint32_t states = in.split_states_at + (piece.number - 1) * WHARF_RANS_SPLIT_STATES_NBYTES;
    s.number = piece.number;
    s.starts_at = at + WARP_LANES * piece.start_nbits;
    s.first_group = piece.first_group;
    s.last_group = piece.last_group;
    s.first_word = piece.first_word;
    s.start = piece.base_group +
              (uint32_t)near_body_bits(in, at + lane_id() * piece.start_nbits, piece.start_nbits);
    s.state = le16_at(in, states + 2 * lane_id());
    return s;
}

/* collective.  The splits where pieces `first` to first + n - 1 begin, the last one often enough,
 * and the one behind them.  Not inlined: see rans_chains.cuh. */
template <unsigned CHAINS>
WHARF_DEVICE_NOINLINE void find_splits(const stream &in, const wharf_rans_stream_job &job,
                                       uint32_t first, uint32_t n, split ret_at[CHAINS + 1])
{
    split at[CHAINS + 1];
    wharf_rans_piece pieces[CHAINS + 1];
    uint32_t behind = first + n;
    WHARF_UNROLL
    for (unsigned k = 0; k <= CHAINS; k++) {
        uint32_t i = first + (k < n ? k : n - 1);
        pieces[k] = job.pieces[k == CHAINS && behind < job.n_pieces ? behind : i];
    }
    WHARF_UNROLL
    for (unsigned k = 0; k <= CHAINS; k++)
        at[k] = split_of(in, pieces[k]);
    if (behind == job.n_pieces)
        at[CHAINS] = edge_split(in, in.n_splits);
    WHARF_UNROLL
    for (unsigned k = 0; k <= CHAINS; k++)
        ret_at[k] = at[k];
}

/* Shared memory of a block. */
template <unsigned WARPS, unsigned CHAINS>
struct chains_memory {
    spread_tables tables;
    block_model model;
    union {
        chain_buffers<CHAINS> buffers;
        word_ring ring;
    } warps[WARPS];
};

/* collective.  What is left of the stream behind its last chain. */
WHARF_DEVICE_NOINLINE uint32_t walk_rest_of_stream(const stream &in, const model &m,
                                                   word_ring &ring, watcher &watch, const walk &w,
                                                   uint32_t &ret_bit)
{
    walk there = w;
    uint32_t reason =
        m.kind == lookup::PACKED
            ? walk_groups<lookup::PACKED>(in, m, ring, watch, there, in.n_groups, ret_bit)
            : walk_groups<lookup::BUCKET>(in, m, ring, watch, there, in.n_groups, ret_bit);
    return reason == WHARF_REASON_NONE ? end_walk(in, there, ret_bit) : reason;
}

/* collective.  Pieces `first` to first + n - 1 by chains; the last one's reason, and its bit, or
 * REFUSED. */
template <lookup KIND, unsigned WARPS, unsigned CHAINS>
WHARF_DEVICE uint32_t chain_pieces(const stream &in, const model &m,
                                   chains_memory<WARPS, CHAINS> &s, unsigned warp,
                                   const wharf_rans_stream_job &job, uint32_t first, uint32_t n,
                                   uint32_t &ret_bit)
{
    chain_setting<CHAINS> setting = make_setting(in, m, s.warps[warp].buffers, job.out);
    setting.tables.init(s.model.tables);
    setting.spread.init(s.tables);
    split at[CHAINS + 1];
    chains<CHAINS> c;
    watcher watch;
    walk w;
    watch.init(step_budget(job.in_nbytes, in.n_symbols), {nullptr, 0});
    find_splits<CHAINS>(in, job, first, n, at);
    if (!begin_chains(setting, c, at) ||
        run_chains<KIND>(setting, c, at[CHAINS], watch) != WHARF_REASON_NONE ||
        !end_chains(setting, c, w))
        return REFUSED;
    return first + n < job.n_pieces
               ? (uint32_t)WHARF_REASON_NONE
               : walk_rest_of_stream(in, m, s.warps[warp].ring, watch, w, ret_bit);
}

/* collective.  The same, or one by one, with the outcomes to their places. */
template <lookup KIND, unsigned WARPS, unsigned CHAINS>
WHARF_DEVICE void decode_pieces(const stream &in, const model &m, chains_memory<WARPS, CHAINS> &s,
                                unsigned warp, const wharf_rans_stream_job &job, uint32_t first,
                                uint32_t n)
{
    uint32_t bit = 8 * in.body_at;
    uint32_t reason = chain_pieces<KIND>(in, m, s, warp, job, first, n, bit);
    if (reason == REFUSED) {
        syncwarp();
        for (uint32_t i = first; i < first + n; i++)
            decode_piece(in, m, s.warps[warp].ring, job, i);
    } else if (lane_id() < n) {
        bool is_last = lane_id() + 1 == n;
        job.outcomes[first + lane_id()] = {is_last ? reason : (uint32_t)WHARF_REASON_NONE, bit};
    }
}

/* All warps of a block, each with all lanes: number `block` of n_blocks. */
template <lookup KIND, unsigned WARPS, unsigned CHAINS>
WHARF_DEVICE void decode_by_chains(chains_memory<WARPS, CHAINS> &s, unsigned warp, uint32_t block,
                                   uint32_t n_blocks, const wharf_rans_stream_job &job)
{
    stream in = stream_of(job);
    model m = make_for_block(in, s.model, warp);
    if (s.model.good)
        fill_spread(s.tables, m, warp * WARP_LANES + lane_id(), WARPS * WARP_LANES);
    syncblock();
    for (uint32_t first = CHAINS * (warp * n_blocks + block); first < job.n_pieces;
         first += CHAINS * WARPS * n_blocks) {
        uint32_t n = job.n_pieces - first < CHAINS ? job.n_pieces - first : CHAINS;
        if (s.model.good)
            decode_pieces<KIND>(in, m, s, warp, job, first, n);
        else
            refuse_pieces(job, first, n);
    }
}

} // namespace rans
} // namespace wharf

#endif
