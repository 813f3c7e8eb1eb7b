/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bgzf_pipe.h: decodes BGZF, blocks in parallel, in bounded memory.
 *
 * Output is written in order and only once it was verified.  Memory: a slot holds 320 KiB of
 * input and 1 MiB of output; pipeline.h says how many slots there are.
 */
#ifndef WHARF_CLI_BGZF_PIPE_H
#define WHARF_CLI_BGZF_PIPE_H

#include "clientlib/cli/task.h"

/* What stands behind the blocks. */
enum wharf_cli_bgzf_next {
    WHARF_CLI_BGZF_END,   /* nothing, or what is left alone behind an end-of-file block */
    WHARF_CLI_BGZF_GZIP,  /* a member that is no block, or does not keep its header's promise: all
                             from there on is to be decoded as gzip */
    WHARF_CLI_BGZF_OTHER, /* no gzip, and no end-of-file block stands before it: a block whose
                             beginning is damaged, unless all of it is zeros */
};

/*
 * Decodes the blocks that begin at `offset`, until something else comes.  Returns the exit
 * status; on WHARF_CLI_GOOD *ret_end is the offset up to which all is written, which can be read
 * again, and *ret_next what stands there.
 */
int wharf_cli_bgzf_pipe(struct wharf_cli_task *task, uint64_t offset, uint64_t *ret_end,
                        enum wharf_cli_bgzf_next *ret_next);

/* Says that the input can have been longer. */
void wharf_cli_bgzf_mention_no_marker(const struct wharf_cli_task *task);

#endif
