/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_bitshuffle.c: filter 32008, bitshuffle (bshuf_h5filter.c of bitshuffle).
 *
 * Of the values in the file, the third is the size of an element; the fourth the size of a block,
 * in elements, or 0; and the fifth the codec inside: 2 for LZ4, 3 for zstd.  The framing of these
 * is a parameter of the codec blosc.  Without a codec, bits are only shuffled.
 */
#include <inttypes.h>
#include <string.h>

#include "clientlib/hdf5/hdf5_decode.h"
#include "clientlib/hdf5/hdf5_errors.h"
#include "encoders/blosc/blosc_format.h"
#include "encoders/blosc/blosc_order.h"
#include "encoders/wharf_codec.h"

enum {
    VALUE_ELEMENT = 2,
    VALUE_BLOCK = 3,
    VALUE_INSIDE = 4,

    INSIDE_LZ4 = 2,
    INSIDE_ZSTD = 3,

    /* The default size of a block: 8 KiB, but at least 128 elements. */
    BLOCK_NBYTES = 8192,
    BLOCK_LEAST = 128,
};

static unsigned value(const struct wharf_hdf5_chunk *chunk, size_t i)
{
    return i < chunk->n_values ? chunk->values[i] : 0;
}

static bool measure(struct wharf_hdf5_chunk *chunk)
{
    unsigned element = value(chunk, VALUE_ELEMENT), inside = value(chunk, VALUE_INSIDE);

    if (element == 0 || element > WHARF_BLOSC_ELEMENT_MAX)
        return wharf_hdf5_fail("bitshuffle of elements of %u bytes: 1 to %d are possible", element,
                               WHARF_BLOSC_ELEMENT_MAX);
    chunk->out_nbytes = chunk->in_nbytes;
    if (inside == 0)
        return true;
    if (inside != INSIDE_LZ4 && inside != INSIDE_ZSTD)
        return wharf_hdf5_fail("bitshuffle with compression %u: 0, 2 and 3 are known", inside);
    if (chunk->in_nbytes < WHARF_BLOSC_FRAME_NBYTES)
        return wharf_hdf5_fail("%zu bytes are too few for a chunk of bitshuffle", chunk->in_nbytes);
    uint64_t nbytes = wharf_hdf5_big64(chunk->in);
    if (nbytes / WHARF_BLOSC_MAX_RATIO > chunk->in_nbytes)
        return wharf_hdf5_fail("a chunk of %zu bytes cannot hold the %" PRIu64 " that it says",
                               chunk->in_nbytes, nbytes);
    chunk->out_nbytes = (size_t)nbytes;
    return true;
}

/* Unshuffles whole blocks, then the remaining multiple of eight elements, and copies the rest. */
static bool put_in_order(const struct wharf_hdf5_chunk *chunk)
{
    wharf_blosc_order_fn *order = wharf_blosc_best_order()->bits;
    size_t element = value(chunk, VALUE_ELEMENT), block = value(chunk, VALUE_BLOCK);
    size_t n = chunk->in_nbytes / element;
    size_t at = 0;

    if (block == 0) {
        block = BLOCK_NBYTES / element / 8 * 8;
        block = block < BLOCK_LEAST ? BLOCK_LEAST : block;
    }
    if (block % 8 || chunk->in_nbytes % element)
        return wharf_hdf5_fail("bitshuffle of %zu bytes by blocks of %zu elements of %zu bytes",
                               chunk->in_nbytes, block, element);
    while (n >= 8) {
        size_t n_now = n < block ? n / 8 * 8 : block;
        order(chunk->in + at, n_now / 8, (unsigned)element, chunk->out + at);
        at += n_now * element;
        n -= n_now;
    }
    memcpy(chunk->out + at, chunk->in + at, chunk->in_nbytes - at);
    return true;
}

static bool decode(struct wharf_hdf5_chunk *chunk)
{
    unsigned inside = value(chunk, VALUE_INSIDE);

    if (inside == 0)
        return put_in_order(chunk);
    return wharf_hdf5_decode(chunk,
                             &(struct wharf_hdf5_stream){
                                 .codec = WHARF_CODEC_BLOSC,
                                 .parameter = value(chunk, VALUE_ELEMENT) +
                                              (inside == INSIDE_LZ4 ? WHARF_BLOSC_BITSHUFFLE_LZ4
                                                                    : WHARF_BLOSC_BITSHUFFLE_ZSTD),
                                 .nbytes = chunk->in_nbytes,
                                 .out = chunk->out,
                                 .out_nbytes = chunk->out_nbytes,
                             });
}

const struct wharf_hdf5_filter wharf_hdf5_filter = {32008, "bitshuffle (wharf)", measure, decode};
