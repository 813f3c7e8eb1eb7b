/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_pieces.cuh: decodes and verifies pieces of a rans stream (kernels/rans_pieces.h) that
 * rans_strands.cuh refused, one by one.  The warps of a block share the tables.
 *
 * A piece decodes the window of its first split without delivering it, and continues to the end of
 * the window of the split that the next piece begins with.  It verifies all windows that it passes,
 * that one included.
 *
 * Invariant: as long as all pieces before it are good, a piece begins where one decoder that ran
 * through the whole stream would be, with the same states.  So the first failure of the first bad
 * piece is the stream's.
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

/* The split with which a piece begins, or n_splits behind the last one: of M splits n evenly. */
WHARF_DEVICE uint32_t first_split_of(const wharf_rans_stream_job &job, uint32_t piece)
{
    /* Splits are less than 2^16, and pieces no more than splits. */
    return piece < job.n_pieces ? ceil_div(piece * job.layout.n_splits, job.n_pieces)
                                : job.layout.n_splits;
}

/* collective.  Split `number`, from 1 on. */
WHARF_DEVICE void find_split(const stream &in, const wharf_rans_stream_job &job, uint32_t number,
                             split &s)
{
    s.number = number - 1;
    s.starts_at = load_nc(&job.places[number].starts_at);
    next_split(in, s);
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
    found f = {0, 1, 0, 0, 0};
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
WHARF_DEVICE uint32_t begin_piece(const stream &in, const model &m,
                                  const wharf_rans_stream_job &job, uint32_t number, walk &w)
{
    if (number == 0) {
        begin_walk(in, w.out, w);
        return any_lane(w.state < WHARF_RANS_LOW) ? WHARF_REASON_RANS_STATE : WHARF_REASON_NONE;
    }
    find_split(in, job, number, w.next);
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
    uint32_t reason = begin_piece<KIND>(in, m, job, first_split_of(job, i), w);
    if (reason != WHARF_REASON_NONE)
        return reason;
    if (!is_last) {
        split next;
        find_split(in, job, first_split_of(job, i + 1), next);
        end_group = next.last_group + 1;
    }
    reason = walk_groups<KIND>(in, m, ring, watch, w, end_group, ret_bit);
    return reason == WHARF_REASON_NONE && is_last ? end_walk(in, w, ret_bit) : reason;
}

/* collective.  The same, with the outcome to its place. */
WHARF_DEVICE void verify_piece(const stream &in, const model &m, word_ring &ring,
                               const wharf_rans_stream_job &job, uint32_t i)
{
    uint32_t bit;
    uint32_t reason =
        m.kind == lookup::PACKED   ? walk_piece<lookup::PACKED>(in, m, ring, job, i, bit)
        : m.kind == lookup::BUCKET ? walk_piece<lookup::BUCKET>(in, m, ring, job, i, bit)
                                   : walk_piece<lookup::REGISTERED>(in, m, ring, job, i, bit);
    if (lane_id() == 0)
        job.outcomes[i] = {reason, bit};
}

/* A model that a block's first warp makes. */
struct block_model {
    model_tables<PACKED_NBITS> tables;
    model m;
    bool good;
};

/* All warps of a block.  The model with its tables, unless it is bad. */
WHARF_DEVICE model make_for_block(const stream &in, block_model &s, const uint8_t *image,
                                  unsigned warp)
{
    if (warp == 0) {
        model m;
        bool good = take_model(in, s.tables, image, nullptr, m);
        if (lane_id() == 0) {
            s.m = m;
            s.good = good;
        }
    }
    syncblock();
    /* So that the compiler sees that they are in shared memory. */
    return with_tables(s.m, s.tables);
}

/* Shared memory of a block. */
template <unsigned WARPS>
struct verify_memory {
    block_model model;
    word_ring rings[WARPS];
};

/* The first of all pieces that is bad, or n_pieces. */
struct first_bad_memory {
    uint32_t of_warp[WARP_LANES];
};

/*
 * All warps of a block, each with all lanes; lane 0 of warp 0 stores the stream's outcome, which
 * wharf_rans_stream_job_settle would give: the first failure counts.
 */
WHARF_DEVICE void settle_pieces(first_bad_memory &s, unsigned warp, unsigned n_warps,
                                const wharf_rans_stream_job &job, wharf_outcome *d_outcome)
{
    uint32_t first = job.n_pieces;
    WHARF_UNROLL_BY(4)
    for (uint32_t i = warp * WARP_LANES + lane_id(); i < job.n_pieces; i += n_warps * WARP_LANES)
        if (load(&job.outcomes[i].reason) != WHARF_REASON_NONE && i < first)
            first = i;
    first = reduce_min(first);
    if (lane_id() == 0)
        store(&s.of_warp[warp], first);
    syncblock();
    if (warp != 0)
        return;
    first = reduce_min(lane_id() < n_warps ? load(&s.of_warp[lane_id()]) : job.n_pieces);
    if (lane_id() != 0)
        return;
    if (first == job.n_pieces) {
        uint64_t nbytes = (uint64_t)job.layout.n_symbols * job.layout.symbol_nbytes;
        *d_outcome = {WHARF_OK, WHARF_REASON_NONE, 0, job.in_nbytes, nbytes};
        return;
    }
    uint32_t reason = load(&job.outcomes[first].reason);
    *d_outcome = {reason == WHARF_REASON_STEP_BUDGET ? (uint32_t)WHARF_INTERNAL
                                                     : (uint32_t)WHARF_BAD_DATA,
                  reason, load(&job.outcomes[first].bit_offset), 0, 0};
}

/* All warps of a block, each with all lanes: number `block` of n_blocks.  What was refused. */
template <unsigned WARPS>
WHARF_DEVICE void verify_pieces(verify_memory<WARPS> &s, unsigned warp, uint32_t block,
                                uint32_t n_blocks, const wharf_rans_stream_job &job)
{
    bool refused = false;
    for (uint32_t i = block + n_blocks * (warp * WARP_LANES + lane_id()); i < job.n_pieces;
         i += n_blocks * WARPS * WARP_LANES)
        refused |= load(&job.outcomes[i].reason) == WHARF_RANS_REFUSED;
    if (!syncblock_or(refused))
        return; /* mostly: no tables are made */
    stream in = stream_of(job);
    model m = make_for_block(in, s.model, job.model, warp);
    for (uint32_t i = warp * n_blocks + block; i < job.n_pieces; i += n_blocks * WARPS) {
        if (load(&job.outcomes[i].reason) != WHARF_RANS_REFUSED)
            continue;
        syncwarp(); /* before it is overwritten */
        if (s.model.good)
            verify_piece(in, m, s.rings[warp], job, i);
        else if (lane_id() == 0)
            job.outcomes[i] = {WHARF_REASON_RANS_MODEL, 8 * WHARF_RANS_HEADER_NBYTES};
    }
}

} // namespace rans
} // namespace wharf

#endif
