/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon_decode.h: decodes one stream in memory as one job of the daemon.
 *
 * The size of the output is not known before: the job is tried with more and more room until the
 * output fits, or until the daemon's limits allow no more.
 */
#ifndef WHARF_CLI_DAEMON_DECODE_H
#define WHARF_CLI_DAEMON_DECODE_H

#include "clientlib/cli/task.h"
#include "clientlib/wharf.h"

struct wharf_cli_daemon_decode {
    struct wharf_cli_task *task;
    uint32_t codec;
    uint32_t parameter;
    const void *model; /* to be registered and used in place of `parameter`; or NULL */
    size_t model_nbytes;
    const uint8_t *in; /* NULL: the rest of task->input from `offset` on, which can seek */
    uint64_t offset;
    size_t in_nbytes;
    uint64_t most_nbytes; /* of output: more is not wanted, or not possible */
    bool is_exact;        /* the output has exactly most_nbytes */
    bool discards;        /* the output is not wanted, where the daemon can do without it */

    /* The result. */
    struct wharf_outcome outcome;
    const uint8_t *out; /* the output, until _deinit; NULL: it was discarded */

    bool is_unreadable;   /* for daemon_decode.c: the input gave an error */
    struct wharf_job job; /* for daemon_decode.c; initialize it to WHARF_JOB_INIT */
};

/*
 * Returns WHARF_CLI_GOOD: there is an outcome, good or bad; WHARF_CLI_GO_ON: the daemon could not
 * decode it, and this process may; or the exit status, after a message.
 */
int wharf_cli_daemon_decode(struct wharf_cli_daemon_decode *decode);

void wharf_cli_daemon_decode_deinit(struct wharf_cli_daemon_decode *decode);

#endif
