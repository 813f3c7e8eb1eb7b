/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake.h: polls rings, and ensures that some thread always does.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_DISPATCH_INTAKE_H
#define WHARF_DAEMON_DISPATCH_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_core;
struct wharf_session;

/* A doorbell: the client has sent n_packets.  Polls its ring, which must be whole
 * (wharf_session_ring_is_whole).  Returns whether that was necessary. */
bool wharf_core_doorbell(struct wharf_core *core, struct wharf_session *session,
                         uint32_t n_packets);

/* Polls some rings and checks deadlines.  Returns whether the rings had submissions. */
bool wharf_core_poll_rings(struct wharf_core *core);

/* Wakes a sleeping CPU thread, which now counts as awake.  Returns whether there was one. */
bool wharf_core_call_worker(struct wharf_core *core);

/* Called before each unlock: ensures that no ring is overlooked, and that no work waits while a
 * worker sleeps. */
void wharf_core_before_unlock(struct wharf_core *core);

#endif
