/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_spread.cuh: tables of one distribution of bytes, up to 128 KiB, that the warps of a block
 * share.
 *
 * Idea: shared memory has 32 banks of 4 bytes, and lanes that read different words of one bank wait
 * for each other: 32 random words take 3.5 turns.  So there are many copies of the tables, each in
 * its own banks, and a lane reads the copy in its banks.
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

} // namespace rans
} // namespace wharf

#endif
