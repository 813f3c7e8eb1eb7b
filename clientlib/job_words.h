/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_words.h: the library's part in the words by which streams and jobs wait for each other.
 *
 * The daemon writes a job's done word before it publishes the completion.  The library writes the
 * words that the daemon did not write: it is too old, the page was missing, or no daemon comes.  A
 * set word is final: its job has ended and is not resubmitted.  Streams write start words, and the
 * daemon reads them.  Guarded by the handle's lock.
 */
#ifndef WHARF_CLIENT_JOB_WORDS_H
#define WHARF_CLIENT_JOB_WORDS_H

#include "clientlib/job_table.h"
#include "proto/wharf_result.h"

struct wharf;

/* The members of a job or a batch that concern words. */
struct wharf_client_wanted_words {
    struct wharf_done *done;
    const uint64_t *start;
    uint32_t done_serial;
    uint32_t start_serial;
    uint32_t start_timeout_us;
};

/*
 * wharf_client_words_find: makes the ring's entry for them.  Returns 0, -EOPNOTSUPP (no daemon that
 * knows them), -EINVAL (a done word not at a multiple of 64 bytes, or already set) or -EFAULT, with
 * a message.
 */
int wharf_client_words_find(struct wharf *wharf, const struct wharf_client_wanted_words *wanted,
                            struct wharf_client_words *ret_words);

/* wharf_client_done_tell: writes the job's done word, if it has one that is not set. */
void wharf_client_done_tell(const struct wharf_client_job *job,
                            const struct wharf_completion *completion);

/*
 * wharf_client_done_read: whether the job's word says that it has ended, and with which completion.
 * Call it when no process of a dead daemon can still write the word.
 */
int wharf_client_done_read(const struct wharf_client_job *job,
                           struct wharf_completion *ret_completion);

/* wharf_client_done_lose: sets the words of all jobs in flight, because no daemon came in time.
 * Such a job ends as its word says, when it is known that nobody runs it. */
void wharf_client_done_lose(struct wharf *wharf, uint16_t reason);

#endif
