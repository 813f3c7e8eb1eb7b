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
enum { WHARF_LZ_SPARE_NBYTES = 32 };

/* Matches of up to so many bytes are copied without a loop: all of LZ4's without length bytes. */
enum { WHARF_LZ_USUAL_MATCH = 18 };

/* The same 8 bytes from op to end and at most 31 bytes behind: without waiting for what was just
 * stored. */
static inline void wharf_lz_fill(uint8_t *op, const uint8_t *end, uint64_t word)
{
    do {
        for (unsigned i = 0; i < 32; i += 8)
            memcpy(op + i, &word, 8);
        op += 32;
    } while (op < end);
}

/* The last bytes before op that a distance of 1, 2, 4 or 8 repeats, as often as they fit 8. */
static inline uint64_t wharf_lz_pattern(const uint8_t *op, size_t distance)
{
    uint64_t eight;
    uint32_t four;
    uint16_t two;

    switch (distance) {
    case 1:
        return op[-1] * UINT64_C(0x0101010101010101);
    case 2:
        memcpy(&two, op - 2, 2);
        return two * UINT64_C(0x0001000100010001);
    case 4:
        memcpy(&four, op - 4, 4);
        return four * UINT64_C(0x0000000100000001);
    default:
        memcpy(&eight, op - 8, 8);
        return eight;
    }
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

    if (__builtin_expect(distance >= 8, 1)) {
        /* Most end here.  Whether there are length bytes a decoder of LZ4 has asked before, so this
         * branch is foreseen. */
        wharf_lz_copy_8(op, from);
        wharf_lz_copy_8(op + 8, from + 8);
        wharf_lz_copy_8(op + 16, from + 16);
        if (length <= WHARF_LZ_USUAL_MATCH)
            return;
    }
    if (distance < 16) {
        if (far_16[distance] == 16) {
            wharf_lz_fill(op, end, wharf_lz_pattern(op, distance));
            return;
        }
        if (distance < 8) {
            for (unsigned i = 0; i < 8; i++)
                op[i] = from[i];
            wharf_lz_copy_8(op + 8, op + 8 - far_8[distance]);
        }
        op += 16;
        from = op - far_16[distance];
    }
    for (; op < end; op += 32, from += 32) {
        wharf_lz_copy_16(op, from);
        wharf_lz_copy_16(op + 16, from + 16);
    }
}

/* The same with no room to spare, if need be: where the output ends with the match, as it does in
 * the many short outputs of Blosc, the last bytes are copied one by one. */
static inline void wharf_lz_copy_match(uint8_t *op, size_t distance, size_t length,
                                       const uint8_t *out_end)
{
    size_t room = (size_t)(out_end - op);

    if (room >= length + WHARF_LZ_SPARE_NBYTES) {
        wharf_lz_match_quickly(op, distance, length);
        return;
    }
    if (room > WHARF_LZ_SPARE_NBYTES) {
        size_t with_spare = room - WHARF_LZ_SPARE_NBYTES;
        wharf_lz_match_quickly(op, distance, with_spare);
        op += with_spare;
        length -= with_spare;
    }
    for (; length > 0; length--, op++)
        *op = *(op - distance);
}

/* The same of any length, with questions in between.  Returns what wharf_decode_poll does. */
uint32_t wharf_lz_copy_long_match(struct wharf_lz *lz, uint8_t *op, size_t distance, size_t length);

/* `length` bytes from ip to op, which are there and have room, likewise. */
uint32_t wharf_lz_copy_literals(struct wharf_lz *lz, uint8_t *op, const uint8_t *ip, size_t length);

#endif
