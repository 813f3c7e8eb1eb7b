/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input_wide.h: reads much of a file at once, by several threads.  What takes the time is to copy
 * from the page cache, and to give fresh memory its pages.
 */
#ifndef WHARF_CLI_INPUT_WIDE_H
#define WHARF_CLI_INPUT_WIDE_H

#include "clientlib/cli/input_file.h"

/* Like wharf_cli_input_read_at, for files that can seek; n_threads: at most so many. */
int64_t wharf_cli_input_read_wide(struct wharf_cli_input *input, uint64_t offset, void *buf,
                                  size_t nbytes, unsigned n_threads);

#endif
