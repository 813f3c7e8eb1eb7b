/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_cycle.cuh: sequences whose matches all are at distance 8, as in columns of 8-byte values.
 *
 * Each byte is then the last literal at an address of the same residue modulo 8.  So aligned words
 * of output are a state that literals change and matches do not: a word is the state after the last
 * sequence whose last literal is in it or before, but for literals of sequences that have some in
 * the word behind too; their lanes store these afterwards.
 */
#ifndef WHARF_KERNELS_LZ_CYCLE_CUH
#define WHARF_KERNELS_LZ_CYCLE_CUH

#include "kernels/lz_write.cuh"

namespace wharf
{
namespace lz
{

/* The most literals of a sequence here: no two of them have the same residue. */
constexpr uint32_t MOST_CYCLE_LITERALS = 8;
/* It pays from so many such matches on, of so many bytes. */
constexpr unsigned MIN_CYCLE_MATCHES = 3;
constexpr uint32_t MIN_CYCLE_LENGTH = 32;

/* Bytes by the residues of their addresses: those that `mask` has are in `bytes`. */
struct cycle_state {
    uint64_t bytes, mask;
};

/* One lane.  Its sequence's literals, of which the first is at `place`. */
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

/* collective.  The state after each lane's sequence, of which `own` are the literals, and `before`
 * the state before the first. */
WHARF_DEVICE uint64_t scan_cycle(cycle_state own, uint64_t before)
{
    WHARF_UNROLL
    for (unsigned delta = 1; delta < 32; delta *= 2) {
        /* A lane without another below gets its own, which changes nothing. */
        uint64_t below = shfl_up(own.bytes, delta), below_mask = shfl_up(own.mask, delta);
        own.bytes |= below & ~own.mask;
        own.mask |= below_mask;
    }
    return own.bytes | (before & ~own.mask);
}

/* collective.  The words of output whose number is less than n: the state of the last lane whose
 * `begins` is not above the number, or `before`. */
WHARF_DEVICE void store_cycle(uint64_t *words, uint32_t n, uint32_t begins, uint64_t state,
                              uint64_t before)
{
    WHARF_NO_UNROLL
    for (uint32_t first = 0; first < n; first += 32) {
        uint32_t i = first + lane_id();
        unsigned finder = 0;
        WHARF_UNROLL
        for (unsigned step = 16; step; step /= 2)
            if (shfl(begins, finder + step) <= i)
                finder += step;
        uint64_t word = shfl(state, finder);
        word = shfl(begins, finder) <= i ? word : before;
        if (i < n)
            store(words + i, word);
    }
}

/*
 * collective.  Writes a batch of `total` bytes, 8 or more, of sequences of up to
 * MOST_CYCLE_LITERALS literals and a match at distance 8 or none, at MIN_CYCLE_POSITION or behind.
 * What is before must be there; synchronises at its end.
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
    uint64_t state = scan_cycle(own, before);
    uint32_t begins = (s.n_literals ? place + s.n_literals - 1 : place) >> 3;
    uint32_t end = skew + total;
    uint64_t *words = reinterpret_cast<uint64_t *>(first);
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
