/* SPDX-License-Identifier: Apache-2.0 */
/* blosc_walk.c: what chunks and bitshuffle's framing share: failures, polls, the codecs inside. */
#include "encoders/blosc/blosc_walk.h"

#include "encoders/decode_poll.h"
#include "encoders/outcome.h"

static uint32_t result_of(enum wharf_reason reason)
{
    switch (reason) {
    case WHARF_REASON_OUTPUT_FULL:
        return WHARF_OUTPUT_TOO_SMALL;
    case WHARF_REASON_BLOSC_VERSION:
    case WHARF_REASON_BLOSC_FLAGS:
    case WHARF_REASON_BLOSC_FILTER:
    case WHARF_REASON_BLOSC_CODEC:
        return WHARF_UNSUPPORTED;
    default:
        return WHARF_BAD_DATA;
    }
}

bool wharf_blosc_fail(struct wharf_blosc_walk *walk, enum wharf_reason reason, size_t at)
{
    wharf_outcome_fail(&walk->failure, result_of(reason), reason, 8 * (uint64_t)at);
    return false;
}

bool wharf_blosc_spend(struct wharf_blosc_walk *walk, size_t in_nbytes, size_t out_nbytes)
{
    walk->in_since += in_nbytes;
    walk->out_since += out_nbytes;
    if (walk->in_since < WHARF_POLL_IN_NBYTES && walk->out_since < WHARF_POLL_OUT_NBYTES)
        return true;
    walk->in_since = walk->out_since = 0;
    uint32_t stopped = wharf_decode_poll(walk->setting);
    if (stopped != WHARF_OK)
        wharf_outcome_fail(&walk->failure, stopped, WHARF_REASON_NONE, 0);
    return stopped == WHARF_OK;
}

bool wharf_blosc_inside(struct wharf_blosc_walk *walk, const struct wharf_blosc_stream *stream,
                        size_t size_at, size_t nbytes)
{
    const struct wharf_codec_setting setting = {
        .poll = walk->setting ? walk->setting->poll : NULL,
    };
    struct wharf_outcome outcome;

    walk->parts.inside[stream->inside](walk->in + stream->at, nbytes, stream->out,
                                       stream->out_nbytes, &setting, &outcome);
    if (outcome.result == WHARF_OK) {
        if (outcome.in_nbytes != nbytes || outcome.out_nbytes != stream->out_nbytes)
            return wharf_blosc_fail(walk, WHARF_REASON_BLOSC_STREAM, size_at);
        return wharf_blosc_spend(walk, nbytes, stream->out_nbytes);
    }
    if (outcome.reason == WHARF_REASON_OUTPUT_FULL)
        return wharf_blosc_fail(walk, WHARF_REASON_BLOSC_STREAM, size_at);
    walk->failure = outcome;
    if (outcome.reason != WHARF_REASON_NONE)
        walk->failure.bit_offset += 8 * (uint64_t)stream->at;
    return false;
}
