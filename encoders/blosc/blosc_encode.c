/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_encode.c: writes chunks that every version of Blosc reads: Blosc 1, one stream a block, LZ4
 * inside.  The LZ4 encoder is the one that the program links.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/blosc/blosc.h"
#include "encoders/blosc/blosc_format.h"
#include "encoders/little_endian.h"
#include "encoders/lz4/lz4.h"

/* A multiple of eight elements of every kind. */
enum { BLOCK_NBYTES = 64 * 1024, SIZE_NBYTES = 4 };

struct wharf_encoder {
    struct wharf_encoder *lz4;
    uint8_t flags;
    unsigned element_nbytes;
    uint8_t shuffled[BLOCK_NBYTES];
};

/* The kinds are in the order of the rows below. */
static const struct {
    uint8_t flags;
    uint8_t element_nbytes;
} kinds[] = {
    {WHARF_BLOSC_SHUFFLED, 4},
    {WHARF_BLOSC_SHUFFLED, 2},
    {WHARF_BLOSC_SHUFFLED, 8},
    {WHARF_BLOSC_BITS_SHUFFLED, 4},
    {WHARF_BLOSC_BITS_SHUFFLED, 2},
    {WHARF_BLOSC_BITS_SHUFFLED, 8},
    {0, 1},
};

const struct wharf_encoder_row wharf_blosc_encoder_rows[] = {
    {.name = "shuffle4"},    {.name = "shuffle2"},    {.name = "shuffle8"}, {.name = "bitshuffle4"},
    {.name = "bitshuffle2"}, {.name = "bitshuffle8"}, {.name = "bytes"},    {.name = NULL},
};

static void blosc_free(struct wharf_encoder *encoder)
{
    if (!encoder)
        return;
    wharf_lz4_encoder.free(encoder->lz4);
    free(encoder);
}

static int blosc_new(const struct wharf_encoder_options *options,
                     struct wharf_encoder **ret_encoder)
{
    const struct wharf_encoder_row *row;
    struct wharf_encoder *encoder;
    int level;
    int r = wharf_encoder_choose(&wharf_blosc_codec, options, &row, &level);

    if (r < 0)
        return r;
    /* This encoder writes chunks, but not bitshuffle's framing. */
    if (options && options->parameter)
        return -EINVAL;
    encoder = calloc(1, sizeof(*encoder));
    if (!encoder)
        return -ENOMEM;
    encoder->flags = kinds[row - wharf_blosc_encoder_rows].flags;
    encoder->element_nbytes = kinds[row - wharf_blosc_encoder_rows].element_nbytes;
    r = wharf_lz4_encoder.new(NULL, &encoder->lz4);
    if (r < 0) {
        free(encoder);
        return r;
    }
    *ret_encoder = encoder;
    return 0;
}

static size_t blosc_bound(const struct wharf_encoder *encoder, size_t in_nbytes)
{
    (void)encoder;
    return WHARF_BLOSC_HEADER_NBYTES + in_nbytes;
}

static void shuffle_bytes(const uint8_t *in, size_t n, unsigned element_nbytes, uint8_t *out)
{
    for (unsigned k = 0; k < element_nbytes; k++)
        for (size_t i = 0; i < n; i++)
            out[k * n + i] = in[i * element_nbytes + k];
}

/* Shuffles the bits of 8 n elements. */
static void shuffle_bits(const uint8_t *in, size_t n, unsigned element_nbytes, uint8_t *out)
{
    for (unsigned k = 0; k < 8 * element_nbytes; k++) {
        for (size_t i = 0; i < n; i++) {
            unsigned byte = 0;
            for (unsigned e = 0; e < 8; e++)
                byte |= (in[(8 * i + e) * element_nbytes + k / 8] >> k % 8 & 1u) << e;
            out[k * n + i] = (uint8_t)byte;
        }
    }
}

/* The block as the LZ4 encoder gets it.  In Blosc 1, a block whose elements are no multiple of
 * eight keeps its order where bits are shuffled. */
static const uint8_t *shuffle(struct wharf_encoder *encoder, const uint8_t *in, size_t nbytes)
{
    unsigned element_nbytes = encoder->element_nbytes;
    size_t n = nbytes / element_nbytes, done = n * element_nbytes;

    if (encoder->flags == 0 || (encoder->flags & WHARF_BLOSC_BITS_SHUFFLED && n % 8))
        return in;
    if (encoder->flags & WHARF_BLOSC_BITS_SHUFFLED)
        shuffle_bits(in, n / 8, element_nbytes, encoder->shuffled);
    else
        shuffle_bytes(in, n, element_nbytes, encoder->shuffled);
    if (done < nbytes)
        memcpy(encoder->shuffled + done, in + done, nbytes - done);
    return encoder->shuffled;
}

/* Puts the stream of one block at out + *at.  -ENOSPC if there is no room. */
static int put_block(struct wharf_encoder *encoder, const uint8_t *in, size_t nbytes, uint8_t *out,
                     size_t out_avail, size_t *at)
{
    const uint8_t *block = shuffle(encoder, in, nbytes);
    size_t n;

    if (out_avail - *at < SIZE_NBYTES)
        return -ENOSPC;
    *at += SIZE_NBYTES;
    size_t room = out_avail - *at < nbytes ? out_avail - *at : nbytes - 1;
    int r = wharf_lz4_encoder.encode(encoder->lz4, block, nbytes, out + *at, room, &n);
    if (r == -ENOSPC && out_avail - *at >= nbytes) {
        memcpy(out + *at, block, nbytes);
        n = nbytes;
        r = 0;
    }
    if (r < 0)
        return r;
    wharf_store_le32(out + *at - SIZE_NBYTES, (uint32_t)n);
    *at += n;
    return 0;
}

static void put_header(const struct wharf_encoder *encoder, uint8_t *out, size_t in_nbytes,
                       uint8_t flags, size_t nbytes)
{
    size_t block_nbytes = in_nbytes < BLOCK_NBYTES ? in_nbytes : BLOCK_NBYTES;

    out[0] = WHARF_BLOSC_VERSION_1;
    out[1] = 1;
    out[2] = (uint8_t)(flags | encoder->flags | WHARF_BLOSC_NOT_SPLIT |
                       WHARF_BLOSC_LZ4 << WHARF_BLOSC_CODEC_SHIFT);
    out[3] = (uint8_t)encoder->element_nbytes;
    wharf_store_le32(out + 4, (uint32_t)in_nbytes);
    wharf_store_le32(out + 8, block_nbytes ? (uint32_t)block_nbytes : 1);
    wharf_store_le32(out + 12, (uint32_t)nbytes);
}

/* -ENOSPC if the chunk would not be smaller than out_avail. */
static int put_blocks(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                      uint8_t *out, size_t out_avail, size_t *ret_nbytes)
{
    size_t n_blocks = (in_nbytes + BLOCK_NBYTES - 1) / BLOCK_NBYTES;
    size_t at = WHARF_BLOSC_HEADER_NBYTES + SIZE_NBYTES * n_blocks;

    if (at > out_avail)
        return -ENOSPC;
    for (size_t i = 0; i < n_blocks; i++) {
        size_t done = i * BLOCK_NBYTES, left = in_nbytes - done;
        wharf_store_le32(out + WHARF_BLOSC_HEADER_NBYTES + SIZE_NBYTES * i, (uint32_t)at);
        int r = put_block(encoder, in + done, left < BLOCK_NBYTES ? left : BLOCK_NBYTES, out,
                          out_avail, &at);
        if (r < 0)
            return r;
    }
    *ret_nbytes = at;
    return 0;
}

static int blosc_encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                        uint8_t *out, size_t out_avail, size_t *ret_out_nbytes)
{
    size_t bound = blosc_bound(encoder, in_nbytes), nbytes = 0;
    uint8_t flags = 0;

    if (bound > INT32_MAX)
        return -EILSEQ;
    int r = put_blocks(encoder, in, in_nbytes, out, out_avail < bound ? out_avail : bound, &nbytes);
    if (r == -ENOSPC && out_avail >= bound) {
        if (in_nbytes > 0)
            memcpy(out + WHARF_BLOSC_HEADER_NBYTES, in, in_nbytes);
        nbytes = bound;
        flags = WHARF_BLOSC_COPY;
        r = 0;
    }
    if (r < 0)
        return r;
    put_header(encoder, out, in_nbytes, flags, nbytes);
    *ret_out_nbytes = nbytes;
    return 0;
}

const struct wharf_encoder_ops wharf_blosc_encoder = {
    .new = blosc_new,
    .bound = blosc_bound,
    .encode = blosc_encode,
    .free = blosc_free,
};
