/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_find_palette.cuh: a group's palette and its lines' indexes, as
 * encoders/line/line_compress_palette.c makes them.
 */
#ifndef WHARF_KERNELS_LINE_LINE_FIND_PALETTE_CUH
#define WHARF_KERNELS_LINE_LINE_FIND_PALETTE_CUH

#include "kernels/line/line_find.cuh"

namespace wharf
{

constexpr uint32_t LINE_N_EXPONENTS = 256;
constexpr uint32_t LINE_MAX_NPALETTE = 15;
constexpr uint32_t LINE_NO_RANK = 255;

/* In shared memory: how often each exponent occurs, and then which of the most frequent it is. */
struct line_ranks {
    uint32_t of[LINE_N_EXPONENTS];
};

struct line_number {
    uint32_t exponent;
    uint32_t field;
    uint32_t low; /* of f16 */
};

/* One lane.  Value i of a piece, taken apart. */
WHARF_DEVICE line_number line_take_apart(const line_piece &piece, uint32_t type, unsigned i)
{
    bool is_pair = type <= WHARF_LINE_F16;
    uint32_t bits = is_pair ? piece.words[i / 2 & 3] >> 16 * (i % 2) & 0xffff
                            : piece.words[i / 4 & 3] >> 8 * (i % 4) & 0xff;
    uint32_t f = line_field_nbits(type), n = type == WHARF_LINE_BF16 ? 16 : 8;
    uint32_t upper = type == WHARF_LINE_F16 ? bits >> 8 : bits;
    upper = (upper << 1 | upper >> (n - 1)) & ((1u << n) - 1);
    return {upper >> f, upper & ((1u << f) - 1), bits & 255};
}

/* How many values 16 bytes are.  Loops over them go to the most that there can be, so that the
 * compiler knows all indexes and a piece's words stay in registers. */
constexpr unsigned LINE_MAX_PIECE_NVALUES = 16;

WHARF_DEVICE unsigned line_piece_nvalues(uint32_t type)
{
    return type <= WHARF_LINE_F16 ? 8 : 16;
}

/* collective.  Begins to count. */
WHARF_DEVICE void line_clear_counts(line_ranks &ranks)
{
    for (uint32_t i = lane_id(); i < LINE_N_EXPONENTS; i += WARP_LANES)
        store(&ranks.of[i], 0u);
    syncwarp();
}

/* One lane. */
WHARF_DEVICE void line_count_exponents(line_ranks &ranks, const line_piece &piece, uint32_t type)
{
    WHARF_UNROLL
    for (unsigned i = 0; i < LINE_MAX_PIECE_NVALUES; i++)
        if (i < line_piece_nvalues(type))
            atomic_add(&ranks.of[line_take_apart(piece, type, i).exponent], 1);
}

/* collective.  Makes ranks of counts.  Returns in lane i the exponent of rank i, or 0. */
WHARF_DEVICE uint32_t line_rank_exponents(line_ranks &ranks)
{
    constexpr unsigned N_OWN = LINE_N_EXPONENTS / WARP_LANES;
    uint32_t lane = lane_id(), exponent = 0, keys[N_OWN];
    syncwarp();
    WHARF_UNROLL
    for (unsigned k = 0; k < N_OWN; k++) {
        uint32_t e = N_OWN * lane + k, count = load(&ranks.of[e]);
        /* The lowest exponent is the greatest of equals. */
        keys[k] = count != 0 ? count << 8 | (LINE_N_EXPONENTS - 1 - e) : 0;
        store(&ranks.of[e], LINE_NO_RANK);
    }
    syncwarp();
    for (uint32_t rank = 0; rank < LINE_MAX_NPALETTE; rank++) {
        uint32_t own = 0;
        WHARF_UNROLL
        for (unsigned k = 0; k < N_OWN; k++)
            own = keys[k] > own ? keys[k] : own;
        uint32_t most = reduce_max(own);
        if (most == 0)
            break;
        uint32_t e = LINE_N_EXPONENTS - 1 - (most & 255);
        if (lane == rank)
            exponent = e;
        if (own == most)
            store(&ranks.of[e], rank);
        WHARF_UNROLL
        for (unsigned k = 0; k < N_OWN; k++)
            keys[k] = keys[k] == most ? 0 : keys[k];
    }
    syncwarp();
    return exponent;
}

/* One lane.  How many of its values a palette of indexes of `width` bits lacks. */
WHARF_DEVICE uint32_t line_count_escapes(const line_ranks &ranks, const line_piece &piece,
                                         uint32_t type, uint32_t width)
{
    uint32_t n = 0;
    WHARF_UNROLL
    for (unsigned i = 0; i < LINE_MAX_PIECE_NVALUES; i++) {
        if (i >= line_piece_nvalues(type))
            break;
        uint32_t rank = load(&ranks.of[line_take_apart(piece, type, i).exponent]);
        n += rank >= (1u << width) - 1;
    }
    return n;
}

} // namespace wharf

#endif
