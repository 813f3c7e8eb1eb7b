/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unqueued_work.h: charges a session for work that never enters a queue: no-ops, cancels, refusals,
 * and jobs that end before they begin.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_SCHEDULE_UNQUEUED_WORK_H
#define WHARF_DAEMON_SCHEDULE_UNQUEUED_WORK_H

#include <stdint.h>

struct wharf_core;
struct wharf_session;

/* Taking and completing an operation that does nothing, or a refused submission.  It takes 25 ns
 * where everything is in this processor's cache; here the client has written on another one. */
#define WHARF_UNQUEUED_NS 150u
/* Taking, queueing, finding and completing a job that no engine begins. */
#define WHARF_UNBEGUN_NS 300
/* A look at the rings takes a bounded number of submissions.  While other sessions have jobs, each
 * unqueued operation counts as so many of them; otherwise a client that sends nothing else could
 * fill the time between two pieces. */
#define WHARF_UNQUEUED_PRICE 8

/* Charges a session for processor time that was spent outside its jobs. */
void wharf_core_charge_unqueued(struct wharf_core *core, struct wharf_session *session,
                                int64_t used_ns);

#endif
