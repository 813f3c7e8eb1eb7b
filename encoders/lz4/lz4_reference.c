/* SPDX-License-Identifier: Apache-2.0 */
/* The reference decoder of lz4: by indices, a byte at a time, in one loop over a sequence's
 * parts. */
#include "encoders/decode_poll.h"
#include "encoders/lz4/lz4.h"
#include "encoders/outcome.h"

struct state {
    const uint8_t *in;
    uint64_t in_nbytes, at, asked_at;
    uint8_t *out;
    uint64_t out_avail, n_out, asked_n_out;
    uint64_t n_before; /* bytes of output that stand before `out` */
    const struct wharf_codec_setting *setting;
    uint32_t stopped;
};

static int is_stopped(struct state *s)
{
    if (s->at - s->asked_at >= WHARF_POLL_IN_NBYTES ||
        s->n_out - s->asked_n_out >= WHARF_POLL_OUT_NBYTES) {
        s->asked_at = s->at;
        s->asked_n_out = s->n_out;
        s->stopped = wharf_decode_poll(s->setting);
    }
    return s->stopped != WHARF_OK;
}

/* The next byte, or -1 behind the last. */
static int next(struct state *s)
{
    return s->at < s->in_nbytes ? s->in[s->at++] : -1;
}

/* What four bits of the token mean with the bytes behind; -1: they are missing. */
static int64_t length_of(struct state *s, int nibble)
{
    int64_t length = nibble;
    int byte = nibble == 15 ? 255 : 0;

    while (byte == 255 && !is_stopped(s)) {
        byte = next(s);
        if (byte < 0)
            return -1;
        length += byte;
    }
    return length;
}

/* One sequence: a reason, or NONE with whether it was the last. */
static uint32_t sequence(struct state *s, int64_t *last_match, int *is_last)
{
    int token = next(s);
    int64_t length = token < 0 ? -1 : length_of(s, token >> 4);

    if (length < 0 || (uint64_t)length > s->in_nbytes - s->at)
        return WHARF_REASON_INPUT_TRUNCATED;
    if ((uint64_t)length > s->out_avail - s->n_out)
        return WHARF_REASON_OUTPUT_FULL;
    for (int64_t i = 0; i < length && !is_stopped(s); i++)
        s->out[s->n_out++] = (uint8_t)next(s);
    *is_last = s->at == s->in_nbytes;
    if (*is_last)
        return *last_match >= 0 && (length < 5 || (int64_t)s->n_out - *last_match < 12)
                   ? WHARF_REASON_LZ4_END
                   : WHARF_REASON_NONE;
    int low = next(s), high = next(s);
    if (high < 0)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint64_t offset = (uint64_t)(high * 256 + low);
    if (offset == 0 || offset > s->n_out + s->n_before)
        return WHARF_REASON_LZ4_OFFSET;
    length = length_of(s, token & 15);
    if (length < 0)
        return WHARF_REASON_INPUT_TRUNCATED;
    length += 4;
    if ((uint64_t)length > s->out_avail - s->n_out)
        return WHARF_REASON_OUTPUT_FULL;
    *last_match = (int64_t)s->n_out;
    for (int64_t i = 0; i < length && !is_stopped(s); i++, s->n_out++)
        s->out[s->n_out] = *(s->out + s->n_out - offset);
    return WHARF_REASON_NONE;
}

void wharf_lz4_decode_reference(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                                const struct wharf_codec_setting *setting,
                                struct wharf_outcome *ret_outcome)
{
    struct state s = {
        .in = in,
        .in_nbytes = in_nbytes,
        .out = out,
        .out_avail = out_avail,
        .n_before = setting ? setting->history_nbytes : 0,
        .setting = setting,
    };
    uint32_t reason = WHARF_REASON_NONE;
    int64_t last_match = -1;
    uint64_t start = 0;
    int is_last = 0;

    while (!is_last && reason == WHARF_REASON_NONE && !is_stopped(&s)) {
        start = s.at;
        reason = sequence(&s, &last_match, &is_last);
    }
    if (s.stopped)
        wharf_outcome_fail(ret_outcome, s.stopped, WHARF_REASON_NONE, 0);
    else if (reason != WHARF_REASON_NONE)
        wharf_outcome_fail(ret_outcome,
                           reason == WHARF_REASON_OUTPUT_FULL ? WHARF_OUTPUT_TOO_SMALL
                                                              : WHARF_BAD_DATA,
                           reason, 8 * start);
    else
        wharf_outcome_ok(ret_outcome, in_nbytes, s.n_out);
}
