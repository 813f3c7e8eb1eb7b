/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_pipe.h: packs an input into a wharf container, chunks in parallel, in bounded memory.
 *
 * A slot holds whole chunks, about 1 MiB together or one if it is larger, and what they compress
 * to (never more than they are); pipeline.h says how many slots there are.
 */
#ifndef WHARF_CLI_PACK_PIPE_H
#define WHARF_CLI_PACK_PIPE_H

#include "clientlib/cli/pack_settings.h"
#include "clientlib/cli/task.h"

/* Packs all of the input: through the daemon, if the task has a service with one.  Returns the exit
 * status. */
int wharf_cli_pack_pipe(struct wharf_cli_task *task,
                        const struct wharf_cli_pack_settings *settings);

#endif
