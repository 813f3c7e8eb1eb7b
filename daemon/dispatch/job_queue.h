/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_queue.h: jobs that were taken and found good, into the queues.
 *
 * Under the core lock, or by the worker that has the session to itself.
 */
#ifndef WHARF_DAEMON_DISPATCH_JOB_QUEUE_H
#define WHARF_DAEMON_DISPATCH_JOB_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_core;
struct wharf_job;
struct wharf_session;
struct wharf_submission;

/* Chooses the job's lane, sets its deadline, which counts from when it was taken, and queues it. */
void wharf_core_queue_job(struct wharf_core *core, struct wharf_job *job, uint64_t now_ns);

/* The same without queuing it. */
void wharf_core_ready_job(struct wharf_core *core, struct wharf_job *job, uint64_t now_ns);

/* Whether such a job, if it is for the CPU and has no file, may be a worker's without the lock
 * (lease.h); and that it is. */
bool wharf_job_may_be_plain(const struct wharf_session *session,
                            const struct wharf_submission *submission);
void wharf_job_set_plain(struct wharf_job *job);

#endif
