/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_find.cuh: the smallest form of a line in each scheme, by the lanes that have 16 bytes of it
 * each: the device's side of encoders/line/line_compress.c, whose bytes it gives.
 *
 * All functions are collective.  `team` is the mask of the lanes of this lane's line, `place`
 * counts them from 0 on.
 */
#ifndef WHARF_KERNELS_LINE_LINE_FIND_CUH
#define WHARF_KERNELS_LINE_LINE_FIND_CUH

#include "kernels/line/line_quad.cuh"

namespace wharf
{

/* A lane's 16 bytes, and its line. */
struct line_piece {
    uint32_t words[4];
    uint32_t team;
    uint32_t place;
};

/* One lane.  Value number i of 2 to the power of BASE bytes, sign-extended. */
template <uint32_t BASE>
WHARF_DEVICE int64_t line_value(const line_piece &piece, unsigned i)
{
    if (BASE == 3)
        return (int64_t)((uint64_t)piece.words[2 * i + 1] << 32 | piece.words[2 * i]);
    if (BASE == 2)
        return (int32_t)piece.words[i];
    return (int16_t)(piece.words[i / 2] >> 16 * (i % 2));
}

/* One lane.  A number of so many bytes, 1, 2 or 4, in its low bits, sign-extended. */
template <uint32_t DELTA>
WHARF_DEVICE int64_t line_extend(int64_t v)
{
    return DELTA == 2 ? (int64_t)(int32_t)v : DELTA == 1 ? (int64_t)(int16_t)v : (int64_t)(int8_t)v;
}

/* A difference of two values, as a signed number of a value's size. */
template <uint32_t BASE>
WHARF_DEVICE int64_t line_difference(int64_t a, int64_t b)
{
    uint64_t d = (uint64_t)a - (uint64_t)b;
    return BASE == 3 ? (int64_t)d : BASE == 2 ? (int64_t)(int32_t)d : (int64_t)(int16_t)d;
}

struct line_bdi_fit {
    bool fits;     /* all values of the line */
    uint32_t near; /* which of this lane's values are near zero */
    int64_t base;
};

/* Of a variant, whose base and delta have 2 to these powers of bytes. */
template <uint32_t BASE, uint32_t DELTA>
WHARF_DEVICE line_bdi_fit line_fit_bdi(const line_piece &piece)
{
    constexpr unsigned N = 16 >> BASE;
    line_bdi_fit fit = {true, 0, 0};
    int64_t first = 0;
    bool has_far = false;
    WHARF_UNROLL
    for (unsigned i = 0; i < N; i++) {
        int64_t v = line_value<BASE>(piece, i);
        bool is_near = line_extend<DELTA>(v) == v;
        fit.near |= is_near ? 1u << i : 0;
        if (!is_near && !has_far) {
            first = v;
            has_far = true;
        }
    }
    uint32_t far = ballot(has_far) & piece.team;
    fit.base = (int64_t)shfl((uint64_t)first, far ? first_lane(far) : lane_id());
    if (far == 0)
        fit.base = 0;
    WHARF_UNROLL
    for (unsigned i = 0; i < N; i++) {
        int64_t d = line_difference<BASE>(line_value<BASE>(piece, i), fit.base);
        fit.fits = fit.fits && (fit.near >> i & 1 || line_extend<DELTA>(d) == d);
    }
    fit.fits = (ballot(!fit.fits) & piece.team) == 0;
    return fit;
}

/* The variant whose content is smallest, the first of equals; 0: none. */
WHARF_DEVICE uint32_t line_find_bdi(const line_piece &piece, uint32_t shift)
{
    uint32_t best = 0, best_nbytes = 1u << shift;
    auto offer = [&](uint32_t variant, bool fits) {
        uint32_t nbytes = bdi_line_code(variant, shift).nbytes();
        if (fits && nbytes < best_nbytes) {
            best = variant;
            best_nbytes = nbytes;
        }
    };
    /* Those of the line's first 8 bytes are those of all. */
    unsigned first = first_lane(piece.team);
    uint32_t lo = shfl(piece.words[0], first), hi = shfl(piece.words[1], first);
    bool differs = piece.words[0] != lo || piece.words[1] != hi || piece.words[2] != lo ||
                   piece.words[3] != hi;
    offer(WHARF_LINE_BDI_REPEAT, (ballot(differs) & piece.team) == 0);
    offer(WHARF_LINE_BDI_8_1, line_fit_bdi<3, 0>(piece).fits);
    offer(WHARF_LINE_BDI_8_2, line_fit_bdi<3, 1>(piece).fits);
    offer(WHARF_LINE_BDI_8_4, line_fit_bdi<3, 2>(piece).fits);
    offer(WHARF_LINE_BDI_4_1, line_fit_bdi<2, 0>(piece).fits);
    offer(WHARF_LINE_BDI_4_2, line_fit_bdi<2, 1>(piece).fits);
    offer(WHARF_LINE_BDI_2_1, line_fit_bdi<1, 0>(piece).fits);
    return best;
}

/* One lane.  The smallest pattern that all four words have. */
WHARF_DEVICE uint32_t line_find_pattern(const line_piece &piece)
{
    uint32_t have = 0xff;
    WHARF_UNROLL
    for (unsigned i = 0; i < 4; i++) {
        uint32_t w = piece.words[i];
        int32_t n = (int32_t)w;
        uint32_t has = 1u << WHARF_LINE_FPC_RAW;
        has |= w == 0 ? 1u << WHARF_LINE_FPC_ZEROS : 0;
        has |= n >= -8 && n < 8 ? 1u << WHARF_LINE_FPC_SIGNED_4 : 0;
        has |= n == (int8_t)n ? 1u << WHARF_LINE_FPC_SIGNED_8 : 0;
        has |= n == (int16_t)n ? 1u << WHARF_LINE_FPC_SIGNED_16 : 0;
        has |= (w & 0xffff) == 0 ? 1u << WHARF_LINE_FPC_HIGH_HALF : 0;
        has |= (int16_t)w == (int8_t)w && n >> 16 == (int8_t)(n >> 16)
                   ? 1u << WHARF_LINE_FPC_TWO_BYTES
                   : 0;
        has |= w == (w & 255) * 0x01010101u ? 1u << WHARF_LINE_FPC_REPEATED : 0;
        have &= has;
    }
    /* REPEATED goes before the patterns of 8 bytes. */
    uint32_t small = have & ((1u << WHARF_LINE_FPC_SIGNED_16) - 1);
    if (small == 0 && have >> WHARF_LINE_FPC_REPEATED & 1)
        return WHARF_LINE_FPC_REPEATED;
    return ffs(have) - 1;
}

/* A line's dictionary, and this lane's words in it. */
struct line_cpack_fit {
    bool fits;
    uint32_t n_words;
    uint32_t words[WHARF_LINE_CPACK_MAX_NWORDS];
    uint32_t nibbles; /* of this lane's words, four bits each */
};

WHARF_DEVICE line_cpack_fit line_find_cpack(const line_piece &piece)
{
    line_cpack_fit fit = {true, 0, {0, 0, 0, 0}, 0};
    uint32_t open = 0; /* words without a source */
    WHARF_UNROLL
    for (unsigned i = 0; i < 4; i++) {
        if (piece.words[i] >> 8 != 0)
            open |= 1u << i;
        else if (piece.words[i] != 0)
            fit.nibbles |= (uint32_t)WHARF_LINE_CPACK_HAS_BYTE << 4 * i;
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < WHARF_LINE_CPACK_MAX_NWORDS; k++) {
        uint32_t left = ballot(open != 0) & piece.team, own = 0;
        WHARF_UNROLL
        for (unsigned i = 4; i-- > 0;)
            own = open >> i & 1 ? piece.words[i] : own;
        uint32_t word = shfl(own, left ? first_lane(left) : lane_id());
        if (left == 0)
            continue;
        fit.words[k] = word;
        fit.n_words = k + 1;
        WHARF_UNROLL
        for (unsigned i = 0; i < 4; i++)
            if (open >> i & 1 && piece.words[i] >> 8 == word >> 8) {
                uint32_t has_byte = piece.words[i] != word ? WHARF_LINE_CPACK_HAS_BYTE : 0;
                fit.nibbles |= ((k + 1) | has_byte) << 4 * i;
                open &= ~(1u << i);
            }
    }
    fit.fits = (ballot(open != 0) & piece.team) == 0;
    return fit;
}

/* The sum over a line's lanes. */
WHARF_DEVICE uint32_t line_sum(uint32_t own, const line_piece &piece)
{
    line_amount amount = line_add_up(own, piece.place, 0);
    return shfl(amount.before + own, 31 - clz(piece.team));
}

} // namespace wharf

#endif
