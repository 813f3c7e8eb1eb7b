/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/rans/rans_stream.h"

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

/* Rule 3, of indexes. */
static bool indexes_are_good(const struct wharf_rans_stream *stream)
{
    const uint8_t *indexes = stream->indexes;
    uint32_t n_left = stream->indexes_nbytes;

    if (!indexes)
        return true;
    if (n_left != stream->body.n_symbols)
        return false;
    for (; n_left >= INDEX_BLOCK; indexes += INDEX_BLOCK, n_left -= INDEX_BLOCK)
        if (largest_of(indexes, INDEX_BLOCK) >= stream->shape.n_distributions)
            return false;
    return n_left == 0 || largest_of(indexes, n_left) < stream->shape.n_distributions;
}

bool wharf_rans_stream_parse(const uint8_t *in, size_t in_nbytes,
                             struct wharf_rans_stream *ret_stream,
                             struct wharf_outcome *ret_outcome)
{
    struct wharf_rans_stream stream = {0};
    uint64_t at = WHARF_RANS_HEADER_NBYTES;
    enum wharf_reason reason;

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
    if (!wharf_rans_body_parse(in + at, in_nbytes - at, &stream.body, &reason))
        return bad(ret_outcome, reason, at);
    if (!indexes_are_good(&stream))
        return bad(ret_outcome, WHARF_REASON_RANS_HEADER, at);
    *ret_stream = stream;
    return true;
}
