/* SPDX-License-Identifier: Apache-2.0 */
/* orc_block.h: one compressed block of an ORC file (orc_format.h). */
#ifndef WHARF_ENCODERS_ORC_ORC_BLOCK_H
#define WHARF_ENCODERS_ORC_ORC_BLOCK_H

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

struct wharf_orc_team;

/* A file's bytes, with the compression that its postscript names. */
struct wharf_orc_bytes {
    struct wharf_orc_source source;
    uint32_t compression; /* checked: one that wharf can decode */
    uint32_t block_nbytes;
    struct wharf_orc_team *team; /* threads that decode blocks ahead (orc_team.h), or NULL */
};

/* A block; in a file without compression, a piece of a part. */
struct wharf_orc_block {
    uint64_t at;   /* offset in the file of its header */
    uint64_t body; /* offset in the file of the bytes behind the header */
    size_t nbytes; /* number of these bytes */
    bool is_plain;
};

/* A buffer for compressed bytes, allocated on first use.  Starts as zeros. */
struct wharf_orc_scratch {
    uint8_t *bytes;
    size_t avail;
};

/* Reads the header of the block at `at`; the part ends at `end`.  On failure it fills *ret_error
 * except for where, stripe and column. */
int wharf_orc_block_find(const struct wharf_orc_bytes *of, uint64_t at, uint64_t end,
                         struct wharf_orc_block *ret_block, struct wharf_orc_error *ret_error);
/* Reads and decodes the block into `out`, which has room for the file's block size. */
int wharf_orc_block_decode(const struct wharf_orc_bytes *of, const struct wharf_orc_block *block,
                           struct wharf_orc_scratch *scratch, uint8_t *out, size_t *ret_nbytes,
                           struct wharf_orc_error *ret_error);

#endif
