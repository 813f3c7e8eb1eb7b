/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reach.h: whether libwharf-preload can do anything for a program: it takes the place of functions
 * that the dynamic linker finds, and of nothing else.
 */
#ifndef WHARF_CLI_REACH_H
#define WHARF_CLI_REACH_H

#include <limits.h>
#include <stdbool.h>

struct wharf_cli_reach {
    char program[PATH_MAX]; /* what runs: of a script its interpreter */
    const char *obstacle;   /* why the library does not serve the program, or NULL */
    bool is_foreign;        /* it cannot even be loaded: the program is not to be asked */
};

/* Writes to ret_path where `name` is, as execvp would look for it.  Returns 0 or -errno. */
int wharf_cli_reach_find(const char *name, char ret_path[PATH_MAX]);

/* Looks at the program at `path`.  What it cannot read it takes for reachable.  Returns 0, or
 * -ELOOP for interpreters of interpreters without end. */
int wharf_cli_reach_look(const char *path, struct wharf_cli_reach *ret_reach);

#endif
