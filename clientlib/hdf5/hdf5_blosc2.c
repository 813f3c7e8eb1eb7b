/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hdf5_blosc2.c: filter 32026, Blosc 2.  A chunk of HDF5 is a contiguous frame of Blosc 2 that
 * holds one chunk.
 *
 * Sources: README_CFRAME_FORMAT.rst and README_B2ND_METALAYER.rst of c-blosc2.
 *
 * THE FRAME.  Numbers are big-endian, each after one byte of MessagePack that gives its type.  The
 * header has its own size at byte 11, the output's at 30, the compressed chunks' at 39, an
 * element's at 48, and a chunk's at 58.  From byte 87 on it lists metalayers: their names and
 * offsets.  The chunks follow, and then the index: a chunk of Blosc 2 with the offset of each chunk
 * in 8 bytes, little-endian.  A chunk of one value is not stored: its offset has bit 63, and the
 * value's kind in bits 56 to 62.
 *
 * THE METALAYER b2nd.  If a frame has it, it gives the shapes of the chunk and of its blocks, in
 * several dimensions.  The elements of a block are then contiguous in the chunk's output, and the
 * last block in each dimension is padded to full size.  Otherwise, elements are in their final
 * order.
 */
#include <inttypes.h>
#include <string.h>

#include "clientlib/hdf5/hdf5_decode.h"
#include "clientlib/hdf5/hdf5_errors.h"
#include "encoders/blosc/blosc_format.h"
#include "encoders/little_endian.h"
#include "encoders/wharf_codec.h"

enum {
    AT_HEADER_NBYTES = 11,
    AT_OUT_NBYTES = 30,
    AT_CHUNKS_NBYTES = 39,
    AT_ELEMENT = 48,
    AT_CHUNK_NBYTES = 58,
    AT_METALAYERS = 87,
    LEAST_NBYTES = 97, /* a header without metalayers */

    OFFSET_NBYTES = 8,
    MAX_DIMENSIONS = 8,
    MAX_METALAYERS = 16,
    MAX_NAME_NBYTES = 31,
};

struct frame {
    size_t header_nbytes;
    size_t chunks_nbytes;
    size_t out_nbytes; /* of the chunk, with padding */
    size_t element_nbytes;
};

/* The blocks of a chunk; n is 0 if elements are in their final order. */
struct blocks {
    unsigned n;
    uint64_t shape[MAX_DIMENSIONS];
    uint64_t block[MAX_DIMENSIONS];
    uint64_t n_blocks[MAX_DIMENSIONS];
};

/* ---- the frame ------------------------------------------------------------------------------ */

static bool fail(const struct wharf_hdf5_chunk *chunk, const char *what)
{
    return wharf_hdf5_fail("%s in a frame of Blosc 2 of %zu bytes", what, chunk->in_nbytes);
}

static bool read_frame(const struct wharf_hdf5_chunk *chunk, struct frame *ret_frame)
{
    static const uint8_t magic[] = "\x9e\xa8"
                                   "b2frame";
    const uint8_t *in = chunk->in;

    if (chunk->in_nbytes < LEAST_NBYTES || memcmp(in, magic, sizeof(magic)) != 0)
        return fail(chunk, "no header");
    struct frame frame = {.header_nbytes = wharf_hdf5_big32(in + AT_HEADER_NBYTES),
                          .element_nbytes = wharf_hdf5_big32(in + AT_ELEMENT)};
    uint64_t out_nbytes = wharf_hdf5_big64(in + AT_OUT_NBYTES);
    uint64_t chunks_nbytes = wharf_hdf5_big64(in + AT_CHUNKS_NBYTES);
    if (frame.header_nbytes < LEAST_NBYTES || frame.header_nbytes > chunk->in_nbytes ||
        chunks_nbytes > chunk->in_nbytes - frame.header_nbytes)
        return fail(chunk, "sizes that reach beyond its end");
    if (out_nbytes == 0 || out_nbytes > WHARF_BLOSC_MAX_CONSTANT || frame.element_nbytes == 0)
        return fail(chunk, "no output, or too much");
    if (out_nbytes > wharf_hdf5_big32(in + AT_CHUNK_NBYTES))
        return fail(chunk, "several chunks");
    frame.out_nbytes = (size_t)out_nbytes;
    frame.chunks_nbytes = (size_t)chunks_nbytes;
    *ret_frame = frame;
    return true;
}

/* ---- b2nd ----------------------------------------------------------------------------------- */

/* The rest of the header that is being read. */
struct cursor {
    const uint8_t *at;
    size_t left;
};

/* Takes a number of nbytes after the type byte `tag`.  False if something else is there. */
static bool take(struct cursor *cursor, uint8_t tag, unsigned nbytes, uint64_t *ret_value)
{
    uint64_t number = 0;

    if (cursor->left < 1 + nbytes || cursor->at[0] != tag)
        return false;
    for (unsigned i = 0; i < nbytes; i++)
        number = number << 8 | cursor->at[1 + i];
    cursor->at += 1 + nbytes;
    cursor->left -= 1 + nbytes;
    *ret_value = number;
    return true;
}

/* Takes a small number, which MessagePack stores in the type byte itself. */
static bool take_small(struct cursor *cursor, uint8_t base, unsigned *ret_value)
{
    if (cursor->left < 1 || cursor->at[0] < base)
        return false;
    *ret_value = cursor->at[0] - base;
    cursor->at++, cursor->left--;
    return true;
}

/* Finds the contents of b2nd; *ret_offset is 0 if there are none.  False: the list is malformed. */
static bool find_b2nd(const struct wharf_hdf5_chunk *chunk, const struct frame *frame,
                      uint64_t *ret_offset)
{
    struct cursor cursor = {chunk->in + AT_METALAYERS, frame->header_nbytes - AT_METALAYERS};
    uint64_t nbytes, n, offset;
    unsigned three, name_nbytes;

    *ret_offset = 0;
    if (!take_small(&cursor, 0x90, &three) || three != 3 || !take(&cursor, 0xcd, 2, &nbytes) ||
        !take(&cursor, 0xde, 2, &n) || n > MAX_METALAYERS)
        return false;
    for (; n; n--) {
        const uint8_t *name = cursor.at + 1;
        if (!take_small(&cursor, 0xa0, &name_nbytes) || name_nbytes > MAX_NAME_NBYTES ||
            cursor.left < name_nbytes)
            return false;
        cursor.at += name_nbytes;
        cursor.left -= name_nbytes;
        if (!take(&cursor, 0xd2, 4, &offset))
            return false;
        if (name_nbytes == 4 && memcmp(name, "b2nd", 4) == 0)
            *ret_offset = offset;
    }
    return true;
}

static bool take_shape(struct cursor *cursor, unsigned n, uint8_t tag, unsigned nbytes,
                       uint64_t *ret_shape)
{
    unsigned n_there;

    if (!take_small(cursor, 0x90, &n_there) || n_there != n)
        return false;
    for (unsigned i = 0; i < n; i++)
        if (!take(cursor, tag, nbytes, &ret_shape[i]) || ret_shape[i] == 0 ||
            ret_shape[i] > WHARF_BLOSC_MAX_CONSTANT)
            return false;
    return true;
}

static bool read_b2nd(const struct wharf_hdf5_chunk *chunk, const struct frame *frame,
                      uint64_t offset, struct blocks *ret_blocks)
{
    struct cursor cursor = {chunk->in + offset, frame->header_nbytes - offset};
    uint64_t nbytes, whole[MAX_DIMENSIONS];
    unsigned seven, version;

    return take(&cursor, 0xc6, 4, &nbytes) && take_small(&cursor, 0x90, &seven) && seven >= 5 &&
           seven < 16 && take_small(&cursor, 0, &version) &&
           take_small(&cursor, 0, &ret_blocks->n) && ret_blocks->n >= 1 &&
           ret_blocks->n <= MAX_DIMENSIONS && take_shape(&cursor, ret_blocks->n, 0xd3, 8, whole) &&
           take_shape(&cursor, ret_blocks->n, 0xd2, 4, ret_blocks->shape) &&
           take_shape(&cursor, ret_blocks->n, 0xd2, 4, ret_blocks->block);
}

/* Whether the blocks make up the chunk's output.  All factors are below 2^31. */
static bool add_up(const struct frame *frame, struct blocks *blocks, size_t *ret_nbytes)
{
    uint64_t filled = frame->element_nbytes, nbytes = frame->element_nbytes;

    for (unsigned i = 0; i < blocks->n; i++) {
        blocks->n_blocks[i] = (blocks->shape[i] + blocks->block[i] - 1) / blocks->block[i];
        if (filled > WHARF_BLOSC_MAX_CONSTANT)
            return false;
        filled *= blocks->n_blocks[i] * blocks->block[i];
        nbytes *= blocks->shape[i];
    }
    *ret_nbytes = (size_t)nbytes;
    return filled == frame->out_nbytes;
}

static bool read_blocks(const struct wharf_hdf5_chunk *chunk, const struct frame *frame,
                        struct blocks *ret_blocks, size_t *ret_nbytes)
{
    struct blocks blocks = {0};
    uint64_t offset;

    *ret_nbytes = frame->out_nbytes;
    if (!find_b2nd(chunk, frame, &offset) || offset >= frame->header_nbytes)
        return fail(chunk, "a bad list of metalayers");
    if (offset &&
        (!read_b2nd(chunk, frame, offset, &blocks) || !add_up(frame, &blocks, ret_nbytes)))
        return fail(chunk, "a bad metalayer b2nd");
    *ret_blocks = blocks;
    return true;
}

/* ---- order ---------------------------------------------------------------------------------- */

/* Advances to the next place below `most`, the last dimension first.  False: it was the last
 * one. */
static bool advance(uint64_t *place, const uint64_t *most, unsigned n)
{
    while (n--) {
        if (++place[n] < most[n])
            return true;
        place[n] = 0;
    }
    return false;
}

/* Copies a row of a block, unless it is padding.  `at` is the block's place, `row` the row's in
 * it. */
static void copy_row(const struct blocks *blocks, size_t element, const uint64_t *at,
                     const uint64_t *row, const uint8_t *from, uint8_t *to)
{
    unsigned last = blocks->n - 1;
    uint64_t first = 0;

    for (unsigned i = 0; i < blocks->n; i++) {
        uint64_t place = at[i] * blocks->block[i] + (i < last ? row[i] : 0);
        if (place >= blocks->shape[i])
            return;
        first = first * blocks->shape[i] + place;
    }
    uint64_t left = blocks->shape[last] - at[last] * blocks->block[last];
    uint64_t n = left < blocks->block[last] ? left : blocks->block[last];
    memcpy(to + first * element, from, n * element);
}

static void put_in_order(const struct blocks *blocks, size_t element, const uint8_t *from,
                         uint8_t *to)
{
    uint64_t at[MAX_DIMENSIONS] = {0};

    do {
        uint64_t row[MAX_DIMENSIONS] = {0};
        do {
            copy_row(blocks, element, at, row, from, to);
            from += blocks->block[blocks->n - 1] * element;
        } while (advance(row, blocks->block, blocks->n - 1));
    } while (advance(at, blocks->n_blocks, blocks->n));
}

/* ---- chunks --------------------------------------------------------------------------------- */

static bool fill(const struct wharf_hdf5_chunk *chunk, const struct frame *frame, unsigned value,
                 uint8_t *out)
{
    static const float nan32 = __builtin_nanf("");
    static const double nan64 = __builtin_nan("");
    size_t element = frame->element_nbytes;

    if (value == WHARF_BLOSC_ZEROS || value == WHARF_BLOSC_UNINITIALISED) {
        memset(out, 0, frame->out_nbytes);
        return true;
    }
    if (value != WHARF_BLOSC_NANS || (element != sizeof(nan32) && element != sizeof(nan64)) ||
        frame->out_nbytes % element)
        return fail(chunk, "a value of no known kind");
    for (size_t i = 0; i < frame->out_nbytes; i += element)
        memcpy(out + i, element == sizeof(nan32) ? (const void *)&nan32 : &nan64, element);
    return true;
}

static bool decode_chunk(const struct wharf_hdf5_chunk *chunk, const struct frame *frame,
                         uint8_t *out)
{
    size_t index = frame->header_nbytes + frame->chunks_nbytes;
    uint8_t bytes[OFFSET_NBYTES];

    if (!wharf_hdf5_decode(chunk, &(struct wharf_hdf5_stream){
                                      .codec = WHARF_CODEC_BLOSC,
                                      .offset = index,
                                      .nbytes = chunk->in_nbytes - index,
                                      .out = bytes,
                                      .out_nbytes = sizeof(bytes),
                                  }))
        return false;
    uint64_t offset = wharf_load_le32(bytes) | (uint64_t)wharf_load_le32(bytes + 4) << 32;
    if (offset >> 63)
        return fill(chunk, frame, offset >> 56 & 0x7f, out);
    if (offset >= frame->chunks_nbytes)
        return fail(chunk, "a chunk that begins beyond its end");
    return wharf_hdf5_decode(chunk, &(struct wharf_hdf5_stream){
                                        .codec = WHARF_CODEC_BLOSC,
                                        .offset = frame->header_nbytes + (size_t)offset,
                                        .nbytes = frame->chunks_nbytes - (size_t)offset,
                                        .out = out,
                                        .out_nbytes = frame->out_nbytes,
                                    });
}

static bool measure(struct wharf_hdf5_chunk *chunk)
{
    struct frame frame;
    struct blocks blocks;

    return read_frame(chunk, &frame) && read_blocks(chunk, &frame, &blocks, &chunk->out_nbytes);
}

static bool decode(struct wharf_hdf5_chunk *chunk)
{
    struct frame frame;
    struct blocks blocks;
    size_t nbytes;

    if (!read_frame(chunk, &frame) || !read_blocks(chunk, &frame, &blocks, &nbytes))
        return false;
    /* Reading the header twice is safe: the source is not shared, since HDF5 has read the chunk
     * into memory for this call. */
    if (blocks.n == 0)
        return decode_chunk(chunk, &frame, chunk->out);
    uint8_t *blocked = wharf_hdf5_allocate(frame.out_nbytes);
    if (!blocked)
        return wharf_hdf5_fail("no memory for a chunk of %zu bytes", frame.out_nbytes);
    bool is_good = decode_chunk(chunk, &frame, blocked);
    if (is_good)
        put_in_order(&blocks, frame.element_nbytes, blocked, chunk->out);
    wharf_hdf5_free(blocked);
    return is_good;
}

const struct wharf_hdf5_filter wharf_hdf5_filter = {32026, "blosc2 (wharf)", measure, decode};
