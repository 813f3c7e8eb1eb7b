/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_cycle.cuh: writes sequences whose matches are all at distance 8, as columns of 8-byte values
 * have them.
 *
 * Idea: at distance 8 the last eight bytes of output are a state (match_copy.cuh) that matches only
 * repeat and literals update.  A scan over the sequences gives the state after each one.  A word of
 * output is then the state after the last sequence whose literals end in the word or before it.
 * Literals that cross into the following word are the exception: their lanes store them afterwards.
 */
#ifndef WHARF_KERNELS_LZ_CYCLE_CUH
#define WHARF_KERNELS_LZ_CYCLE_CUH

#include "kernels/lz_write.cuh"

namespace wharf
{
namespace lz
{

/* The most literals of a sequence: beyond 8, two would update the same byte of the state. */
constexpr uint32_t MOST_CYCLE_LITERALS = 8;
/* This path pays for batches with at least so many such matches, of so many bytes. */
constexpr unsigned MIN_CYCLE_MATCHES = 3;
constexpr uint32_t MIN_CYCLE_LENGTH = 32;

/* One lane.  The state update by n literals, the first of which goes to `place`. */
WHARF_DEVICE cycle_state own_literals(const uint8_t *literals, uint32_t n, uint32_t place,
                                      uint32_t most)
{
    cycle_state own = {0, 0};
    for (uint32_t k = 0; k < most; k++) {
        uint32_t shift = 8 * ((place + k) & 7);
        if (k < n) {
            own.bytes |= (uint64_t)load(literals + k) << shift;
            own.mask |= (uint64_t)0xff << shift;
        }
    }
    return own;
}

/* collective.  Stores words 0 to n - 1.  Word i is the state of the last lane whose `begins` is at
 * most i, or `before` if there is no such lane. */
WHARF_DEVICE void store_cycle(uint64_t *words, uint32_t n, uint32_t begins, uint64_t state,
                              uint64_t before)
{
    WHARF_NO_UNROLL
    for (uint32_t first = 0; first < n; first += 32) {
        uint32_t i = first + lane_id();
        unsigned finder = find_cycle(begins, i);
        uint64_t word = shfl(state, finder);
        word = shfl(begins, finder) <= i ? word : before;
        if (i < n)
            store(words + i, word);
    }
}

/*
 * collective.  Writes a batch of `total` bytes, 8 or more.  Each sequence has at most
 * MOST_CYCLE_LITERALS literals and a match at distance 8, or no match.  The batch begins at
 * MIN_CYCLE_POSITION or later.  All output before must be visible.  Synchronises at its end.
 */
WHARF_DEVICE void write_cycle(const batch &b, const sequence &s, uint32_t total)
{
    uint8_t *to = b.out + b.base;
    uint32_t skew = reinterpret_cast<uintptr_t>(to) & 7;
    uint8_t *first = to - skew;
    uint32_t place = skew + s.begin;
    uint32_t most = reduce_max(s.n_literals);
    uint64_t before = load_cycle(to);
    cycle_state own = own_literals(b.in + s.literals, s.n_literals, place, most);
    cycle_state after_each = scan_cycle(own);
    uint64_t state = after_each.bytes | (before & ~after_each.mask);
    uint32_t begins = (s.n_literals ? place + s.n_literals - 1 : place) >> 3;
    uint32_t end = skew + total;
    uint64_t *words = reinterpret_cast<uint64_t *>(first);
    syncwarp(); /* all have loaded the bytes before `to`, which the first word has again */
    store_cycle(words, end / 8, s.length ? begins : 0xffffffffu, state, before);
    uint64_t after = shfl(state, 31);
    if (lane_id() < (end & 7))
        store(first + (end & ~7u) + lane_id(), (uint8_t)(after >> 8 * lane_id()));
    syncwarp();
    for (uint32_t k = 0; k < most; k++) {
        uint32_t at = place + k;
        if (k < s.n_literals && at >> 3 < begins)
            store(first + at, (uint8_t)(own.bytes >> 8 * (at & 7)));
    }
    syncwarp();
}

} // namespace lz
} // namespace wharf

#endif
