/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_lz.c: decodes blosclz, Blosc's own LZ77 codec (BLOSCLZ in blosc_format.h).
 *
 * One pass that checks each element before it writes.  As in all codecs of this kind here, copies
 * of 16 bytes may write past an element while there is room (lz_copy.h).
 */
#include "encoders/blosc/blosc_lz.h"

#include "encoders/lz_copy.h"

enum {
    MATCH = 32,        /* the least first byte of a match */
    LENGTH_MORE = 7,   /* more bytes of the length follow */
    FAR_HIGH = 31,     /* with a low byte of FAR_LOW, */
    FAR_LOW = 255,     /* two bytes follow, */
    FAR_FIRST = 8192,  /* which are added to this */
    MATCH_MIN_LESS = 2 /* a match's length is the high three bits plus this */
};

/* The positions in source and output. */
struct place {
    const uint8_t *ip;
    uint8_t *op;
};

/* Returns the result of wharf_decode_poll; sets *ret_reason on an error. */
static uint32_t take_literals(struct wharf_lz *lz, struct place *at, size_t n, uint32_t *ret_reason)
{
    if (n > (size_t)(lz->in_end - at->ip)) {
        *ret_reason = WHARF_REASON_INPUT_TRUNCATED;
    } else if (n > (size_t)(lz->out_end - at->op)) {
        *ret_reason = WHARF_REASON_OUTPUT_FULL;
    } else {
        if ((size_t)(lz->in_end - at->ip) > MATCH + WHARF_LZ_SPARE_NBYTES &&
            (size_t)(lz->out_end - at->op) > MATCH + WHARF_LZ_SPARE_NBYTES) {
            wharf_lz_copy_16(at->op, at->ip);
            wharf_lz_copy_16(at->op + 16, at->ip + 16);
        } else {
            memcpy(at->op, at->ip, n);
        }
        at->ip += n;
        at->op += n;
    }
    return WHARF_OK;
}

/* A match.  After each byte read, at least one more must follow: the next element's first. */
struct match {
    size_t length, distance;
};

static uint32_t read_match(struct wharf_lz *lz, struct place *at, unsigned first,
                           struct match *ret_match, uint32_t *ret_reason)
{
    size_t length = (first >> 5) + MATCH_MIN_LESS;
    unsigned high = first & 31;
    uint8_t byte;

    *ret_reason = WHARF_REASON_INPUT_TRUNCATED;
    if (first >> 5 == LENGTH_MORE) {
        do {
            uint32_t stopped = wharf_lz_poll(lz, at->ip, at->op);
            if (stopped)
                return stopped;
            if (lz->in_end - at->ip < 2)
                return WHARF_OK;
            byte = *at->ip++;
            length += byte;
        } while (byte == 255);
    }
    if (lz->in_end - at->ip < 2)
        return WHARF_OK;
    byte = *at->ip++;
    size_t distance = high << 8 | byte;
    if (high == FAR_HIGH && byte == FAR_LOW) {
        if (lz->in_end - at->ip < 3)
            return WHARF_OK;
        distance = FAR_FIRST - 1 + ((size_t)at->ip[0] << 8 | at->ip[1]);
        at->ip += 2;
    }
    *ret_match = (struct match){length, distance + 1};
    *ret_reason = WHARF_REASON_NONE;
    return WHARF_OK;
}

static uint32_t take_match(struct wharf_lz *lz, struct place *at, unsigned first,
                           uint32_t *ret_reason)
{
    struct match match = {0, 0};
    uint32_t stopped = read_match(lz, at, first, &match, ret_reason);

    if (stopped || *ret_reason != WHARF_REASON_NONE)
        return stopped;
    if (match.distance > (size_t)(at->op - lz->out)) {
        *ret_reason = WHARF_REASON_BLOSC_LZ_OFFSET;
    } else if (match.length > (size_t)(lz->out_end - at->op)) {
        *ret_reason = WHARF_REASON_OUTPUT_FULL;
    } else {
        stopped = wharf_lz_copy_long_match(lz, at->op, match.distance, match.length);
        at->op += match.length;
    }
    return stopped;
}

void wharf_blosc_lz_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                           const struct wharf_codec_setting *setting,
                           struct wharf_outcome *ret_outcome)
{
    struct wharf_lz lz;
    uint32_t stopped = WHARF_OK, reason = WHARF_REASON_NONE;
    unsigned mask = MATCH - 1;

    wharf_lz_init(&lz, in, in_nbytes, out, out_avail, setting);
    struct place at = {lz.in, lz.out};
    const uint8_t *element = at.ip;
    while (!stopped && reason == WHARF_REASON_NONE && at.ip < lz.in_end) {
        element = at.ip;
        unsigned first = *at.ip++ & mask;
        mask = 255;
        stopped = wharf_lz_poll(&lz, at.ip, at.op);
        if (stopped)
            break;
        stopped = first < MATCH ? take_literals(&lz, &at, first + 1, &reason)
                                : take_match(&lz, &at, first, &reason);
    }
    if (stopped)
        wharf_outcome_fail(ret_outcome, stopped, WHARF_REASON_NONE, 0);
    else if (reason != WHARF_REASON_NONE)
        wharf_lz_fail(&lz, element, reason, ret_outcome);
    else
        wharf_outcome_ok(ret_outcome, in_nbytes, (uint64_t)(at.op - lz.out));
}
