/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_quad.cuh: decodes 16 bytes of a line by one lane.  A team of 2, 4 or 8 consecutive lanes
 * decodes a line; each lane makes the 16 bytes at its place.
 *
 * A lane's content begins behind that of the lanes before it in its line.  One scan over the sizes
 * of words or escapes, by all lanes, tells it where.
 *
 * Invariant: whatever a line's content says, no lane reads more than 24 bytes behind it.
 */
#ifndef WHARF_KERNELS_LINE_LINE_QUAD_CUH
#define WHARF_KERNELS_LINE_LINE_QUAD_CUH

#include "kernels/line/line_codes.cuh"

namespace wharf
{

/* ---- bytes of memory, at any place ----------------------------------------------------------- */

/* One lane.  Word i of `words`: a pointer here.  A type whose words may be missing has an overload
 * (wharf_line.cuh). */
WHARF_DEVICE uint32_t line_fetch(const uint32_t *words, uint32_t i)
{
    return load(words + i);
}

/* One lane.  The 4 bytes at byte `at`.  A funnel shift takes 8 * at modulo 32 by itself. */
template <typename Words>
WHARF_DEVICE uint32_t line_word(Words words, uint32_t at)
{
    return funnel_right(line_fetch(words, at / 4), line_fetch(words, at / 4 + 1), 8 * at);
}

struct line_pair {
    uint32_t lo;
    uint32_t hi;
};

/* One lane.  8 bytes. */
template <typename Words>
WHARF_DEVICE line_pair line_words_2(Words words, uint32_t at)
{
    uint32_t i = at / 4;
    uint32_t a = line_fetch(words, i), b = line_fetch(words, i + 1), c = line_fetch(words, i + 2);
    return {funnel_right(a, b, 8 * at), funnel_right(b, c, 8 * at)};
}

/* One lane.  16 bytes. */
template <typename Words>
WHARF_DEVICE u32x4 line_words_4(Words words, uint32_t at)
{
    uint32_t i = at / 4, n = 8 * at;
    uint32_t a = line_fetch(words, i), b = line_fetch(words, i + 1), c = line_fetch(words, i + 2);
    uint32_t d = line_fetch(words, i + 3), e = line_fetch(words, i + 4);
    return {funnel_right(a, b, n), funnel_right(b, c, n), funnel_right(c, d, n),
            funnel_right(d, e, n)};
}

/* ---- steps: how bytes become words, of each bdi variant and each fpc pattern ---------------- */

/*
 * Word i is signed_perm() of the content's bytes, with the low half of member i as the selector.
 * For fpc the word is then shifted left, by the high half of member 0 for even i and of member 1
 * for odd i, and right again by that of member 2.
 */
struct alignas(16) line_step {
    uint32_t even;
    uint32_t odd;
    uint32_t right;
    uint32_t last;
};
constexpr unsigned LINE_N_STEPS = 16;
constexpr unsigned LINE_FPC_STEPS = 8; /* where those of fpc begin */

WHARF_DEVICE_TABLE uint32_t LINE_STEPS[LINE_N_STEPS][4] = {
    {0, 0, 0, 0},
    {0, 0, 0, 0},                                           /* REPEAT */
    {0x8880, 0x8888, 0x9991, 0x9999},                       /* 8_1 */
    {0x9910, 0x9999, 0xbb32, 0xbbbb},                       /* 8_2 */
    {0x3210, 0xbbbb, 0x7654, 0xffff},                       /* 8_4 */
    {0x8880, 0x9991, 0xaaa2, 0xbbb3},                       /* 4_1 */
    {0x9910, 0xbb32, 0xdd54, 0xff76},                       /* 4_2 */
    {0x9180, 0xb3a2, 0xd5c4, 0xf7e6},                       /* 2_1 */
    {0, 0, 0, 0},                                           /* ZEROS: of bytes that are 0 */
    {28 << 16, 24 << 16, 0x1111 | 28 << 16, 0x1111},        /* SIGNED_4 */
    {0x8880, 0x9991, 0xaaa2, 0xbbb3},                       /* SIGNED_8 */
    {0x9910, 0xbb32, 0xdd54, 0xff76},                       /* SIGNED_16 */
    {0x1010 | 16 << 16, 0x3232 | 16 << 16, 0x5454, 0x7676}, /* HIGH_HALF */
    {0x9180, 0xb3a2, 0xd5c4, 0xf7e6},                       /* TWO_BYTES */
    {0x0000, 0x1111, 0x2222, 0x3333},                       /* REPEATED */
    {0, 0, 0, 0},                                           /* RAW: not looked at */
};

WHARF_DEVICE u32x4 line_choose(line_pair bytes, const line_step &step)
{
    return {signed_perm(bytes.lo, bytes.hi, step.even), signed_perm(bytes.lo, bytes.hi, step.odd),
            signed_perm(bytes.lo, bytes.hi, step.right),
            signed_perm(bytes.lo, bytes.hi, step.last)};
}

/* ---- bdi ------------------------------------------------------------------------------------ */

/* Adds the base to the deltas.  `mask` has a bit for each of this lane's values, 1: near zero. */
WHARF_DEVICE u32x4 line_add_bases(u32x4 deltas, line_pair base, uint32_t mask, uint32_t base_shift)
{
    uint32_t w[4] = {deltas.x, deltas.y, deltas.z, deltas.w};
    if (base_shift == 3) {
        for (unsigned i = 0; i < 2; i++) {
            uint64_t both = (uint64_t)base.hi << 32 | base.lo;
            uint64_t v = ((uint64_t)w[2 * i + 1] << 32 | w[2 * i]) + (mask >> i & 1 ? 0 : both);
            w[2 * i] = (uint32_t)v;
            w[2 * i + 1] = (uint32_t)(v >> 32);
        }
    } else if (base_shift == 2) {
        for (unsigned i = 0; i < 4; i++)
            w[i] += mask >> i & 1 ? 0 : base.lo;
    } else {
        for (unsigned i = 0; i < 4; i++) {
            uint32_t low = mask >> 2 * i & 1 ? 0 : base.lo & 0xffff;
            uint32_t high = mask >> (2 * i + 1) & 1 ? 0 : base.lo << 16;
            w[i] = add_halves(w[i], low | high);
        }
    }
    return {w[0], w[1], w[2], w[3]};
}

/* One lane.  `at`: the line's content; `off`: the lane's place in the line. */
template <typename Words>
WHARF_DEVICE u32x4 line_bdi_quad(Words words, const line_step *steps, line_code code, uint32_t at,
                                 uint32_t off, uint32_t shift)
{
    uint32_t variant = code.variant();
    bool is_repeat = variant == WHARF_LINE_BDI_REPEAT;
    uint32_t base_shift = LINE_BDI_BASE_SHIFTS >> 4 * variant & 15;
    uint32_t delta_shift = LINE_BDI_DELTA_SHIFTS >> 4 * variant & 15;
    uint32_t base_at = at + (is_repeat ? 0 : ((1u << shift >> base_shift) + 7) / 8);
    uint32_t first = off >> base_shift;
    uint32_t deltas_at = base_at + (1u << base_shift) + (first << delta_shift);
    line_pair base = line_words_2(words, base_at);
    if (is_repeat)
        return {base.lo, base.hi, base.lo, base.hi};
    uint32_t mask = line_word(words, at + first / 8) >> (first & 7);
    u32x4 deltas = line_choose(line_words_2(words, deltas_at), steps[variant]);
    return line_add_bases(deltas, base, mask, base_shift);
}

/* ---- amounts: what lanes of a line take before each other ----------------------------------- */

struct line_amount {
    uint32_t before; /* of the lanes of the same line before this one */
    bool is_over;    /* the sum with this lane's own exceeds what the code gives */
};

/* collective.  `place` counts the line's lanes from 0 on. */
WHARF_DEVICE line_amount line_add_up(uint32_t own, uint32_t place, uint32_t given)
{
    uint32_t sum = own;
    for (unsigned n = 1; n < 8; n *= 2) {
        uint32_t other = shfl_up(sum, n);
        sum += place >= n ? other : 0;
    }
    return {sum - own, sum > given};
}

WHARF_DEVICE uint32_t line_least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* ---- fpc ------------------------------------------------------------------------------------ */

/* One lane.  The pattern of this lane's segment. */
template <typename Words>
WHARF_DEVICE uint32_t line_fpc_pattern(Words words, uint32_t at, uint32_t place)
{
    return line_word(words, at) >> 3 * place & 7;
}

WHARF_DEVICE uint32_t line_fpc_npairs(uint32_t pattern)
{
    return 0x82444210u >> 4 * pattern & 15;
}

/* One lane.  The words of an fpc segment of a pattern that is not raw. */
WHARF_DEVICE u32x4 line_fpc_words(line_pair bytes, const line_step &step)
{
    u32x4 w = line_choose(bytes, step);
    uint32_t even = step.even >> 16, odd = step.odd >> 16, right = step.right >> 16;
    return {(uint32_t)((int32_t)(w.x << even) >> right), (uint32_t)((int32_t)(w.y << odd) >> right),
            (uint32_t)((int32_t)(w.z << even) >> right),
            (uint32_t)((int32_t)(w.w << odd) >> right)};
}

/* One lane.  A segment that begins at `at`. */
template <typename Words>
WHARF_DEVICE u32x4 line_fpc_quad(Words words, const line_step *steps, uint32_t pattern, uint32_t at)
{
    if (pattern == WHARF_LINE_FPC_ZEROS)
        return {0, 0, 0, 0};
    u32x4 all = line_words_4(words, at);
    if (pattern == WHARF_LINE_FPC_RAW)
        return all;
    return line_fpc_words({all.x, all.y}, steps[LINE_FPC_STEPS + pattern]);
}

/* ---- cpack ---------------------------------------------------------------------------------- */

/* One lane.  The nibbles of this lane's four words. */
template <typename Words>
WHARF_DEVICE uint32_t line_cpack_nibbles(Words words, uint32_t at, uint32_t place)
{
    return line_word(words, at + 2 * place) & 0xffff;
}

/* One lane.  `before`: the number of low bytes before this lane's.  *is_bad: a source is not in the
 * dictionary. */
template <typename Words>
WHARF_DEVICE u32x4 line_cpack_quad(Words words, line_code code, uint32_t nibbles, uint32_t at,
                                   uint32_t before, uint32_t shift, bool *is_bad)
{
    uint32_t n_words = code.variant();
    uint32_t dictionary_at = at + (1u << shift) / 8;
    uint32_t bytes = line_word(words, dictionary_at + 4 * n_words + before);
    uint32_t w[4];
    for (unsigned i = 0; i < 4; i++) {
        uint32_t nibble = nibbles >> 4 * i & 15, source = nibble & 7;
        if (source > n_words) {
            *is_bad = true;
            source = 0;
        }
        w[i] = source == 0 ? 0 : line_word(words, dictionary_at + 4 * (source - 1));
        if (nibble & WHARF_LINE_CPACK_HAS_BYTE) {
            w[i] = (w[i] & ~255u) | (bytes & 255);
            bytes >>= 8;
        }
    }
    return {w[0], w[1], w[2], w[3]};
}

/* ---- palette -------------------------------------------------------------------------------- */

/* A group's.  The same in all lanes. */
struct line_palette {
    u32x4 exponents;
    uint32_t width;
};

/* Four fields of 3 bits, each in a nibble. */
WHARF_DEVICE uint32_t line_nibbles_of_3(uint32_t fields)
{
    return (fields & 7) | (fields & 0x38) << 1 | (fields & 0x1c0) << 2 | (fields & 0xe00) << 3;
}

/* Four nibbles, each in a byte. */
WHARF_DEVICE uint32_t line_bytes_of_nibbles(uint32_t nibbles)
{
    return (nibbles & 15) | (nibbles & 0xf0) << 4 | (nibbles & 0xf00) << 8 |
           (nibbles & 0xf000) << 12;
}

/* The k-th group of four fields in 8 bytes, each as a nibble. */
WHARF_DEVICE uint32_t line_four(line_pair fields, uint32_t nbits, unsigned k)
{
    uint64_t both = (uint64_t)fields.hi << 32 | fields.lo;
    return nbits == 3 ? line_nibbles_of_3((uint32_t)(both >> 12 * k) & 0xfff)
                      : (uint32_t)(both >> 16 * k) & 0xffff;
}

/* Sets the lowest bit of each of four nibbles that is an escape, not an index of the palette. */
WHARF_DEVICE uint32_t line_escapes(uint32_t nibbles, uint32_t width)
{
    uint32_t all = nibbles & nibbles >> 1 & nibbles >> 2;
    return (width == 3 ? all : all & nibbles >> 3) & 0x1111;
}

WHARF_DEVICE uint32_t line_look_up(const line_palette &palette, uint32_t nibbles)
{
    u32x4 e = palette.exponents;
    uint32_t low = byte_perm(e.x, e.y, nibbles & 0x7777);
    if (palette.width == 3)
        return low;
    uint32_t is_high = line_bytes_of_nibbles(nibbles >> 3 & 0x1111) * 255;
    return (low & ~is_high) | (byte_perm(e.z, e.w, nibbles & 0x7777) & is_high);
}

/* Joins exponents and fields of `f` bits to bytes, rotated so that the sign is the top bit. */
WHARF_DEVICE uint32_t line_join_bytes(uint32_t exponents, uint32_t fields, uint32_t f)
{
    uint32_t v = (exponents & 0x01010101u * (255u >> f)) << f | fields;
    return (v >> 1 & 0x7f7f7f7fu) | (v & 0x01010101u) << 7;
}

WHARF_DEVICE uint32_t line_rotate_pairs(uint32_t v)
{
    return (v >> 1 & 0x7fff7fffu) | (v & 0x00010001u) << 15;
}

/* For kernels that do not know the type at compile time; code that does is shorter. */
constexpr uint32_t LINE_ANY_TYPE = WHARF_LINE_N_TYPES;

/*
 * collective.  `is_palette` is false in lanes whose line has another scheme; their result is
 * unspecified.  *is_bad: there are more escapes than the code gives.  TYPE is shape.type or
 * LINE_ANY_TYPE.
 */
template <uint32_t TYPE, typename Words>
WHARF_DEVICE u32x4 line_palette_quad(Words words, const line_shape &shape,
                                     const line_palette &palette, line_code code, uint32_t at,
                                     uint32_t place, bool is_palette, bool *is_bad)
{
    uint32_t type = TYPE == LINE_ANY_TYPE ? shape.type : TYPE;
    uint32_t f = line_field_nbits(type), width = palette.width;
    uint32_t n_values = line_n_values(type, shape.line_nbytes());
    unsigned n_fours = type <= WHARF_LINE_F16 ? 2 : 4;
    uint32_t fields_at = at + (type == WHARF_LINE_F16 ? n_values : 0);
    uint32_t indexes_at = fields_at + n_values * f / 8;
    uint32_t escapes_at = indexes_at + n_values * width / 8;
    line_pair indexes = line_words_2(words, indexes_at + n_fours * width * place / 2);
    uint32_t exponents[4], escapes[4], own = 0;
    WHARF_UNROLL
    for (unsigned k = 0; k < 4; k++) {
        escapes[k] = exponents[k] = 0;
        if (TYPE != LINE_ANY_TYPE && k >= n_fours)
            continue;
        uint32_t nibbles = line_four(indexes, width, k);
        escapes[k] = is_palette && k < n_fours ? line_escapes(nibbles, width) : 0;
        exponents[k] = line_look_up(palette, nibbles);
        own += popc(escapes[k]);
    }
    if (any_lane(own > 0)) {
        line_amount amount = line_add_up(own, place, code.given());
        *is_bad = is_palette && amount.is_over;
        WHARF_UNROLL
        for (unsigned k = 0; k < 4; k++)
            for (uint32_t left = escapes[k]; left != 0; left &= left - 1) {
                uint32_t from = escapes_at + line_least(amount.before++, code.given());
                unsigned byte = 2 * (ffs(left) - 1);
                exponents[k] = (exponents[k] & ~(255u << byte)) | (line_word(words, from) & 255)
                                                                      << byte;
            }
    }
    line_pair fields = line_words_2(words, fields_at + n_fours * f * place / 2);
    if (type == WHARF_LINE_BF16) {
        return {line_rotate_pairs(byte_perm(fields.lo, exponents[0], 0x5140)),
                line_rotate_pairs(byte_perm(fields.lo, exponents[0], 0x7362)),
                line_rotate_pairs(byte_perm(fields.hi, exponents[1], 0x5140)),
                line_rotate_pairs(byte_perm(fields.hi, exponents[1], 0x7362))};
    }
    uint32_t bytes[4];
    WHARF_UNROLL
    for (unsigned k = 0; k < 4; k++)
        bytes[k] = line_join_bytes(exponents[k], line_bytes_of_nibbles(line_four(fields, f, k)), f);
    if (type != WHARF_LINE_F16)
        return {bytes[0], bytes[1], bytes[2], bytes[3]};
    line_pair low = line_words_2(words, at + 8 * place);
    return {byte_perm(low.lo, bytes[0], 0x5140), byte_perm(low.lo, bytes[0], 0x7362),
            byte_perm(low.hi, bytes[1], 0x5140), byte_perm(low.hi, bytes[1], 0x7362)};
}

/* ---- any line ------------------------------------------------------------------------------- */

/*
 * collective.  The 16 bytes at `off` of a line whose content begins at byte `at` of words. *is_bad:
 * the content contradicts its code, in this lane's part or in one before.
 */
template <uint32_t CODEC, uint32_t TYPE = LINE_ANY_TYPE, typename Words>
WHARF_DEVICE u32x4 line_quad(Words words, const line_step *steps, const line_shape &shape,
                             const line_palette &palette, line_code code, uint32_t at, uint32_t off,
                             bool *is_bad)
{
    uint32_t scheme = code.scheme(), place = off / 16, own = 0, own_bits = 0;
    u32x4 quad = {0, 0, 0, 0};
    *is_bad = false;
    if (CODEC == WHARF_CODEC_PALETTE)
        quad = line_palette_quad<TYPE>(words, shape, palette, code, at, place,
                                       scheme == WHARF_LINE_IS_PALETTE, is_bad);
    if (line_has_fpc(CODEC) && scheme == WHARF_LINE_IS_FPC) {
        own_bits = line_fpc_pattern(words, at, place);
        own = line_fpc_npairs(own_bits);
    }
    if (line_has_cpack(CODEC) && scheme == WHARF_LINE_IS_CPACK) {
        own_bits = line_cpack_nibbles(words, at, place);
        own = popc(own_bits & 0x8888);
    }
    uint32_t before = 0;
    if (line_has_fpc(CODEC) || line_has_cpack(CODEC)) {
        line_amount amount = line_add_up(own, place, code.given());
        *is_bad = own > 0 && amount.is_over;
        before = line_least(amount.before, code.given());
    }
    if (line_has_bdi(CODEC) && scheme == WHARF_LINE_IS_BDI)
        quad = line_bdi_quad(words, steps, code, at, off, shape.shift);
    if (line_has_fpc(CODEC) && scheme == WHARF_LINE_IS_FPC)
        quad = line_fpc_quad(words, steps, own_bits,
                             at + line_fpc_head_nbytes(shape.shift) + 2 * before);
    if (line_has_cpack(CODEC) && scheme == WHARF_LINE_IS_CPACK)
        quad = line_cpack_quad(words, code, own_bits, at, before, shape.shift, is_bad);
    if (scheme == WHARF_LINE_IS_RAW)
        quad = line_words_4(words, at + off);
    if (scheme == WHARF_LINE_IS_ZEROS)
        quad = {0, 0, 0, 0};
    return quad;
}

} // namespace wharf

#endif
