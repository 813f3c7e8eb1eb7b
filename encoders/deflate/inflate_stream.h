/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_stream.h: decodes Deflate, zlib and gzip streams of any length in bounded memory.
 *
 * The stream owns one buffer for input and one for output; the caller puts compressed bytes
 * straight into the first and takes spans of output straight from the second:
 *
 *     for (;;) {
 *         switch (wharf_inflate_stream_next(stream, &span, &span_nbytes)) {
 *         case WHARF_INFLATE_STREAM_INPUT:
 *             space = wharf_inflate_stream_space(stream, &space_nbytes);
 *             n = read(fd, space, space_nbytes);                 (handle n < 0)
 *             wharf_inflate_stream_fill(stream, n, n == 0);
 *             break;
 *         case WHARF_INFLATE_STREAM_OUTPUT:
 *             ... use span_nbytes bytes at span ...
 *             break;
 *         case WHARF_INFLATE_STREAM_END:
 *             ... wharf_inflate_stream_outcome(stream, &outcome) ...
 *         }
 *     }
 *
 * Output is handed out before the checksum behind it has been read, so a span can turn out to
 * belong to a bad stream: wharf_inflate_stream_verified says how much is beyond doubt.  The final
 * outcome has the result, reason and bit offset that the one-shot decoder gives for the same
 * bytes and ample output, but for one thing: on failure out_nbytes and in_nbytes count what was
 * handed out and what was read up to the error, since that cannot be taken back.
 *
 * Memory: WHARF_INFLATE_STREAM_NBYTES, allocated once by _new; nothing grows.
 * Threads: one at a time for each stream.  Nothing here blocks.
 */
#ifndef WHARF_ENCODERS_DEFLATE_INFLATE_STREAM_H
#define WHARF_ENCODERS_DEFLATE_INFLATE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wharf_result.h"

enum wharf_inflate_format {
    WHARF_INFLATE_RAW = 0,  /* one raw Deflate stream, RFC 1951 */
    WHARF_INFLATE_ZLIB = 1, /* one zlib stream, RFC 1950 */
    WHARF_INFLATE_GZIP = 2, /* all gzip members, RFC 1952 */
};

enum wharf_inflate_stream_event {
    WHARF_INFLATE_STREAM_INPUT = 0,  /* more input is needed, or the word that it has ended */
    WHARF_INFLATE_STREAM_OUTPUT = 1, /* a span of output is there, never an empty one */
    WHARF_INFLATE_STREAM_END = 2,    /* decoded or failed: the outcome says which */
};

/* The most memory that one stream takes. */
#define WHARF_INFLATE_STREAM_NBYTES (512 * 1024)

struct wharf_inflate_stream;

/* A new stream at its beginning; NULL when there is no memory. */
struct wharf_inflate_stream *wharf_inflate_stream_new(enum wharf_inflate_format format);

/* Takes NULL. */
void wharf_inflate_stream_free(struct wharf_inflate_stream *stream);

/*
 * Decodes on until something is needed from the caller or there for it.  With OUTPUT the span
 * is *ret_nbytes bytes at *ret_span, valid until the next call of _next; with INPUT and END both
 * outputs are untouched.  After END it says END again.
 */
enum wharf_inflate_stream_event wharf_inflate_stream_next(struct wharf_inflate_stream *stream,
                                                          const uint8_t **ret_span,
                                                          size_t *ret_nbytes);

/*
 * Where the next input bytes go: at most *ret_nbytes of them.  At least one byte of room after
 * _next said INPUT; after anything else there may be none.  Valid until the next call of _next
 * or _fill.
 */
uint8_t *wharf_inflate_stream_space(struct wharf_inflate_stream *stream, size_t *ret_nbytes);

/*
 * Says that the caller has put nbytes, at most what _space offered, into the space.  `last` says
 * that the input ends with them (nbytes may be 0); after that there is nothing more to fill.
 */
void wharf_inflate_stream_fill(struct wharf_inflate_stream *stream, size_t nbytes, bool last);

/* What became of the stream; only after END. */
void wharf_inflate_stream_outcome(const struct wharf_inflate_stream *stream,
                                  struct wharf_outcome *ret_outcome);

/*
 * How many bytes of output, counted from the first, lie in complete gzip members or zlib streams
 * whose checksums were right.  For raw Deflate: 0 until the stream's end, then all of it.
 */
uint64_t wharf_inflate_stream_verified(const struct wharf_inflate_stream *stream);

/* Where in the source the gzip member begins that is being decoded, or that failed; else 0. */
uint64_t wharf_inflate_stream_member_start(const struct wharf_inflate_stream *stream);

/*
 * The bytes that were filled in but not taken, after END with result OK: what follows the end of
 * the stream.  They are only those that had been read so far, not the rest of the file.
 */
const uint8_t *wharf_inflate_stream_rest(const struct wharf_inflate_stream *stream,
                                         size_t *ret_nbytes);

#endif
