/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_words.h: the words by which streams and jobs wait for each other, as far as the library
 * writes and reads them.
 *
 * The daemon writes a job's done word before it publishes the completion.  The library writes what
 * the daemon did not: because it is too old, had no memory there, or is gone for good.  A word that
 * is set is never taken back: its job has ended, and is not submitted again.  Start words are the
 * streams' to write and the daemon's to read.  Guarded by the handle's lock.
 */
#ifndef WHARF_CLIENT_JOB_WORDS_H
#define WHARF_CLIENT_JOB_WORDS_H

#include "clientlib/job_table.h"
#include "proto/wharf_result.h"

struct wharf;

/* What a job or a batch says of its words. */
struct wharf_client_wanted_words {
    struct wharf_done *done;
    const uint64_t *start;
    uint32_t done_serial;
    uint32_t start_serial;
    uint32_t start_timeout_us;
};

/*
 * wharf_client_words_find: what the ring has of them.  Returns 0, -EOPNOTSUPP (no daemon that knows
 * them), -EINVAL (a done word not at a multiple of 64 bytes, or set for that serial number) or
 * -EFAULT, with a message.
 */
int wharf_client_words_find(struct wharf *wharf, const struct wharf_client_wanted_words *wanted,
                            struct wharf_client_words *ret_words);

/* wharf_client_done_tell: the job ends like this; its word, if it has one that is not set, tells.
 */
void wharf_client_done_tell(const struct wharf_client_job *job,
                            const struct wharf_completion *completion);

/*
 * wharf_client_done_read: whether the job has ended by its word, and with which completion.  When
 * no process of a dead daemon's can write it any more.
 */
int wharf_client_done_read(const struct wharf_client_job *job,
                           struct wharf_completion *ret_completion);

/* wharf_client_done_lose: no daemon could be had in time, or none will be: streams wait no longer
 * for jobs in flight.  Such jobs end as their words say, when it is known that nobody runs them. */
void wharf_client_done_lose(struct wharf *wharf, uint16_t reason);

#endif
