/* SPDX-License-Identifier: Apache-2.0 */
/* orc_blocks.h: the bytes of a part of an ORC file, block by block (orc_format.h). */
#ifndef WHARF_ENCODERS_ORC_ORC_BLOCKS_H
#define WHARF_ENCODERS_ORC_ORC_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/orc/orc_error.h"
#include "encoders/orc/orc_format.h"

/* Where bytes come from.  `read` gives all nbytes at `offset`, which are within the file: 0, or
 * -errno, -ENODATA if the file has become shorter.  By any thread. */
struct wharf_orc_source {
    int (*read)(void *context, uint64_t offset, void *buf, size_t nbytes);
    void *context;
    uint64_t nbytes;
};

/* The bytes of a file, and how they are compressed. */
struct wharf_orc_bytes {
    struct wharf_orc_source source;
    uint32_t compression; /* one that wharf knows */
    uint32_t block_nbytes;
};

struct wharf_orc_blocks {
    const struct wharf_orc_bytes *of;
    uint64_t at; /* in the file, of the next block */
    uint64_t end;
    uint64_t block_at; /* of the last one */
    uint8_t *packed;   /* made when it is needed */
    size_t packed_avail;
};

/* The part at `offset`, which is within `of`.  Nothing is to be freed before the first _next.
 */
void wharf_orc_blocks_init(struct wharf_orc_blocks *blocks, const struct wharf_orc_bytes *of,
                           uint64_t offset, uint64_t nbytes);
void wharf_orc_blocks_deinit(struct wharf_orc_blocks *blocks);

/* Whether there is another block. */
static inline bool wharf_orc_blocks_have_more(const struct wharf_orc_blocks *blocks)
{
    return blocks->at < blocks->end;
}

/*
 * The next block, of which there is one, to `out`, which has room for the file's block size.  Of
 * *ret_error it fills all but where, stripe and column.
 */
int wharf_orc_blocks_next(struct wharf_orc_blocks *blocks, uint8_t *out, size_t *ret_nbytes,
                          struct wharf_orc_error *ret_error);

/* All of them at once: *ret_bytes is to be freed.  More than most_nbytes are refused. */
int wharf_orc_blocks_all(struct wharf_orc_blocks *blocks, size_t most_nbytes, uint8_t **ret_bytes,
                         size_t *ret_nbytes, struct wharf_orc_error *ret_error);

#endif
