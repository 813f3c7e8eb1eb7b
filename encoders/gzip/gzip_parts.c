/* SPDX-License-Identifier: Apache-2.0 */
/* gzip_parts.c: makes the parts of a gzip member with zlib (gzip_parts.h). */
#include "encoders/gzip/gzip_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "encoders/little_endian.h"

enum {
    MEM_LEVEL = 8,    /* zlib's default */
    FLUSH_NBYTES = 16 /* more than an empty stored block and the bits before it */
};

struct wharf_gzip_parts {
    z_stream zlib;
};

int wharf_gzip_parts_new(int level, struct wharf_gzip_parts **ret_parts)
{
    struct wharf_gzip_parts *parts = calloc(1, sizeof(*parts));

    if (!parts)
        return -ENOMEM;
    if (deflateInit2(&parts->zlib, level, Z_DEFLATED, -MAX_WBITS, MEM_LEVEL, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        free(parts);
        return -ENOMEM;
    }
    *ret_parts = parts;
    return 0;
}

void wharf_gzip_parts_free(struct wharf_gzip_parts *parts)
{
    if (!parts)
        return;
    deflateEnd(&parts->zlib);
    free(parts);
}

size_t wharf_gzip_parts_bound(const struct wharf_gzip_parts *parts, size_t in_nbytes)
{
    /* deflateBound does not change the stream, although it is not declared so. */
    return deflateBound((z_stream *)&parts->zlib, in_nbytes) + FLUSH_NBYTES;
}

int wharf_gzip_parts_encode(struct wharf_gzip_parts *parts, const uint8_t *in, size_t in_nbytes,
                            size_t window_nbytes, bool is_last, uint8_t *out, size_t out_avail,
                            size_t *ret_out_nbytes)
{
    z_stream *zlib = &parts->zlib;
    int rc;

    if (window_nbytes > WHARF_DEFLATE_WINDOW_NBYTES)
        window_nbytes = WHARF_DEFLATE_WINDOW_NBYTES;
    deflateReset(zlib);
    if (window_nbytes)
        deflateSetDictionary(zlib, in - window_nbytes, (uInt)window_nbytes);
    zlib->next_in = (Bytef *)in;
    zlib->avail_in = (uInt)in_nbytes;
    zlib->next_out = out;
    zlib->avail_out = (uInt)out_avail;
    rc = deflate(zlib, is_last ? Z_FINISH : Z_SYNC_FLUSH);
    /* If a flush fills the output to its last byte, it may be incomplete. */
    if (is_last ? rc != Z_STREAM_END : rc != Z_OK || zlib->avail_in || !zlib->avail_out)
        return -ENOSPC;
    *ret_out_nbytes = out_avail - zlib->avail_out;
    return 0;
}

void wharf_gzip_write_header(int level, uint8_t out[WHARF_GZIP_FIXED_HEADER_NBYTES])
{
    static const uint8_t header[WHARF_GZIP_FIXED_HEADER_NBYTES] = {
        WHARF_GZIP_MAGIC_0, WHARF_GZIP_MAGIC_1, WHARF_GZIP_METHOD_DEFLATE, 0, 0, 0, 0, 0, 0, 255,
    };

    memcpy(out, header, sizeof(header));
    if (level == 9)
        out[8] = 2; /* XFL: best compression */
    else if (level == 1)
        out[8] = 4; /* fastest compression */
}

void wharf_gzip_write_trailer(uint32_t crc, uint64_t nbytes, uint8_t out[WHARF_GZIP_TRAILER_NBYTES])
{
    wharf_store_le32(out, crc);
    wharf_store_le32(out + 4, (uint32_t)nbytes);
}
