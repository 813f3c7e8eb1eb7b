/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_chunk.c: decodes a chunk of Blosc 1 or 2 (blosc_format.h).
 *
 * A chunk is a header, a table of offsets, and blocks.  A block is decoded in two steps: its
 * streams are decompressed one after the other, and then its filters are undone, the last one
 * first.
 *
 * INVARIANT: left_nbytes of the walk is what streams may still take from the chunk.  Offsets are
 * hostile and could let many blocks share one stream; with this budget, the work is linear in the
 * sizes of source and output.
 */
#include "encoders/blosc/blosc_chunk.h"

#include <string.h>

#include "encoders/blosc/blosc_filter.h"
#include "encoders/decode_poll.h"
#include "encoders/little_endian.h"
#include "encoders/outcome.h"

enum { SIZE_NBYTES = 4 };

/* ---- streams --------------------------------------------------------------------------------- */

/* Fills a stream's part of the block with one value. */
static bool fill(struct wharf_blosc_walk *walk, uint8_t *out, uint8_t value, size_t nbytes)
{
    while (nbytes > 0) {
        size_t n = nbytes < WHARF_POLL_OUT_NBYTES ? nbytes : WHARF_POLL_OUT_NBYTES;
        memset(out, value, n);
        out += n;
        nbytes -= n;
        if (!wharf_blosc_spend(walk, 0, n))
            return false;
    }
    return true;
}

static bool copy(struct wharf_blosc_walk *walk, uint8_t *out, size_t at, size_t nbytes)
{
    while (nbytes > 0) {
        size_t n = nbytes < WHARF_POLL_OUT_NBYTES ? nbytes : WHARF_POLL_OUT_NBYTES;
        memcpy(out, walk->in + at, n);
        out += n;
        at += n;
        nbytes -= n;
        if (!wharf_blosc_spend(walk, 0, n))
            return false;
    }
    return true;
}

/* Takes a stream's bytes from the chunk's budget. */
static bool charge(struct wharf_blosc_walk *walk, size_t nbytes, size_t size_at)
{
    if (nbytes > walk->left_nbytes)
        return wharf_blosc_fail(walk, WHARF_REASON_BLOSC_OVERLAP, size_at);
    walk->left_nbytes -= nbytes;
    return true;
}

/* Decodes a run of one byte other than 0: `size` is minus that byte. */
static bool take_run(struct wharf_blosc_walk *walk, struct wharf_blosc_stream *stream,
                     uint32_t size, size_t size_at)
{
    uint32_t value = -size;

    if (stream->at == stream->end || value > 255 || !(walk->in[stream->at] & 1))
        return wharf_blosc_fail(walk, WHARF_REASON_BLOSC_STREAM, size_at);
    stream->at++;
    return charge(walk, SIZE_NBYTES + 1, size_at) &&
           fill(walk, stream->out, (uint8_t)value, stream->out_nbytes);
}

static bool take_stream(struct wharf_blosc_walk *walk, struct wharf_blosc_stream *stream)
{
    size_t size_at = stream->at;

    if (stream->end - stream->at < SIZE_NBYTES)
        return wharf_blosc_fail(walk, WHARF_REASON_BLOSC_STREAM, size_at);
    uint32_t size = wharf_load_le32(walk->in + stream->at);
    stream->at += SIZE_NBYTES;
    if (size > INT32_MAX)
        return take_run(walk, stream, size, size_at);
    if (size > stream->end - stream->at)
        return wharf_blosc_fail(walk, WHARF_REASON_BLOSC_STREAM, size_at);
    if (!charge(walk, SIZE_NBYTES + (size_t)size, size_at) ||
        !wharf_blosc_spend(walk, SIZE_NBYTES, 0))
        return false;
    bool is_good = size == 0                    ? fill(walk, stream->out, 0, stream->out_nbytes)
                   : size == stream->out_nbytes ? copy(walk, stream->out, stream->at, size)
                                                : wharf_blosc_inside(walk, stream, size_at, size);
    stream->at += size;
    return is_good;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

struct block {
    size_t start_at; /* offset in the chunk of the block's entry in the table of starts */
    uint8_t *out;
    size_t nbytes;
    unsigned n_streams;
};

static bool take_streams(struct wharf_blosc_walk *walk, const struct block *block, uint8_t *out)
{
    const struct wharf_blosc_header *header = &walk->header;
    uint32_t start = wharf_load_le32(walk->in + block->start_at);
    struct wharf_blosc_stream stream = {
        .at = start,
        .end = header->chunk_nbytes,
        .out = out,
        .out_nbytes = block->nbytes / block->n_streams,
        .inside = (enum wharf_blosc_inside)header->inside,
    };

    if (start < walk->streams_at || start > header->chunk_nbytes - SIZE_NBYTES ||
        block->nbytes % block->n_streams)
        return wharf_blosc_fail(walk, WHARF_REASON_BLOSC_START, block->start_at);
    for (unsigned i = 0; i < block->n_streams; i++) {
        if (!take_stream(walk, &stream))
            return false;
        stream.out += stream.out_nbytes;
    }
    return true;
}

/* The shuffle that filter i applies to a block; one with empty planes if it is none. */
static struct wharf_blosc_shuffle shuffle_of(const struct wharf_blosc_walk *walk, unsigned i,
                                             size_t nbytes)
{
    const struct wharf_blosc_header *header = &walk->header;
    unsigned element_nbytes = header->element_nbytes;
    size_t n_elements = nbytes / element_nbytes;

    if (header->filters[i] == WHARF_BLOSC_FILTER_SHUFFLE)
        return wharf_blosc_shuffle_of(&walk->parts, false,
                                      header->metas[i] ? header->metas[i] : element_nbytes, nbytes);
    if (header->filters[i] == WHARF_BLOSC_FILTER_BITSHUFFLE &&
        !(header->version == WHARF_BLOSC_VERSION_1 && n_elements % 8))
        return wharf_blosc_shuffle_of(&walk->parts, true, element_nbytes, nbytes);
    return (struct wharf_blosc_shuffle){NULL, 1, 1, 0};
}

static bool undo_filter(struct wharf_blosc_walk *walk, unsigned i, const struct block *block)
{
    const struct wharf_blosc_header *header = &walk->header;
    struct wharf_blosc_shuffle shuffle = shuffle_of(walk, i, block->nbytes);

    if (header->filters[i] == WHARF_BLOSC_FILTER_DELTA)
        return wharf_blosc_undo_delta(walk, header->element_nbytes, walk->out, block->out,
                                      block->nbytes);
    return wharf_blosc_unshuffle_there(walk, &shuffle, block->out);
}

/* The filters that do something are 0 to n - 1.  The first to be undone, if it is a shuffle and the
 * block is small enough, reads from scratch and writes to the output, which saves a copy. */
static bool take_block(struct wharf_blosc_walk *walk, const struct block *block)
{
    unsigned n = WHARF_BLOSC_N_FILTERS;
    const uint8_t *filters = walk->header.filters;

    while (n > 0 && (filters[n - 1] == WHARF_BLOSC_FILTER_NONE ||
                     filters[n - 1] == WHARF_BLOSC_FILTER_TRUNCATE))
        n--;
    if (n > 0 && block->nbytes <= WHARF_BLOSC_SCRATCH_NBYTES) {
        struct wharf_blosc_shuffle shuffle = shuffle_of(walk, n - 1, block->nbytes);
        if (shuffle.plane_nbytes > 0) {
            if (!take_streams(walk, block, walk->scratch))
                return false;
            wharf_blosc_unshuffle(walk, &shuffle, block->out, block->nbytes);
            n--;
        } else if (!take_streams(walk, block, block->out)) {
            return false;
        }
    } else if (!take_streams(walk, block, block->out)) {
        return false;
    }
    while (n > 0)
        if (!undo_filter(walk, --n, block))
            return false;
    return true;
}

static unsigned n_streams(const struct wharf_blosc_header *header, size_t nbytes)
{
    unsigned element_nbytes = header->element_nbytes;

    if (header->flags & WHARF_BLOSC_NOT_SPLIT || nbytes < header->block_nbytes)
        return 1;
    if (header->version == WHARF_BLOSC_VERSION_1 && !header->is_extended &&
        (element_nbytes > WHARF_BLOSC_SPLITS_MAX ||
         header->block_nbytes / element_nbytes < WHARF_BLOSC_SPLIT_LEAST))
        return 1;
    return element_nbytes;
}

static bool take_blocks(struct wharf_blosc_walk *walk)
{
    const struct wharf_blosc_header *header = &walk->header;
    size_t out_at = 0;

    for (uint32_t i = 0; i < header->n_blocks; i++) {
        size_t left = header->out_nbytes - out_at;
        struct block block = {
            .start_at = header->header_nbytes + (size_t)SIZE_NBYTES * i,
            .out = walk->out + out_at,
            .nbytes = left < header->block_nbytes ? left : header->block_nbytes,
        };
        block.n_streams = n_streams(header, block.nbytes);
        if (!take_block(walk, &block))
            return false;
        out_at += block.nbytes;
    }
    return true;
}

/* ---- chunks without streams ------------------------------------------------------------------ */

/* Writes value_nbytes at `value` repeatedly.  Each step copies what is already there, and so
 * doubles it. */
static bool repeat(struct wharf_blosc_walk *walk, const uint8_t *value, size_t value_nbytes)
{
    size_t done = value_nbytes, nbytes = walk->header.out_nbytes;

    memcpy(walk->out, value, value_nbytes);
    while (done < nbytes) {
        size_t n = done < nbytes - done ? done : nbytes - done;
        if (n > WHARF_POLL_OUT_NBYTES)
            n = WHARF_POLL_OUT_NBYTES / value_nbytes * value_nbytes;
        if (n == 0)
            n = value_nbytes;
        memcpy(walk->out + done, walk->out + done - n, n);
        done += n;
        if (!wharf_blosc_spend(walk, 0, n))
            return false;
    }
    return true;
}

static bool put_special(struct wharf_blosc_walk *walk)
{
    static const uint8_t nan_4[4] = {0, 0, 0xc0, 0x7f};
    static const uint8_t nan_8[8] = {0, 0, 0, 0, 0, 0, 0xf8, 0x7f};
    const struct wharf_blosc_header *header = &walk->header;

    switch (header->special) {
    case WHARF_BLOSC_VALUES:
        return repeat(walk, walk->in + header->header_nbytes,
                      header->chunk_nbytes - header->header_nbytes);
    case WHARF_BLOSC_NANS:
        return repeat(walk, header->element_nbytes == 4 ? nan_4 : nan_8, header->element_nbytes);
    default:
        return fill(walk, walk->out, 0, header->out_nbytes);
    }
}

/* ---- the chunk ------------------------------------------------------------------------------- */

static bool take_chunk(struct wharf_blosc_walk *walk)
{
    struct wharf_blosc_header *header = &walk->header;
    enum wharf_reason reason = wharf_blosc_read_header(walk->in, walk->in_nbytes, header);

    if (reason != WHARF_REASON_NONE)
        return wharf_blosc_fail(walk, reason, 0);
    if (header->out_nbytes > walk->out_avail)
        return wharf_blosc_fail(walk, WHARF_REASON_OUTPUT_FULL, 0);
    if (header->out_nbytes == 0)
        return true;
    if (header->special != WHARF_BLOSC_NOT_SPECIAL)
        return put_special(walk);
    if (header->is_copy)
        return copy(walk, walk->out, header->header_nbytes, header->out_nbytes);
    walk->streams_at = header->header_nbytes + SIZE_NBYTES * header->n_blocks;
    if (header->has_dictionary)
        return wharf_blosc_fail(walk, WHARF_REASON_BLOSC_FLAGS, 0);
    walk->left_nbytes = header->chunk_nbytes - walk->streams_at;
    return take_blocks(walk);
}

void wharf_blosc_walk_chunk(struct wharf_blosc_walk *walk, struct wharf_outcome *ret_outcome)
{
    if (take_chunk(walk))
        wharf_outcome_ok(ret_outcome, walk->header.chunk_nbytes, walk->header.out_nbytes);
}
