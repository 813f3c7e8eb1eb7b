/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally.h: what a command did: the counts and the first failure that --report tells.
 *
 * A failure is noted once, the first one, which also decides the exit status; those of further
 * files are only said.
 */
#ifndef WHARF_CLI_TALLY_H
#define WHARF_CLI_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "clientlib/cli/message.h"
#include "proto/wharf_job.h"
#include "proto/wharf_result.h"

struct wharf_cli_tally {
    int status;          /* enum wharf_cli_status: that of the first failure */
    uint32_t result;     /* enum wharf_result; of what is not about data: see system_error */
    uint32_t reason;     /* enum wharf_reason */
    uint64_t bit_offset; /* where in the input the failure stands */
    int system_error;    /* errno of a failure of the system, or 0 */
    const char *input;   /* name of the input with the failure, or NULL */
    uint32_t engines;    /* bits 1 << enum wharf_engine: what decoded */
    bool through_daemon; /* some of it */
    uint64_t in_nbytes;  /* consumed */
    uint64_t out_nbytes; /* delivered */
    uint64_t n_chunks;
    bool is_unverified; /* output by an index without checksums */
    bool is_salvage;    /* the next three are of the report */
    uint64_t n_bad_places;
    uint64_t n_doubtful; /* bytes of the output */
    uint64_t n_zeros;    /* bytes of the output that stand for what is lost */
    uint64_t start_ns;
};

/* Starts the clock. */
void wharf_cli_tally_init(struct wharf_cli_tally *tally);

/* Notes a failure in data (or in a request about it). */
void wharf_cli_tally_outcome(struct wharf_cli_tally *tally, const char *input, uint32_t result,
                             uint32_t reason, uint64_t bit_offset);

/* Notes a failure of the system, -errno, with its exit status, which it returns. */
int wharf_cli_tally_failure(struct wharf_cli_tally *tally, const char *input, int error,
                            int status);

/* The same with WHARF_CLI_FAILED. */
int wharf_cli_tally_error(struct wharf_cli_tally *tally, const char *input, int error);

/* Writes the line of JSON to standard error. */
void wharf_cli_tally_report(const struct wharf_cli_tally *tally);

#endif
