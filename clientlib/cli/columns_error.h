/* SPDX-License-Identifier: Apache-2.0 */
/* columns_error.h: how failures of ORC files are told. */
#ifndef WHARF_CLI_COLUMNS_ERROR_H
#define WHARF_CLI_COLUMNS_ERROR_H

#include "clientlib/cli/task.h"
#include "encoders/orc/orc_file.h"

/* Says what is wrong with the input, where and why, and notes it.  `file` gives the name of the
 * column, and may be NULL.  Returns the exit status. */
int wharf_cli_columns_fail(struct wharf_cli_task *task, const struct wharf_orc_file *file,
                           const struct wharf_orc_error *error);

#endif
