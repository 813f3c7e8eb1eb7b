/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip_index_foreign.c: reads and writes GZIDX, the format of indexed_gzip and rapidgzip, and .gzi,
 * the format of bgzip.  Neither has any checksums.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/deflate/inflate_bits.h"
#include "encoders/gzip_index/gzip_index_format.h"
#include "encoders/little_endian.h"

/* ---- GZIDX -------------------------------------------------------------------------------- */

/* In version 1; points of version 0 lack the last byte. */
enum { GZIDX_POINT_NBYTES = 18 };

/* The header of a GZIDX file. */
struct gzidx {
    size_t point_nbytes;
    uint64_t n_points;
    const uint8_t *points;
    size_t windows_nbytes; /* after the points */
};

static int read_gzidx_header(const uint8_t *bytes, size_t nbytes, struct wharf_gzip_index *index,
                             struct gzidx *gzidx)
{
    if (nbytes < WHARF_GZIDX_HEADER_NBYTES)
        return -EBADMSG;
    if (bytes[5] > WHARF_GZIDX_MAX_VERSION)
        return -EPROTONOSUPPORT;
    gzidx->point_nbytes = bytes[5] == 0 ? GZIDX_POINT_NBYTES - 1 : GZIDX_POINT_NBYTES;
    if (wharf_load_le64(bytes + 7))
        index->in_nbytes = wharf_load_le64(bytes + 7);
    if (wharf_load_le64(bytes + 15))
        index->out_nbytes = wharf_load_le64(bytes + 15);
    gzidx->n_points = wharf_load_le32(bytes + 31);
    gzidx->points = bytes + WHARF_GZIDX_HEADER_NBYTES;
    nbytes -= WHARF_GZIDX_HEADER_NBYTES;
    /* Indexes with other windows are for decoders of other formats. */
    if (wharf_load_le32(bytes + 27) != WHARF_DEFLATE_WINDOW_NBYTES ||
        gzidx->n_points > nbytes / gzidx->point_nbytes)
        return -EBADMSG;
    gzidx->windows_nbytes = nbytes - gzidx->n_points * gzidx->point_nbytes;
    return 0;
}

/* Reads a point.  In version 0 all points but the first have a window.  Byte 16 says how many bits
 * of the byte before the offset belong to the point. */
static int read_gzidx_point(const struct gzidx *gzidx, const uint8_t *bytes, size_t *at,
                            struct wharf_gzip_index *index)
{
    uint64_t in_offset = wharf_load_le64(bytes);
    bool has_window = gzidx->point_nbytes == GZIDX_POINT_NBYTES ? bytes[17] : index->n_points > 0;
    const uint8_t *windows = gzidx->points + gzidx->n_points * gzidx->point_nbytes;
    struct wharf_gzip_point point = {
        .out_offset = wharf_load_le64(bytes + 8),
        .window_nbytes = has_window ? WHARF_DEFLATE_WINDOW_NBYTES : 0,
    };

    if (bytes[16] > 7 || in_offset > INT64_MAX / 8 || 8 * in_offset < bytes[16] ||
        point.window_nbytes > gzidx->windows_nbytes - *at)
        return -EBADMSG;
    point.bit_offset = 8 * in_offset - bytes[16];
    /* The first point is the beginning of the file, whatever block it names. */
    if (index->n_points == 0) {
        point.bit_offset = 0;
        point.is_member = true;
    }
    *at += point.window_nbytes;
    /* Some writers add the file's end as a point.  Nothing can be decoded from there. */
    if (index->n_points && in_offset >= index->in_nbytes)
        return 0;
    return wharf_gzip_index_add(index, &point, windows + *at - point.window_nbytes, false);
}

int wharf_gzidx_read(const uint8_t *bytes, size_t nbytes, struct wharf_gzip_index *index)
{
    struct gzidx gzidx;
    size_t at = 0;
    int r = read_gzidx_header(bytes, nbytes, index, &gzidx);

    for (uint64_t i = 0; r == 0 && i < gzidx.n_points; i++)
        r = read_gzidx_point(&gzidx, gzidx.points + i * gzidx.point_nbytes, &at, index);
    return r;
}

static void write_gzidx_header(const struct wharf_gzip_index *index, uint8_t *out)
{
    uint64_t spacing = index->n_points > 1 ? index->out_nbytes / index->n_points : 1 << 20;

    /* Readers expect points to be further apart than a window. */
    if (spacing < 2 * WHARF_DEFLATE_WINDOW_NBYTES)
        spacing = 2 * WHARF_DEFLATE_WINDOW_NBYTES;
    memset(out, 0, WHARF_GZIDX_HEADER_NBYTES);
    memcpy(out, WHARF_GZIDX_MAGIC, WHARF_GZIDX_MAGIC_NBYTES);
    out[5] = WHARF_GZIDX_MAX_VERSION;
    wharf_store_le64(out + 7, index->in_nbytes);
    wharf_store_le64(out + 15, index->out_nbytes);
    wharf_store_le32(out + 23, spacing < UINT32_MAX ? (uint32_t)spacing : UINT32_MAX);
    wharf_store_le32(out + 27, WHARF_DEFLATE_WINDOW_NBYTES);
    wharf_store_le32(out + 31, index->n_points + 1);
}

static void write_gzidx_point(const struct wharf_gzip_point *point, uint8_t *out)
{

    uint64_t in_offset = (point->bit_offset + 7) / 8;

    wharf_store_le64(out, in_offset);
    wharf_store_le64(out + 8, point->out_offset);
    out[16] = (uint8_t)(8 * in_offset - point->bit_offset);
    out[17] = point->window_nbytes > 0;
}

/* Writes a window at full size, with zeros in front if the member has less output. */
static bool write_gzidx_window(const struct wharf_gzip_index *index,
                               const struct wharf_gzip_point *point, uint8_t *out)
{
    uint8_t window[WHARF_DEFLATE_WINDOW_NBYTES];
    size_t n_missing = sizeof(window) - point->window_nbytes;

    if (!wharf_gzip_index_window(index, point, window))
        return false;
    memset(out, 0, n_missing);
    memcpy(out + n_missing, window, point->window_nbytes);
    return true;
}

int wharf_gzip_index_write_gzidx(const struct wharf_gzip_index *index, uint8_t **ret_bytes,
                                 size_t *ret_nbytes)
{
    const struct wharf_gzip_point end = {.out_offset = index->out_nbytes,
                                         .bit_offset = 8 * index->in_nbytes};
    size_t nbytes = WHARF_GZIDX_HEADER_NBYTES + GZIDX_POINT_NBYTES;
    uint8_t *bytes;
    uint8_t *at;

    for (uint32_t i = 0; i < index->n_points; i++)
        nbytes += GZIDX_POINT_NBYTES +
                  (index->points[i].window_nbytes ? WHARF_DEFLATE_WINDOW_NBYTES : 0u);
    bytes = malloc(nbytes);
    if (!bytes)
        return -ENOMEM;
    write_gzidx_header(index, bytes);
    at = bytes + WHARF_GZIDX_HEADER_NBYTES;
    for (uint32_t i = 0; i < index->n_points; i++, at += GZIDX_POINT_NBYTES)
        write_gzidx_point(&index->points[i], at);
    write_gzidx_point(&end, at);
    at += GZIDX_POINT_NBYTES;
    for (uint32_t i = 0; i < index->n_points; i++) {
        if (index->points[i].window_nbytes == 0)
            continue;
        if (!write_gzidx_window(index, &index->points[i], at)) {
            free(bytes);
            return -EBADMSG;
        }
        at += WHARF_DEFLATE_WINDOW_NBYTES;
    }
    *ret_bytes = bytes;
    *ret_nbytes = nbytes;
    return 0;
}

/* ---- .gzi --------------------------------------------------------------------------------- */

/* .gzi has no magic number, so a file is taken for one if its size fits the number of points in its
 * first bytes.  The first block, at the beginning of the file, is not listed. */
int wharf_gzi_read(const uint8_t *bytes, size_t nbytes, struct wharf_gzip_index *index)
{
    struct wharf_gzip_point point = {.is_member = true};
    uint64_t n;
    int r;

    if (nbytes < WHARF_GZI_HEADER_NBYTES)
        return -EPROTONOSUPPORT;
    n = wharf_load_le64(bytes);
    if ((nbytes - WHARF_GZI_HEADER_NBYTES) % WHARF_GZI_POINT_NBYTES ||
        n != (nbytes - WHARF_GZI_HEADER_NBYTES) / WHARF_GZI_POINT_NBYTES)
        return -EPROTONOSUPPORT;
    r = wharf_gzip_index_add(index, &point, NULL, false);
    bytes += WHARF_GZI_HEADER_NBYTES;
    for (uint64_t i = 0; i < n && r == 0; i++, bytes += WHARF_GZI_POINT_NBYTES) {
        if (wharf_load_le64(bytes) > INT64_MAX / 8)
            return -EBADMSG;
        point.bit_offset = 8 * wharf_load_le64(bytes);
        point.out_offset = wharf_load_le64(bytes + 8);
        r = wharf_gzip_index_add(index, &point, NULL, false);
    }
    return r;
}

int wharf_gzip_index_write_gzi(const struct wharf_gzip_index *index, uint8_t **ret_bytes,
                               size_t *ret_nbytes)
{
    size_t n = index->n_points - 1;
    uint8_t *bytes = malloc(WHARF_GZI_HEADER_NBYTES + n * WHARF_GZI_POINT_NBYTES);

    if (!bytes)
        return -ENOMEM;
    *ret_bytes = bytes;
    *ret_nbytes = WHARF_GZI_HEADER_NBYTES + n * WHARF_GZI_POINT_NBYTES;
    wharf_store_le64(bytes, n);
    bytes += WHARF_GZI_HEADER_NBYTES;
    for (size_t i = 1; i <= n; i++, bytes += WHARF_GZI_POINT_NBYTES) {
        wharf_store_le64(bytes, index->points[i].bit_offset / 8);
        wharf_store_le64(bytes + 8, index->points[i].out_offset);
    }
    return 0;
}
