/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip_index.h: places inside a gzip or zlib file where a decode can begin, with the state that it
 * needs there.
 *
 * A point is at the bit of a block's header, with the output before it as the window; or it is at a
 * member's header, which needs no window.  The output from one point to the next is a span.
 * GZIP_INDEX.md describes the three formats of index files: wharf's own, which has a checksum of
 * each span and identifies its file; GZIDX; and bgzip's .gzi.  The latter two have neither.
 *
 * An index may be hostile, as any other data.  Reading one checks that it is consistent: that
 * points are in order and within the file, and windows within the index.  Whether it fits its file
 * is found only by decoding (gzip_span.h).
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
    uint64_t bit_offset;    /* in the file; a multiple of 8 for a member's header */
    uint64_t window_at;     /* offset in the index's windows */
    uint32_t window_nbytes; /* at most 32 KiB */
    uint32_t stored_nbytes; /* its size there; if smaller, it is compressed by Deflate */
    uint32_t checksum;      /* CRC-32 of the span that begins here */
    bool is_member;
};

/* Identifies the file that an index belongs to. */
struct wharf_gzip_identity {
    int64_t mtime_s;
    uint32_t mtime_ns;
    uint64_t ends_hash; /* XXH64 of its first and last 64 KiB, or of all of a shorter file */
};
enum { WHARF_GZIP_INDEX_END_NBYTES = 64 << 10 };

struct wharf_gzip_index {
    enum wharf_inflate_format format;
    bool is_own; /* wharf's own format: checksums and identity are valid */
    struct wharf_gzip_identity identity;
    uint64_t in_nbytes;  /* the file's size, or WHARF_GZIP_INDEX_UNKNOWN */
    uint64_t out_nbytes; /* or WHARF_GZIP_INDEX_UNKNOWN */
    uint32_t n_points;   /* at least 1; output offset 0 for the first */
    uint32_t points_avail;
    struct wharf_gzip_point *points;
    uint8_t *windows;
    size_t windows_nbytes;
    size_t windows_avail;
};

/* Frees what an index holds.  An index that is all zero except for the format is empty; points can
 * be added to it. */
void wharf_gzip_index_deinit(struct wharf_gzip_index *index);

/*
 * Appends a point.  Copies its window, and compresses the copy if `packs`.  Returns 0, -ENOMEM, or
 * -EFBIG beyond 2^32 - 1 points.
 */
int wharf_gzip_index_add(struct wharf_gzip_index *index, const struct wharf_gzip_point *point,
                         const uint8_t *window, bool packs);

/* The last point whose output begins at or before out_offset. */
uint32_t wharf_gzip_index_find(const struct wharf_gzip_index *index, uint64_t out_offset);

/* The size of a span's output, or WHARF_GZIP_INDEX_UNKNOWN. */
uint64_t wharf_gzip_index_span_nbytes(const struct wharf_gzip_index *index, uint32_t span);

/* Writes a point's window, of window_nbytes, to `window`.  False if it does not decode. */
bool wharf_gzip_index_window(const struct wharf_gzip_index *index,
                             const struct wharf_gzip_point *point,
                             uint8_t window[WHARF_DEFLATE_WINDOW_NBYTES]);

/*
 * Reads an index of any of the three formats.  Returns 0; -EPROTONOSUPPORT for another format or a
 * later version; -EBADMSG if it is damaged or contradicts itself; or -ENOMEM.
 */
int wharf_gzip_index_read(const uint8_t *bytes, size_t nbytes, struct wharf_gzip_index *ret_index);

/* Writes an index in wharf's own format, into memory that the caller frees.  0 or -ENOMEM. */
int wharf_gzip_index_write(const struct wharf_gzip_index *index, uint8_t **ret_bytes,
                           size_t *ret_nbytes);

/* The same as GZIDX, for a gzip file.  The first point's bit_offset must be that of the first
 * block. -EBADMSG if a window does not decode. */
int wharf_gzip_index_write_gzidx(const struct wharf_gzip_index *index, uint8_t **ret_bytes,
                                 size_t *ret_nbytes);

/* The same as .gzi.  The points must be the blocks of a BGZF file, all of them. */
int wharf_gzip_index_write_gzi(const struct wharf_gzip_index *index, uint8_t **ret_bytes,
                               size_t *ret_nbytes);

#endif
