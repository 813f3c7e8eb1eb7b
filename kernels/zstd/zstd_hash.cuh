/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_hash.cuh: XXH64 (encoders/xxh64.c) of a frame's output.
 *
 * Idea: each of the four sums is a chain over the stripes of 32 bytes: add, rotate, multiply.  Only
 * the product of each word with PRIME_2 does not depend on the chain.  So the lanes load and
 * multiply the words of eight stripes at once; then every lane follows the chain of sum (lane
 * modulo 4) from stripe to stripe.
 */
#ifndef WHARF_KERNELS_ZSTD_ZSTD_HASH_CUH
#define WHARF_KERNELS_ZSTD_ZSTD_HASH_CUH

#include "kernels/match_copy.cuh"
#include "kernels/zstd/zstd_state.cuh"

namespace wharf
{
namespace zstd
{

constexpr uint64_t PRIME_1 = 0x9e3779b185ebca87u, PRIME_2 = 0xc2b2ae3d27d4eb4fu,
                   PRIME_3 = 0x165667b19e3779f9u, PRIME_4 = 0x85ebca77c2b2ae63u,
                   PRIME_5 = 0x27d4eb2f165667c5u;
constexpr uint32_t STRIPE_NBYTES = 32;

WHARF_DEVICE uint64_t rotate_left(uint64_t v, unsigned n)
{
    return v << n | v >> (64 - n);
}

WHARF_DEVICE uint64_t mix(uint64_t sum, uint64_t product)
{
    return rotate_left(sum + product, 31) * PRIME_1;
}

/* collective. */
WHARF_DEVICE void begin_hash(state &st)
{
    st.hashed = st.frame_out;
    if (lane_id() < 4) {
        constexpr uint64_t first[4] = {PRIME_1 + PRIME_2, PRIME_2, 0, 0 - PRIME_1};
        uint64_t v = lane_id() == 0   ? first[0]
                     : lane_id() == 1 ? first[1]
                     : lane_id() == 2 ? first[2]
                                      : first[3];
        store(&st.keep->sums[lane_id()], v);
    }
    syncwarp();
}

/* One lane.  n bytes, 4 or 8, from any address. */
WHARF_DEVICE uint64_t load_few(const uint8_t *p, unsigned n)
{
    uint64_t v = 0;
    for (unsigned k = 0; k < n; k++)
        v |= (uint64_t)load(p + k) << 8 * k;
    return v;
}

/* One lane.  8 bytes of the output, from any address.  Aligned words end up to 7 bytes behind them:
 * at the end of the output's room it goes byte by byte. */
WHARF_DEVICE uint64_t load_output(const state &st, uint32_t at)
{
    return st.out_avail - at >= 15 ? load_8(st.out + at, st.out) : load_few(st.out + at, 8);
}

/* collective.  Adds the whole stripes of the output so far, which is there (syncwarp).  Sums
 * are in memory between blocks. */
WHARF_DEVICE void add_hash(state &st)
{
    uint32_t n_stripes = (st.n_out - st.hashed) / STRIPE_NBYTES;
    uint64_t sum = load(&st.keep->sums[lane_id() & 3]);
    syncwarp();
    for (uint32_t first = 0; first < n_stripes; first += 8) {
        uint32_t n = n_stripes - first < 8 ? n_stripes - first : 8;
        uint64_t product = 0;
        if (lane_id() < 4 * n)
            product = load_output(st, st.hashed + STRIPE_NBYTES * first + 8 * lane_id()) * PRIME_2;
        syncwarp(); /* lanes meet, for the compiler too */
        for (uint32_t k = 0; k < n; k++)
            sum = mix(sum, shfl(product, 4 * k + (lane_id() & 3)));
    }
    st.hashed += STRIPE_NBYTES * n_stripes;
    if (lane_id() < 4)
        store(&st.keep->sums[lane_id()], sum);
    syncwarp();
}

/* collective.  The low half of the checksum of all the frame's output, which is there. */
WHARF_DEVICE uint32_t finish_hash(state &st)
{
    add_hash(st);
    uint64_t sum = PRIME_5, own = load(&st.keep->sums[lane_id() & 3]);
    if (st.n_out - st.frame_out >= STRIPE_NBYTES) {
        uint64_t sums[4] = {shfl(own, 0), shfl(own, 1), shfl(own, 2), shfl(own, 3)};
        sum = rotate_left(sums[0], 1) + rotate_left(sums[1], 7) + rotate_left(sums[2], 12) +
              rotate_left(sums[3], 18);
        for (unsigned i = 0; i < 4; i++)
            sum = (sum ^ mix(0, sums[i] * PRIME_2)) * PRIME_1 + PRIME_4;
    }
    /* The rest, of less than a stripe, by all lanes alike. */
    sum += st.n_out - st.frame_out;
    const uint8_t *p = st.out + st.hashed;
    uint32_t n = st.n_out - st.hashed;
    for (; n >= 8; n -= 8, p += 8)
        sum = rotate_left(sum ^ mix(0, load_few(p, 8) * PRIME_2), 27) * PRIME_1 + PRIME_4;
    if (n >= 4) {
        sum = rotate_left(sum ^ load_few(p, 4) * PRIME_1, 23) * PRIME_2 + PRIME_3;
        n -= 4;
        p += 4;
    }
    for (; n > 0; n--, p++)
        sum = rotate_left(sum ^ load(p) * PRIME_5, 11) * PRIME_1;
    sum = (sum ^ sum >> 33) * PRIME_2;
    sum = (sum ^ sum >> 29) * PRIME_3;
    return (uint32_t)(sum ^ sum >> 32);
}

} // namespace zstd
} // namespace wharf

#endif
