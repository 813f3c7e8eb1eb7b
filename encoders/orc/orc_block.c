/* SPDX-License-Identifier: Apache-2.0 */
/* orc_block.c: reads and decodes one block of an ORC file; see orc_block.h. */
#include "encoders/orc/orc_block.h"

#include <errno.h>
#include <stdlib.h>

#include "encoders/codec.h"

/* Reads nbytes at `from`, which belong to the block at `at`. */
static int take(const struct wharf_orc_bytes *of, uint64_t at, uint64_t from, void *to,
                size_t nbytes, struct wharf_orc_error *ret_error)
{
    int r = nbytes ? of->source.read(of->source.context, from, to, nbytes) : 0;

    return r < 0 ? wharf_orc_fail_system(r, at, ret_error) : 0;
}

static int make_room(struct wharf_orc_scratch *scratch, const struct wharf_orc_block *block,
                     struct wharf_orc_error *ret_error)
{
    if (block->nbytes <= scratch->avail)
        return 0;
    uint8_t *bytes = realloc(scratch->bytes, block->nbytes);
    if (!bytes)
        return wharf_orc_fail_system(-ENOMEM, block->at, ret_error);
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
        wharf_orc_fail(WHARF_ORC_DAMAGED, "a block does not decode", block->at, ret_error);
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
        return wharf_orc_fail(WHARF_ORC_DAMAGED, "it ends inside a block's header", at, ret_error);
    if (take(of, at, at, header, sizeof(header), ret_error) < 0)
        return -1;
    block.body += sizeof(header);
    block.nbytes = (size_t)(header[0] | header[1] << 8 | header[2] << 16) >> 1;
    block.is_plain = header[0] & 1;
    if (block.nbytes > end - block.body)
        return wharf_orc_fail(WHARF_ORC_DAMAGED, "it ends inside a block", at, ret_error);
    if (block.is_plain && block.nbytes > of->block_nbytes)
        return wharf_orc_fail(WHARF_ORC_DAMAGED, "a block is larger than the block size", at,
                              ret_error);
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
