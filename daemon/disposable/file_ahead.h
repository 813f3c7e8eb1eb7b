/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_ahead.h: what to read of a file before jobs ask for it.
 *
 * The ranges of three jobs, one behind the other, make a *sequence*.  Then the process has the
 * kernel read the next steps of the file into the page cache, up to a window beyond the sequence's
 * end.  So nothing that is read ahead is ever older than what a job's own read finds, and none of
 * our memory is needed.  A seek, the file's end and its closing end the sequence, and what was read
 * in vain is counted as waste.
 *
 * Several threads read, so ranges may come somewhat out of order.
 */
#ifndef WHARF_DAEMON_DISPOSABLE_FILE_AHEAD_H
#define WHARF_DAEMON_DISPOSABLE_FILE_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/file_protocol.h"

/* Of one file.  All zero: nothing is known. */
struct wharf_file_ahead {
    uint32_t file;       /* the number for which this stands */
    uint32_t n_in_order; /* jobs of the sequence, each behind the one before */
    uint64_t begin, end; /* of the sequence */
    uint64_t size;       /* of the file; 0: not known yet */
    uint64_t at;         /* number of the step to be read next */
    uint64_t first;      /* bit i of `steps` is step first + i: read ahead, and not used */
    uint64_t steps;
};

/* A range is about to be read, by a request for READ or STAGE.  Counts hits and waste. */
void wharf_file_ahead_note(struct wharf_file_ahead *ahead, const struct wharf_file_request *request,
                           struct wharf_file_counts *counts);

/* The step to be read next, within a window of at most WHARF_FILE_MOST_AHEAD_NBYTES; false: there
 * is none now.  While the file's size is not known, nothing may begin. */
bool wharf_file_ahead_next(const struct wharf_file_ahead *ahead, uint64_t window_nbytes,
                           uint64_t *ret_step);

/* Begins to have that step read.  Returns which sequence that is for. */
struct wharf_file_ahead wharf_file_ahead_begin(struct wharf_file_ahead *ahead, uint64_t step);

/* The kernel reads that step now, or need not, or does not.  Jobs may have come for it meanwhile,
 * or another sequence may have begun, of another file too. */
void wharf_file_ahead_end(struct wharf_file_ahead *ahead, const struct wharf_file_ahead *begun,
                          uint64_t step, bool is_read, struct wharf_file_counts *counts);

/* Nothing more is to be read ahead. */
void wharf_file_ahead_drop(struct wharf_file_ahead *ahead, struct wharf_file_counts *counts);

#endif
