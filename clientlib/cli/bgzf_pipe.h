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

/*
 * Decodes the blocks that begin at `offset`, until something else comes.  Returns the exit
 * status; on WHARF_CLI_GOOD *ret_end is the offset up to which all is written, which can be read
 * again, and *ret_go_on whether the input is to be decoded as gzip from there: because something
 * that is no block stands there, or a block that does not keep its header's promise.
 */
int wharf_cli_bgzf_pipe(struct wharf_cli_task *task, uint64_t offset, uint64_t *ret_end,
                        bool *ret_go_on);

#endif
