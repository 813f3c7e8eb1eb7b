/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_stop.h: stops jobs that are cancelled or late.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_DISPATCH_JOB_STOP_H
#define WHARF_DAEMON_DISPATCH_JOB_STOP_H

#include <stdint.h>

struct wharf_core;
struct wharf_job;
struct wharf_session;

/* Starts no more pieces of a job; result is WHARF_CANCELLED or WHARF_DEADLINE.  Completes the job
 * if no engine has started it. */
void wharf_core_stop_job(struct wharf_core *core, struct wharf_job *job, uint32_t result,
                         uint64_t now_ns);

/* Continues a session's cancel for at most `budget` jobs.  Returns the rest of the budget. */
uint32_t wharf_core_cancel_step(struct wharf_core *core, struct wharf_session *session,
                                uint32_t budget, uint64_t now_ns);

#endif
