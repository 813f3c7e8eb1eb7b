/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_work.h: what the subcommands of `wharf rans` do with their input once that is in memory:
 * recoil_work.c what reads streams of the paper's program, rans_work.c the others.
 */
#ifndef WHARF_CLI_RANS_WORK_H
#define WHARF_CLI_RANS_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clientlib/cli/rans_file.h"
#include "clientlib/cli/task.h"

/* A model that is written beside the stream: named when both are complete, or neither is. */
struct wharf_cli_rans_beside {
    struct wharf_cli_output output;
    bool is_open; /* `output` is, and all is written to it */
};

/* The options of all subcommands together. */
struct wharf_cli_rans_settings {
    const char *cdf; /* NULL when not given */
    const char *indexes;
    const char *model;
    int64_t n_bits; /* 0 when not given */
    int64_t n_splits;
    uint32_t symbol_nbytes;
    bool json;
    struct wharf_cli_rans_beside *beside;
};

/* Does the work, and writes the output.  Returns the exit status (enum wharf_cli_status), after
 * something wrong with a message and the tally filled. */
typedef int wharf_cli_rans_work_fn(struct wharf_cli_task *task,
                                   const struct wharf_cli_rans_settings *settings,
                                   const struct wharf_cli_rans_bytes *in);

wharf_cli_rans_work_fn wharf_cli_rans_decode;
wharf_cli_rans_work_fn wharf_cli_rans_import;
wharf_cli_rans_work_fn wharf_cli_rans_thin;
wharf_cli_rans_work_fn wharf_cli_rans_info;
wharf_cli_rans_work_fn wharf_cli_rans_encode;

/* ---- for these ----------------------------------------------------------------------------- */

/* Writes the whole output. */
int wharf_cli_rans_deliver(struct wharf_cli_task *task, const uint8_t *data, size_t nbytes);

/* Writes a result beside the output, to settings->beside: not over what was read, and not to the
 * output's own name. */
int wharf_cli_rans_write_file(struct wharf_cli_task *task,
                              const struct wharf_cli_rans_settings *settings, const char *path,
                              const uint8_t *data, size_t nbytes);

/* Says so.  Returns the exit status, as the others. */
int wharf_cli_rans_out_of_memory(struct wharf_cli_task *task);

/* The input is bad, by enum wharf_result and enum wharf_reason, at this bit of it. */
int wharf_cli_rans_fault(struct wharf_cli_task *task, uint32_t result, uint32_t reason,
                         uint64_t bit);

#endif
