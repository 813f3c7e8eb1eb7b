/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip_span.h: decodes one span of an indexed file, the output from one point to the next.
 *
 * It takes the memory of a stream decoder (inflate_stream.h).  Threads may decode spans of one
 * index in parallel.
 */
#ifndef WHARF_ENCODERS_GZIP_INDEX_GZIP_SPAN_H
#define WHARF_ENCODERS_GZIP_INDEX_GZIP_SPAN_H

#include "encoders/gzip_index/gzip_index.h"
#include "proto/wharf_result.h"

struct wharf_gzip_span_io {
    /* Reads up to nbytes of the file at `offset`.  Returns the number of bytes, 0 at the end, or
     * -errno. */
    int64_t (*read)(void *context, uint64_t offset, void *buf, size_t nbytes);
    /* Takes output, in order.  Returns 0; any other value ends the decode and becomes its
     * result. */
    int (*put)(void *context, const uint8_t *bytes, size_t nbytes);
    void *context;
};

/*
 * Decodes a span.  Output is put before it is verified.  Returns 0, -errno of `read`, -ENOMEM, or
 * what `put` returned.  After 0, *ret_outcome is
 *   WHARF_OK            the output is complete, and has the span's checksum if the index has one
 *   WHARF_BAD_CHECKSUM  the output is complete and has another checksum
 *   others              as for the stream decoder, except that bit_offset counts from the file's
 *                       beginning; OUTPUT_MISSING: the span ends before its output does
 * Index or file may be the cause of a failure.
 */
int wharf_gzip_span_decode(const struct wharf_gzip_index *index, uint32_t span,
                           const struct wharf_gzip_span_io *io, struct wharf_outcome *ret_outcome);

#endif
