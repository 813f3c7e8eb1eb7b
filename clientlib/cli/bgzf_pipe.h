/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bgzf_pipe.h: decodes BGZF with blocks decoded in parallel, in bounded memory.
 *
 * Output is written in order, and only after it is verified.  A slot holds 320 KiB of input and 1
 * MiB of output.  pipeline.h says how many slots there are.
 */
#ifndef WHARF_CLI_BGZF_PIPE_H
#define WHARF_CLI_BGZF_PIPE_H

#include "clientlib/cli/task.h"

/* What follows the blocks. */
enum wharf_cli_bgzf_next {
    WHARF_CLI_BGZF_END,   /* nothing, or bytes after an end-of-file block, which are ignored */
    WHARF_CLI_BGZF_GZIP,  /* a member that is no block, or not as its header says: decode all from
                             there on as gzip */
    WHARF_CLI_BGZF_OTHER, /* no gzip, and no end-of-file block before it: a block with a damaged
                             header, unless all of it is zeros */
};

/*
 * Decodes the blocks that begin at `offset`, until something else follows.  Returns the exit
 * status.  After WHARF_CLI_GOOD, output is written for all input up to *ret_end; the input can be
 * read again from there, and *ret_next says what it is.
 */
int wharf_cli_bgzf_pipe(struct wharf_cli_task *task, uint64_t offset, uint64_t *ret_end,
                        enum wharf_cli_bgzf_next *ret_next);

/* Warns that the input may have been cut off: it has no end-of-file marker. */
void wharf_cli_bgzf_mention_no_marker(const struct wharf_cli_task *task);

#endif
