/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submit.h: from a program's job to a queued one.  Guarded by the handle's lock.
 */
#ifndef WHARF_CLIENT_SUBMIT_H
#define WHARF_CLIENT_SUBMIT_H

#include "clientlib/job_table.h"
#include "clientlib/wharf.h"

/*
 * wharf_client_copy_job: a program's job in this version's form.  Returns 0, -EINVAL or -E2BIG,
 * with a message.
 */
int wharf_client_copy_job(struct wharf_job *to, const struct wharf_job *from);

/*
 * wharf_client_queue_job: makes and queues a job; only the caller takes the completion of a private
 * one.  Returns 0; or, with a message, -EAGAIN (all slots are in use) or -EFAULT (memory that the
 * ring cannot name).
 */
int wharf_client_queue_job(struct wharf *wharf, const struct wharf_job *own, int is_private,
                           struct wharf_client_job **ret_job);

/* Whether a job's output is to be discarded.  With flags that do not go with that it is a bad
 * request, of which the completion tells. */
static inline int wharf_client_discards(uint32_t flags)
{
    const uint32_t known = WHARF_JOB_KNOWN_FLAGS | WHARF_JOB_DISCARD;

    return flags & WHARF_JOB_DISCARD && !(flags & ~known);
}

/* wharf_client_check_compress: 0; or -EOPNOTSUPP if the flags are of a job that compresses, and the
 * daemon does not compress.  With the lock. */
int wharf_client_check_compress(struct wharf *wharf, uint32_t flags);

#endif
