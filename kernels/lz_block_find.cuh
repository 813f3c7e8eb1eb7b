/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_block_find.cuh: finds the sequences of a part of the input with all lanes of all warps.
 *
 * Idea: each lane walks from sequence to sequence through its range of 32 bytes, and notes their
 * starts in a word of 32 bits.  Its first walk starts blindly at the range's first byte.  It then
 * passes the place behind its last sequence to its right neighbour, which walks again from there,
 * until it meets a start that it noted.  Walks merge soon, so a lane's end seldom changes and
 * few passes are needed.
 *
 * Invariant: lane 0 starts at a true sequence.  When no lane has to walk again, each lane started
 * where the one before it ended, so all noted starts are true.
 */
#ifndef WHARF_KERNELS_LZ_BLOCK_FIND_CUH
#define WHARF_KERNELS_LZ_BLOCK_FIND_CUH

#include "kernels/lz_block_state.cuh"

namespace wharf
{
namespace lz
{

/* One lane's range.  Places count from the part's first byte. */
struct lane_range {
    uint32_t cut, end; /* of the input too */
    uint32_t entry;    /* where it began */
    uint32_t exit;     /* the first place behind it */
    uint32_t starts;   /* bit k: one begins at cut + k */
    /* The starts and exit of its last walk that found any: a new walk ends where it meets them. */
    uint32_t known_starts, known_exit;
};

/* One lane.  The place behind the sequence that would begin at p.  A walk also goes on behind a bad
 * sequence: on a wrong path most are bad, and a walk that stopped could not merge. */
template <typename P>
WHARF_DEVICE uint32_t behind_place(const found &f, uint32_t p)
{
    return f.end - p <= P::AHEAD_NBYTES ? f.end : p + 2;
}

/* One lane.  Walks from r.entry, which is at the cut or behind it, or behind the end. */
template <typename P, typename Format>
WHARF_DEVICE void walk_range(const window_view<P> &in, uint32_t in_left, lane_range &r,
                             uint32_t entry)
{
    uint32_t p = entry, starts = 0;
    r.entry = entry;
    while (p < r.end) {
        uint32_t bit = 1u << (p - r.cut);
        if (r.known_starts & bit) {
            starts |= r.known_starts & ~(bit - 1);
            p = r.known_exit;
            break;
        }
        starts |= bit;
        p = behind_place<P>(Format::look(in, p, in_left, in.reach()), p);
    }
    r.starts = starts;
    r.exit = p;
    r.known_starts = starts ? starts : r.known_starts;
    r.known_exit = starts ? p : r.known_exit;
}

/* For all warps.  Returns the lane's range once all lanes agree. */
template <typename P, typename Format>
WHARF_DEVICE lane_range find_starts(block_shared<P> &s, const window_view<P> &in, unsigned warp,
                                    uint32_t in_left)
{
    lane_range r;
    r.cut = (32 * warp + lane_id()) * P::RANGE_NBYTES;
    r.end = r.cut + P::RANGE_NBYTES;
    r.end = r.end < in_left ? r.end : in_left;
    r.known_starts = r.known_exit = 0;
    walk_range<P, Format>(in, in_left, r, r.cut);
    uint32_t from = r.cut; /* where the warp begins, in lane 0 */
    for (;;) {
        /* Each turn makes at least one more lane final. */
        for (;;) {
            uint32_t entry = shfl_up(r.exit, 1);
            entry = lane_id() ? entry : from;
            bool differs = entry != r.entry;
            if (!any_lane(differs))
                break;
            if (differs)
                walk_range<P, Format>(in, in_left, r, entry);
            syncwarp(); /* where lanes that parted meet, for the compiler too: rule 9 */
        }
        if (lane_id() == 31)
            store(&s.exits[warp], r.exit);
        syncblock();
        from = warp ? load(&s.exits[warp - 1]) : 0;
        /* Each turn of the outer loop makes at least one more warp final. */
        if (!any_lane(syncblock_or(lane_id() == 0 && from != r.entry)))
            return r;
    }
}

/* For all warps.  Stores the sequences' starts in s.places and returns their number.  Does not
 * synchronise afterwards. */
template <typename P>
WHARF_DEVICE uint32_t list_starts(block_shared<P> &s, unsigned warp, const lane_range &r)
{
    uint32_t upto = inclusive_add(popc(r.starts));
    if (lane_id() == 31)
        store(&s.counts[warp], upto);
    syncblock();
    uint32_t count = lane_id() < P::WARPS ? load(&s.counts[lane_id()]) : 0;
    uint32_t i = reduce_add(lane_id() < warp ? count : 0) + upto - popc(r.starts);
    for (uint32_t left = r.starts; left; left &= left - 1)
        store(&s.places[i++], (uint16_t)(r.cut + first_lane(left)));
    return reduce_add(count);
}

} // namespace lz
} // namespace wharf

#endif
