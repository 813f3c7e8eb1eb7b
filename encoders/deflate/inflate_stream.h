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

#endif
