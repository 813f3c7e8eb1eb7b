/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon_decode.h: decodes one stream that is in memory as one job of the daemon.
 *
 * How long the output is, nobody knows before: it is tried with more and more room, until it fits
 * or the daemon takes no more in one job.
 */
#ifndef WHARF_CLI_DAEMON_DECODE_H
#define WHARF_CLI_DAEMON_DECODE_H

#include "clientlib/cli/task.h"
#include "clientlib/wharf.h"

struct wharf_cli_daemon_decode {
    struct wharf_cli_task *task;
    uint32_t codec;
    uint32_t parameter;
    const void *model; /* to be registered, in place of the parameter; or NULL */
    size_t model_nbytes;
    const uint8_t *in;
    size_t in_nbytes;
    uint64_t most_nbytes; /* of output; more is not wanted, or cannot be */
    bool is_exact;        /* there are just so many */

    /* What came of it. */
    struct wharf_outcome outcome;
    const uint8_t *out; /* the output, until _deinit */

    struct wharf_job job; /* its own: WHARF_JOB_INIT */
};

/*
 * Does it.  WHARF_CLI_GOOD: there is an outcome.  WHARF_CLI_GO_ON: the daemon could not, and this
 * process may.  Else the exit status, after saying what is wrong.
 */
int wharf_cli_daemon_decode(struct wharf_cli_daemon_decode *decode);

void wharf_cli_daemon_decode_deinit(struct wharf_cli_daemon_decode *decode);

#endif
