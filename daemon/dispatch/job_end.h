/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_end.h: how jobs end.
 */
#ifndef WHARF_DAEMON_DISPATCH_JOB_END_H
#define WHARF_DAEMON_DISPATCH_JOB_END_H

struct wharf_core;
struct wharf_job;
struct wharf_job_end;

/*
 * wharf_core_end_job: ends a job that is in no queue and of which no engine has a piece.  The job
 * is completed, or goes to a worker first if it owes a done word: done_word.h.  Under the core
 * lock.
 */
void wharf_core_end_job(struct wharf_core *core, struct wharf_job *job,
                        const struct wharf_job_end *end);

#endif
