/* SPDX-License-Identifier: Apache-2.0 */
/* The form without any machine's instructions. */
#include "encoders/line/line_loop.h"

#include <string.h>

#include "encoders/line/line_bits.h"

#define LOOP wharf_line_loop_plain
#define TARGET
#define INLINE static inline __attribute__((always_inline))

/* ---- bdi ------------------------------------------------------------------------------------ */

INLINE void put_repeat(const uint8_t *content, uint32_t n, uint8_t *out)
{
    uint64_t value = wharf_line_load(content, 8);

    for (uint32_t at = 0; at < n; at += 8)
        wharf_line_store(out + at, 8, value);
}

INLINE void put_bases(const uint8_t *content, uint32_t n, uint8_t *out, uint32_t b, uint32_t d)
{
    uint32_t n_values = n / b, mask_nbytes = (n_values + 7) / 8;
    const uint8_t *deltas = content + mask_nbytes + b;
    uint64_t base = wharf_line_load(content + mask_nbytes, b), mask = wharf_line_load(content, 8);

    for (uint32_t i = 0; i < n_values; i++, mask >>= 1) {
        uint64_t delta = (uint64_t)wharf_line_signed(wharf_line_load(deltas + i * d, d), d);
        wharf_line_store(out + i * b, b, delta + (base & ((mask & 1) - 1)));
    }
}

#define DEFINE_PUT(b, d)                                                                           \
    INLINE void put_##b##_##d(const uint8_t *content, uint32_t n, uint8_t *out)                    \
    {                                                                                              \
        put_bases(content, n, out, b, d);                                                          \
    }
DEFINE_PUT(8, 1)
DEFINE_PUT(8, 2)
DEFINE_PUT(8, 4)
DEFINE_PUT(4, 1)
DEFINE_PUT(4, 2)
DEFINE_PUT(2, 1)

/* ---- fpc ------------------------------------------------------------------------------------ */

INLINE uint32_t extend(uint32_t value, uint32_t nbits)
{
    return (uint32_t)((int32_t)(value << (32 - nbits)) >> (32 - nbits));
}

INLINE uint32_t fpc_word(const uint8_t *p, uint32_t pattern, uint32_t i)
{
    switch (pattern) {
    case WHARF_LINE_FPC_ZEROS:
        return 0;
    case WHARF_LINE_FPC_SIGNED_4:
        return extend(p[i / 2] >> 4 * (i % 2), 4);
    case WHARF_LINE_FPC_SIGNED_8:
        return extend(p[i], 8);
    case WHARF_LINE_FPC_SIGNED_16:
        return extend((uint32_t)wharf_line_load(p + 2 * i, 2), 16);
    case WHARF_LINE_FPC_HIGH_HALF:
        return (uint32_t)wharf_line_load(p + 2 * i, 2) << 16;
    case WHARF_LINE_FPC_TWO_BYTES:
        return (extend(p[2 * i], 8) & 0xffff) | extend(p[2 * i + 1], 8) << 16;
    case WHARF_LINE_FPC_REPEATED:
        return p[i] * 0x01010101u;
    default:
        return (uint32_t)wharf_line_load(p + 4 * i, 4);
    }
}

INLINE bool put_fpc(const uint8_t *content, uint32_t n_pairs, uint32_t n, uint8_t *out)
{
    uint32_t patterns = (uint32_t)wharf_line_load(content, 4), n_taken = 0;

    content += wharf_line_fpc_head_nbytes(n);
    for (uint32_t at = 0; at < n; at += WHARF_LINE_FPC_SEGMENT_NBYTES, patterns >>= 3) {
        for (uint32_t i = 0; i < 4; i++)
            wharf_line_store(out + at + 4 * i, 4, fpc_word(content + 2 * n_taken, patterns & 7, i));
        n_taken += wharf_line_fpc_npairs(patterns & 7);
    }
    return n_taken <= n_pairs;
}

/* ---- cpack ---------------------------------------------------------------------------------- */

INLINE bool put_cpack(const uint8_t *content, const struct wharf_line_code *code, uint32_t n,
                      uint8_t *out)
{
    uint32_t n_words = code->variant, n_taken = 0, words[8] = {0}, wrong = 0;
    const uint8_t *dictionary = content + wharf_line_cpack_head_nbytes(n);
    const uint8_t *bytes = dictionary + 4 * n_words;

    memcpy(words + 1, dictionary, 16);
    for (uint32_t i = 0; i < n / 4; i++) {
        uint32_t nibble = content[i / 2] >> 4 * (i % 2) & 15u, source = nibble & 7;
        uint32_t has_byte = nibble >> 3, low = has_byte ? 255 : 0;
        wrong |= source > n_words;
        wharf_line_store(out + 4 * i, 4, (words[source] & ~low) | (bytes[n_taken] & low));
        n_taken += has_byte;
    }
    return !wrong && n_taken <= code->n_given;
}

/* ---- palette -------------------------------------------------------------------------------- */

INLINE uint32_t field(const uint8_t *bytes, uint32_t i, uint32_t nbits)
{
    uint32_t at = i * nbits;

    return (uint32_t)wharf_line_load(bytes + at / 8, 2) >> at % 8 & ((1u << nbits) - 1);
}

/* Values whose upper parts are of `e` bits of exponent and `f` others. */
INLINE bool put_values(const struct wharf_line_group *group, const uint8_t *content,
                       uint32_t n_escapes, uint32_t n, uint8_t *out, uint32_t e, uint32_t f,
                       uint32_t low_nbytes)
{
    uint32_t value_nbytes = (e + f) / 8 + low_nbytes, n_values = n / value_nbytes;
    uint32_t width = group->width, escape = (1u << width) - 1, n_taken = 0;
    const uint8_t *fields = content + low_nbytes * n_values;
    const uint8_t *indexes = fields + n_values * f / 8;
    const uint8_t *escapes = indexes + n_values * width / 8;

    for (uint32_t i = 0; i < n_values; i++) {
        uint32_t index = field(indexes, i, width), is_escape = index == escape;
        uint32_t exponent = is_escape ? escapes[n_taken] : group->palette[index];
        uint32_t upper = (exponent << f | field(fields, i, f)) & ((1u << (e + f)) - 1);
        n_taken += is_escape;
        upper = upper >> 1 | (upper & 1) << (e + f - 1);
        wharf_line_store(out + i * value_nbytes, value_nbytes,
                         low_nbytes ? upper << 8 | content[i] : upper);
    }
    return n_taken <= n_escapes;
}

INLINE bool put_palette(const struct wharf_line_group *group, const uint8_t *content,
                        uint32_t n_escapes, uint32_t n, uint8_t *out)
{
    switch (group->type) {
    case WHARF_LINE_BF16:
        return put_values(group, content, n_escapes, n, out, 8, 8, 0);
    case WHARF_LINE_F16:
        return put_values(group, content, n_escapes, n, out, 5, 3, 1);
    case WHARF_LINE_E4M3:
        return put_values(group, content, n_escapes, n, out, 4, 4, 0);
    default:
        return put_values(group, content, n_escapes, n, out, 5, 3, 0);
    }
}

#include "encoders/line/line_loop_body.h"
