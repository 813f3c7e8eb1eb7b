/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz4_decode.c: decodes LZ4 blocks (lz4_format.h).
 *
 * The fast loop decodes sequences with short lengths while the ends of input and output are far.
 * It copies in wide steps, also past the end of a sequence, and stops before anything else.
 * take_sequence then makes all checks, in the order of lz4_format.h.  It alone reports errors.
 */
#include "encoders/little_endian.h"
#include "encoders/lz4/lz4.h"
#include "encoders/lz4/lz4_format.h"
#include "encoders/lz_copy.h"

/* Where it stands. */
struct place {
    const uint8_t *ip;
    uint8_t *op;
    const uint8_t *match; /* where the last match was written to; NULL: there was none */
};

/* How one sequence ended. */
struct end {
    int is_end;      /* nothing comes after it */
    uint32_t result; /* WHARF_OK, or what the decode was stopped with */
    uint32_t reason;
};

static const struct end go_on = {0, WHARF_OK, WHARF_REASON_NONE};

static struct end fails(uint32_t reason)
{
    return (struct end){1, WHARF_OK, reason};
}

static struct end stops(uint32_t result)
{
    return (struct end){1, result, WHARF_REASON_NONE};
}

/* Sums length bytes.  The sum is below 255 times the source's size and cannot overflow. */
static struct end add_length_bytes(struct wharf_lz *lz, struct place *at, size_t *length)
{
    uint8_t byte;

    do {
        uint32_t stopped = wharf_lz_poll(lz, at->ip, at->op);
        if (stopped)
            return stops(stopped);
        if (at->ip == lz->in_end)
            return fails(WHARF_REASON_INPUT_TRUNCATED);
        byte = *at->ip++;
        *length += byte;
    } while (byte == 255);
    return go_on;
}

static struct end finish(const struct place *at, size_t n_literals)
{
    if (at->match &&
        (n_literals < WHARF_LZ4_LAST_LITERALS || at->op - at->match < WHARF_LZ4_LAST_MATCH))
        return fails(WHARF_REASON_LZ4_END);
    return (struct end){1, WHARF_OK, WHARF_REASON_NONE};
}

static struct end take_literals(struct wharf_lz *lz, struct place *at, size_t n)
{
    if (n == WHARF_LZ4_MORE) {
        struct end end = add_length_bytes(lz, at, &n);
        if (end.is_end)
            return end;
    }
    if (n > (size_t)(lz->in_end - at->ip))
        return fails(WHARF_REASON_INPUT_TRUNCATED);
    if (n > (size_t)(lz->out_end - at->op))
        return fails(WHARF_REASON_OUTPUT_FULL);
    uint32_t stopped = wharf_lz_copy_literals(lz, at->op, at->ip, n);
    if (stopped)
        return stops(stopped);
    at->ip += n;
    at->op += n;
    return at->ip == lz->in_end ? finish(at, n) : go_on;
}

static struct end take_match(struct wharf_lz *lz, struct place *at, size_t length)
{
    if (lz->in_end - at->ip < 2)
        return fails(WHARF_REASON_INPUT_TRUNCATED);
    size_t distance = wharf_load_le16(at->ip);
    at->ip += 2;
    if (distance - 1 >= (size_t)(at->op - lz->out))
        return fails(WHARF_REASON_LZ4_OFFSET);
    if (length == WHARF_LZ4_MORE + WHARF_LZ4_MATCH_MIN) {
        struct end end = add_length_bytes(lz, at, &length);
        if (end.is_end)
            return end;
    }
    if (length > (size_t)(lz->out_end - at->op))
        return fails(WHARF_REASON_OUTPUT_FULL);
    uint32_t stopped = wharf_lz_copy_long_match(lz, at->op, distance, length);
    if (stopped)
        return stops(stopped);
    at->match = at->op;
    at->op += length;
    return go_on;
}

/* Any sequence, near the ends too. */
static struct end take_sequence(struct wharf_lz *lz, struct place *at)
{
    if (at->ip == lz->in_end)
        return fails(WHARF_REASON_INPUT_TRUNCATED);
    uint8_t token = *at->ip++;
    struct end end = take_literals(lz, at, token >> 4);
    if (!end.is_end)
        end = take_match(lz, at, (token & 15u) + WHARF_LZ4_MATCH_MIN);
    return end;
}

/*
 * The most that a sequence reads and writes, including what its wide copies touch beyond it: with
 * at most one length byte each for literals and match, and without length bytes.
 */
enum {
    QUICK_LITERALS = WHARF_LZ4_MORE + 254,
    QUICK_MATCH = WHARF_LZ4_MORE + WHARF_LZ4_MATCH_MIN + 254,
    QUICK_IN_NBYTES = 1 + 1 + QUICK_LITERALS + WHARF_LZ_SPARE_NBYTES + 2 + 1,
    QUICK_OUT_NBYTES = QUICK_LITERALS + QUICK_MATCH + WHARF_LZ_SPARE_NBYTES,

    SHORT_LITERALS = WHARF_LZ4_MORE - 1,
    SHORT_IN_NBYTES = 1 + SHORT_LITERALS + WHARF_LZ_SPARE_NBYTES + 2,
    SHORT_OUT_NBYTES = SHORT_LITERALS + WHARF_LZ_USUAL_MATCH + WHARF_LZ_SPARE_NBYTES,
};

/*
 * Decodes such sequences while both ends are far.  Stops before any other sequence and before any
 * error, so it never takes a block's last sequence.
 */
static inline __attribute__((always_inline)) void
take_quickly(const struct wharf_lz *lz, struct place *ret_at, const uint8_t *in_limit,
             const uint8_t *out_limit, const bool with_length_bytes)
{
    struct place at = *ret_at;

    while (at.ip < in_limit && at.op < out_limit) {
        const uint8_t *ip = at.ip;
        unsigned token = *ip++;
        size_t n = token >> 4, length = (token & 15) + WHARF_LZ4_MATCH_MIN;
        if (n == WHARF_LZ4_MORE) {
            if (!with_length_bytes)
                break;
            n += *ip++;
            if (n > QUICK_LITERALS)
                break;
        }
        wharf_lz_copy_quickly(at.op, ip, n);
        uint8_t *op = at.op + n;
        size_t distance = wharf_load_le16(ip + n);
        ip += n + 2;
        if (length == WHARF_LZ4_MORE + WHARF_LZ4_MATCH_MIN) {
            if (!with_length_bytes)
                break;
            length += *ip++;
            if (length > QUICK_MATCH)
                break;
        }
        if (distance - 1 >= (size_t)(op - lz->out))
            break;
        wharf_lz_match_quickly(op, distance, length);
        at.ip = ip;
        at.match = op;
        at.op = op + length;
    }
    *ret_at = at;
}

/* Not past where it is time to ask. */
static const uint8_t *earlier(const uint8_t *limit, const uint8_t *asked, ptrdiff_t nbytes)
{
    return limit - asked > nbytes ? asked + nbytes : limit;
}

static void take_quick_sequences(const struct wharf_lz *lz, struct place *at)
{
    if (lz->in_end - at->ip > QUICK_IN_NBYTES && lz->out_end - at->op > QUICK_OUT_NBYTES)
        take_quickly(
            lz, at, earlier(lz->in_end - QUICK_IN_NBYTES, lz->asked_in, WHARF_POLL_IN_NBYTES),
            earlier(lz->out_end - QUICK_OUT_NBYTES, lz->asked_out, WHARF_POLL_OUT_NBYTES), true);
    if (lz->in_end - at->ip > SHORT_IN_NBYTES && lz->out_end - at->op > SHORT_OUT_NBYTES)
        take_quickly(
            lz, at, earlier(lz->in_end - SHORT_IN_NBYTES, lz->asked_in, WHARF_POLL_IN_NBYTES),
            earlier(lz->out_end - SHORT_OUT_NBYTES, lz->asked_out, WHARF_POLL_OUT_NBYTES), false);
}

void wharf_lz4_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                      const struct wharf_codec_setting *setting, struct wharf_outcome *ret_outcome)
{
    struct wharf_lz lz;
    struct end end;

    wharf_lz_init(&lz, in, in_nbytes, out, out_avail, setting);
    struct place at = {lz.in, lz.out, NULL};
    const uint8_t *start = lz.out;
    const uint8_t *sequence;
    if (setting)
        lz.out -= setting->history_nbytes;
    do {
        take_quick_sequences(&lz, &at);
        sequence = at.ip;
        uint32_t stopped = wharf_lz_poll(&lz, at.ip, at.op);
        end = stopped ? stops(stopped) : take_sequence(&lz, &at);
    } while (!end.is_end);
    if (end.result != WHARF_OK)
        wharf_outcome_fail(ret_outcome, end.result, WHARF_REASON_NONE, 0);
    else if (end.reason != WHARF_REASON_NONE)
        wharf_lz_fail(&lz, sequence, end.reason, ret_outcome);
    else
        wharf_outcome_ok(ret_outcome, in_nbytes, (uint64_t)(at.op - start));
}
