/* SPDX-License-Identifier: Apache-2.0 */
/*
 * each_file.h: for commands that make one output file of each input: pack, unpack and index.
 *
 * After a failure the command goes on with the next input; its exit status is that of the first
 * failure.
 */
#ifndef WHARF_CLI_EACH_FILE_H
#define WHARF_CLI_EACH_FILE_H

#include <stdbool.h>

#include "clientlib/cli/task.h"

struct wharf_cli_each {
    const struct wharf_cli_command *command;
    const struct wharf_cli_options *options;
    struct wharf_cli_service *service; /* of commands that decode, else NULL */
    /* Of ratio and speed outputs are the uncompressed side, the compressed one, or neither. */
    enum { WHARF_CLI_UNPACKS, WHARF_CLI_PACKS, WHARF_CLI_INDEXES } does;
    const void *own;
    /*
     * The name of an input's output where no option gives one; "-" is standard output.  The caller
     * frees it.  NULL: there is none, or *ret_error is -ENOMEM.
     */
    char *(*default_name)(const void *own, const char *in_path, int *ret_error);
    /* Says why there is none, when the input's turn comes. */
    void (*say_no_name)(const void *own, const char *in_path);
    /* Works on one input; the task's files are open.  Returns the exit status. */
    int (*work)(struct wharf_cli_task *task, const void *own);
};

/*
 * Works on the named inputs, or on standard input if none is named, and prints the report if it was
 * asked for.  Refuses two inputs whose outputs would be one file, an output that would replace
 * another input, and --output with several inputs, before it does anything.  Returns the command's
 * exit status.
 */
int wharf_cli_each_file(const struct wharf_cli_each *each, char **paths, int n_paths);

#endif
