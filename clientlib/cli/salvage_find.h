/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salvage_find.h: searches a damaged file for where decoding can begin again.
 */
#ifndef WHARF_CLI_SALVAGE_FIND_H
#define WHARF_CLI_SALVAGE_FIND_H

#include <stdbool.h>
#include <stdint.h>

#include "clientlib/cli/salvage_note.h"
#include "encoders/container_resume.h"

/* What wharf_cli_salvage_find looks for. */
enum wharf_cli_salvage_wanted {
    WHARF_CLI_WANTS_MEMBER = 1 << 0, /* a gzip member */
    WHARF_CLI_WANTS_BLOCK = 1 << 1,  /* a BGZF block */
    WHARF_CLI_WANTS_FRAME = 1 << 2,  /* a container's header */
};

struct wharf_cli_salvage_found {
    uint64_t offset;
    uint32_t kind;                      /* one of enum wharf_cli_salvage_wanted; 0: nothing */
    struct wharf_container_frame frame; /* of kind FRAME */
    const struct wharf_container_reader *reader; /* the one that it fits, or NULL */
    bool has_bytes;                              /* not only zeros stand before it */
};

/*
 * Searches from `offset` on.
 *   readers  of frames: two, of which NULL is none; only those count that can follow in the member
 *            of one, or begin a member; NULL in place of both: all count
 * Returns the exit status, WHARF_CLI_GOOD also if nothing was found.
 */
int wharf_cli_salvage_find(struct wharf_cli_salvage *salvage, uint64_t offset, unsigned wanted,
                           const struct wharf_container_reader *const readers[2],
                           struct wharf_cli_salvage_found *ret_found);

#endif
