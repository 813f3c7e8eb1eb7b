/* SPDX-License-Identifier: Apache-2.0 */
/*
 * any_detect.h: which format an input has, and what is said of those that wharf does not read.
 *
 * The first bytes tell the format, or the name or --codec where they cannot.
 */
#ifndef WHARF_CLI_ANY_DETECT_H
#define WHARF_CLI_ANY_DETECT_H

#include <stdbool.h>

#include "clientlib/cli/task.h"
#include "encoders/source_kind.h"

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
