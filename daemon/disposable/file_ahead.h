/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_ahead.h: what to read of a file before jobs ask for it.
 *
 * The ranges of three jobs make a *sequence* if they lie one behind the other, and cover at least
 * half of what they span.  When reads of a sequence wait for their file again and again, since each
 * of its answers takes long and the kernel's own readahead is short, the process has the kernel
 * read the next steps of the file into the page cache, up to a window beyond the sequence's end. So
 * nothing that is read ahead is ever older than what a job's own read finds, and none of our memory
 * is needed.  A seek, the file's end and its closing end the sequence, and what was read in vain is
 * counted as waste.
 *
 * Many jobs can be in flight, whose reads overtake each other.
 */
#ifndef WHARF_DAEMON_DISPOSABLE_FILE_AHEAD_H
#define WHARF_DAEMON_DISPOSABLE_FILE_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/file_protocol.h"

/* Of one file.  All zero: nothing is known. */
struct wharf_file_ahead {
    uint32_t file;       /* the number for which this stands */
    uint32_t n_jobs;     /* of the sequence, each behind the one before */
    bool has_waited;     /* two of its reads did, for the file: it is to be read ahead */
    uint64_t wait_end;   /* of the last read that took long; 0: none has */
    uint64_t begin, end; /* of the sequence */
    uint64_t spanned_nbytes, asked_nbytes; /* of late: how much it went on, and was asked for */
    uint64_t size;                         /* of the file; 0: not known yet */
    uint64_t at;                           /* number of the step to be read next */
    uint64_t first; /* bit i of `steps` is step first + i: read ahead, and not used */
    uint64_t steps;
};

/* A range is about to be read, by a request for READ or STAGE.  Counts hits and waste. */
void wharf_file_ahead_note(struct wharf_file_ahead *ahead, const struct wharf_file_request *request,
                           struct wharf_file_counts *counts);

/* What has to be known of a read: how long it takes; and whether its thread waits, and not for a
 * processor, which costs more to find out, so that one that takes long makes those near it be
 * watched. */
enum wharf_file_watch { WHARF_FILE_WATCH_NONE, WHARF_FILE_WATCH_TIME, WHARF_FILE_WATCH_WAITS };

enum wharf_file_watch wharf_file_ahead_watch(const struct wharf_file_ahead *ahead,
                                             const struct wharf_file_request *request);

/* It took so long.  has_waited: false, too, where that was not watched. */
void wharf_file_ahead_took(struct wharf_file_ahead *ahead, const struct wharf_file_request *request,
                           uint64_t ns, bool has_waited);

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
