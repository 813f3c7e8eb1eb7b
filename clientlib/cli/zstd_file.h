/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_file.h: decodes files of zstd frames of any length, in bounded memory and in this process;
 * a range of a file that has a seek table by the frames that hold it.
 */
#ifndef WHARF_CLI_ZSTD_FILE_H
#define WHARF_CLI_ZSTD_FILE_H

#include "clientlib/cli/container_pipe.h"
#include "clientlib/cli/task.h"

/* Decodes all of the input, or what holds the range, which the output keeps.  Returns the exit
 * status. */
int wharf_cli_zstd_decode(struct wharf_cli_task *task, struct wharf_cli_range range);

#endif
