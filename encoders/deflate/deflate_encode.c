/* SPDX-License-Identifier: Apache-2.0 */
/* deflate_encode.c: encoders of Deflate, zlib and gzip, by libdeflate or zlib. */
#include "encoders/deflate/deflate_encode.h"

#include <errno.h>
#include <libdeflate.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* What one of the two libraries does.  Functions as in struct wharf_encoder_ops. */
struct backend {
    int (*start)(struct wharf_encoder *encoder, int level);
    size_t (*bound)(const struct wharf_encoder *encoder, size_t in_nbytes);
    int (*encode)(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes, uint8_t *out,
                  size_t out_avail, size_t *ret_out_nbytes);
    void (*stop)(struct wharf_encoder *encoder);
};

struct wharf_encoder {
    const struct backend *backend;
    enum wharf_deflate_framing framing;
    struct libdeflate_compressor *libdeflate;
    z_stream zlib;
};

/* ---- libdeflate ------------------------------------------------------------------------- */

static int libdeflate_start(struct wharf_encoder *encoder, int level)
{
    encoder->libdeflate = libdeflate_alloc_compressor(level);
    return encoder->libdeflate ? 0 : -ENOMEM;
}

static size_t libdeflate_bound(const struct wharf_encoder *encoder, size_t in_nbytes)
{
    switch (encoder->framing) {
    case WHARF_DEFLATE_FRAMING_ZLIB:
        return libdeflate_zlib_compress_bound(encoder->libdeflate, in_nbytes);
    case WHARF_DEFLATE_FRAMING_GZIP:
        return libdeflate_gzip_compress_bound(encoder->libdeflate, in_nbytes);
    default:
        return libdeflate_deflate_compress_bound(encoder->libdeflate, in_nbytes);
    }
}

static size_t libdeflate_compress(struct wharf_encoder *encoder, const uint8_t *in,
                                  size_t in_nbytes, uint8_t *out, size_t out_avail)
{
    switch (encoder->framing) {
    case WHARF_DEFLATE_FRAMING_ZLIB:
        return libdeflate_zlib_compress(encoder->libdeflate, in, in_nbytes, out, out_avail);
    case WHARF_DEFLATE_FRAMING_GZIP:
        return libdeflate_gzip_compress(encoder->libdeflate, in, in_nbytes, out, out_avail);
    default:
        return libdeflate_deflate_compress(encoder->libdeflate, in, in_nbytes, out, out_avail);
    }
}

static int libdeflate_encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                             uint8_t *out, size_t out_avail, size_t *ret_out_nbytes)
{
    size_t out_nbytes = libdeflate_compress(encoder, in, in_nbytes, out, out_avail);

    if (out_nbytes == 0)
        return -ENOSPC;
    *ret_out_nbytes = out_nbytes;
    return 0;
}

static void libdeflate_stop(struct wharf_encoder *encoder)
{
    libdeflate_free_compressor(encoder->libdeflate);
}

/* ---- zlib ------------------------------------------------------------------------------- */

/* zlib's own default, as in the files that gzip and Python make. */
#define ZLIB_MEM_LEVEL 8

/* Raw is a negative window size to deflateInit2, gzip is 16 more. */
static int zlib_window_bits(enum wharf_deflate_framing framing)
{
    switch (framing) {
    case WHARF_DEFLATE_FRAMING_ZLIB:
        return MAX_WBITS;
    case WHARF_DEFLATE_FRAMING_GZIP:
        return MAX_WBITS + 16;
    default:
        return -MAX_WBITS;
    }
}

static int zlib_start(struct wharf_encoder *encoder, int level)
{
    int rc = deflateInit2(&encoder->zlib, level, Z_DEFLATED, zlib_window_bits(encoder->framing),
                          ZLIB_MEM_LEVEL, Z_DEFAULT_STRATEGY);

    return rc == Z_OK ? 0 : -ENOMEM;
}

static size_t zlib_bound(const struct wharf_encoder *encoder, size_t in_nbytes)
{
    /* deflateBound only reads the stream's settings, but is not declared so. */
    return deflateBound((z_stream *)&encoder->zlib, in_nbytes);
}

static uInt at_most_uint(size_t nbytes)
{
    return nbytes < UINT_MAX ? (uInt)nbytes : UINT_MAX;
}

/* zlib counts in 32 bits, so longer buffers are given to it in pieces.  0 or -ENOSPC;
 * *out_left goes down by what was written. */
static int zlib_run(z_stream *zlib, size_t in_nbytes, size_t *out_left)
{
    size_t in_left = in_nbytes;
    int rc = Z_OK;

    while (rc == Z_OK) {
        uInt in_piece = at_most_uint(in_left);
        uInt out_piece = at_most_uint(*out_left);

        if (out_piece == 0)
            return -ENOSPC;
        zlib->avail_in = in_piece;
        zlib->avail_out = out_piece;
        rc = deflate(zlib, in_piece == in_left ? Z_FINISH : Z_NO_FLUSH);
        in_left -= in_piece - zlib->avail_in;
        *out_left -= out_piece - zlib->avail_out;
    }
    return rc == Z_STREAM_END ? 0 : -ENOSPC;
}

/* The stream is reset behind each chunk, not before it: deflateBound forgets a finished stream's
 * gzip header and gives too little. */
static int zlib_encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                       uint8_t *out, size_t out_avail, size_t *ret_out_nbytes)
{
    z_stream *zlib = &encoder->zlib;
    size_t out_left = out_avail;
    int rc;

    zlib->next_in = (Bytef *)in;
    zlib->next_out = out;
    rc = zlib_run(zlib, in_nbytes, &out_left);
    deflateReset(zlib);
    if (rc == 0)
        *ret_out_nbytes = out_avail - out_left;
    return rc;
}

static void zlib_stop(struct wharf_encoder *encoder)
{
    deflateEnd(&encoder->zlib);
}

/* ---- both ------------------------------------------------------------------------------- */

const struct wharf_encoder_row wharf_deflate_encoder_rows[] = {
    {.name = "libdeflate", .level_min = 1, .level_max = 12, .level_default = 6},
    {.name = "zlib", .level_min = 0, .level_max = 9, .level_default = 6},
    {.name = NULL},
};

/* In the order of the rows. */
static const struct backend backends[] = {
    {libdeflate_start, libdeflate_bound, libdeflate_encode, libdeflate_stop},
    {zlib_start, zlib_bound, zlib_encode, zlib_stop},
};

int wharf_deflate_encoder_new(enum wharf_deflate_framing framing,
                              const struct wharf_encoder_options *options,
                              struct wharf_encoder **ret_encoder)
{
    const struct wharf_encoder_row *row;
    struct wharf_encoder *encoder;
    int level;
    int rc = wharf_encoder_choose(&wharf_deflate_codec, options, &row, &level);

    if (rc < 0)
        return rc;
    encoder = calloc(1, sizeof(*encoder));
    if (!encoder)
        return -ENOMEM;
    encoder->backend = &backends[row - wharf_deflate_encoder_rows];
    encoder->framing = framing;
    rc = encoder->backend->start(encoder, level);
    if (rc < 0) {
        free(encoder);
        return rc;
    }
    *ret_encoder = encoder;
    return 0;
}

size_t wharf_deflate_encoder_bound(const struct wharf_encoder *encoder, size_t in_nbytes)
{
    return encoder->backend->bound(encoder, in_nbytes);
}

int wharf_deflate_encoder_encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                                 uint8_t *out, size_t out_avail, size_t *ret_out_nbytes)
{
    return encoder->backend->encode(encoder, in, in_nbytes, out, out_avail, ret_out_nbytes);
}

void wharf_deflate_encoder_free(struct wharf_encoder *encoder)
{
    if (!encoder)
        return;
    encoder->backend->stop(encoder);
    free(encoder);
}

static int raw_new(const struct wharf_encoder_options *options, struct wharf_encoder **ret_encoder)
{
    return wharf_deflate_encoder_new(WHARF_DEFLATE_FRAMING_RAW, options, ret_encoder);
}

const struct wharf_encoder_ops wharf_deflate_encoder = {
    .new = raw_new,
    .bound = wharf_deflate_encoder_bound,
    .encode = wharf_deflate_encoder_encode,
    .free = wharf_deflate_encoder_free,
};
