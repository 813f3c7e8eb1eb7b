/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_put.cuh: writes the forms that line_find.cuh finds as bytes.  The lanes of a line write
 * together into shared memory that holds zeros.
 *
 * A lane's part can begin at any byte, so two lanes may write to the same word.  They do so by
 * atomic ORs and need no other coordination.  Outside a line's content only zeros are ORed, if
 * anything, so other lines' words keep their values.
 */
#ifndef WHARF_KERNELS_LINE_LINE_PUT_CUH
#define WHARF_KERNELS_LINE_LINE_PUT_CUH

#include "kernels/line/line_find.cuh"

namespace wharf
{

WHARF_DEVICE void line_or(uint32_t *word, uint32_t value)
{
    if (value != 0)
        atomic_or(word, value);
}

/* One lane.  8 bytes, the last ones possibly zeros, from byte `at` of `to` on.  All three words
 * that contain them must exist. */
WHARF_DEVICE void line_put_inside(uint32_t *to, uint32_t at, line_pair pair)
{
    uint32_t n = 8 * (at & 3);
    to += at / 4;
    atomic_or(to, pair.lo << n);
    atomic_or(to + 1, funnel_left(pair.lo, pair.hi, n));
    atomic_or(to + 2, funnel_left(pair.hi, 0, n));
}

/* One lane.  4 bytes from byte `at` of `to` on. */
WHARF_DEVICE void line_put_word(uint32_t *to, uint32_t at, uint32_t word)
{
    to += at / 4;
    line_or(to, word << 8 * (at & 3));
    line_or(to + 1, funnel_left(word, 0, 8 * (at & 3)));
}

/* One lane.  8 bytes. */
WHARF_DEVICE void line_put_pair(uint32_t *to, uint32_t at, line_pair pair)
{
    uint32_t n = 8 * (at & 3);
    to += at / 4;
    line_or(to, pair.lo << n);
    line_or(to + 1, funnel_left(pair.lo, pair.hi, n));
    line_or(to + 2, funnel_left(pair.hi, 0, n));
}

/* One lane.  16 bytes. */
WHARF_DEVICE void line_put_quad(uint32_t *to, uint32_t at, u32x4 quad)
{
    uint32_t n = 8 * (at & 3);
    to += at / 4;
    line_or(to, quad.x << n);
    line_or(to + 1, funnel_left(quad.x, quad.y, n));
    line_or(to + 2, funnel_left(quad.y, quad.z, n));
    line_or(to + 3, funnel_left(quad.z, quad.w, n));
    line_or(to + 4, funnel_left(quad.w, 0, n));
}

/* One lane.  Bits that lie in one word. */
WHARF_DEVICE void line_put_bits(uint32_t *to, uint32_t bit, uint32_t bits)
{
    line_or(to + bit / 32, bits << (bit & 31));
}

/* A lane's deltas from bit 0 on, and one bit for each value that is near zero. */
struct line_deltas {
    line_pair bytes;
    uint32_t near;
};

WHARF_DEVICE line_deltas line_pair_deltas(const line_piece &piece, uint32_t base,
                                          uint32_t delta_shift)
{
    uint32_t half = 0x80u << (delta_shift == 0 ? 0 : delta_shift == 1 ? 8 : 24), d[2], near = 0;
    WHARF_UNROLL
    for (unsigned i = 0; i < 2; i++) {
        uint32_t lo = piece.words[2 * i];
        bool is_near =
            (uint32_t)((int32_t)lo >> 31) == piece.words[2 * i + 1] && lo + half <= 2 * half - 1;
        near |= is_near ? 1u << i : 0;
        d[i] = lo - (is_near ? 0 : base);
    }
    uint32_t packed =
        delta_shift == 0 ? byte_perm(d[0], d[1], 0x0040) & 0xffff : byte_perm(d[0], d[1], 0x5410);
    return {{delta_shift == 2 ? d[0] : packed, delta_shift == 2 ? d[1] : 0}, near};
}

WHARF_DEVICE line_deltas line_word_deltas(const line_piece &piece, uint32_t base,
                                          uint32_t delta_shift)
{
    uint32_t half = delta_shift == 0 ? 0x80 : 0x8000, d[4], near = 0;
    WHARF_UNROLL
    for (unsigned i = 0; i < 4; i++) {
        bool is_near = piece.words[i] + half < 2 * half;
        near |= is_near ? 1u << i : 0;
        d[i] = piece.words[i] - (is_near ? 0 : base);
    }
    uint32_t choice = delta_shift == 0 ? 0x4040 : 0x5410;
    uint32_t lo = byte_perm(d[0], d[1], choice), hi = byte_perm(d[2], d[3], choice);
    return {{delta_shift == 0 ? byte_perm(lo, hi, 0x5410) : lo, delta_shift == 0 ? 0 : hi}, near};
}

WHARF_DEVICE line_deltas line_half_deltas(const line_piece &piece, uint32_t base)
{
    constexpr uint32_t HALF = 0x80u << 16;
    uint32_t d[8], near = 0;
    WHARF_UNROLL
    for (unsigned i = 0; i < 8; i++) {
        uint32_t value = line_half(piece, i);
        bool is_near = value + HALF < 2 * HALF;
        near |= is_near ? 1u << i : 0;
        d[i] = value - (is_near ? 0 : base << 16);
    }
    return {{byte_perm(byte_perm(d[0], d[1], 0x0062), byte_perm(d[2], d[3], 0x0062), 0x5410),
             byte_perm(byte_perm(d[4], d[5], 0x0062), byte_perm(d[6], d[7], 0x0062), 0x5410)},
            near};
}

/*
 * One lane.  Writes a line in this variant.  The content is at least 7 bytes shorter than the line.
 * The words of 8 bytes from any of its bytes on therefore begin before the end that a raw line
 * would have, in this step's memory.  ORs of zero into words behind the content change nothing.
 */
WHARF_DEVICE void line_put_bdi(uint32_t *to, uint32_t at, const line_piece &piece, line_pair base,
                               uint32_t variant, uint32_t shift)
{
    uint32_t base_shift = LINE_BDI_BASE_SHIFTS >> 4 * variant & 15;
    uint32_t delta_shift = LINE_BDI_DELTA_SHIFTS >> 4 * variant & 15;
    line_deltas deltas = {{0, 0}, 0};
    if (variant == WHARF_LINE_BDI_REPEAT) {
        if (piece.place == 0)
            line_put_inside(to, at, base);
        return;
    }
    if (base_shift == 3)
        deltas = line_pair_deltas(piece, base.lo, delta_shift);
    else if (base_shift == 2)
        deltas = line_word_deltas(piece, base.lo, delta_shift);
    else
        deltas = line_half_deltas(piece, base.lo);
    uint32_t n = 16 >> base_shift;
    uint32_t bit = 8 * at + n * piece.place;
    atomic_or(to + bit / 32, deltas.near << (bit & 31));
    at += ((1u << shift >> base_shift) + 7) / 8;
    if (piece.place == 0)
        line_put_inside(to, at, base);
    line_put_inside(to, at + (1u << base_shift) + (n << delta_shift) * piece.place, deltas.bytes);
}

/* One lane.  A segment's bytes in this pattern. */
WHARF_DEVICE u32x4 line_fpc_bytes(const line_piece &piece, uint32_t pattern)
{
    const uint32_t *w = piece.words;
    uint32_t n_pairs = line_fpc_npairs(pattern);
    if (pattern == WHARF_LINE_FPC_RAW)
        return {w[0], w[1], w[2], w[3]};
    uint32_t choice = pattern == WHARF_LINE_FPC_SIGNED_16   ? 0x5410
                      : pattern == WHARF_LINE_FPC_HIGH_HALF ? 0x7632
                      : pattern == WHARF_LINE_FPC_TWO_BYTES ? 0x6420
                                                            : 0x4040;
    uint32_t lo = byte_perm(w[0], w[1], choice), hi = byte_perm(w[2], w[3], choice);
    if (n_pairs == 4)
        return {lo, hi, 0, 0};
    lo = byte_perm(lo, hi, 0x5410);
    if (pattern == WHARF_LINE_FPC_SIGNED_4) {
        lo &= 0x0f0f0f0fu;
        lo |= lo >> 4;
        lo = byte_perm(lo, 0, 0x4420);
    }
    return {lo, 0, 0, 0}; /* a segment of zeros gives zeros */
}

/* One lane. */
WHARF_DEVICE void line_put_fpc(uint32_t *to, uint32_t at, const line_piece &piece,
                               const line_fpc_form &form, uint32_t shift)
{
    uint32_t bit = 8 * at + 3 * piece.place; /* the field may lie in two words */
    line_put_bits(to, bit, form.pattern);
    line_or(to + bit / 32 + 1, funnel_left(form.pattern, 0, bit & 31));
    line_put_quad(to, at + line_fpc_head_nbytes(shift) + 2 * form.before,
                  line_fpc_bytes(piece, form.pattern));
}

/* One lane. */
WHARF_DEVICE void line_put_cpack(uint32_t *to, uint32_t at, const line_piece &piece,
                                 const line_cpack_form &form, uint32_t shift)
{
    uint32_t bytes = 0, n = 0;
    line_put_word(to, at + 2 * piece.place, form.nibbles);
    at += (1u << shift) / 8;
    if (piece.place == 0)
        line_put_quad(to, at, {form.words[0], form.words[1], form.words[2], form.words[3]});
    WHARF_UNROLL
    for (unsigned i = 0; i < 4; i++)
        if (form.nibbles >> 4 * i & WHARF_LINE_CPACK_HAS_BYTE) {
            bytes |= (piece.words[i] & 255) << n;
            n += 8;
        }
    line_put_word(to, at + 4 * form.n_words + form.before, bytes);
}

/* One lane. */
WHARF_DEVICE void line_put_raw(uint32_t *to, uint32_t at, const line_piece &piece)
{
    line_put_quad(to, at + 16 * piece.place,
                  {piece.words[0], piece.words[1], piece.words[2], piece.words[3]});
}

} // namespace wharf

#endif
