/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip_span.h: decodes one span of an indexed file, the output from one point to the next.
 *
 * Memory: an inflate_stream.h's.  Several threads may decode spans of one index.
 */
#ifndef WHARF_ENCODERS_GZIP_INDEX_GZIP_SPAN_H
#define WHARF_ENCODERS_GZIP_INDEX_GZIP_SPAN_H

#include "encoders/gzip_index/gzip_index.h"
#include "proto/wharf_result.h"

struct wharf_gzip_span_io {
    /* Reads up to nbytes of the file at an offset.  How many; 0 at the end; -errno. */
    int64_t (*read)(void *context, uint64_t offset, void *buf, size_t nbytes);
    /* Takes output, in order.  0; any other value ends the decode and is returned. */
    int (*put)(void *context, const uint8_t *bytes, size_t nbytes);
    void *context;
};

/*
 * Decodes all of a span; output is put before it is verified.  Returns 0, -errno of `read` or for
 * missing memory, or what `put` returned.  With 0, *ret_outcome is
 *   WHARF_OK            all output is there; if the index is wharf's own, with the span's checksum
 *   WHARF_BAD_CHECKSUM  it is there and has another checksum
 *   others              as the stream decoder's, but for bit_offset, which counts from the file's
 *                       beginning; OUTPUT_MISSING: the span ends before its output does
 * A failure can be the index's as well as the file's.
 */
int wharf_gzip_span_decode(const struct wharf_gzip_index *index, uint32_t span,
                           const struct wharf_gzip_span_io *io, struct wharf_outcome *ret_outcome);

#endif
