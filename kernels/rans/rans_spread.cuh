/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_spread.cuh: tables of one distribution of bytes that a block's warps share, up to 128 KiB.
 *
 * Shared memory has 32 banks of 4 bytes, and lanes that look up in the same bank at different
 * places wait for each other: 32 random places take 3.5 turns.  So these tables are there many
 * times, and a lane looks up in those of its own banks.
 */
#ifndef WHARF_KERNELS_RANS_RANS_SPREAD_CUH
#define WHARF_KERNELS_RANS_RANS_SPREAD_CUH

#include "kernels/rans/rans_model.cuh"

namespace wharf
{
namespace rans
{

constexpr unsigned SPREAD_NBITS = 15;
static_assert(SPREAD_NBITS >= PACKED_NBITS);

union alignas(16) spread_tables {
    /* SPREAD, n up to 11: model_tables' entries, slot i's from word i * 2^(SPREAD_NBITS - n) on, 16
     * times and more. */
    uint32_t words[1 << SPREAD_NBITS];
    /* RANGED, n from 12 on: each slot's symbol, and for each lane bucket_tables' ranges. */
    struct {
        uint8_t symbols[1 << 16];
        uint32_t ranges[256][WARP_LANES];
    } ranged;
};

/* Whether a look-up is in them. */
template <lookup KIND>
WHARF_CONSTEXPR bool is_spread()
{
    return KIND == lookup::SPREAD || KIND == lookup::RANGED;
}

/* A model with its tables. */
template <lookup KIND>
WHARF_DEVICE model with_spread(const model &given, spread_tables &tables)
{
    model m = given;
    if (KIND == lookup::SPREAD) {
        uint32_t row_nwords = 1u << (SPREAD_NBITS - m.n_bits);
        m.row_nbytes = row_nwords * (uint32_t)sizeof(tables.words[0]);
        m.own.init(&tables.words[lane_id() & (row_nwords - 1)]);
    } else {
        m.symbols.init(&tables.ranged.symbols[0]);
        m.own.init(&tables.ranged.ranges[0][lane_id()]);
    }
    return m;
}

/* ---- filling -------------------------------------------------------------------------------- */

WHARF_DEVICE void fill_words(spread_tables &t, const model &m, uint32_t thread, uint32_t n_threads)
{
    u32x4 *quads = reinterpret_cast<u32x4 *>(t.words);
    for (uint32_t i = thread; i < sizeof(t.words) / (sizeof(u32x4)); i += n_threads) {
        uint32_t v = load(&m.packed[4 * i >> (SPREAD_NBITS - m.n_bits)]);
        store(&quads[i], u32x4{v, v, v, v});
    }
}

/* One lane.  The symbols of 16 slots from `slot` on; of those that are nobody's any. */
WHARF_DEVICE u32x4 symbols_from(const model &m, uint32_t slot)
{
    uint32_t words[4] = {0, 0, 0, 0};
    uint32_t symbol = 0, end = slot; /* of its range */
    WHARF_UNROLL
    for (unsigned i = 0; i < 4; i++) {
        WHARF_NO_UNROLL
        for (unsigned k = 0; k < 4; k++, slot++) {
            if (slot >= end && slot < m.total) {
                found f = find_byte<lookup::BUCKET>(m, slot);
                symbol = f.symbol;
                end = slot - f.place + f.frequency;
            }
            words[i] |= symbol << 8 * k;
        }
    }
    return {words[0], words[1], words[2], words[3]};
}

WHARF_DEVICE void fill_ranged(spread_tables &t, const model &m, uint32_t thread, uint32_t n_threads)
{
    u32x4 *quads = reinterpret_cast<u32x4 *>(t.ranged.symbols);
    for (uint32_t i = thread; i < (1u << m.n_bits) / sizeof(u32x4); i += n_threads)
        store(&quads[i], symbols_from(m, (uint32_t)sizeof(u32x4) * i));
    for (uint32_t i = thread; i < 256 * WARP_LANES; i += n_threads)
        store(&t.ranged.ranges[i / WARP_LANES][i % WARP_LANES], load(&m.ranges[i / WARP_LANES]));
}

/* All lanes of a block: thread number `thread` of n_threads.  From a model's own tables. */
WHARF_DEVICE void fill_spread(spread_tables &t, const model &m, uint32_t thread, uint32_t n_threads)
{
    if (m.kind == lookup::PACKED)
        fill_words(t, m, thread, n_threads);
    else
        fill_ranged(t, m, thread, n_threads);
}

} // namespace rans
} // namespace wharf

#endif
