/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake.h: which rings are looked at, and by which thread.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_DISPATCH_INTAKE_H
#define WHARF_DAEMON_DISPATCH_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_core;
struct wharf_session;

/* The session's client has sent packets, of which so many are counted now: look at its ring, which
 * is whole (wharf_session_ring_is_whole).  Returns whether there was need to. */
bool wharf_core_doorbell(struct wharf_core *core, struct wharf_session *session,
                         uint32_t n_packets);

/* Looks at some rings and at deadlines.  Returns whether something was in the rings. */
bool wharf_core_poll_rings(struct wharf_core *core);

/* Calls a sleeping thread of the CPU's, which counts as awake from now on; whether one is called.
 */
bool wharf_core_call_worker(struct wharf_core *core);

/* Before the lock is given back: no ring is overlooked, no work waits while somebody sleeps. */
void wharf_core_before_unlock(struct wharf_core *core);

#endif
