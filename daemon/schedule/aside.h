/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aside.h: what is done beside jobs, and what that costs a session.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_SCHEDULE_ASIDE_H
#define WHARF_DAEMON_SCHEDULE_ASIDE_H

#include <stdint.h>

struct wharf_core;
struct wharf_session;

/* Taking and completing what is no job, an operation that does nothing or what is refused: 25 ns
 * where all is in this processor's cache, but what the client wrote is in another's. */
#define WHARF_FRONT_ASIDE_NS 150u
/* Taking, queueing, finding and completing a job that nobody begins. */
#define WHARF_FRONT_UNBEGUN_NS 300
/* What is done at once and queues nothing counts as so many submissions that are taken, where there
 * are jobs for everybody: who sends nothing else would have as much of the time between two pieces
 * as it likes. */
#define WHARF_FRONT_ASIDE_PRICE 8

/* What was done for a session beside its jobs, in time of a processor. */
void wharf_core_charge_aside(struct wharf_core *core, struct wharf_session *session,
                             int64_t used_ns);

#endif
