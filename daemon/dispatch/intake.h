/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake.h: which rings are looked at, and by which thread.
 *
 * Under the front lock.
 */
#ifndef WHARF_DAEMON_DISPATCH_INTAKE_H
#define WHARF_DAEMON_DISPATCH_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_front;
struct wharf_session;

/* The session's client has sent packets, of which so many are counted now: look at its ring, which
 * is whole (wharf_session_ring_is_whole).  Returns whether there was need to. */
bool wharf_front_rung(struct wharf_front *front, struct wharf_session *session, uint32_t n_packets);

/* Looks at some rings and at deadlines.  Returns whether something was in the rings. */
bool wharf_front_look(struct wharf_front *front);

/* Calls a sleeping thread of the CPU's, which counts as awake from now on; whether one is called.
 */
bool wharf_front_call_worker(struct wharf_front *front);

/* Before the lock is given back: no ring is overlooked, no work waits while somebody sleeps. */
void wharf_front_settle(struct wharf_front *front);

#endif
