/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_filter.cuh: undoes the filters of blocks, by a team (blosc_order.cuh), where their streams
 * were decoded to.
 */
#ifndef WHARF_KERNELS_BLOSC_BLOSC_FILTER_CUH
#define WHARF_KERNELS_BLOSC_BLOSC_FILTER_CUH

#include "kernels/blosc/blosc_plan.cuh"
#include "kernels/blosc/blosc_turn.cuh"

namespace wharf
{
namespace blosc
{

/* ---- deltas ---------------------------------------------------------------------------------- */

WHARF_DEVICE uint32_t word_nbytes(uint32_t element_nbytes)
{
    if (element_nbytes == 1 || element_nbytes == 2 || element_nbytes == 4)
        return element_nbytes;
    return element_nbytes % 8 == 0 ? 8 : 1;
}

/* One lane.  Up to eight bytes, of which n are there; the others are zero. */
WHARF_DEVICE uint64_t load_eight(const uint8_t *p, uint32_t n)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < 8; i++)
        v |= i < n ? (uint64_t)load(p + i) << 8 * i : 0;
    return v;
}

WHARF_DEVICE void store_eight(uint8_t *p, uint32_t n, uint64_t v)
{
    for (unsigned i = 0; i < 8; i++)
        if (i < n)
            store(p + i, (uint8_t)(v >> 8 * i));
}

/* Each word's exclusive or with all words before it, of the eight bytes of one lane. */
WHARF_DEVICE uint64_t add_within(uint64_t v, uint32_t word)
{
    v ^= word < 2 ? v << 8 : 0;
    v ^= word < 4 ? v << 16 : 0;
    return v ^ (word < 8 ? v << 32 : 0);
}

/* collective.  The first block: each word refers to the one before it, so that it is the exclusive
 * or of all up to it. */
WHARF_DEVICE void add_deltas_of_first(uint8_t *out, uint32_t nbytes, uint32_t word)
{
    uint64_t carried = 0;
    for (uint32_t at = 0; at < nbytes; at += 8 * WARP_LANES) {
        uint32_t i = at + 8 * lane_id(), left = i < nbytes ? nbytes - i : 0;
        uint64_t v = add_within(load_eight(out + i, left), word);
        uint64_t sum = v >> (64 - 8 * word); /* its last word, in all words */
        sum |= word < 8 ? sum << 8 * word % 64 : 0;
        sum |= word < 4 ? sum << 16 * word % 64 : 0;
        sum |= word < 2 ? sum << 32 : 0;
        for (unsigned delta = 1; delta < WARP_LANES; delta *= 2) {
            uint64_t other = shfl_up(sum, delta);
            sum ^= lane_id() >= delta ? other : 0;
        }
        uint64_t before = shfl_up(sum, 1);
        before = carried ^ (lane_id() > 0 ? before : 0);
        store_eight(out + i, left, v ^ before);
        carried ^= shfl(sum, WARP_LANES - 1);
    }
}

template <typename Team>
WHARF_DEVICE void add_deltas(const Team &team, uint32_t element_nbytes, const uint8_t *first,
                             uint8_t *out, uint32_t nbytes)
{
    uint32_t word = word_nbytes(element_nbytes);
    nbytes -= nbytes % word;
    if (first == out) {
        if (team.is_first_warp())
            add_deltas_of_first(out, nbytes, word);
    } else {
        for (uint32_t i = 8 * team.index(); i < nbytes; i += 8 * Team::SIZE)
            store_eight(out + i, nbytes - i,
                        load_eight(out + i, nbytes - i) ^ load_eight(first + i, nbytes - i));
    }
    team.sync();
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Blocks with deltas between two looks whether to stop. */
constexpr uint32_t BLOCKS_BETWEEN_LOOKS = 64;

/* Undoes all filters of n blocks of nbytes each, the first of them number `block`.  If they are
 * more than one, they have no deltas. */
template <typename Team>
WHARF_DEVICE void undo_filters(const Team &team, const stage &st, const plan &p, uint8_t *out,
                               uint32_t block, uint32_t n, uint32_t nbytes)
{
    uint8_t *at = out + block * p.block_nbytes;
    WHARF_NO_UNROLL
    for (unsigned i = WHARF_BLOSC_N_FILTERS; i-- > 0;) {
        step s = step_of(p, i, nbytes);
        if (nbytes > st.nbytes && team.is_stopped(st.stop))
            return;
        if (s.operation == ADD_DELTAS)
            add_deltas(team, p.element_nbytes, out, at, nbytes);
        else if (s.operation != NOTHING)
            order_in_place(team, st, {nullptr, at, n, nbytes, s.unit_nbytes, s.plane_nbytes},
                           s.n_planes, s.operation == ORDER_BITS);
    }
}

/* Undoes the filters of group g, of which the last block may be shorter. */
template <typename Team>
WHARF_DEVICE void undo_group(const Team &team, const stage &st, const plan &p, uint8_t *out,
                             uint32_t g)
{
    uint32_t first = g * p.per_group, left = p.n_blocks - first;
    uint32_t end = first + (left < p.per_group ? left : p.per_group);
    for (uint32_t block = first, n; block < end; block += n) {
        uint32_t nbytes = nbytes_of_block(p, block);
        /* A shorter last block is alone. */
        n = p.n_blocks - block - (nbytes_of_block(p, p.n_blocks - 1) < nbytes);
        n = n < end - block ? n : end - block;
        n = p.has_deltas ? 1 : n;
        if ((block - first + 1) % BLOCKS_BETWEEN_LOOKS == 0 && team.is_stopped(st.stop))
            return;
        undo_filters(team, st, p, out, block, n, nbytes);
    }
}

} // namespace blosc
} // namespace wharf

#endif
