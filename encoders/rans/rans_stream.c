/* SPDX-License-Identifier: Apache-2.0 */
/* rans_stream.c: a stream taken apart, by rules 1 to 4 of rans_format.h. */
#include "encoders/rans/rans_stream.h"

#include "encoders/decode_poll.h"
#include "encoders/outcome.h"

/* Always false, for callers to return. */
static bool bad(struct wharf_outcome *ret_outcome, enum wharf_reason reason, uint64_t byte)
{
    wharf_outcome_fail(ret_outcome, WHARF_BAD_DATA, reason, 8 * byte);
    return false;
}

/* Rule 1. */
static bool parse_header(const uint8_t *in, size_t in_nbytes, struct wharf_rans_stream *stream,
                         struct wharf_outcome *ret_outcome)
{
    if (in_nbytes < WHARF_RANS_HEADER_NBYTES)
        return bad(ret_outcome, WHARF_REASON_INPUT_TRUNCATED, 0);
    if (in[0] != WHARF_RANS_VERSION) {
        wharf_outcome_fail(ret_outcome, WHARF_UNSUPPORTED, WHARF_REASON_RANS_VERSION, 0);
        return false;
    }
    stream->shape = (struct wharf_rans_shape){
        .n_bits = in[1],
        .symbol_nbytes = in[2],
        .n_distributions = wharf_load_le16(in + 4) + 1,
        .alphabet = wharf_load_le16(in + 6) + 1,
    };
    stream->packed_model_nbytes = wharf_load_le32(in + 8);
    stream->indexes_nbytes = wharf_load_le32(in + 12);
    if (in[3] != 0 ||
        !wharf_rans_shape_is_good(&stream->shape, stream->packed_model_nbytes > 0
                                                      ? WHARF_RANS_INLINE_NSLOTS
                                                      : WHARF_RANS_REGISTERED_NSLOTS) ||
        (stream->shape.n_distributions == 1 && stream->indexes_nbytes != 0))
        return bad(ret_outcome, WHARF_REASON_RANS_HEADER, 0);
    return true;
}

/* Indexes that are looked at together: the compiler makes vectors of them. */
enum { INDEX_BLOCK = 256 };

static uint8_t largest_of(const uint8_t *indexes, uint32_t n)
{
    uint8_t largest = 0;

    for (uint32_t i = 0; i < n; i++)
        largest = indexes[i] > largest ? indexes[i] : largest;
    return largest;
}

/* Whether n indexes name distributions that there are. */
static bool are_below(const uint8_t *indexes, uint32_t n, uint32_t n_distributions)
{
    for (; n >= INDEX_BLOCK; indexes += INDEX_BLOCK, n -= INDEX_BLOCK)
        if (largest_of(indexes, INDEX_BLOCK) >= n_distributions)
            return false;
    return n == 0 || largest_of(indexes, n) < n_distributions;
}

/* ---- what may take long: it is asked in between -------------------------------------------- */

/* A split is its states, and a few bytes of fields. */
#define POLL_NSPLITS (WHARF_POLL_IN_NBYTES / WHARF_RANS_SPLIT_STATES_NBYTES)

static bool goes_on(const struct wharf_codec_setting *setting, struct wharf_outcome *ret_outcome)
{
    uint32_t result = wharf_decode_poll(setting);

    if (result != WHARF_OK)
        wharf_outcome_fail(ret_outcome, result, WHARF_REASON_NONE, 0);
    return result == WHARF_OK;
}

/* Rule 4. */
static bool check_splits(const struct wharf_rans_stream *stream,
                         const struct wharf_codec_setting *setting,
                         struct wharf_outcome *ret_outcome)
{
    const struct wharf_rans_body *body = &stream->body;
    struct wharf_rans_order order;

    wharf_rans_order_init(&order, body);
    for (;;) {
        if (!wharf_rans_order_keeps(&order, body, POLL_NSPLITS))
            return bad(ret_outcome, WHARF_REASON_RANS_SPLIT, stream->body_at);
        if (order.cursor.number >= body->n_splits)
            return true;
        if (!goes_on(setting, ret_outcome))
            return false;
    }
}

/* Rule 3, of indexes. */
static bool check_indexes(const struct wharf_rans_stream *stream,
                          const struct wharf_codec_setting *setting,
                          struct wharf_outcome *ret_outcome)
{
    const uint8_t *indexes = stream->indexes;
    uint32_t n, n_left = stream->indexes_nbytes;

    if (!indexes)
        return true;
    if (n_left != stream->body.n_symbols)
        return bad(ret_outcome, WHARF_REASON_RANS_HEADER, stream->body_at);
    for (;; indexes += n) {
        n = n_left < WHARF_POLL_COPY_NBYTES ? n_left : WHARF_POLL_COPY_NBYTES;
        if (!are_below(indexes, n, stream->shape.n_distributions))
            return bad(ret_outcome, WHARF_REASON_RANS_HEADER, stream->body_at);
        n_left -= n;
        if (n_left == 0)
            return true;
        if (!goes_on(setting, ret_outcome))
            return false;
    }
}

bool wharf_rans_stream_parse_asking(const uint8_t *in, size_t in_nbytes,
                                    const struct wharf_codec_setting *setting,
                                    struct wharf_rans_stream *ret_stream,
                                    struct wharf_outcome *ret_outcome)
{
    struct wharf_rans_stream stream = {0};
    uint64_t at = WHARF_RANS_HEADER_NBYTES;
    enum wharf_reason reason;
    uint32_t result;

    if (!parse_header(in, in_nbytes, &stream, ret_outcome))
        return false;
    if (stream.packed_model_nbytes > in_nbytes - at)
        return bad(ret_outcome, WHARF_REASON_INPUT_TRUNCATED, at);
    stream.packed_model = in + at;
    at += stream.packed_model_nbytes;
    if (stream.indexes_nbytes > in_nbytes - at)
        return bad(ret_outcome, WHARF_REASON_INPUT_TRUNCATED, at);
    if (stream.shape.n_distributions > 1)
        stream.indexes = in + at;
    at += stream.indexes_nbytes;
    stream.body_at = at;
    if (!wharf_rans_body_take_apart(in + at, in_nbytes - at, setting, &stream.body, &reason,
                                    &result)) {
        wharf_outcome_fail(ret_outcome, result, reason, result == WHARF_BAD_DATA ? 8 * at : 0);
        return false;
    }
    if (!check_splits(&stream, setting, ret_outcome) ||
        !check_indexes(&stream, setting, ret_outcome))
        return false;
    *ret_stream = stream;
    return true;
}

bool wharf_rans_stream_parse(const uint8_t *in, size_t in_nbytes,
                             struct wharf_rans_stream *ret_stream,
                             struct wharf_outcome *ret_outcome)
{
    return wharf_rans_stream_parse_asking(in, in_nbytes, NULL, ret_stream, ret_outcome);
}
