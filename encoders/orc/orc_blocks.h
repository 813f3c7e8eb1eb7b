/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orc_blocks.h: reads a part of an ORC file, such as a footer or a stream, block by block.
 *
 * A compressed file cuts each part into blocks with headers of three bytes (orc_format.h).  This
 * reader decodes them in order, one at a time, so that a part of any size needs the memory of two
 * blocks.
 */
#ifndef WHARF_ENCODERS_ORC_ORC_BLOCKS_H
#define WHARF_ENCODERS_ORC_ORC_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/orc/orc_block.h"
#include "encoders/orc/orc_team.h"

struct wharf_orc_blocks {
    const struct wharf_orc_bytes *of;
    uint64_t at; /* offset in the file of the next block */
    uint64_t end;
    uint64_t block_at;    /* offset of the block that was read last, for errors */
    uint64_t lost_nbytes; /* input bytes that yielded too little output */
    struct wharf_orc_scratch packed;
    struct wharf_orc_ahead ahead; /* blocks that the team has */
};

/* Starts at `offset` of `of`, which the part must not leave.  Allocates nothing yet. */
void wharf_orc_blocks_init(struct wharf_orc_blocks *blocks, const struct wharf_orc_bytes *of,
                           uint64_t offset, uint64_t nbytes);
void wharf_orc_blocks_deinit(struct wharf_orc_blocks *blocks);

/* Whether there is another block. */
static inline bool wharf_orc_blocks_have_more(const struct wharf_orc_blocks *blocks)
{
    return blocks->at < blocks->end;
}

/*
 * Decodes the next block into `out`, which has room for the file's block size.  There must be one:
 * see wharf_orc_blocks_have_more.  On failure it fills *ret_error except for where, stripe and
 * column, which only the caller knows.
 *
 * The time for a part is proportional to the bytes that it yields: it fails after some blocks that
 * yield next to nothing, which no writer makes.
 */
int wharf_orc_blocks_next(struct wharf_orc_blocks *blocks, uint8_t *out, size_t *ret_nbytes,
                          struct wharf_orc_error *ret_error);

/* Decodes all blocks that are left into *ret_bytes, which the caller frees.  Fails if they have
 * more than most_nbytes. */
int wharf_orc_blocks_all(struct wharf_orc_blocks *blocks, size_t most_nbytes, uint8_t **ret_bytes,
                         size_t *ret_nbytes, struct wharf_orc_error *ret_error);

#endif
