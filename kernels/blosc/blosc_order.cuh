/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_order.cuh: puts shuffled bytes and bits in order: from planes
 * (encoders/blosc/blosc_order.h) in a stage, which is a copy of blocks of the output, to these
 * blocks.
 *
 * Elements of 1 to 16 bytes go by words: a lane takes the same word of all planes, transposes these
 * in registers, and stores whole elements, 16 bytes at a time.  Others go byte by byte.
 *
 * All functions are for a TEAM, of a warp or of a block of warps: every thread of it calls them, in
 * the same place.
 */
#ifndef WHARF_KERNELS_BLOSC_BLOSC_ORDER_CUH
#define WHARF_KERNELS_BLOSC_BLOSC_ORDER_CUH

#include "kernels/decoder.cuh"

namespace wharf
{
namespace blosc
{

struct warp_team {
    static constexpr uint32_t SIZE = WARP_LANES;
    WHARF_DEVICE_MEMBER uint32_t first() const { return 0; } /* of this warp's */
    WHARF_DEVICE_MEMBER uint32_t index() const { return lane_id(); }
    WHARF_DEVICE_MEMBER bool is_first_warp() const { return true; }
    WHARF_DEVICE_MEMBER void sync() const { syncwarp(); }
    WHARF_DEVICE_MEMBER bool is_stopped(const stop_word &stop) const
    {
        return wharf::is_stopped(stop);
    }
};

template <unsigned WARPS>
struct block_team {
    static constexpr uint32_t SIZE = WARPS * WARP_LANES;
    unsigned warp;
    WHARF_DEVICE_MEMBER uint32_t first() const { return warp * WARP_LANES; }
    WHARF_DEVICE_MEMBER uint32_t index() const { return first() + lane_id(); }
    WHARF_DEVICE_MEMBER bool is_first_warp() const { return warp == 0; }
    WHARF_DEVICE_MEMBER void sync() const { syncblock(); }
    WHARF_DEVICE_MEMBER bool is_stopped(const stop_word &) const { return false; } /* of batches */
};

/* Planes of n blocks that lie behind one another, in the stage as in the output. */
struct planes {
    const uint8_t *stage;
    uint8_t *out;
    uint32_t n_blocks, block_nbytes;
    uint32_t unit_nbytes;  /* of an element */
    uint32_t plane_nbytes; /* of each of its planes */
};

/* ---- words ----------------------------------------------------------------------------------- */

/* Byte i of word k goes to byte k of word i. */
WHARF_DEVICE void transpose_bytes(uint32_t (&w)[4])
{
    uint32_t low = byte_perm(w[0], w[1], 0x5140), high = byte_perm(w[0], w[1], 0x7362);
    uint32_t low_2 = byte_perm(w[2], w[3], 0x5140), high_2 = byte_perm(w[2], w[3], 0x7362);
    w[0] = byte_perm(low, low_2, 0x5410);
    w[1] = byte_perm(low, low_2, 0x7632);
    w[2] = byte_perm(high, high_2, 0x5410);
    w[3] = byte_perm(high, high_2, 0x7632);
}

/* Swaps bits of a with bits of b: those of a that are `shift` above the mask with those of b in it.
 */
WHARF_DEVICE void swap_bits(uint32_t &a, uint32_t &b, unsigned shift, uint32_t mask)
{
    uint32_t t = (a >> shift ^ b) & mask;
    b ^= t;
    a ^= t << shift;
}

/* In each byte place: bit c of word r goes to bit r of word c. */
WHARF_DEVICE void transpose_bits(uint32_t *w)
{
    WHARF_UNROLL
    for (unsigned i = 0; i < 4; i++)
        swap_bits(w[i], w[i + 4], 4, 0x0f0f0f0f);
    WHARF_UNROLL
    for (unsigned i = 0; i < 4; i++)
        swap_bits(w[(i & 1) + 2 * (i & 2)], w[(i & 1) + 2 * (i & 2) + 2], 2, 0x33333333);
    WHARF_UNROLL
    for (unsigned i = 0; i < 4; i++)
        swap_bits(w[2 * i], w[2 * i + 1], 1, 0x55555555);
}

/* From N words that hold byte i of element i in their byte i, for four elements behind one another
 * (or, of eights of elements, four eights), these elements as they lie in memory. */
template <unsigned N>
WHARF_DEVICE void join_elements(const uint32_t (&w)[N], uint32_t (&to)[N / 4][4])
{
    WHARF_UNROLL
    for (unsigned q = 0; q < N / 4; q++) {
        uint32_t quad[4] = {w[4 * q], w[4 * q + 1], w[4 * q + 2], w[4 * q + 3]};
        transpose_bytes(quad);
        WHARF_UNROLL
        for (unsigned i = 0; i < 4; i++)
            to[(i * (N / 4) + q) / 4][(i * (N / 4) + q) % 4] = quad[i];
    }
}

/* collective.  Of Q neighbouring lanes with Q quads each, lane i gets quad i of each.  So the lanes
 * store what lies side by side. */
template <unsigned Q>
WHARF_DEVICE void exchange(uint32_t (&quads)[Q][4])
{
    WHARF_UNROLL
    for (unsigned d = 1; d < Q; d *= 2) {
        bool is_upper = lane_id() & d;
        WHARF_UNROLL
        for (unsigned i = 0; i < Q * 4; i++) {
            if (i / 4 & d)
                continue;
            uint32_t &low = quads[i / 4][i % 4], &high = quads[(i / 4 | d) % Q][i % 4];
            uint32_t other = shfl(is_upper ? low : high, lane_id() ^ d);
            low = is_upper ? other : low;
            high = is_upper ? high : other;
        }
    }
}

/* Where no word of a plane is. */
constexpr uint32_t NOWHERE = 0xffffffff;

/* collective.  Stores elements of N words, `at` bytes behind `out`. */
template <unsigned N>
WHARF_DEVICE void store_elements(uint8_t *out, uint32_t at, const uint32_t (&w)[N])
{
    constexpr unsigned Q = N / 4;
    uint32_t quads[Q][4];
    join_elements<N>(w, quads);
    exchange<Q>(quads);
    WHARF_UNROLL
    for (unsigned i = 0; i < Q; i++) {
        uint32_t to = Q > 1 ? shfl(at, (lane_id() & ~(Q - 1)) | i) : at;
        if (to != NOWHERE)
            store(reinterpret_cast<u32x4 *>(out + to) + lane_id() % Q,
                  u32x4{quads[i][0], quads[i][1], quads[i][2], quads[i][3]});
    }
}

/* collective.  Of two bytes. */
template <>
WHARF_DEVICE_MEMBER void store_elements<2>(uint8_t *out, uint32_t at, const uint32_t (&w)[2])
{
    uint64_t low = byte_perm(w[0], w[1], 0x5140), high = byte_perm(w[0], w[1], 0x7362);
    if (at != NOWHERE)
        store(reinterpret_cast<uint64_t *>(out + at), low | high << 32);
}

/* Of each eight words one byte of eight elements: these bytes side by side. */
template <unsigned N>
WHARF_DEVICE void sort_bits(uint32_t (&w)[N])
{
    constexpr unsigned T = N / 8;
    uint32_t sorted[N];
    WHARF_UNROLL
    for (unsigned k = 0; k < T; k++)
        transpose_bits(w + 8 * k);
    WHARF_UNROLL
    for (unsigned k = 0; k < N; k++)
        sorted[k] = w[k % T * 8 + k / T];
    WHARF_UNROLL
    for (unsigned k = 0; k < N; k++)
        w[k] = sorted[k];
}

/* N words from the same place of N planes, and a store of what they become; for the elements of
 * all blocks. */
template <unsigned N, bool IS_BITS, typename Team>
WHARF_DEVICE void order_words(const Team &team, const planes &p)
{
    uint32_t n_words = p.plane_nbytes / 4, n = n_words * p.n_blocks;
    for (uint32_t first = uniform(team.first()); first < n; first += Team::SIZE) {
        uint32_t i = first + lane_id(), block = i / n_words, at = 4 * (i - block * n_words);
        const uint8_t *from = p.stage + block * p.block_nbytes + at;
        uint32_t w[N] = {};
        if (i < n) {
            WHARF_UNROLL
            for (unsigned k = 0; k < N; k++)
                w[k] = load(reinterpret_cast<const uint32_t *>(from + k * p.plane_nbytes));
        }
        if constexpr (IS_BITS)
            sort_bits<N>(w);
        store_elements<N>(p.out, i < n ? block * p.block_nbytes + N * at : NOWHERE, w);
    }
}

/* ---- bytes ----------------------------------------------------------------------------------- */

template <typename Team>
WHARF_DEVICE void order_single_bytes(const Team &team, const planes &p)
{
    uint32_t n = p.plane_nbytes * p.n_blocks;
    for (uint32_t i = team.index(); i < n; i += Team::SIZE) {
        uint32_t block = i / p.plane_nbytes, at = i - block * p.plane_nbytes;
        const uint8_t *from = p.stage + block * p.block_nbytes + at;
        uint8_t *to = p.out + block * p.block_nbytes + at * p.unit_nbytes;
        for (uint32_t k = 0; k < p.unit_nbytes; k++, from += p.plane_nbytes)
            store(to + k, load(from));
    }
}

/* One byte of eight elements at a time. */
template <typename Team>
WHARF_DEVICE void order_single_bits(const Team &team, const planes &p)
{
    uint32_t n = p.plane_nbytes * p.n_blocks;
    for (uint32_t i = team.index(); i < n; i += Team::SIZE) {
        uint32_t block = i / p.plane_nbytes, at = i - block * p.plane_nbytes;
        const uint8_t *from = p.stage + block * p.block_nbytes + at;
        uint8_t *to = p.out + block * p.block_nbytes + 8 * at * p.unit_nbytes;
        for (uint32_t k = 0; k < p.unit_nbytes; k++) {
            uint32_t w[8];
            WHARF_UNROLL
            for (unsigned b = 0; b < 8; b++, from += p.plane_nbytes)
                w[b] = load(from);
            transpose_bits(w);
            WHARF_UNROLL
            for (unsigned e = 0; e < 8; e++)
                store(to + e * p.unit_nbytes + k, (uint8_t)w[e]);
        }
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Whether words of planes are aligned, and elements in the output to 16 bytes. */
WHARF_DEVICE bool goes_by_words(const planes &p)
{
    uintptr_t out = reinterpret_cast<uintptr_t>(p.out) | (p.n_blocks > 1 ? p.block_nbytes : 0);
    return (reinterpret_cast<uintptr_t>(p.stage) | p.plane_nbytes) % 4 == 0 && out % 16 == 0;
}

/* Puts bytes or bits in order, from the stage to the output. */
template <typename Team>
WHARF_DEVICE void order_planes(const Team &team, const planes &p, bool is_bits)
{
    uint32_t unit = goes_by_words(p) ? p.unit_nbytes : 0;
    if (is_bits) {
        switch (unit) {
        case 1:
            return order_words<8, true>(team, p);
        case 2:
            return order_words<16, true>(team, p);
        case 4:
            return order_words<32, true>(team, p);
        case 8:
            return order_words<64, true>(team, p);
        default:
            return order_single_bits(team, p);
        }
    }
    switch (unit) {
    case 2:
        return order_words<2, false>(team, p);
    case 4:
        return order_words<4, false>(team, p);
    case 8:
        return order_words<8, false>(team, p);
    case 16:
        return order_words<16, false>(team, p);
    default:
        return order_single_bytes(team, p);
    }
}

} // namespace blosc
} // namespace wharf

#endif
