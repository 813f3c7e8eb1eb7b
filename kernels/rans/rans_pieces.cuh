/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_pieces.cuh: a piece of a large rans stream, kernels/rans_pieces.h, by one warp.
 *
 * A piece decodes its first split's window without delivering it, up to the end of the window of
 * the split that the next piece begins with, and verifies all windows that it passes, that one too.
 * So as long as all pieces before one are good, that one begins where one decoder that runs through
 * would be, with its states, and its first failure is the stream's.
 */
#ifndef WHARF_KERNELS_RANS_RANS_PIECES_CUH
#define WHARF_KERNELS_RANS_RANS_PIECES_CUH

#include "kernels/rans/rans_groups.cuh"
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

/* collective.  The same, with the outcome to its place. */
WHARF_DEVICE void decode_piece(const stream &in, const model &m, word_ring &ring,
                               const wharf_rans_stream_job &job, uint32_t i)
{
    uint32_t bit;
    uint32_t reason = m.kind == lookup::PACKED
                          ? walk_piece<lookup::PACKED>(in, m, ring, job, i, bit)
                          : walk_piece<lookup::BUCKET>(in, m, ring, job, i, bit);
    if (lane_id() == 0)
        job.outcomes[i] = {reason, bit};
}

} // namespace rans
} // namespace wharf

#endif
