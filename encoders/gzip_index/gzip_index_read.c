/* SPDX-License-Identifier: Apache-2.0 */
/* gzip_index_read.c: finds an index's format, checks what holds for all formats, and reads wharf's
 * own. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/crc32c.h"
#include "encoders/deflate/inflate_bits.h"
#include "encoders/gzip_index/gzip_index_format.h"
#include "encoders/little_endian.h"

/* ---- wharf's own -------------------------------------------------------------------------- */

static int read_header(const uint8_t *bytes, struct wharf_gzip_index *index)
{
    uint32_t format = wharf_load_le32(bytes + 12);

    if (wharf_load_le32(bytes + 8) != WHARF_WHI_VERSION)
        return -EPROTONOSUPPORT;
    if (format != WHARF_INFLATE_ZLIB && format != WHARF_INFLATE_GZIP)
        return -EBADMSG;
    index->format = (enum wharf_inflate_format)format;
    index->is_own = true;
    index->in_nbytes = wharf_load_le64(bytes + 16);
    index->out_nbytes = wharf_load_le64(bytes + 24);
    index->identity.mtime_s = (int64_t)wharf_load_le64(bytes + 32);
    index->identity.mtime_ns = wharf_load_le32(bytes + 40);
    index->identity.ends_hash = wharf_load_le64(bytes + 48);
    return index->out_nbytes == WHARF_GZIP_INDEX_UNKNOWN ||
                   index->in_nbytes == WHARF_GZIP_INDEX_UNKNOWN
               ? -EBADMSG
               : 0;
}

/* Reads a point, whose window is at windows[*at]; all windows have nbytes. */
static int read_point(const uint8_t *bytes, const uint8_t *windows, size_t nbytes, size_t *at,
                      struct wharf_gzip_index *index)
{
    struct wharf_gzip_point point = {
        .out_offset = wharf_load_le64(bytes),
        .bit_offset = wharf_load_le64(bytes + 8),
        .window_nbytes = wharf_load_le32(bytes + 20),
        .checksum = wharf_load_le32(bytes + 24),
        .is_member = wharf_load_le32(bytes + 28) & WHARF_WHI_IS_MEMBER,
    };
    uint32_t stored_nbytes = point.window_nbytes;
    uint32_t window_nbytes = wharf_load_le32(bytes + 16);
    int r;

    if (window_nbytes > WHARF_DEFLATE_WINDOW_NBYTES || stored_nbytes > window_nbytes ||
        (window_nbytes && !stored_nbytes) || stored_nbytes > nbytes - *at)
        return -EBADMSG;
    r = wharf_gzip_index_add(index, &point, windows + *at, false);
    if (r < 0)
        return r;
    /* wharf_gzip_index_add took the stored size for the window's.  The window stays as it is,
     * compressed or not. */
    index->points[index->n_points - 1].window_nbytes = window_nbytes;
    *at += stored_nbytes;
    return 0;
}

int wharf_whi_read(const uint8_t *bytes, size_t nbytes, struct wharf_gzip_index *index)
{
    const uint8_t *points = bytes + WHARF_WHI_HEADER_NBYTES;
    uint64_t n_points;
    size_t windows_nbytes;
    size_t at = 0;
    int r;

    if (nbytes < WHARF_WHI_HEADER_NBYTES + WHARF_WHI_TRAILER_NBYTES)
        return -EBADMSG;
    r = read_header(bytes, index);
    if (r < 0)
        return r;
    nbytes -= WHARF_WHI_TRAILER_NBYTES;
    if (wharf_load_le32(bytes + nbytes) != wharf_crc32c(bytes, nbytes))
        return -EBADMSG;
    nbytes -= WHARF_WHI_HEADER_NBYTES;
    n_points = wharf_load_le32(bytes + 44);
    if (n_points > nbytes / WHARF_WHI_POINT_NBYTES)
        return -EBADMSG;
    windows_nbytes = nbytes - (size_t)n_points * WHARF_WHI_POINT_NBYTES;
    if (wharf_load_le64(bytes + 56) != windows_nbytes)
        return -EBADMSG;
    for (uint64_t i = 0; i < n_points && r == 0; i++)
        r = read_point(points + i * WHARF_WHI_POINT_NBYTES,
                       points + n_points * WHARF_WHI_POINT_NBYTES, windows_nbytes, &at, index);
    return r == 0 && at != windows_nbytes ? -EBADMSG : r;
}

/* ---- any ---------------------------------------------------------------------------------- */

/* Whether each point is after the one before it, and within the file. */
static bool is_in_order(const struct wharf_gzip_index *index)
{
    const struct wharf_gzip_point *points = index->points;

    if (index->n_points == 0 || points[0].out_offset != 0)
        return false;
    for (uint32_t i = 0; i < index->n_points; i++) {
        if (points[i].bit_offset / 8 >= index->in_nbytes || points[i].bit_offset > INT64_MAX ||
            points[i].out_offset > INT64_MAX || (points[i].is_member && points[i].bit_offset % 8))
            return false;
        if (i && (points[i].bit_offset <= points[i - 1].bit_offset ||
                  points[i].out_offset < points[i - 1].out_offset))
            return false;
    }
    return index->out_nbytes >= points[index->n_points - 1].out_offset;
}

static int read_any(const uint8_t *bytes, size_t nbytes, struct wharf_gzip_index *index)
{
    if (nbytes >= WHARF_WHI_MAGIC_NBYTES &&
        memcmp(bytes, WHARF_WHI_MAGIC, WHARF_WHI_MAGIC_NBYTES) == 0)
        return wharf_whi_read(bytes, nbytes, index);
    if (nbytes >= WHARF_GZIDX_MAGIC_NBYTES &&
        memcmp(bytes, WHARF_GZIDX_MAGIC, WHARF_GZIDX_MAGIC_NBYTES) == 0)
        return wharf_gzidx_read(bytes, nbytes, index);
    return wharf_gzi_read(bytes, nbytes, index);
}

int wharf_gzip_index_read(const uint8_t *bytes, size_t nbytes, struct wharf_gzip_index *ret_index)
{
    struct wharf_gzip_index index = {
        .format = WHARF_INFLATE_GZIP,
        .in_nbytes = WHARF_GZIP_INDEX_UNKNOWN,
        .out_nbytes = WHARF_GZIP_INDEX_UNKNOWN,
    };
    int r = read_any(bytes, nbytes, &index);

    if (r == 0 && !is_in_order(&index))
        r = -EBADMSG;
    if (r < 0) {
        wharf_gzip_index_deinit(&index);
        return r;
    }
    *ret_index = index;
    return 0;
}
