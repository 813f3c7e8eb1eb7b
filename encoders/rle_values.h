/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle_values.h: what ORC's run-length codecs have in common: types of values, numbers of 7 bits a
 * byte, outcomes.
 *
 * All arithmetic on values is modulo 2^64, as ORC's own is: its writers let a run go on past the
 * largest number to the smallest.  A value v, then taken as a number of the type's signedness, must
 * be one of the type's.
 */
#ifndef WHARF_ENCODERS_RLE_VALUES_H
#define WHARF_ENCODERS_RLE_VALUES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "encoders/codec.h"
#include "encoders/decode_poll.h"
#include "encoders/outcome.h"

#define WHARF_RLE_INLINE static inline __attribute__((always_inline))

/* The type called "u8", "u16" ... "i64", or -ENOENT; and the other way round, NULL for others. */
int wharf_rle_type_from_name(const char *name);
const char *wharf_rle_type_name(uint32_t type);

/* struct wharf_codec_ops.unit_nbytes of rle1 and rle2. */
uint32_t wharf_rle_unit_nbytes(uint32_t parameter);

WHARF_RLE_INLINE unsigned wharf_rle_type_nbytes(uint32_t type)
{
    return 1u << (type & 3);
}

WHARF_RLE_INLINE int wharf_rle_type_is_signed(uint32_t type)
{
    return type >= WHARF_RLE_I8;
}

WHARF_RLE_INLINE uint32_t wharf_rle_type_of(const struct wharf_codec_setting *setting)
{
    return setting ? setting->parameter : 0;
}

/* Calls function(state, size of the type in bytes, whether it is signed, ...) with constants. */
#define WHARF_RLE_FOR_TYPE(type, function, state, ...)                                             \
    do {                                                                                           \
        switch (type) {                                                                            \
        case WHARF_RLE_U8:                                                                         \
            function(state, 1, 0, __VA_ARGS__);                                                    \
            break;                                                                                 \
        case WHARF_RLE_U16:                                                                        \
            function(state, 2, 0, __VA_ARGS__);                                                    \
            break;                                                                                 \
        case WHARF_RLE_U32:                                                                        \
            function(state, 4, 0, __VA_ARGS__);                                                    \
            break;                                                                                 \
        case WHARF_RLE_U64:                                                                        \
            function(state, 8, 0, __VA_ARGS__);                                                    \
            break;                                                                                 \
        case WHARF_RLE_I8:                                                                         \
            function(state, 1, 1, __VA_ARGS__);                                                    \
            break;                                                                                 \
        case WHARF_RLE_I16:                                                                        \
            function(state, 2, 1, __VA_ARGS__);                                                    \
            break;                                                                                 \
        case WHARF_RLE_I32:                                                                        \
            function(state, 4, 1, __VA_ARGS__);                                                    \
            break;                                                                                 \
        default:                                                                                   \
            function(state, 8, 1, __VA_ARGS__);                                                    \
            break;                                                                                 \
        }                                                                                          \
    } while (0)

/* 0, 1, 2, 3, ... to 0, -1, 1, -2, ... */
WHARF_RLE_INLINE uint64_t wharf_rle_unzigzag(uint64_t u)
{
    return (u >> 1) ^ (0 - (u & 1));
}

WHARF_RLE_INLINE uint64_t wharf_rle_zigzag(uint64_t v)
{
    return (v << 1) ^ (0 - (v >> 63));
}

/* As a number stands in the stream, to the value that it means. */
WHARF_RLE_INLINE uint64_t wharf_rle_value(uint64_t u, int is_signed)
{
    return is_signed ? wharf_rle_unzigzag(u) : u;
}

/* v so that the type has it just when the result is below 2^(8 * nbytes).  Of several values the
 * results may be or-ed. */
WHARF_RLE_INLINE uint64_t wharf_rle_excess(uint64_t v, unsigned nbytes, int is_signed)
{
    return is_signed ? v + ((uint64_t)1 << (8 * nbytes - 1)) : v;
}

/* Whether an (or-ed) excess is one; likewise of numbers as they stand in the stream. */
WHARF_RLE_INLINE int wharf_rle_exceeds(uint64_t excess, unsigned nbytes)
{
    return nbytes < 8 && excess >> (8 * nbytes & 63) != 0;
}

WHARF_RLE_INLINE void wharf_rle_store(uint8_t *out, uint64_t v, unsigned nbytes)
{
    uint8_t v8 = (uint8_t)v;
    uint16_t v16 = (uint16_t)v;
    uint32_t v32 = (uint32_t)v;

    if (nbytes == 1)
        memcpy(out, &v8, 1);
    else if (nbytes == 2)
        memcpy(out, &v16, 2);
    else if (nbytes == 4)
        memcpy(out, &v32, 4);
    else
        memcpy(out, &v, 8);
}

WHARF_RLE_INLINE uint64_t wharf_rle_load(const uint8_t *in, unsigned nbytes, int is_signed)
{
    uint64_t v = 0;

    memcpy(&v, in, nbytes);
    if (is_signed && nbytes < 8)
        v |= 0 - (v & (uint64_t)1 << (8 * nbytes - 1));
    return v;
}

/* The source from a place on. */
struct wharf_rle_input {
    const uint8_t *next;
    const uint8_t *end;
};

/* Takes a number of 7 bits a byte, least significant first.  Returns a reason. */
WHARF_RLE_INLINE uint32_t wharf_rle_take_varint(struct wharf_rle_input *in, uint64_t *ret_u)
{
    uint64_t u = 0;

    for (unsigned shift = 0; in->next < in->end; shift += 7) {
        uint8_t byte = *in->next++;
        if (shift == 63 && byte > 1)
            return WHARF_REASON_RLE_VARINT;
        u |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_u = u;
            return WHARF_REASON_NONE;
        }
    }
    return WHARF_REASON_INPUT_TRUNCATED;
}

/* The tops of the bytes of a word. */
#define WHARF_RLE_TOPS 0x8080808080808080u

WHARF_RLE_INLINE uint64_t wharf_rle_load_word(const uint8_t *in)
{
    uint64_t word;

    memcpy(&word, in, 8);
    return word;
}

/* The 7 lower bits of each byte of a word, put together. */
WHARF_RLE_INLINE uint64_t wharf_rle_close_gaps(uint64_t word)
{
    word = (word & 0x007f007f007f007fu) | (word & 0x7f007f007f007f00u) >> 1;
    word = (word & 0x00003fff00003fffu) | (word & 0x3fff00003fff0000u) >> 2;
    return (word & 0x000000000fffffffu) | (word & 0x0fffffff00000000u) >> 4;
}

/* The same, sooner for numbers whose lengths nobody can guess: one of more than a byte is taken
 * from a word, where 8 bytes are there. */
WHARF_RLE_INLINE uint32_t wharf_rle_take_number(struct wharf_rle_input *in, uint64_t *ret_u)
{
    if (in->end - in->next >= 8) {
        uint64_t word = wharf_rle_load_word(in->next);
        uint64_t ends = ~word & WHARF_RLE_TOPS;
        if (ends & 0x80) {
            *ret_u = word & 0x7f;
            in->next++;
            return WHARF_REASON_NONE;
        }
        if (ends) {
            *ret_u = wharf_rle_close_gaps(word & (ends ^ (ends - 1)));
            in->next += (unsigned)__builtin_ctzll(ends) / 8 + 1;
            return WHARF_REASON_NONE;
        }
    }
    return wharf_rle_take_varint(in, ret_u);
}

/* Writes one: at most 10 bytes.  Returns how many. */
WHARF_RLE_INLINE unsigned wharf_rle_put_varint(uint8_t *out, uint64_t u)
{
    unsigned n = 0;

    for (; u >= 0x80; u >>= 7)
        out[n++] = (uint8_t)(u | 0x80);
    out[n++] = (uint8_t)u;
    return n;
}

/* Bytes that it takes: one for every 7 bits that have begun, and one for 0. */
WHARF_RLE_INLINE unsigned wharf_rle_varint_nbytes(uint64_t u)
{
    return (unsigned)(70 - __builtin_clzll(u | 1)) / 7;
}

/* When a decoder is to ask whether to go on. */
struct wharf_rle_pace {
    const struct wharf_codec_setting *setting;
    size_t in_mark;
    size_t out_mark;
};

/* No run or group takes or gives so much: 4 KiB and a header at most. */
enum { WHARF_RLE_GROUP_NBYTES = 8192 };

/* Before a group: WHARF_OK, or the result to end with. */
static inline uint32_t wharf_rle_keep_pace(struct wharf_rle_pace *pace, size_t in_at, size_t out_at)
{
    if (in_at < pace->in_mark && out_at < pace->out_mark)
        return WHARF_OK;
    pace->in_mark = in_at + WHARF_POLL_IN_NBYTES - WHARF_RLE_GROUP_NBYTES;
    pace->out_mark = out_at + WHARF_POLL_OUT_NBYTES - WHARF_RLE_GROUP_NBYTES;
    return wharf_decode_poll(pace->setting);
}

/* A failure in the run or group that begins `at` bytes into the source. */
static inline void wharf_rle_fail(struct wharf_outcome *ret_outcome, uint32_t reason, size_t at)
{
    wharf_outcome_fail(ret_outcome,
                       reason == WHARF_REASON_OUTPUT_FULL ? WHARF_OUTPUT_TOO_SMALL : WHARF_BAD_DATA,
                       reason, 8 * (uint64_t)at);
}

#endif
