/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip_index.h: places inside a gzip or zlib file where a decode can begin, with what it has to
 * know there.
 *
 * A point is a block's header, at a bit, with the output before it as the window; or a member's
 * header, which needs none.  The output from one point to the next is a span.  GZIP_INDEX.md
 * describes the three formats that indexes are kept in: wharf's own, which has a checksum for each
 * span and says which file it is of, GZIDX and bgzip's .gzi, which have neither.
 *
 * An index is hostile data like any other.  What is read is checked here to be consistent: points
 * in order and within the file, windows within the index.  Whether it is true of its file only
 * decoding tells (gzip_span.h).
 */
#ifndef WHARF_ENCODERS_GZIP_INDEX_GZIP_INDEX_H
#define WHARF_ENCODERS_GZIP_INDEX_GZIP_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/deflate/deflate_format.h"
#include "encoders/deflate/inflate_stream.h"

#define WHARF_GZIP_INDEX_UNKNOWN UINT64_MAX

struct wharf_gzip_point {
    uint64_t out_offset;
    uint64_t bit_offset;    /* in the file; of a member's header a multiple of 8 */
    uint64_t window_at;     /* where it stands among the index's windows */
    uint32_t window_nbytes; /* at most 32 KiB */
    uint32_t stored_nbytes; /* that it takes there; if fewer, it is compressed by Deflate */
    uint32_t checksum;      /* CRC-32 of the span that begins here */
    bool is_member;
};

/* Which file an index is of. */
struct wharf_gzip_identity {
    int64_t mtime_s;
    uint32_t mtime_ns;
    uint64_t ends_hash; /* XXH64 of its first 64 KiB and its last 64 KiB, or all of a shorter one */
};
enum { WHARF_GZIP_INDEX_END_NBYTES = 64 << 10 };

struct wharf_gzip_index {
    enum wharf_inflate_format format;
    bool is_own; /* checksums and identity are there */
    struct wharf_gzip_identity identity;
    uint64_t in_nbytes;  /* the file's size, or UNKNOWN */
    uint64_t out_nbytes; /* or UNKNOWN */
    uint32_t n_points;   /* 1 or more; the first one's output begins at 0 */
    uint32_t points_avail;
    struct wharf_gzip_point *points;
    uint8_t *windows;
    size_t windows_nbytes;
    size_t windows_avail;
};

/* All zero but for the format is an empty index, to which points are added.  Frees what it holds.
 */
void wharf_gzip_index_deinit(struct wharf_gzip_index *index);

/*
 * Adds a point behind all others.  The window is copied, and compressed if `packs`.  0, -ENOMEM, or
 * -EFBIG: an index has no more than 2^32 - 1 points.
 */
int wharf_gzip_index_add(struct wharf_gzip_index *index, const struct wharf_gzip_point *point,
                         const uint8_t *window, bool packs);

/* The last point whose output begins at out_offset or before. */
uint32_t wharf_gzip_index_find(const struct wharf_gzip_index *index, uint64_t out_offset);

/* What a span decodes to, or UNKNOWN. */
uint64_t wharf_gzip_index_span_nbytes(const struct wharf_gzip_index *index, uint32_t span);

/* Puts a point's window, all window_nbytes of it, at `window`.  False if it does not decode. */
bool wharf_gzip_index_window(const struct wharf_gzip_index *index,
                             const struct wharf_gzip_point *point,
                             uint8_t window[WHARF_DEFLATE_WINDOW_NBYTES]);

/*
 * Reads an index of any of the three formats.  Returns 0; -EPROTONOSUPPORT: it is of none of them,
 * or of a later version; -EBADMSG: it is damaged or contradicts itself; or -ENOMEM.
 */
int wharf_gzip_index_read(const uint8_t *bytes, size_t nbytes, struct wharf_gzip_index *ret_index);

/* The index in wharf's own format, in memory that the caller frees.  0 or -ENOMEM. */
int wharf_gzip_index_write(const struct wharf_gzip_index *index, uint8_t **ret_bytes,
                           size_t *ret_nbytes);

/* The same as GZIDX, of an index of a gzip file whose first point's bit_offset is that of the first
 * block; -EBADMSG if a window does not decode. */
int wharf_gzip_index_write_gzidx(const struct wharf_gzip_index *index, uint8_t **ret_bytes,
                                 size_t *ret_nbytes);

/* The same as .gzi, of an index that has each block of a BGZF file as a point. */
int wharf_gzip_index_write_gzi(const struct wharf_gzip_index *index, uint8_t **ret_bytes,
                               size_t *ret_nbytes);

#endif
