/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_stop.h: jobs that are cancelled or too late.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_DISPATCH_JOB_STOP_H
#define WHARF_DAEMON_DISPATCH_JOB_STOP_H

#include <stdint.h>

struct wharf_core;
struct wharf_job;
struct wharf_session;

/* Begins nothing more of a job, for this reason (WHARF_CANCELLED or WHARF_DEADLINE); completes it
 * if no engine has begun it. */
void wharf_core_stop_job(struct wharf_core *core, struct wharf_job *job, uint32_t result,
                         uint64_t now_ns);

/* Goes on with a session's cancel, for at most `budget` jobs; returns how much budget is left. */
uint32_t wharf_core_cancel_step(struct wharf_core *core, struct wharf_session *session,
                                uint32_t budget, uint64_t now_ns);

#endif
