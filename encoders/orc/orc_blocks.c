/* SPDX-License-Identifier: Apache-2.0 */
/* orc_blocks.c: reads parts of ORC files block by block; see orc_blocks.h. */
#include "encoders/orc/orc_blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/codec.h"

/* What all blocks of a part may take more than WORTH times what they hold.  Every stream is read
 * for each of the columns that it belongs to, so this is small. */
enum { MOST_LOST_NBYTES = 1024, WORTH = 4 };

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
    free(blocks->packed.bytes);
    blocks->packed.bytes = NULL;
}

static int fail(enum wharf_orc_trouble trouble, const char *what, uint64_t offset,
                struct wharf_orc_error *ret_error)
{
    *ret_error = (struct wharf_orc_error){
        .trouble = trouble,
        .what = what,
        .offset = offset,
        .stripe = WHARF_ORC_NOWHERE,
        .column = WHARF_ORC_NOWHERE,
    };
    return -1;
}

static int fail_system(int error, uint64_t offset, struct wharf_orc_error *ret_error)
{
    fail(WHARF_ORC_SYSTEM, "cannot be read", offset, ret_error);
    ret_error->error = error;
    return -1;
}

/* ---- one block ----------------------------------------------------------------------------- */

/* Bytes of the block at `at`. */
static int take(const struct wharf_orc_bytes *of, uint64_t at, uint64_t from, void *to,
                size_t nbytes, struct wharf_orc_error *ret_error)
{
    int r = nbytes ? of->source.read(of->source.context, from, to, nbytes) : 0;

    return r < 0 ? fail_system(r, at, ret_error) : 0;
}

static int make_room(struct wharf_orc_scratch *scratch, const struct wharf_orc_block *block,
                     struct wharf_orc_error *ret_error)
{
    if (block->nbytes <= scratch->avail)
        return 0;
    uint8_t *bytes = realloc(scratch->bytes, block->nbytes);
    if (!bytes)
        return fail_system(-ENOMEM, block->at, ret_error);
    scratch->bytes = bytes;
    scratch->avail = block->nbytes;
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

static int decode(const struct wharf_orc_bytes *of, const struct wharf_orc_block *block,
                  const uint8_t *packed, uint8_t *out, size_t *ret_nbytes,
                  struct wharf_orc_error *ret_error)
{
    struct wharf_outcome outcome;

    codec_of(of->compression)->decode(packed, block->nbytes, out, of->block_nbytes, NULL, &outcome);
    if (outcome.result != WHARF_OK) {
        fail(WHARF_ORC_DAMAGED, "a block does not decode", block->at, ret_error);
        ret_error->reason = outcome.reason;
        return -1;
    }
    *ret_nbytes = outcome.out_nbytes;
    return 0;
}

int wharf_orc_block_find(const struct wharf_orc_bytes *of, uint64_t at, uint64_t end,
                         struct wharf_orc_block *ret_block, struct wharf_orc_error *ret_error)
{
    struct wharf_orc_block block = {.at = at, .body = at, .is_plain = true};
    uint8_t header[WHARF_ORC_BLOCK_HEADER_NBYTES];

    if (of->compression == WHARF_ORC_NONE) {
        block.nbytes = end - at < of->block_nbytes ? (size_t)(end - at) : of->block_nbytes;
        *ret_block = block;
        return 0;
    }
    if (end - at < sizeof(header))
        return fail(WHARF_ORC_DAMAGED, "it ends inside a block's header", at, ret_error);
    if (take(of, at, at, header, sizeof(header), ret_error) < 0)
        return -1;
    block.body += sizeof(header);
    block.nbytes = (size_t)(header[0] | header[1] << 8 | header[2] << 16) >> 1;
    block.is_plain = header[0] & 1;
    if (block.nbytes > end - block.body)
        return fail(WHARF_ORC_DAMAGED, "it ends inside a block", at, ret_error);
    if (block.is_plain && block.nbytes > of->block_nbytes)
        return fail(WHARF_ORC_DAMAGED, "a block is larger than the block size", at, ret_error);
    *ret_block = block;
    return 0;
}

int wharf_orc_block_decode(const struct wharf_orc_bytes *of, const struct wharf_orc_block *block,
                           struct wharf_orc_scratch *scratch, uint8_t *out, size_t *ret_nbytes,
                           struct wharf_orc_error *ret_error)
{
    if (block->is_plain) {
        *ret_nbytes = block->nbytes;
        return take(of, block->at, block->body, out, block->nbytes, ret_error);
    }
    if (make_room(scratch, block, ret_error) < 0 ||
        take(of, block->at, block->body, scratch->bytes, block->nbytes, ret_error) < 0)
        return -1;
    return decode(of, block, scratch->bytes, out, ret_nbytes, ret_error);
}

/* ---- one after the other ------------------------------------------------------------------- */

static int decode_next(struct wharf_orc_blocks *blocks, struct wharf_orc_block *block, uint8_t *out,
                       size_t *ret_nbytes, struct wharf_orc_error *ret_error)
{
    if (wharf_orc_block_find(blocks->of, blocks->at, blocks->end, block, ret_error) < 0)
        return -1;
    return wharf_orc_block_decode(blocks->of, block, &blocks->packed, out, ret_nbytes, ret_error);
}

int wharf_orc_blocks_next(struct wharf_orc_blocks *blocks, uint8_t *out, size_t *ret_nbytes,
                          struct wharf_orc_error *ret_error)
{
    struct wharf_orc_block block;

    blocks->block_at = blocks->at;
    if (decode_next(blocks, &block, out, ret_nbytes, ret_error) < 0)
        return -1;
    blocks->at = block.body + block.nbytes;
    uint64_t taken = blocks->at - block.at, held = WORTH * (uint64_t)*ret_nbytes;
    blocks->lost_nbytes += taken > held ? taken - held : 0;
    if (blocks->lost_nbytes > MOST_LOST_NBYTES)
        return fail(WHARF_ORC_DAMAGED, "its blocks hold far less than they take", block.at,
                    ret_error);
    return 0;
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
                return fail_system(-ENOMEM, blocks->block_at, ret_error);
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
            return fail(WHARF_ORC_UNKNOWN, "it is larger than any writer makes it",
                        blocks->block_at, ret_error);
        }
    }
    *ret_bytes = bytes;
    *ret_nbytes = nbytes;
    return 0;
}
