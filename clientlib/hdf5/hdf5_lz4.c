/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_lz4.c: filter 32004, LZ4.
 *
 * A chunk is the size of its output in 8 bytes, the size of a block's output in 4, and for each
 * block the size of its data in 4 and the data; numbers are big-endian.  Data of the size of the
 * block's output is stored plain, other data is an LZ4 block.
 */
#include <inttypes.h>
#include <string.h>

#include "clientlib/hdf5/hdf5_decode.h"
#include "clientlib/hdf5/hdf5_errors.h"
#include "encoders/wharf_codec.h"

enum {
    HEADER_NBYTES = 12,
    BLOCK_HEADER_NBYTES = 4,
    /* The most output of a byte of LZ4. */
    MAX_RATIO = 255,
};

static bool measure(struct wharf_hdf5_chunk *chunk)
{
    if (chunk->in_nbytes < HEADER_NBYTES)
        return wharf_hdf5_fail("%zu bytes are too few for a chunk of the filter lz4",
                               chunk->in_nbytes);
    uint64_t nbytes = wharf_hdf5_big64(chunk->in);
    if (nbytes > (uint64_t)chunk->in_nbytes * MAX_RATIO)
        return wharf_hdf5_fail("a chunk of %zu bytes cannot hold the %" PRIu64 " that it says",
                               chunk->in_nbytes, nbytes);
    chunk->out_nbytes = (size_t)nbytes;
    return true;
}

/* Decodes the block at *offset, whose output has out_nbytes, and moves *offset past it. */
static bool decode_block(const struct wharf_hdf5_chunk *chunk, size_t *offset, uint8_t *out,
                         size_t out_nbytes)
{
    if (chunk->in_nbytes - *offset < BLOCK_HEADER_NBYTES)
        return wharf_hdf5_fail("a block is missing at byte %zu of a chunk of %zu bytes", *offset,
                               chunk->in_nbytes);
    size_t nbytes = wharf_hdf5_big32(chunk->in + *offset);
    size_t start = *offset + BLOCK_HEADER_NBYTES;
    if (nbytes > chunk->in_nbytes - start)
        return wharf_hdf5_fail(
            "a block of %zu bytes at byte %zu reaches beyond a chunk of %zu bytes", nbytes, start,
            chunk->in_nbytes);
    *offset = start + nbytes;
    if (nbytes == out_nbytes) {
        memcpy(out, chunk->in + start, nbytes);
        return true;
    }
    return wharf_hdf5_decode(chunk, &(struct wharf_hdf5_stream){
                                        .codec = WHARF_CODEC_LZ4,
                                        .offset = start,
                                        .nbytes = nbytes,
                                        .out = out,
                                        .out_nbytes = out_nbytes,
                                    });
}

static bool decode(struct wharf_hdf5_chunk *chunk)
{
    size_t block_nbytes = wharf_hdf5_big32(chunk->in + 8);
    size_t offset = HEADER_NBYTES;

    if (block_nbytes == 0)
        return wharf_hdf5_fail("blocks of no bytes in a chunk of %zu bytes", chunk->in_nbytes);
    for (size_t at = 0; at < chunk->out_nbytes;) {
        size_t left = chunk->out_nbytes - at;
        size_t out_nbytes = block_nbytes < left ? block_nbytes : left;
        if (!decode_block(chunk, &offset, chunk->out + at, out_nbytes))
            return false;
        at += out_nbytes;
    }
    return true;
}

const struct wharf_hdf5_filter wharf_hdf5_filter = {32004, "lz4 (wharf)", measure, decode};
