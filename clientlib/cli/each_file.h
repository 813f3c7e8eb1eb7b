/* SPDX-License-Identifier: Apache-2.0 */
/*
 * each_file.h: what commands do that make one file of each of their inputs.
 *
 * A failure with one input does not keep the next ones from being worked on; the exit status is
 * that of the first failure.
 */
#ifndef WHARF_CLI_EACH_FILE_H
#define WHARF_CLI_EACH_FILE_H

#include "clientlib/cli/task.h"

struct wharf_cli_each {
    const struct wharf_cli_command *command;
    const struct wharf_cli_options *options;
    struct wharf_cli_service *service; /* of commands that decode, else NULL */
    const void *own;
    /*
     * What an input's output is called if nobody says, "-" for standard output: from malloc.  NULL
     * after saying why there is no such name, or with *ret_error -ENOMEM.
     */
    char *(*default_name)(const void *own, const char *in_path, int *ret_error);
    /* Does the work of a task whose files are open; the exit status. */
    int (*work)(struct wharf_cli_task *task, const void *own);
};

/*
 * Works on the inputs that are named, or on standard input if none is, and prints the report if
 * that was asked for.  Two inputs whose outputs would have the same name, or --output beside
 * several inputs, are refused before anything is done.  Returns the command's exit status.
 */
int wharf_cli_each_file(const struct wharf_cli_each *each, char **paths, int n_paths);

#endif
