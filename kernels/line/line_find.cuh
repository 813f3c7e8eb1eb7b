/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_find.cuh: finds the smallest form of a line in each scheme.  The lanes of a line hold 16
 * bytes of it each.  It makes the same choices as encoders/line/line_compress.c.
 *
 * A search returns a form: a key, and what the writer of that form needs.  A key is the content's
 * size followed by the code, so an encoder takes the form with the least key.
 */
#ifndef WHARF_KERNELS_LINE_LINE_FIND_CUH
#define WHARF_KERNELS_LINE_LINE_FIND_CUH

#include "kernels/line/line_quad.cuh"

namespace wharf
{

/* A lane's 16 bytes, and its line. */
struct line_piece {
    uint32_t words[4];
    uint32_t team;  /* a mask: the lanes of the line */
    uint32_t place; /* of this lane among them */
};

/* One lane.  A line has 2 to the power of `shift` bytes. */
WHARF_DEVICE line_piece make_line_piece(u32x4 quad, uint32_t shift)
{
    uint32_t n_lanes = 1u << (shift - 4), lane = lane_id();
    line_piece piece = {{quad.x, quad.y, quad.z, quad.w}, 0, lane & (n_lanes - 1)};
    piece.team = ((1u << n_lanes) - 1) << (lane - piece.place);
    return piece;
}

WHARF_DEVICE uint32_t make_line_key(uint32_t nbytes, uint32_t code)
{
    return nbytes << 8 | code;
}

constexpr uint32_t LINE_NO_KEY = ~0u;

/* collective.  Whether p holds in all lanes of the line. */
WHARF_DEVICE bool line_all(bool p, const line_piece &piece)
{
    return (ballot(!p) & piece.team) == 0;
}

/* collective.  The first lane of the line in which p holds; its last lane if there is none. */
WHARF_DEVICE unsigned line_first(bool p, const line_piece &piece)
{
    uint32_t last = piece.team & ~(piece.team >> 1);
    return first_lane((ballot(p) & piece.team) | last);
}

/* collective.  The sum over the lanes before this one in its line, and over all. */
struct line_sums {
    uint32_t before;
    uint32_t all;
};

WHARF_DEVICE line_sums line_sum(uint32_t own, const line_piece &piece)
{
    uint32_t before = line_add_up(own, piece.place, 0).before;
    return {before, shfl(before + own, 31 - clz(piece.team))};
}

/* ---- bdi -------------------------------------------------------------------------------------
 *
 * A value is near zero, and needs no base, if value + half < 2 * half as unsigned numbers; `half`
 * is 2 to the power of (a delta's bits - 1).  The base is the first value that is not near zero.
 */

struct line_bdi_form {
    uint32_t key;
    line_pair base;
};

/* collective.  Values of 4 bytes. */
WHARF_DEVICE bool line_fit_words(const line_piece &piece, uint32_t half, uint32_t *ret_base)
{
    bool is_far[4], has_far = false, fits = true;
    uint32_t own = 0;
    WHARF_UNROLL
    for (unsigned i = 4; i-- > 0;) {
        is_far[i] = piece.words[i] + half >= 2 * half;
        own = is_far[i] ? piece.words[i] : own;
        has_far = has_far || is_far[i];
    }
    uint32_t base = shfl(own, line_first(has_far, piece));
    WHARF_UNROLL
    for (unsigned i = 0; i < 4; i++)
        fits = fits && (!is_far[i] || piece.words[i] - base + half < 2 * half);
    *ret_base = base;
    return line_all(fits, piece);
}

/* One lane.  For each of its values of 8 bytes: all ones if the high word is not the sign extension
 * of the low one. */
struct line_highs {
    bool differ[2];
};

/* collective.  Values of 8 bytes.  `limit` is 2 * half - 1, because 2 * half may overflow. */
WHARF_DEVICE bool line_fit_pairs(const line_piece &piece, line_highs highs, uint32_t half,
                                 line_pair *ret_base)
{
    uint32_t limit = 2 * half - 1;
    bool is_far[2], fits = true;
    WHARF_UNROLL
    for (unsigned i = 0; i < 2; i++)
        is_far[i] = highs.differ[i] || piece.words[2 * i] + half > limit;
    line_pair own = {is_far[1] ? piece.words[2] : 0, is_far[1] ? piece.words[3] : 0};
    own.lo = is_far[0] ? piece.words[0] : own.lo;
    own.hi = is_far[0] ? piece.words[1] : own.hi;
    unsigned first = line_first(is_far[0] || is_far[1], piece);
    line_pair base = {shfl(own.lo, first), shfl(own.hi, first)};
    uint64_t from = ((uint64_t)base.hi << 32 | base.lo) - half;
    WHARF_UNROLL
    for (unsigned i = 0; i < 2; i++) {
        uint64_t d = ((uint64_t)piece.words[2 * i + 1] << 32 | piece.words[2 * i]) - from;
        fits = fits && (!is_far[i] || ((uint32_t)(d >> 32) == 0 && (uint32_t)d <= limit));
    }
    *ret_base = base;
    return line_all(fits, piece);
}

/* One lane.  Value i of 2 bytes, in the upper half of a word; the lower half is unspecified. */
WHARF_DEVICE uint32_t line_half(const line_piece &piece, unsigned i)
{
    return i % 2 ? piece.words[i / 2] : piece.words[i / 2] << 16;
}

/* collective.  Values of 2 bytes and deltas of 1. */
WHARF_DEVICE bool line_fit_halves(const line_piece &piece, uint32_t *ret_base)
{
    constexpr uint32_t HALF = 0x80u << 16;
    bool is_far[8], has_far = false, fits = true;
    uint32_t own = 0;
    WHARF_UNROLL
    for (unsigned i = 8; i-- > 0;) {
        is_far[i] = line_half(piece, i) + HALF >= 2 * HALF;
        own = is_far[i] ? line_half(piece, i) : own;
        has_far = has_far || is_far[i];
    }
    uint32_t base = shfl(own, line_first(has_far, piece)) & 0xffff0000u;
    WHARF_UNROLL
    for (unsigned i = 0; i < 8; i++)
        fits = fits && (!is_far[i] || line_half(piece, i) - base + HALF < 2 * HALF);
    *ret_base = base >> 16;
    return line_all(fits, piece);
}

/*
 * collective.  A line that fits a variant also fits the variants with the same base and longer
 * deltas.  So if no line of the warp fits those, the search skips the shorter ones.
 */
WHARF_DEVICE line_bdi_form line_find_bdi(const line_piece &piece, uint32_t shift)
{
    line_bdi_form form = {make_line_key(1u << shift, 0), {0, 0}};
    line_pair base = {0, 0};
    auto key_of = [&](uint32_t variant) {
        return make_line_key(bdi_line_code(variant, shift).nbytes(), variant);
    };
    auto take_if = [&](bool is_less, uint32_t variant) {
        form.key = is_less ? key_of(variant) : form.key;
        form.base.lo = is_less ? base.lo : form.base.lo;
        form.base.hi = is_less ? base.hi : form.base.hi;
        return is_less;
    };
    line_highs highs;
    for (unsigned i = 0; i < 2; i++)
        highs.differ[i] = (uint32_t)((int32_t)piece.words[2 * i] >> 31) != piece.words[2 * i + 1];
    /* With the same base, shorter deltas make a smaller line. */
    auto try_pairs = [&](uint32_t variant, uint32_t half) {
        return take_if(line_fit_pairs(piece, highs, half, &base), variant);
    };
    if (any_lane(try_pairs(WHARF_LINE_BDI_8_4, 0x80000000u)) &&
        any_lane(try_pairs(WHARF_LINE_BDI_8_2, 0x8000)))
        try_pairs(WHARF_LINE_BDI_8_1, 0x80);
    base.hi = 0;
    auto try_words = [&](uint32_t variant, uint32_t half) {
        bool fits = line_fit_words(piece, half, &base.lo);
        take_if(fits && key_of(variant) < form.key, variant);
        return fits;
    };
    if (any_lane(form.key > key_of(WHARF_LINE_BDI_4_1)) &&
        any_lane(try_words(WHARF_LINE_BDI_4_2, 0x8000)))
        try_words(WHARF_LINE_BDI_4_1, 0x80);
    if (any_lane(form.key > key_of(WHARF_LINE_BDI_2_1))) {
        bool fits = line_fit_halves(piece, &base.lo);
        take_if(fits && key_of(WHARF_LINE_BDI_2_1) < form.key, WHARF_LINE_BDI_2_1);
    }
    /* All values equal the line's first 8 bytes: no other form is smaller. */
    unsigned first = first_lane(piece.team);
    base = {shfl(piece.words[0], first), shfl(piece.words[1], first)};
    uint32_t differs = (piece.words[0] ^ base.lo) | (piece.words[1] ^ base.hi) |
                       (piece.words[2] ^ base.lo) | (piece.words[3] ^ base.hi);
    take_if(line_all(differs == 0, piece), WHARF_LINE_BDI_REPEAT);
    form.key = form.key >> 8 == 1u << shift ? LINE_NO_KEY : form.key;
    return form;
}

/* ---- fpc ------------------------------------------------------------------------------------ */

/* One lane.  The smallest pattern that fits all four words; of equal ones, the first.  Numbers are
 * all below a power of two if and only if their OR is, so one comparison tests several. */
WHARF_DEVICE uint32_t line_find_pattern(const line_piece &piece)
{
    const uint32_t *w = piece.words;
    uint32_t all = w[0] | w[1] | w[2] | w[3];
    auto are_near = [&](uint32_t half) {
        return ((w[0] + half) | (w[1] + half) | (w[2] + half) | (w[3] + half)) < 2 * half;
    };
    uint32_t not_bytes = 0, not_repeated = 0;
    WHARF_UNROLL
    for (unsigned i = 0; i < 4; i++) {
        not_bytes |= w[i] ^ signed_perm(w[i], w[i], 0xa280);
        not_repeated |= w[i] ^ byte_perm(w[i], w[i], 0);
    }
    uint32_t pattern = WHARF_LINE_FPC_RAW;
    pattern = not_bytes == 0 ? (uint32_t)WHARF_LINE_FPC_TWO_BYTES : pattern;
    pattern = (all & 0xffff) == 0 ? (uint32_t)WHARF_LINE_FPC_HIGH_HALF : pattern;
    pattern = are_near(0x8000) ? (uint32_t)WHARF_LINE_FPC_SIGNED_16 : pattern;
    pattern = not_repeated == 0 ? (uint32_t)WHARF_LINE_FPC_REPEATED : pattern;
    pattern = are_near(0x80) ? (uint32_t)WHARF_LINE_FPC_SIGNED_8 : pattern;
    pattern = are_near(8) ? (uint32_t)WHARF_LINE_FPC_SIGNED_4 : pattern;
    return all == 0 ? (uint32_t)WHARF_LINE_FPC_ZEROS : pattern;
}

struct line_fpc_form {
    uint32_t key;
    uint32_t pattern; /* of this lane's segment */
    uint32_t before;  /* pairs of the segments before it */
};

/* One lane.  The key of a line with so many pairs, not 0. */
template <uint32_t CODEC>
WHARF_DEVICE uint32_t line_fpc_key(uint32_t n_pairs, uint32_t shift)
{
    uint32_t code = n_pairs, head = line_fpc_head_nbytes(shift);
    if (CODEC == WHARF_CODEC_BEST && shift == WHARF_LINE_MIN_SHIFT) {
        if (n_pairs > 10)
            return LINE_NO_KEY;
        code = n_pairs <= 2 ? 8 : n_pairs <= 5 ? 9 : n_pairs <= 8 ? 10 : 11;
        n_pairs = 0xa852u >> 4 * (code - 8) & 15;
    } else if (CODEC == WHARF_CODEC_BEST) {
        code += 7;
    }
    uint32_t nbytes = head + 2 * n_pairs;
    bool has_code = shift != WHARF_LINE_MIN_SHIFT || code < WHARF_LINE_NIBBLE_RAW;
    return has_code && nbytes < 1u << shift ? make_line_key(nbytes, code) : LINE_NO_KEY;
}

/* collective. */
template <uint32_t CODEC>
WHARF_DEVICE line_fpc_form line_find_fpc(const line_piece &piece, uint32_t shift)
{
    uint32_t pattern = line_find_pattern(piece);
    line_sums pairs = line_sum(line_fpc_npairs(pattern), piece);
    return {line_fpc_key<CODEC>(pairs.all, shift), pattern, pairs.before};
}

/* ---- cpack ---------------------------------------------------------------------------------- */

/* A line's dictionary, and this lane's words in it. */
struct line_cpack_form {
    uint32_t key;
    uint32_t n_words;                            /* by the code: may exceed the words in use */
    uint32_t words[WHARF_LINE_CPACK_MAX_NWORDS]; /* 0 where there is none */
    uint32_t nibbles;                            /* of this lane's words, four bits each */
    uint32_t before;                             /* low bytes of the lanes before it */
};

/* One lane. */
template <uint32_t CODEC>
WHARF_DEVICE uint32_t line_cpack_key(uint32_t n_words, uint32_t n_bytes, uint32_t shift)
{
    bool is_short = shift == WHARF_LINE_MIN_SHIFT;
    uint32_t step = is_short ? 4 : 1, radix = (1u << shift) / 4 / step + 1;
    n_bytes = (n_bytes + step - 1) & ~(step - 1);
    uint32_t code = n_words * radix + n_bytes / step;
    if (CODEC == WHARF_CODEC_BEST && is_short) {
        if (n_words > 3)
            return LINE_NO_KEY;
        n_words = n_words > 1 ? n_words : 1;
        n_bytes = 8;
        code = 11 + n_words;
    } else if (CODEC == WHARF_CODEC_BEST) {
        code += 7 + (shift == WHARF_LINE_MAX_SHIFT ? 62 : 30);
    }
    uint32_t nbytes = (1u << shift) / 8 + 4 * n_words + n_bytes;
    return nbytes < 1u << shift ? make_line_key(nbytes, code) : LINE_NO_KEY;
}

/* collective. */
template <uint32_t CODEC>
WHARF_DEVICE line_cpack_form line_find_cpack(const line_piece &piece, uint32_t shift)
{
    line_cpack_form form = {LINE_NO_KEY, 0, {0, 0, 0, 0}, 0, 0};
    bool is_open[4]; /* words without a source */
    WHARF_UNROLL
    for (unsigned i = 0; i < 4; i++) {
        is_open[i] = piece.words[i] >= 256;
        if (!is_open[i] && piece.words[i] != 0)
            form.nibbles |= (uint32_t)WHARF_LINE_CPACK_HAS_BYTE << 4 * i;
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < WHARF_LINE_CPACK_MAX_NWORDS; k++) {
        uint32_t own = 0;
        WHARF_UNROLL
        for (unsigned i = 4; i-- > 0;)
            own = is_open[i] ? piece.words[i] : own;
        if (!any_lane(own != 0))
            break;
        uint32_t word = shfl(own, line_first(own != 0, piece));
        form.words[k] = word;
        form.n_words += word != 0;
        WHARF_UNROLL
        for (unsigned i = 0; i < 4; i++) {
            uint32_t differs = piece.words[i] ^ word;
            if (is_open[i] && differs < 256) {
                form.nibbles |= (differs != 0 ? k + 1 + WHARF_LINE_CPACK_HAS_BYTE : k + 1) << 4 * i;
                is_open[i] = false;
            }
        }
    }
    line_sums bytes = line_sum(popc(form.nibbles & 0x8888), piece);
    form.before = bytes.before;
    if (line_all(!(is_open[0] || is_open[1] || is_open[2] || is_open[3]), piece))
        form.key = line_cpack_key<CODEC>(form.n_words, bytes.all, shift);
    if (CODEC == WHARF_CODEC_BEST && shift == WHARF_LINE_MIN_SHIFT && form.n_words == 0)
        form.n_words = 1;
    return form;
}

} // namespace wharf

#endif
