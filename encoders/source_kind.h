/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_kind.h: what a file is, from its first bytes.
 */
#ifndef WHARF_ENCODERS_SOURCE_KIND_H
#define WHARF_ENCODERS_SOURCE_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wharf_source_kind {
    WHARF_SOURCE_MORE = 0,      /* cannot be said yet */
    WHARF_SOURCE_EMPTY = 1,     /* no bytes at all */
    WHARF_SOURCE_CONTAINER = 2, /* a wharf container, encoders/FORMAT.md */
    WHARF_SOURCE_BGZF = 3,      /* gzip whose first member is a BGZF block, encoders/gzip/bgzf.h */
    WHARF_SOURCE_GZIP = 4,      /* any other gzip */
    WHARF_SOURCE_ZLIB = 5,    /* zlib by its two bytes of header; 1 in 1000 other files has such */
    WHARF_SOURCE_OTHER = 6,   /* none of these */
    WHARF_SOURCE_ZSTD = 7,    /* a zstd frame, RFC 8878; skippable ones may stand before it */
    WHARF_SOURCE_LZ4 = 8,     /* an LZ4 frame, lz4/lz4_frame_format.h; likewise */
    WHARF_SOURCE_SNAPPY = 9,  /* framed Snappy, snappy/snappy_frame_format.h */
    WHARF_SOURCE_BROTLI = 10, /* Brotli, which has no magic number: never detected */
};

/*
 * wharf_source_detect: says of a file that begins with in_nbytes at `in` what it is.  A file that
 * is cut off within its first bytes is what its bytes begin (1f 8b alone: gzip), so that the
 * decoder can say what is wrong with it.
 *   at_end    the file has no more bytes: the answer is never WHARF_SOURCE_MORE then
 * 12 bytes always tell all but two: BGZF from gzip with an extra field of its own, which may take
 * the whole field, up to 64 KiB; and what stands behind skippable frames, which may take as much,
 * and which is zstd's if they are longer.
 */
enum wharf_source_kind wharf_source_detect(const uint8_t *in, size_t in_nbytes, bool at_end);

/* A format that wharf does not read: its name and a program that reads it, for messages. */
struct wharf_foreign_kind {
    const char *name;
    const char *program;
};

/* How many of a file's first bytes wharf_foreign_detect looks at. */
enum { WHARF_FOREIGN_MAX_NBYTES = 512 };

/* Which of the well-known formats that wharf does not read a file with these first bytes is; NULL
 * when none of them. */
const struct wharf_foreign_kind *wharf_foreign_detect(const uint8_t *in, size_t in_nbytes);

#endif
