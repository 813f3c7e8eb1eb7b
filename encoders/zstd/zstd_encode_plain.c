/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Without libzstd: lz_plain.h says why.  zstd_encode.c is what programs with libzstd have instead.
 * A frame of raw blocks, and of RLE blocks where all bytes are the same.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/little_endian.h"
#include "encoders/zstd/zstd.h"
#include "encoders/zstd/zstd_frame.h"

struct wharf_encoder {
    int unused;
};

const struct wharf_encoder_row wharf_zstd_encoder_rows[] = {
    {.name = "plain", .number = WHARF_ENCODER_PLAIN},
    {.name = NULL},
};

/* A window of 128 KiB, and the content's size in eight bytes. */
enum {
    DESCRIPTOR = 0xc0,
    WINDOW = (17 - 10) << 3,
    FRAME_HEADER_NBYTES = 4 + 1 + 1 + 8,
};

static int zstd_new(const struct wharf_encoder_options *options, struct wharf_encoder **ret_encoder)
{
    const struct wharf_encoder_row *row;
    int level;
    int rc = wharf_encoder_choose(&wharf_zstd_codec, options, &row, &level);

    if (rc < 0)
        return rc;
    *ret_encoder = calloc(1, sizeof(**ret_encoder));
    return *ret_encoder ? 0 : -ENOMEM;
}

static size_t n_blocks(size_t in_nbytes)
{
    return in_nbytes / WHARF_ZSTD_BLOCK_MAX_NBYTES + 1;
}

static size_t frame_nbytes(size_t in_nbytes)
{
    return FRAME_HEADER_NBYTES + n_blocks(in_nbytes) * WHARF_ZSTD_BLOCK_HEADER_NBYTES + in_nbytes;
}

/* No less than libzstd's own, so that one size is enough for both. */
static size_t zstd_bound(const struct wharf_encoder *encoder, size_t in_nbytes)
{
    size_t own = frame_nbytes(in_nbytes), least = WHARF_ZSTD_BLOCK_MAX_NBYTES;
    size_t other =
        in_nbytes + in_nbytes / 256 + (in_nbytes < least ? (least - in_nbytes) / 2048 : 0);

    (void)encoder;
    return own > other ? own : other;
}

static void put_frame_header(uint8_t *out, uint64_t in_nbytes)
{
    wharf_store_le32(out, WHARF_ZSTD_MAGIC);
    out[4] = DESCRIPTOR;
    out[5] = WINDOW;
    wharf_store_le32(out + 6, (uint32_t)in_nbytes);
    wharf_store_le32(out + 10, (uint32_t)(in_nbytes >> 32));
}

/* Returns how many bytes it takes. */
static size_t put_block(uint8_t *out, const uint8_t *in, size_t nbytes, bool is_last)
{
    bool is_run = nbytes > 1 && memcmp(in, in + 1, nbytes - 1) == 0;
    size_t n = is_run ? 1 : nbytes;
    uint32_t header =
        (uint32_t)nbytes << 3 | (is_run ? WHARF_ZSTD_RLE : WHARF_ZSTD_RAW) << 1 | is_last;

    wharf_store_le16(out, header & 0xffff);
    out[2] = (uint8_t)(header >> 16);
    if (n > 0)
        memcpy(out + WHARF_ZSTD_BLOCK_HEADER_NBYTES, in, n);
    return WHARF_ZSTD_BLOCK_HEADER_NBYTES + n;
}

static int zstd_encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                       uint8_t *out, size_t out_avail, size_t *ret_out_nbytes)
{
    size_t at = FRAME_HEADER_NBYTES, done = 0, n;

    (void)encoder;
    if (out_avail < frame_nbytes(in_nbytes))
        return -ENOSPC;
    put_frame_header(out, in_nbytes);
    do {
        n = in_nbytes - done < WHARF_ZSTD_BLOCK_MAX_NBYTES ? in_nbytes - done
                                                           : WHARF_ZSTD_BLOCK_MAX_NBYTES;
        at += put_block(out + at, n ? in + done : in, n, done + n == in_nbytes);
        done += n;
    } while (done < in_nbytes);
    *ret_out_nbytes = at;
    return 0;
}

static void zstd_free(struct wharf_encoder *encoder)
{
    free(encoder);
}

const struct wharf_encoder_ops wharf_zstd_encoder = {
    .new = zstd_new,
    .bound = zstd_bound,
    .encode = zstd_encode,
    .free = zstd_free,
};
