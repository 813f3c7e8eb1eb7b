/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs_decode.h: decodes one long stream of ORC's run lengths in pieces, several at a time.
 *
 * encoders/run_scan.h finds where runs begin; pieces of some 128 KiB of output go through a
 * pipeline, to the daemon in batches or to this process's threads, while the scan goes on.
 */
#ifndef WHARF_CLI_RUNS_DECODE_H
#define WHARF_CLI_RUNS_DECODE_H

#include "clientlib/cli/task.h"

struct wharf_cli_runs {
    uint32_t codec; /* one that wharf_run_scan_knows */
    uint32_t parameter;
    const uint8_t *in;
    size_t in_nbytes;
    uint8_t *out;
    size_t out_avail;
    bool is_exact; /* fail unless all of it is filled */
};

/* From so many bytes of input on it pays. */
enum { WHARF_CLI_RUNS_MIN_NBYTES = 128 << 10 };

/*
 * Decodes all of it, with the outcome that a single job would have; of a bad stream the output is
 * undefined.  Adds the engines to the tally.  Returns WHARF_CLI_GOOD with *ret_outcome filled, or
 * the exit status after saying what went wrong besides the data.
 */
int wharf_cli_runs_decode(struct wharf_cli_task *task, const struct wharf_cli_runs *runs,
                          struct wharf_outcome *ret_outcome);

#endif
