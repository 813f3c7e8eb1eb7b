/* SPDX-License-Identifier: Apache-2.0 */
/*
 * any_decode.h: decodes an input of any format that wharf knows: gzip, BGZF, zlib, zstd,
 * containers, and those of cpu_format.h.
 *
 * any_detect.h finds out which.  `cat`, `unpack` and `test` are this with different outputs.
 */
#ifndef WHARF_CLI_ANY_DECODE_H
#define WHARF_CLI_ANY_DECODE_H

#include "clientlib/cli/container_pipe.h"
#include "clientlib/cli/task.h"

/*
 * Decodes the input and writes the range of its output.
 * A remark mentions bytes after the end of a gzip or zlib stream.  A range that is not completely
 * within the output is a failure.  Returns the exit status; on failure a message was printed and
 * the tally has it.
 */
int wharf_cli_any_decode(struct wharf_cli_task *task, struct wharf_cli_range range);

#endif
