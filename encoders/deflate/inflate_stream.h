/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_stream.h: decodes Deflate, zlib and gzip streams of any length in bounded memory, as
 * stream.h says.
 *
 * Memory: WHARF_INFLATE_STREAM_NBYTES, allocated once by _new; nothing grows.
 */
#ifndef WHARF_ENCODERS_DEFLATE_INFLATE_STREAM_H
#define WHARF_ENCODERS_DEFLATE_INFLATE_STREAM_H

#include "encoders/stream.h"

enum wharf_inflate_format {
    WHARF_INFLATE_RAW = 0,  /* one raw Deflate stream, RFC 1951 */
    WHARF_INFLATE_ZLIB = 1, /* one zlib stream, RFC 1950 */
    WHARF_INFLATE_GZIP = 2, /* all gzip members, RFC 1952 */
};

/* The most memory that one stream takes. */
#define WHARF_INFLATE_STREAM_NBYTES (512 * 1024)

/* A new stream at its beginning; NULL when there is no memory. */
struct wharf_stream *wharf_inflate_stream_new(enum wharf_inflate_format format);

/* A place between two blocks of a stream, where a decode can begin. */
struct wharf_inflate_place {
    unsigned bit;          /* where the block's header begins in the first byte, 0 to 7 */
    const uint8_t *window; /* the output before it; not kept */
    size_t window_nbytes;  /* at most 32 KiB */
};

/*
 * A new stream that begins there: offsets count from its first byte, and from its first output.
 * The checksum of the member that it begins in is not compared, since it knows only a part of it.
 * NULL when there is no memory.
 */
struct wharf_stream *wharf_inflate_stream_resume(enum wharf_inflate_format format,
                                                 const struct wharf_inflate_place *place);

#endif
