/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_compress_palette.c: makes a group's palette from its most frequent exponents: 7 with indexes
 * of 3 bits, or 15 with indexes of 4, whichever makes the group smaller.
 */
#include <string.h>

#include "encoders/line/line_bits.h"
#include "encoders/line/line_compress.h"

/* A value as its exponent, its field and, of f16, its low byte. */
struct value {
    uint32_t exponent;
    uint32_t field;
    uint32_t low;
};

static uint32_t exponent_nbits(uint32_t type)
{
    static const uint8_t nbits[WHARF_LINE_N_TYPES] = {
        [WHARF_LINE_BF16] = 8,
        [WHARF_LINE_F16] = 5,
        [WHARF_LINE_E4M3] = 4,
        [WHARF_LINE_E5M2] = 5,
    };

    return nbits[type];
}

/* The upper part is rotated to the left, so that the sign is the field's lowest bit. */
static inline struct value take_apart(const uint8_t *line, uint32_t i, uint32_t type)
{
    uint32_t f = wharf_line_field_nbits(type), upper_nbits = exponent_nbits(type) + f;
    bool is_pair = type <= WHARF_LINE_F16;
    uint32_t bits =
        (uint32_t)wharf_line_load(line + (is_pair ? 2 : 1) * (size_t)i, is_pair ? 2 : 1);
    uint32_t upper = type == WHARF_LINE_F16 ? bits >> 8 : bits;

    upper = (upper << 1 | upper >> (upper_nbits - 1)) & ((1u << upper_nbits) - 1);
    return (struct value){upper >> f, upper & ((1u << f) - 1), bits & 255};
}

/* The most frequent exponents first, of equals the lowest; 0 where there are no more. */
static void choose_exponents(uint32_t *counts, uint8_t *exponents, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t best = 0;
        for (uint32_t e = 1; e < 256; e++)
            if (counts[e] > counts[best])
                best = e;
        exponents[i] = (uint8_t)(counts[best] > 0 ? best : 0);
        counts[best] = 0;
    }
}

static void set_width(struct wharf_line_palette *palette, uint32_t width)
{
    uint32_t n = (1u << width) - 1;

    palette->width = width;
    memset(palette->indexes, (int)n, sizeof(palette->indexes));
    for (uint32_t i = n; i-- > 0;)
        palette->indexes[palette->exponents[i]] = (uint8_t)i;
}

uint32_t wharf_line_count_escapes(const struct wharf_line_palette *palette, const uint8_t *line,
                                  uint32_t line_nbytes)
{
    uint32_t n = wharf_line_n_values(palette->type, line_nbytes),
             escape = (1u << palette->width) - 1;
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++)
        count += palette->indexes[take_apart(line, i, palette->type).exponent] == escape;
    return count;
}

/* How much a group's lines take with this width. */
static uint32_t measure(const struct wharf_line_palette *palette, uint32_t line_nbytes,
                        const uint8_t *group, uint32_t nbytes)
{
    uint32_t before = wharf_line_palette_nbytes(palette->type, palette->width, line_nbytes);
    uint32_t sum = 0;

    for (uint32_t at = 0; at < nbytes; at += line_nbytes) {
        uint32_t n = wharf_line_count_escapes(palette, group + at, line_nbytes);
        bool is_raw = before + n >= line_nbytes || n + 2 > WHARF_LINE_NIBBLE_RAW;
        sum += is_raw ? line_nbytes : before + n;
    }
    return sum;
}

void wharf_line_make_palette(struct wharf_line_palette *palette, uint32_t type,
                             uint32_t line_nbytes, const uint8_t *group, uint32_t nbytes)
{
    uint32_t counts[256] = {0}, n = wharf_line_n_values(type, nbytes);

    memset(palette, 0, sizeof(*palette));
    palette->type = type;
    for (uint32_t i = 0; i < n; i++)
        counts[take_apart(group, i, type).exponent]++;
    choose_exponents(counts, palette->exponents, 15);
    set_width(palette, 3);
    if (wharf_line_is_width(type, 4)) {
        uint32_t of_3 = measure(palette, line_nbytes, group, nbytes);
        set_width(palette, 4);
        if (of_3 <= measure(palette, line_nbytes, group, nbytes))
            set_width(palette, 3);
    }
    memset(palette->exponents + (1u << palette->width) - 1, 0, 16 - (1u << palette->width));
    palette->exponents[WHARF_LINE_PALETTE_AT_WIDTH] = (uint8_t)palette->width;
}

void wharf_line_put_palette(const struct wharf_line_palette *palette, const uint8_t *line,
                            uint32_t line_nbytes, uint8_t *out)
{
    uint32_t type = palette->type, f = wharf_line_field_nbits(type), width = palette->width;
    uint32_t n = wharf_line_n_values(type, line_nbytes), escape = (1u << width) - 1;
    uint8_t *fields = out + (type == WHARF_LINE_F16 ? n : 0);
    uint8_t *indexes = fields + (size_t)n * f / 8;
    uint8_t *escapes = indexes + (size_t)n * width / 8;

    memset(fields, 0, (size_t)n * (f + width) / 8);
    for (uint32_t i = 0; i < n; i++) {
        struct value value = take_apart(line, i, type);
        uint32_t index = palette->indexes[value.exponent];
        if (type == WHARF_LINE_F16)
            out[i] = (uint8_t)value.low;
        wharf_line_put_field(fields, i, f, value.field);
        wharf_line_put_field(indexes, i, width, index);
        if (index == escape)
            *escapes++ = (uint8_t)value.exponent;
    }
}
