/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle1_reference.c: the reference decoder of rle1, one value at a time.  It follows the text of the
 * ORC specification (Run Length Encoding, version 1) and shares no code with the fast decoder.
 */
#include "encoders/decode_poll.h"
#include "encoders/outcome.h"
#include "encoders/rle1/rle1.h"

/* A walk over the source; `failure` is the first thing that is wrong. */
struct walk {
    const uint8_t *in;
    size_t in_nbytes;
    size_t at;
    uint32_t failure;
    uint32_t type;
};

static uint8_t next_byte(struct walk *walk)
{
    if (walk->at == walk->in_nbytes) {
        walk->failure = WHARF_REASON_INPUT_TRUNCATED;
        return 0;
    }
    return walk->in[walk->at++];
}

/* A varint as a value of the stream's signedness. */
static uint64_t next_value(struct walk *walk)
{
    uint64_t number = 0;
    uint64_t weight_log2 = 0;
    uint8_t byte;

    do {
        byte = next_byte(walk);
        if (walk->failure)
            return 0;
        for (int bit = 0; bit < 7; bit++, weight_log2++) {
            if (!(byte >> bit & 1))
                continue;
            if (weight_log2 > 63) {
                walk->failure = WHARF_REASON_RLE_VARINT;
                return 0;
            }
            number += (uint64_t)1 << weight_log2;
        }
        /* A tenth byte that says that an eleventh follows. */
        if (byte >= 128 && weight_log2 >= 70) {
            walk->failure = WHARF_REASON_RLE_VARINT;
            return 0;
        }
    } while (byte >= 128);
    if (walk->type < WHARF_RLE_I8)
        return number;
    return number % 2 ? ~(number / 2) : number / 2;
}

static int is_of_type(uint64_t value, uint32_t type)
{
    switch (type) {
    case WHARF_RLE_U8:
        return value <= UINT8_MAX;
    case WHARF_RLE_U16:
        return value <= UINT16_MAX;
    case WHARF_RLE_U32:
        return value <= UINT32_MAX;
    case WHARF_RLE_I8:
        return (int64_t)value >= INT8_MIN && (int64_t)value <= INT8_MAX;
    case WHARF_RLE_I16:
        return (int64_t)value >= INT16_MIN && (int64_t)value <= INT16_MAX;
    case WHARF_RLE_I32:
        return (int64_t)value >= INT32_MIN && (int64_t)value <= INT32_MAX;
    default:
        return 1;
    }
}

/* The next group's values, at most 130.  Returns how many. */
static size_t next_group(struct walk *walk, uint64_t *values)
{
    uint8_t control = next_byte(walk);
    size_t n;

    if (control >= 128) {
        n = 256u - control;
        for (size_t i = 0; i < n && !walk->failure; i++)
            values[i] = next_value(walk);
        return n;
    }
    n = control + 3u;
    uint8_t delta = next_byte(walk);
    values[0] = walk->failure ? 0 : next_value(walk);
    for (size_t i = 1; i < n; i++)
        values[i] = values[i - 1] + delta - (delta >= 128 ? 256 : 0);
    return n;
}

void wharf_rle1_decode_reference(const uint8_t *in, size_t in_nbytes, uint8_t *out,
                                 size_t out_avail, const struct wharf_codec_setting *setting,
                                 struct wharf_outcome *ret_outcome)
{
    struct walk walk = {in, in_nbytes, 0, WHARF_REASON_NONE, setting ? setting->parameter : 0};
    size_t value_nbytes = (size_t)1 << walk.type % 4;
    size_t out_nbytes = 0;

    while (walk.at < in_nbytes) {
        uint64_t values[130];
        size_t group_at = walk.at;
        uint32_t stopped = wharf_decode_poll(setting);
        if (stopped) {
            wharf_outcome_fail(ret_outcome, stopped, WHARF_REASON_NONE, 0);
            return;
        }
        size_t n = next_group(&walk, values);
        if (!walk.failure && n > (out_avail - out_nbytes) / value_nbytes)
            walk.failure = WHARF_REASON_OUTPUT_FULL;
        for (size_t i = 0; i < n && !walk.failure; i++) {
            if (!is_of_type(values[i], walk.type))
                walk.failure = WHARF_REASON_RLE_VALUE;
            for (size_t k = 0; k < value_nbytes; k++)
                out[out_nbytes++] = (uint8_t)(values[i] >> (8 * k));
        }
        if (walk.failure) {
            wharf_outcome_fail(ret_outcome,
                               walk.failure == WHARF_REASON_OUTPUT_FULL ? WHARF_OUTPUT_TOO_SMALL
                                                                        : WHARF_BAD_DATA,
                               walk.failure, 8 * (uint64_t)group_at);
            return;
        }
    }
    wharf_outcome_ok(ret_outcome, in_nbytes, out_nbytes);
}
