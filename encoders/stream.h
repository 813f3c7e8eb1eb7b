/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h: what all decoders for streams of any length have in common: they decode in bounded
 * memory, a piece of the source at a time.
 *
 * The stream owns its buffers for input and for output; the caller puts compressed bytes straight
 * into the first and takes spans of output straight from the second:
 *
 *     for (;;) {
 *         switch (wharf_stream_next(stream, &span, &span_nbytes)) {
 *         case WHARF_STREAM_INPUT:
 *             space = wharf_stream_space(stream, &space_nbytes);
 *             n = read(fd, space, space_nbytes);                 (handle n < 0)
 *             wharf_stream_fill(stream, n, n == 0);
 *             break;
 *         case WHARF_STREAM_OUTPUT:
 *             ... use span_nbytes bytes at span ...
 *             break;
 *         case WHARF_STREAM_END:
 *             ... wharf_stream_outcome(stream, &outcome) ...
 *         }
 *     }
 *
 * Output is handed out before the checksum behind it has been read, so a span can turn out to
 * belong to a bad stream: wharf_stream_verified says how much is beyond doubt.  The final outcome
 * has the result, reason and bit offset that the one-shot decoder gives for the same bytes and
 * ample output, but for one thing: on failure out_nbytes and in_nbytes count what was handed out
 * and what was read up to the error, since that cannot be taken back.
 *
 * A member is what has a checksum of its own: a gzip member, a frame, a zlib stream.
 *
 * Threads: one at a time for each stream.  Nothing here blocks.
 */
#ifndef WHARF_ENCODERS_STREAM_H
#define WHARF_ENCODERS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wharf_result.h"

enum wharf_stream_event {
    WHARF_STREAM_INPUT = 0,  /* more input is needed, or the word that it has ended */
    WHARF_STREAM_OUTPUT = 1, /* a span of output is there, never an empty one */
    WHARF_STREAM_END = 2,    /* decoded or failed: the outcome says which */
};

struct wharf_stream;

/* What a decoder implements; the functions below say what each does. */
struct wharf_stream_ops {
    void (*free)(struct wharf_stream *stream);
    enum wharf_stream_event (*next)(struct wharf_stream *stream, const uint8_t **ret_span,
                                    size_t *ret_nbytes);
    uint8_t *(*space)(struct wharf_stream *stream, size_t *ret_nbytes);
    void (*fill)(struct wharf_stream *stream, size_t nbytes, bool last);
    void (*outcome)(const struct wharf_stream *stream, struct wharf_outcome *ret_outcome);
    uint64_t (*verified)(const struct wharf_stream *stream);
    uint64_t (*member_start)(const struct wharf_stream *stream);
    const uint8_t *(*rest)(const struct wharf_stream *stream, size_t *ret_nbytes);
};

/* The first member of every decoder's own struct. */
struct wharf_stream {
    const struct wharf_stream_ops *ops;
};

/* Takes NULL. */
static inline void wharf_stream_free(struct wharf_stream *stream)
{
    if (stream)
        stream->ops->free(stream);
}

/*
 * Decodes on until something is needed from the caller or there for it.  With OUTPUT the span
 * is *ret_nbytes bytes at *ret_span, valid until the next call of _next; with INPUT and END both
 * outputs are untouched.  After END it says END again.
 */
static inline enum wharf_stream_event
wharf_stream_next(struct wharf_stream *stream, const uint8_t **ret_span, size_t *ret_nbytes)
{
    return stream->ops->next(stream, ret_span, ret_nbytes);
}

/*
 * Where the next input bytes go: at most *ret_nbytes of them.  At least one byte of room after
 * _next said INPUT; after anything else there may be none.  Valid until the next call of _next
 * or _fill.
 */
static inline uint8_t *wharf_stream_space(struct wharf_stream *stream, size_t *ret_nbytes)
{
    return stream->ops->space(stream, ret_nbytes);
}

/*
 * Says that the caller has put nbytes, at most what _space offered, into the space.  `last` says
 * that the input ends with them (nbytes may be 0); after that there is nothing more to fill.
 */
static inline void wharf_stream_fill(struct wharf_stream *stream, size_t nbytes, bool last)
{
    stream->ops->fill(stream, nbytes, last);
}

/* What became of the stream; only after END. */
static inline void wharf_stream_outcome(const struct wharf_stream *stream,
                                        struct wharf_outcome *ret_outcome)
{
    stream->ops->outcome(stream, ret_outcome);
}

/*
 * How many bytes of output, counted from the first, lie in complete members whose checksums, if
 * they have any, were right.  For raw Deflate: 0 until the stream's end, then all of it.
 */
static inline uint64_t wharf_stream_verified(const struct wharf_stream *stream)
{
    return stream->ops->verified(stream);
}

/* Where in the source the member begins that is being decoded, or that failed; 0 for formats
 * without several. */
static inline uint64_t wharf_stream_member_start(const struct wharf_stream *stream)
{
    return stream->ops->member_start(stream);
}

/*
 * The bytes that were filled in but not taken, after END with result OK: what follows the end of
 * the stream.  They are only those that had been read so far, not the rest of the file.
 */
static inline const uint8_t *wharf_stream_rest(const struct wharf_stream *stream,
                                               size_t *ret_nbytes)
{
    return stream->ops->rest(stream, ret_nbytes);
}

#endif
