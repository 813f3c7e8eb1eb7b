/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_quad_bf16.cuh: 16 bytes of a palette's line of 128 bytes of bf16, by a lane that knows where
 * its escapes are.
 *
 * A line's content is 64 fields of a byte, 64 indexes of 3 or 4 bits, escapes.  One lane looks at
 * all indexes of a line first (count_bf16_escapes), so that the lanes that make the line's values
 * need neither scan nor vote.
 *
 * Additions and masks take one pipe, whose rate is half of what a scheduler issues; products take
 * another.  So bits are moved apart by products where these are as short.
 */
#ifndef WHARF_KERNELS_LINE_LINE_QUAD_BF16_CUH
#define WHARF_KERNELS_LINE_LINE_QUAD_BF16_CUH

#include "kernels/line/line_quad.cuh"

namespace wharf
{

constexpr uint32_t LINE_BF16_NVALUES = WHARF_LINE_MAX_NBYTES / 2;
constexpr uint32_t LINE_BF16_FIELDS_NWORDS = LINE_BF16_NVALUES / 4; /* before its indexes */
constexpr uint32_t LINE_BF16_QUAD_NVALUES = 8;

/* Of the eight quads of a line, a nibble each. */
struct line_bf16_escapes {
    uint32_t before;  /* the escapes of the quads before it */
    uint32_t several; /* 1: it has two escapes or more */
    uint32_t sum;     /* of the line; if it is above 15, nibbles are wrong */
};

/* One lane.  The indexes of the line whose content begins at byte `at`, as words, and a word of
 * zeros. */
template <unsigned WIDTH>
WHARF_DEVICE void load_bf16_indexes(const uint32_t *words, uint32_t at, uint32_t *indexes)
{
    constexpr uint32_t N_WORDS = LINE_BF16_NVALUES * WIDTH / 32;
    uint32_t i = at / 4 + LINE_BF16_FIELDS_NWORDS, next = line_fetch(words, i);
    WHARF_UNROLL
    for (unsigned k = 0; k < N_WORDS; k++) {
        uint32_t own = next;
        next = line_fetch(words, i + k + 1);
        indexes[k] = funnel_right(own, next, 8 * at);
    }
    indexes[N_WORDS] = 0;
}

/* One lane.  Looks at the indexes of the line whose content begins at byte `at`. */
template <unsigned WIDTH>
WHARF_DEVICE line_bf16_escapes count_bf16_escapes(const uint32_t *words, uint32_t at)
{
    constexpr uint32_t N_WORDS = LINE_BF16_NVALUES * WIDTH / 32;
    uint32_t w[N_WORDS + 1], escapes[N_WORDS + 1], counts = 0;
    load_bf16_indexes<WIDTH>(words, at, w);
    /* Bits that begin WIDTH ones; of these, where an index begins: every third or fourth. */
    WHARF_UNROLL
    for (unsigned k = 0; k < N_WORDS; k++) {
        uint32_t ones = w[k] & funnel_right(w[k], w[k + 1], 1) & funnel_right(w[k], w[k + 1], 2);
        if (WIDTH == 4)
            ones &= funnel_right(w[k], w[k + 1], 3);
        uint32_t thirds = k % 3 == 0 ? 0x49249249 : k % 3 == 1 ? 0x92492492 : 0x24924924;
        escapes[k] = ones & (WIDTH == 3 ? thirds : 0x11111111);
    }
    escapes[N_WORDS] = 0;
    WHARF_UNROLL
    for (unsigned q = 0; q < 8; q++) {
        constexpr uint32_t QUAD_BITS = WIDTH == 3 ? 0xffffff : ~0u;
        unsigned bit = LINE_BF16_QUAD_NVALUES * WIDTH * q;
        uint32_t own = funnel_right(escapes[bit / 32], escapes[bit / 32 + 1], bit % 32);
        counts += popc(own & QUAD_BITS) << 4 * q; /* at most 8 */
    }
    uint32_t above = counts & 0xeeeeeeee;
    uint32_t bytes = (counts & 0x0f0f0f0f) + (counts >> 4 & 0x0f0f0f0f);
    /* Products whose places are sums of those below: of nibbles, and of bytes. */
    return {counts * 0x11111110, (above >> 1 | above >> 2 | above >> 3) & 0x11111111,
            bytes * 0x01010101 >> 24};
}

/* Eight fields of 3 bits, each in a nibble. */
WHARF_DEVICE uint32_t line_nibbles_of_eight(uint32_t fields)
{
    uint32_t halves = (fields & 0xfff) + (fields & 0xfff000) * 16;
    uint32_t quarters = halves + (halves & 0x0fc00fc0) * 3;
    return quarters + (quarters & 0x38383838);
}

/* The bits of a where those of `which` are set, else those of b: one instruction, unless the
 * compiler knows `which` and takes two. */
WHARF_DEVICE uint32_t line_select(uint32_t which, uint32_t a, uint32_t b)
{
    return ((a ^ b) & which) ^ b;
}

/* Four exponents, by the lower 16 bits of `nibbles`. */
template <unsigned WIDTH>
WHARF_DEVICE uint32_t line_bf16_exponents(const u32x4 &palette, uint32_t nibbles)
{
    if (WIDTH == 3) /* no nibble asks for a sign */
        return signed_perm(palette.x, palette.y, nibbles);
    uint32_t low = byte_perm(palette.x, palette.y, nibbles & 0x7777);
    uint32_t high = byte_perm(palette.z, palette.w, nibbles & 0x7777);
    /* Of a nibble above 7 the sign of 0x80, which fills its byte. */
    uint32_t is_high = (signed_perm(0x80808080u, 0x80808080u, nibbles) & 0x01010101) * 255;
    return line_select(is_high, high, low);
}

/* One lane.  Puts the escapes of a quad from `escape` on into their places among eight exponents.
 */
template <unsigned WIDTH>
WHARF_DEVICE void put_bf16_escapes(const uint8_t *escape, uint32_t nibbles, uint32_t e[2])
{
    uint32_t left = nibbles & nibbles >> 1 & nibbles >> 2 & 0x11111111;
    if (WIDTH == 4)
        left &= nibbles >> 3;
    for (; left != 0; left &= left - 1) {
        unsigned bit = ffs(left) - 1, shift = 2 * bit & 31;
        uint32_t exponent = (uint32_t)load(escape++) << shift;
        if (bit < 16)
            e[0] = line_select(255u << shift, exponent, e[0]);
        else
            e[1] = line_select(255u << shift, exponent, e[1]);
    }
}

/*
 * One lane.  Quad number `place` of the line whose content begins at byte `at`.  `before`: how many
 * escapes the quads before it have; `has_several`: it has two or more itself.
 *
 * An index that is all ones, an escape, has a place of its own behind the palette's, 7 or 15. There
 * the next escape is put, so that a quad with one is looked up as any other.
 */
template <unsigned WIDTH>
WHARF_DEVICE u32x4 line_quad_of_bf16(const uint32_t *words, u32x4 palette, uint32_t at,
                                     uint32_t place, uint32_t before, bool has_several)
{
    constexpr uint32_t ESCAPES_AT = LINE_BF16_NVALUES + LINE_BF16_NVALUES * WIDTH / 8;
    uint32_t indexes = line_word(words + LINE_BF16_FIELDS_NWORDS, at + WIDTH * place);
    uint32_t nibbles = WIDTH == 3 ? line_nibbles_of_eight(indexes) : indexes;
    const uint8_t *escape = reinterpret_cast<const uint8_t *>(words) + at + ESCAPES_AT + before;
    uint32_t next = load(escape); /* where there is none, it is within 24 bytes of the line */
    if (WIDTH == 3)
        palette.y = byte_perm(palette.y, next, 0x4210);
    else
        palette.w = byte_perm(palette.w, next, 0x4210);
    uint32_t e[2] = {line_bf16_exponents<WIDTH>(palette, nibbles),
                     line_bf16_exponents<WIDTH>(palette, nibbles >> 16)};
    if (has_several)
        put_bf16_escapes<WIDTH>(escape, nibbles, e);
    line_pair fields = line_words_2(words, at + LINE_BF16_QUAD_NVALUES * place);
    uint32_t low_bits = opaque(0x7fff7fffu), v[4];
    WHARF_UNROLL
    for (unsigned i = 0; i < 4; i++) {
        /* Two values, whose sign is their lowest bit: each is rotated to the right by one. */
        uint32_t pair = byte_perm(i < 2 ? fields.lo : fields.hi, e[i / 2], i % 2 ? 0x7362 : 0x5140);
        v[i] = line_select(low_bits, pair >> 1, pair << 15);
    }
    return {v[0], v[1], v[2], v[3]};
}

} // namespace wharf

#endif
