/* SPDX-License-Identifier: Apache-2.0 */
/*
 * any_decode.h: decodes an input of any format that wharf knows: gzip, BGZF, zlib, zstd,
 * containers, and those of cpu_format.h.
 *
 * The first bytes tell the format, or the name or --codec where they cannot.  `cat`, `unpack` and
 * `test` are this with different outputs.
 */
#ifndef WHARF_CLI_ANY_DECODE_H
#define WHARF_CLI_ANY_DECODE_H

#include "clientlib/cli/container_pipe.h"
#include "clientlib/cli/task.h"
#include "encoders/source_kind.h"

/*
 * Decodes the input and writes the range of its output.
 * A remark mentions bytes after the end of a gzip or zlib stream.  A range that is not completely
 * within the output is a failure.  Returns the exit status; on failure a message was printed and
 * the tally has it.
 */
int wharf_cli_any_decode(struct wharf_cli_task *task, struct wharf_cli_range range);

/* Finds out the input's format, and refuses a terminal.  The input can then be read from its start.
 * Returns the exit status. */
int wharf_cli_any_detect(struct wharf_cli_task *task, enum wharf_source_kind *ret_kind);

/* Whether the input is standard input, named again after it was read to its end: it has nothing to
 * add, as with cat(1). */
bool wharf_cli_any_is_spent(const struct wharf_cli_task *task, enum wharf_source_kind kind);

/* Whether the input is certainly of another format, rather than a damaged file of one that wharf
 * reads.  Its first bytes can still be read. */
bool wharf_cli_any_is_foreign(struct wharf_cli_task *task);

/* Says that wharf does not read the input's format, and which format that is if it is a well-known
 * one.  Returns the exit status. */
int wharf_cli_any_tell_unknown(struct wharf_cli_task *task, enum wharf_source_kind kind);

#endif
