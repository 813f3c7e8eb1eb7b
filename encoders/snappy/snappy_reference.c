/* SPDX-License-Identifier: Apache-2.0 */
/* snappy_reference.c: the reference decoder of Snappy, by indices and a byte at a time. */
#include "encoders/decode_poll.h"
#include "encoders/outcome.h"
#include "encoders/snappy/snappy.h"

struct state {
    const uint8_t *in;
    uint64_t in_nbytes, at;
    uint8_t *out;
    uint64_t n_out, length;
};

/* The next nbytes bytes as a little-endian number, or -1 if some are missing. */
static int64_t number(struct state *s, unsigned nbytes)
{
    int64_t value = 0;

    for (unsigned i = 0; i < nbytes; i++) {
        if (s->at == s->in_nbytes)
            return -1;
        value |= (int64_t)s->in[s->at++] << 8 * i;
    }
    return value;
}

static uint32_t literals(struct state *s, int64_t n)
{
    if (n >= 60)
        n = number(s, (unsigned)(n - 59));
    if (n < 0)
        return WHARF_REASON_INPUT_TRUNCATED;
    if ((uint64_t)n >= s->length - s->n_out)
        return WHARF_REASON_SNAPPY_PAST_END;
    if ((uint64_t)n >= s->in_nbytes - s->at)
        return WHARF_REASON_INPUT_TRUNCATED;
    for (int64_t i = 0; i <= n; i++)
        s->out[s->n_out++] = s->in[s->at++];
    return WHARF_REASON_NONE;
}

static uint32_t element(struct state *s)
{
    int64_t tag = number(s, 1), offset, n;

    if (tag < 0)
        return WHARF_REASON_INPUT_TRUNCATED;
    switch (tag % 4) {
    case 0:
        return literals(s, tag / 4);
    case 1:
        n = 4 + tag / 4 % 8;
        offset = number(s, 1);
        if (offset >= 0)
            offset += tag / 32 * 256;
        break;
    default:
        n = 1 + tag / 4;
        offset = number(s, tag % 4 == 2 ? 2 : 4);
    }
    if (offset < 0)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (offset == 0 || (uint64_t)offset > s->n_out)
        return WHARF_REASON_SNAPPY_OFFSET;
    if ((uint64_t)n > s->length - s->n_out)
        return WHARF_REASON_SNAPPY_PAST_END;
    for (; n > 0; n--, s->n_out++)
        s->out[s->n_out] = s->out[s->n_out - (uint64_t)offset];
    return WHARF_REASON_NONE;
}

static uint32_t output_length(struct state *s, uint64_t out_avail)
{
    int64_t byte = 128;

    for (unsigned shift = 0; byte >= 128; shift += 7) {
        byte = number(s, 1);
        if (byte < 0)
            return WHARF_REASON_INPUT_TRUNCATED;
        s->length += (uint64_t)(byte % 128) << shift;
        if (byte >= 128 && shift == 28)
            return WHARF_REASON_SNAPPY_LENGTH;
    }
    if (s->length >> 32)
        return WHARF_REASON_SNAPPY_LENGTH;
    return s->length > out_avail ? WHARF_REASON_OUTPUT_FULL : WHARF_REASON_NONE;
}

void wharf_snappy_decode_reference(const uint8_t *in, size_t in_nbytes, uint8_t *out,
                                   size_t out_avail, const struct wharf_codec_setting *setting,
                                   struct wharf_outcome *ret_outcome)
{
    struct state s = {.in = in, .in_nbytes = in_nbytes, .out = out};
    uint64_t start = 0, asked_at = 0, asked_n_out = 0;
    uint32_t reason = output_length(&s, out_avail);

    while (reason == WHARF_REASON_NONE && s.n_out < s.length) {
        if (s.at - asked_at >= WHARF_POLL_IN_NBYTES ||
            s.n_out - asked_n_out >= WHARF_POLL_OUT_NBYTES) {
            uint32_t stopped = wharf_decode_poll(setting);
            if (stopped) {
                wharf_outcome_fail(ret_outcome, stopped, WHARF_REASON_NONE, 0);
                return;
            }
            asked_at = s.at;
            asked_n_out = s.n_out;
        }
        start = s.at;
        reason = element(&s);
    }
    if (reason == WHARF_REASON_NONE)
        wharf_outcome_ok(ret_outcome, s.at, s.n_out);
    else
        wharf_outcome_fail(ret_outcome,
                           reason == WHARF_REASON_OUTPUT_FULL ? WHARF_OUTPUT_TOO_SMALL
                                                              : WHARF_BAD_DATA,
                           reason, 8 * start);
}
