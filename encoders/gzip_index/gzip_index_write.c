/* SPDX-License-Identifier: Apache-2.0 */
/* gzip_index_write.c: writes wharf's own format. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/crc32c.h"
#include "encoders/gzip_index/gzip_index_format.h"
#include "encoders/little_endian.h"

static void write_header(const struct wharf_gzip_index *index, uint8_t *out)
{
    memset(out, 0, WHARF_WHI_HEADER_NBYTES);
    memcpy(out, WHARF_WHI_MAGIC, WHARF_WHI_MAGIC_NBYTES);
    wharf_store_le32(out + 8, WHARF_WHI_VERSION);
    wharf_store_le32(out + 12, index->format);
    wharf_store_le64(out + 16, index->in_nbytes);
    wharf_store_le64(out + 24, index->out_nbytes);
    wharf_store_le64(out + 32, (uint64_t)index->identity.mtime_s);
    wharf_store_le32(out + 40, index->identity.mtime_ns);
    wharf_store_le32(out + 44, index->n_points);
    wharf_store_le64(out + 48, index->identity.ends_hash);
    wharf_store_le64(out + 56, index->windows_nbytes);
}

static void write_point(const struct wharf_gzip_point *point, uint8_t *out)
{
    wharf_store_le64(out, point->out_offset);
    wharf_store_le64(out + 8, point->bit_offset);
    wharf_store_le32(out + 16, point->window_nbytes);
    wharf_store_le32(out + 20, point->stored_nbytes);
    wharf_store_le32(out + 24, point->checksum);
    wharf_store_le32(out + 28, point->is_member ? WHARF_WHI_IS_MEMBER : 0);
}

int wharf_gzip_index_write(const struct wharf_gzip_index *index, uint8_t **ret_bytes,
                           size_t *ret_nbytes)
{
    size_t nbytes = WHARF_WHI_HEADER_NBYTES + (size_t)index->n_points * WHARF_WHI_POINT_NBYTES +
                    index->windows_nbytes;
    uint8_t *bytes = malloc(nbytes + WHARF_WHI_TRAILER_NBYTES);
    uint8_t *at = bytes + WHARF_WHI_HEADER_NBYTES;

    if (!bytes)
        return -ENOMEM;
    write_header(index, bytes);
    for (uint32_t i = 0; i < index->n_points; i++, at += WHARF_WHI_POINT_NBYTES)
        write_point(&index->points[i], at);
    if (index->windows_nbytes)
        memcpy(at, index->windows, index->windows_nbytes);
    wharf_store_le32(bytes + nbytes, wharf_crc32c(bytes, nbytes));
    *ret_bytes = bytes;
    *ret_nbytes = nbytes + WHARF_WHI_TRAILER_NBYTES;
    return 0;
}
