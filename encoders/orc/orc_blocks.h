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

#include "encoders/orc/orc_error.h"
#include "encoders/orc/orc_format.h"

/* The source of a file's bytes.  `read` fills buf with the nbytes at `offset`, which are within the
 * file.  It returns 0 or -errno; -ENODATA if the file has become shorter.  Any thread may call
 * it. */
struct wharf_orc_source {
    int (*read)(void *context, uint64_t offset, void *buf, size_t nbytes);
    void *context;
    uint64_t nbytes;
};

/* A file's bytes, with the compression that its postscript names. */
struct wharf_orc_bytes {
    struct wharf_orc_source source;
    uint32_t compression; /* checked: one that wharf can decode */
    uint32_t block_nbytes;
};

/* A block, or without compression a piece of the part. */
struct wharf_orc_block {
    uint64_t at;   /* in the file, of its header */
    uint64_t body; /* likewise, of what follows it */
    size_t nbytes; /* of that */
    bool is_plain;
};

/* Room for compressed bytes, made when it is needed.  All zeros at first. */
struct wharf_orc_scratch {
    uint8_t *bytes;
    size_t avail;
};

struct wharf_orc_blocks {
    const struct wharf_orc_bytes *of;
    uint64_t at; /* offset in the file of the next block */
    uint64_t end;
    uint64_t block_at;    /* of the last one */
    uint64_t lost_nbytes; /* of blocks that hold far less than they take */
    struct wharf_orc_scratch packed;
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
 * The next block, of which there is one, to `out`, which has room for the file's block size.  Of
 * *ret_error it fills all but where, stripe and column.
 *
 * Who reads a part does so in time that what it gets bounds: blocks that hold next to nothing,
 * which no writer makes, are refused after some.
 */
int wharf_orc_blocks_next(struct wharf_orc_blocks *blocks, uint8_t *out, size_t *ret_nbytes,
                          struct wharf_orc_error *ret_error);

/* The block at `at`, before `end`, of which only the header is read; */
int wharf_orc_block_find(const struct wharf_orc_bytes *of, uint64_t at, uint64_t end,
                         struct wharf_orc_block *ret_block, struct wharf_orc_error *ret_error);
/* and its bytes, decoded, as for _next. */
int wharf_orc_block_decode(const struct wharf_orc_bytes *of, const struct wharf_orc_block *block,
                           struct wharf_orc_scratch *scratch, uint8_t *out, size_t *ret_nbytes,
                           struct wharf_orc_error *ret_error);

/* All of them at once: *ret_bytes is to be freed.  More than most_nbytes are refused. */
int wharf_orc_blocks_all(struct wharf_orc_blocks *blocks, size_t most_nbytes, uint8_t **ret_bytes,
                         size_t *ret_nbytes, struct wharf_orc_error *ret_error);

#endif
