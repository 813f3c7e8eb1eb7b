/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snappy_decode.c: decodes Snappy's raw format (snappy_format.h).
 *
 * Two loops share the work.  The fast loop decodes elements while the ends of source and output are
 * far, so that it may copy in wide steps past an element's end.  In most data the kinds of elements
 * follow no pattern, and a branch on them would often be mispredicted; so the fast loop computes
 * what an element does without branches.  It stops before anything unusual.  take_element then
 * decodes one element with all checks, in the order of snappy_format.h.  It alone reports errors.
 */
#include "encoders/little_endian.h"
#include "encoders/lz_copy.h"
#include "encoders/snappy/snappy.h"
#include "encoders/snappy/snappy_format.h"

/* The positions in source and output. */
struct place {
    const uint8_t *ip;
    uint8_t *op;
};

/* Reads the length, and sets lz->out_end to the end of the output.  Returns a reason. */
static uint32_t take_length(struct wharf_lz *lz, struct place *at)
{
    uint64_t length = 0;
    uint8_t byte;

    for (unsigned i = 0; i < WHARF_SNAPPY_LENGTH_NBYTES_MAX; i++) {
        if (at->ip == lz->in_end)
            return WHARF_REASON_INPUT_TRUNCATED;
        byte = *at->ip++;
        length |= (uint64_t)(byte & 127) << 7 * i;
        if (byte >= 128)
            continue;
        if (length > UINT32_MAX)
            return WHARF_REASON_SNAPPY_LENGTH;
        if (length > (size_t)(lz->out_end - lz->out))
            return WHARF_REASON_OUTPUT_FULL;
        lz->out_end = lz->out + length;
        return WHARF_REASON_NONE;
    }
    return WHARF_REASON_SNAPPY_LENGTH;
}

static uint32_t take_literals(struct wharf_lz *lz, struct place *at, uint8_t tag,
                              uint32_t *ret_stopped)
{
    unsigned high = tag >> 2;
    uint64_t n = high;

    if (high >= WHARF_SNAPPY_MORE) {
        unsigned nbytes = high - WHARF_SNAPPY_MORE + 1;
        if ((size_t)(lz->in_end - at->ip) < nbytes)
            return WHARF_REASON_INPUT_TRUNCATED;
        n = 0;
        for (unsigned i = 0; i < nbytes; i++)
            n |= (uint64_t)*at->ip++ << 8 * i;
    }
    n++;
    if (n > (size_t)(lz->out_end - at->op))
        return WHARF_REASON_SNAPPY_PAST_END;
    if (n > (size_t)(lz->in_end - at->ip))
        return WHARF_REASON_INPUT_TRUNCATED;
    *ret_stopped = wharf_lz_copy_literals(lz, at->op, at->ip, n);
    at->ip += n;
    at->op += n;
    return WHARF_REASON_NONE;
}

/* What a match's tag says, computed without branches. */
struct match {
    unsigned nbytes; /* bytes that follow the tag */
    uint32_t mask;   /* selects these from the four bytes after the tag */
    uint32_t high;   /* bits of the distance that the tag has */
    uint32_t length;
};

static inline struct match match_of(uint8_t tag)
{
    static const uint8_t nbytes[4] = {0, 1, 2, 4};
    static const uint32_t masks[4] = {0, 0xff, 0xffff, 0xffffffff};
    unsigned kind = tag & 3;
    uint32_t near = 0 - (uint32_t)(kind == WHARF_SNAPPY_NEAR_MATCH); /* all ones or 0 */

    return (struct match){
        .nbytes = nbytes[kind],
        .mask = masks[kind],
        .high = (uint32_t)(tag >> 5) << 8 & near,
        .length = ((4 + (tag >> 2 & 7u)) & near) | ((1 + (tag >> 2 & 63u)) & ~near),
    };
}

static uint32_t take_match(struct wharf_lz *lz, struct place *at, uint8_t tag)
{
    struct match match = match_of(tag);
    size_t distance = match.high;

    if ((size_t)(lz->in_end - at->ip) < match.nbytes)
        return WHARF_REASON_INPUT_TRUNCATED;
    for (unsigned i = 0; i < match.nbytes; i++)
        distance |= (size_t)*at->ip++ << 8 * i;
    if (distance - 1 >= (size_t)(at->op - lz->out))
        return WHARF_REASON_SNAPPY_OFFSET;
    if (match.length > (size_t)(lz->out_end - at->op))
        return WHARF_REASON_SNAPPY_PAST_END;
    wharf_lz_copy_match(at->op, distance, match.length, lz->out_end);
    at->op += match.length;
    return WHARF_REASON_NONE;
}

/* Decodes any element, with all checks. */
static uint32_t take_element(struct wharf_lz *lz, struct place *at, uint32_t *ret_stopped)
{
    if (at->ip == lz->in_end)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint8_t tag = *at->ip++;
    if ((tag & 3) == WHARF_SNAPPY_LITERALS)
        return take_literals(lz, at, tag, ret_stopped);
    return take_match(lz, at, tag);
}

/* The most that an element reads and writes in the fast loop, with copies in steps of 16 bytes.  It
 * has at most 60 literals, whose number is in the tag. */
enum {
    QUICK_IN_NBYTES = 1 + 64 + WHARF_LZ_SPARE_NBYTES,
    QUICK_OUT_NBYTES = 64 + WHARF_LZ_SPARE_NBYTES,

    SHORT_NBYTES = 24,
};

/*
 * Decodes the common elements: at most 24 literals, or a match of at most 24 bytes that is at least
 * 8 bytes back, so that copies in steps of 8 are right.  Which of the two it is selects the source
 * of the copy by masks, not by a branch.  Returns false, with nothing done, for any other element.
 */
static inline int take_short_element(const struct wharf_lz *lz, struct place *at, uint8_t tag)
{
    struct match match = match_of(tag);
    uintptr_t literals = (uintptr_t)0 - ((tag & 3) == WHARF_SNAPPY_LITERALS); /* all ones or 0 */
    uint64_t distance = (wharf_load_le32(at->ip + 1) & match.mask) | match.high;
    int wrong = (distance < 8) | (distance > (uint64_t)(at->op - lz->out));

    if (__builtin_expect((match.length > SHORT_NBYTES) | (wrong & !literals), 0))
        return 0;
    const uint8_t *from = (const uint8_t *)(((uintptr_t)(at->ip + 1) & literals) |
                                            (((uintptr_t)at->op - distance) & ~literals));
    wharf_lz_copy_8(at->op, from);
    wharf_lz_copy_8(at->op + 8, from + 8);
    wharf_lz_copy_8(at->op + 16, from + 16);
    at->op += match.length;
    at->ip += 1 + match.nbytes + (match.length & literals);
    return 1;
}

/*
 * Decodes elements while the ends are far.  Stops before more than 60 literals, and before any
 * error.
 */
static void take_quick_elements(const struct wharf_lz *lz, struct place *ret_at,
                                const uint8_t *in_limit, const uint8_t *out_limit)
{
    struct place at = *ret_at;

    while (at.ip < in_limit && at.op < out_limit) {
        uint8_t tag = *at.ip;
        if (take_short_element(lz, &at, tag))
            continue;
        if ((tag & 3) == WHARF_SNAPPY_LITERALS) {
            unsigned n = 1 + (tag >> 2);
            if (n > WHARF_SNAPPY_MORE)
                break;
            wharf_lz_copy_quickly(at.op, at.ip + 1, n);
            at.ip += 1 + n;
            at.op += n;
            continue;
        }
        struct match match = match_of(tag);
        size_t distance = (wharf_load_le32(at.ip + 1) & match.mask) | match.high;
        if (distance - 1 >= (size_t)(at.op - lz->out))
            break;
        wharf_lz_match_quickly(at.op, distance, match.length);
        at.ip += 1 + match.nbytes;
        at.op += match.length;
    }
    *ret_at = at;
}

/* Runs the fast loop until it stops, or until it is time to poll. */
static void go_quickly(const struct wharf_lz *lz, struct place *at)
{
    const uint8_t *in_limit = lz->in_end - QUICK_IN_NBYTES;
    const uint8_t *out_limit = lz->out_end - QUICK_OUT_NBYTES;

    if (in_limit - lz->asked_in > WHARF_POLL_IN_NBYTES)
        in_limit = lz->asked_in + WHARF_POLL_IN_NBYTES;
    if (out_limit - lz->asked_out > WHARF_POLL_OUT_NBYTES)
        out_limit = lz->asked_out + WHARF_POLL_OUT_NBYTES;
    take_quick_elements(lz, at, in_limit, out_limit);
}

void wharf_snappy_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                         const struct wharf_codec_setting *setting,
                         struct wharf_outcome *ret_outcome)
{
    struct wharf_lz lz;
    uint32_t stopped = WHARF_OK;

    wharf_lz_init(&lz, in, in_nbytes, out, out_avail, setting);
    struct place at = {lz.in, lz.out};
    const uint8_t *element = lz.in;
    uint32_t reason = take_length(&lz, &at);
    while (reason == WHARF_REASON_NONE && stopped == WHARF_OK && at.op < lz.out_end) {
        if (lz.in_end - at.ip > QUICK_IN_NBYTES && lz.out_end - at.op > QUICK_OUT_NBYTES)
            go_quickly(&lz, &at);
        element = at.ip;
        stopped = wharf_lz_poll(&lz, at.ip, at.op);
        if (stopped == WHARF_OK)
            reason = take_element(&lz, &at, &stopped);
    }
    if (stopped != WHARF_OK)
        wharf_outcome_fail(ret_outcome, stopped, WHARF_REASON_NONE, 0);
    else if (reason != WHARF_REASON_NONE)
        wharf_lz_fail(&lz, element, reason, ret_outcome);
    else
        wharf_outcome_ok(ret_outcome, (uint64_t)(at.ip - lz.in), (uint64_t)(at.op - lz.out));
}
