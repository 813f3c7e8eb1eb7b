/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_copy.h: what the decoders of lz4 and snappy have in common: formats of literals and matches in
 * whole bytes.
 */
#ifndef WHARF_ENCODERS_LZ_COPY_H
#define WHARF_ENCODERS_LZ_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "encoders/decode_poll.h"
#include "encoders/outcome.h"

/* A decode under way. */
struct wharf_lz {
    const uint8_t *in, *in_end;
    uint8_t *out, *out_end;
    const struct wharf_codec_setting *setting;
    /* Where it stood when it last asked whether to go on. */
    const uint8_t *asked_in;
    uint8_t *asked_out;
};

static inline void wharf_lz_init(struct wharf_lz *lz, const uint8_t *in, size_t in_nbytes,
                                 uint8_t *out, size_t out_avail,
                                 const struct wharf_codec_setting *setting)
{
    /* Nothing may be added to NULL, not even 0: that of an empty buffer stands for this byte. */
    static uint8_t nothing[1];

    lz->asked_in = lz->in = in ? in : nothing;
    lz->in_end = lz->in + in_nbytes;
    lz->asked_out = lz->out = out ? out : nothing;
    lz->out_end = lz->out + out_avail;
    lz->setting = setting;
}

/* Asks, if it is time to: WHARF_OK, or the result to end with. */
static inline uint32_t wharf_lz_poll(struct wharf_lz *lz, const uint8_t *ip, uint8_t *op)
{
    if (__builtin_expect((ip - lz->asked_in < WHARF_POLL_IN_NBYTES) &
                             (op - lz->asked_out < WHARF_POLL_OUT_NBYTES),
                         1))
        return WHARF_OK;
    lz->asked_in = ip;
    lz->asked_out = op;
    return wharf_decode_poll(lz->setting);
}

static inline void wharf_lz_fail(const struct wharf_lz *lz, const uint8_t *at, uint32_t reason,
                                 struct wharf_outcome *ret_outcome)
{
    uint32_t result = reason == WHARF_REASON_OUTPUT_FULL ? WHARF_OUTPUT_TOO_SMALL : WHARF_BAD_DATA;

    wharf_outcome_fail(ret_outcome, result, reason, 8 * (uint64_t)(at - lz->in));
}

/* ---- copies -------------------------------------------------------------------------------- */

static inline void wharf_lz_copy_8(uint8_t *to, const uint8_t *from)
{
    uint64_t word;

    memcpy(&word, from, 8);
    memcpy(to, &word, 8);
}

static inline void wharf_lz_copy_16(uint8_t *to, const uint8_t *from)
{
    uint64_t words[2];

    memcpy(words, from, 16);
    memcpy(to, words, 16);
}

/* What copies with room to spare may write behind what they are to write. */
enum { WHARF_LZ_SPARE_NBYTES = 16 };

/* The 16 bytes before op from there to end and at most 15 bytes behind. */
static inline void wharf_lz_fill_16(uint8_t *op, const uint8_t *end)
{
    uint64_t words[2];

    memcpy(words, op - 16, 16);
    for (; op < end; op += 16)
        memcpy(op, words, 16);
}

/* Literals, with as much to spare in front of both ends. */
static inline void wharf_lz_copy_quickly(uint8_t *op, const uint8_t *ip, size_t length)
{
    wharf_lz_copy_16(op, ip);
    for (size_t i = 16; i < length; i += 16)
        wharf_lz_copy_16(op + i, ip + i);
}

/*
 * A match of `length` bytes to `op` from `distance` bytes before, which are there; distance is at
 * least 1.  There is room to spare behind it.
 */
static inline void wharf_lz_match_quickly(uint8_t *op, size_t distance, size_t length)
{
    /* The least multiples of a short distance that are at least 8, and 16: what lies so far back is
     * the same, once so many bytes are there, and a step does not overlap it. */
    static const uint8_t far_8[8] = {0, 8, 8, 9, 8, 10, 12, 14};
    static const uint8_t far_16[16] = {0,  16, 16, 18, 16, 20, 18, 21,
                                       16, 18, 20, 22, 24, 26, 28, 30};
    const uint8_t *from = op - distance;
    uint8_t *end = op + length;

    if (distance < 16) {
        if (distance < 8)
            for (unsigned i = 0; i < 8; i++)
                op[i] = from[i];
        else
            wharf_lz_copy_8(op, from);
        wharf_lz_copy_8(op + 8, op + 8 - (distance < 8 ? far_8[distance] : distance));
        op += 16;
        from = op - far_16[distance];
        if (far_16[distance] == 16) {
            /* The same 16 bytes again and again: without waiting for what was just stored. */
            wharf_lz_fill_16(op, end);
            return;
        }
    }
    for (; op < end; op += 16, from += 16)
        wharf_lz_copy_16(op, from);
}

/* The same with no room to spare, if need be. */
static inline void wharf_lz_copy_match(uint8_t *op, size_t distance, size_t length,
                                       const uint8_t *out_end)
{
    const uint8_t *from = op - distance;

    if ((size_t)(out_end - op) >= length + WHARF_LZ_SPARE_NBYTES) {
        wharf_lz_match_quickly(op, distance, length);
        return;
    }
    while (length-- > 0)
        *op++ = *from++;
}

/* The same of any length, with questions in between.  Returns what wharf_decode_poll does. */
uint32_t wharf_lz_copy_long_match(struct wharf_lz *lz, uint8_t *op, size_t distance, size_t length);

/* `length` bytes from ip to op, which are there and have room, likewise. */
uint32_t wharf_lz_copy_literals(struct wharf_lz *lz, uint8_t *op, const uint8_t *ip, size_t length);

#endif
