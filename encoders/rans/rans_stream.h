/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_stream.h: a rans stream's parts: header, model, indexes, body.  encoders/rans/rans_format.h
 * has the layout and the rules.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_STREAM_H
#define WHARF_ENCODERS_RANS_RANS_STREAM_H

#include "encoders/rans/rans_body.h"
#include "encoders/rans/rans_model.h"

/* Points into the source. */
struct wharf_rans_stream {
    struct wharf_rans_shape shape;
    const uint8_t *packed_model;
    const uint8_t *indexes; /* NULL if there is one distribution */
    uint32_t packed_model_nbytes;
    uint32_t indexes_nbytes;
    uint64_t body_at; /* byte of the source */
    struct wharf_rans_body body;
};

/*
 * Takes a stream apart and verifies it by rules 1, 3 and 4, and by rule 2 as far as sizes go.
 * Returns true; or false with an outcome of what is wrong.
 */
bool wharf_rans_stream_parse(const uint8_t *in, size_t in_nbytes,
                             struct wharf_rans_stream *ret_stream,
                             struct wharf_outcome *ret_outcome);

struct wharf_codec_setting;

/* The same, asking in between whether to go on, as encoders/decode_poll.h says: many splits take
 * milliseconds.  If not, false with that outcome.  `setting` may be NULL. */
bool wharf_rans_stream_parse_asking(const uint8_t *in, size_t in_nbytes,
                                    const struct wharf_codec_setting *setting,
                                    struct wharf_rans_stream *ret_stream,
                                    struct wharf_outcome *ret_outcome);

#endif
