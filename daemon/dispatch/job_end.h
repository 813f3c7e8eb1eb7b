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
 * wharf_core_end_job: a job that is in no queue and that no engine has a piece of ends like this.
 * It is completed, or, while it owes a done word, goes to a worker that writes that: done_word.h.
 * Under the core lock.
 */
void wharf_core_end_job(struct wharf_core *core, struct wharf_job *job,
                        const struct wharf_job_end *end);

#endif
