/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h: one line on the terminal while long work runs.
 *
 * It shows once the work has lasted a second; it is drawn over itself a few times a second and
 * wiped at the end and before every message.  One thread moves it (the one that writes output).
 */
#ifndef WHARF_CLI_PROGRESS_H
#define WHARF_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Starts over for a file of total_nbytes (0 when that is not known).  `name` is kept, not
 * copied. */
void wharf_cli_progress_start(const char *name, uint64_t total_nbytes, bool is_shown);

/* Says how far the work is: done_nbytes of the total, and of what is not compressed
 * unpacked_nbytes. */
void wharf_cli_progress_move(uint64_t done_nbytes, uint64_t unpacked_nbytes);

/* Wipes the line; the next move draws it again. */
void wharf_cli_progress_hide(void);

/* Wipes the line for good. */
void wharf_cli_progress_end(void);

#endif
