/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signal_files.h: unfinished files, which a signal that ends the command removes.
 */
#ifndef WHARF_CLI_SIGNAL_FILES_H
#define WHARF_CLI_SIGNAL_FILES_H

enum { WHARF_CLI_MAX_SIGNAL_FILES = 32 };

/* Removes this file if a signal ends the command, until _keep is called.  There is room for
 * WHARF_CLI_MAX_SIGNAL_FILES of them. */
void wharf_cli_remove_on_signal(const char *path);
void wharf_cli_keep_on_signal(const char *path);

#endif
