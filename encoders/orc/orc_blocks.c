/* SPDX-License-Identifier: Apache-2.0 */
/* orc_blocks.c: reads parts of ORC files block by block; see orc_blocks.h. */
#include "encoders/orc/orc_blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/codec.h"

void wharf_orc_blocks_init(struct wharf_orc_blocks *blocks, const struct wharf_orc_bytes *of,
                           uint64_t offset, uint64_t nbytes)
{
    *blocks = (struct wharf_orc_blocks){
        .of = of,
        .at = offset,
        .end = offset + nbytes,
        .block_at = offset,
    };
}

void wharf_orc_blocks_deinit(struct wharf_orc_blocks *blocks)
{
    free(blocks->packed);
    blocks->packed = NULL;
}

static int fail(const struct wharf_orc_blocks *blocks, enum wharf_orc_trouble trouble,
                const char *what, struct wharf_orc_error *ret_error)
{
    *ret_error = (struct wharf_orc_error){
        .trouble = trouble,
        .what = what,
        .offset = blocks->block_at,
        .stripe = WHARF_ORC_NOWHERE,
        .column = WHARF_ORC_NOWHERE,
    };
    return -1;
}

static int fail_system(const struct wharf_orc_blocks *blocks, int error,
                       struct wharf_orc_error *ret_error)
{
    fail(blocks, WHARF_ORC_SYSTEM, "cannot be read", ret_error);
    ret_error->error = error;
    return -1;
}

/* Reads the next nbytes of the file, and moves past them. */
static int take(struct wharf_orc_blocks *blocks, void *to, size_t nbytes,
                struct wharf_orc_error *ret_error)
{
    const struct wharf_orc_source *source = &blocks->of->source;
    int r = nbytes ? source->read(source->context, blocks->at, to, nbytes) : 0;

    if (r < 0)
        return fail_system(blocks, r, ret_error);
    blocks->at += nbytes;
    return 0;
}

static int make_room(struct wharf_orc_blocks *blocks, size_t nbytes,
                     struct wharf_orc_error *ret_error)
{
    if (nbytes <= blocks->packed_avail)
        return 0;
    uint8_t *packed = realloc(blocks->packed, nbytes);
    if (!packed)
        return fail_system(blocks, -ENOMEM, ret_error);
    blocks->packed = packed;
    blocks->packed_avail = nbytes;
    return 0;
}

static const struct wharf_codec_ops *codec_of(uint32_t compression)
{
    switch (compression) {
    case WHARF_ORC_ZLIB:
        return &wharf_deflate_codec;
    case WHARF_ORC_SNAPPY:
        return &wharf_snappy_codec;
    case WHARF_ORC_LZ4:
        return &wharf_lz4_codec;
    default:
        return &wharf_zstd_codec;
    }
}

static int decode(struct wharf_orc_blocks *blocks, size_t packed_nbytes, uint8_t *out,
                  size_t *ret_nbytes, struct wharf_orc_error *ret_error)
{
    const struct wharf_codec_ops *codec = codec_of(blocks->of->compression);
    struct wharf_outcome outcome;

    codec->decode(blocks->packed, packed_nbytes, out, blocks->of->block_nbytes, NULL, &outcome);
    if (outcome.result != WHARF_OK) {
        fail(blocks, WHARF_ORC_DAMAGED, "a block does not decode", ret_error);
        ret_error->reason = outcome.reason;
        return -1;
    }
    *ret_nbytes = outcome.out_nbytes;
    return 0;
}

/* A file without compression has no block headers.  Its parts are read in pieces of the block
 * size. */
static int next_plain(struct wharf_orc_blocks *blocks, uint8_t *out, size_t *ret_nbytes,
                      struct wharf_orc_error *ret_error)
{
    uint64_t left = blocks->end - blocks->at;

    *ret_nbytes = left < blocks->of->block_nbytes ? (size_t)left : blocks->of->block_nbytes;
    return take(blocks, out, *ret_nbytes, ret_error);
}

int wharf_orc_blocks_next(struct wharf_orc_blocks *blocks, uint8_t *out, size_t *ret_nbytes,
                          struct wharf_orc_error *ret_error)
{
    uint8_t header[WHARF_ORC_BLOCK_HEADER_NBYTES];

    blocks->block_at = blocks->at;
    if (blocks->of->compression == WHARF_ORC_NONE)
        return next_plain(blocks, out, ret_nbytes, ret_error);
    if (blocks->end - blocks->at < sizeof(header))
        return fail(blocks, WHARF_ORC_DAMAGED, "it ends inside a block's header", ret_error);
    if (take(blocks, header, sizeof(header), ret_error) < 0)
        return -1;
    size_t nbytes = (size_t)(header[0] | header[1] << 8 | header[2] << 16) >> 1;
    if (nbytes > blocks->end - blocks->at)
        return fail(blocks, WHARF_ORC_DAMAGED, "it ends inside a block", ret_error);
    if (header[0] & 1) {
        if (nbytes > blocks->of->block_nbytes)
            return fail(blocks, WHARF_ORC_DAMAGED, "a block is larger than the block size",
                        ret_error);
        *ret_nbytes = nbytes;
        return take(blocks, out, nbytes, ret_error);
    }
    if (make_room(blocks, nbytes, ret_error) < 0 ||
        take(blocks, blocks->packed, nbytes, ret_error) < 0)
        return -1;
    return decode(blocks, nbytes, out, ret_nbytes, ret_error);
}

int wharf_orc_blocks_all(struct wharf_orc_blocks *blocks, size_t most_nbytes, uint8_t **ret_bytes,
                         size_t *ret_nbytes, struct wharf_orc_error *ret_error)
{
    uint8_t *bytes = NULL;
    size_t nbytes = 0, avail = 0, more;

    while (wharf_orc_blocks_have_more(blocks)) {
        if (avail - nbytes < blocks->of->block_nbytes) {
            avail = 2 * avail + blocks->of->block_nbytes;
            uint8_t *larger = realloc(bytes, avail);
            if (!larger) {
                free(bytes);
                return fail_system(blocks, -ENOMEM, ret_error);
            }
            bytes = larger;
        }
        if (wharf_orc_blocks_next(blocks, bytes + nbytes, &more, ret_error) < 0) {
            free(bytes);
            return -1;
        }
        nbytes += more;
        if (nbytes > most_nbytes) {
            free(bytes);
            return fail(blocks, WHARF_ORC_UNKNOWN, "it is larger than any writer makes it",
                        ret_error);
        }
    }
    *ret_bytes = bytes;
    *ret_nbytes = nbytes;
    return 0;
}
