/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease.h: the exclusive use of a session by one worker for a short time.
 *
 * When all workers are busy and there are sessions for all of them, a worker takes a whole session:
 * its jobs, its ring, and the data that they change.  The lease lasts 100 us (up to 300 us with
 * many workers) and may overrun by a chunk.  The worker takes submissions, decodes them and
 * publishes completions without the core lock.  It accounts for everything at the end.
 *
 * A session can be leased if all its jobs in flight are plain (job->is_plain: one chunk, normal, no
 * deadline) and for the CPU, except those that engines already have.  During the lease
 * session->lease is set.  No other thread touches the session's ring, jobs or cancel, or changes
 * its regions, even under the core lock, before it recalls the lease (wharf_core_recall).  A thread
 * that kills the session leaves the rest to the worker.
 *
 * The worker calls all functions; begin and end under the core lock, all others without it.
 */
#ifndef WHARF_DAEMON_CPU_LEASE_H
#define WHARF_DAEMON_CPU_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/session_lease.h"

struct wharf_core;
struct wharf_session;

/*
 * Begins a lease, if possible: of a session of the tenant that is next on the CPU, whose first job
 * is `job`.  Prefers the worker's last session, for up to a slice in a row, because its outputs'
 * memory is in this processor's cache.
 */
bool wharf_lease_begin(struct wharf_core *core, struct wharf_lease *lease,
                       const struct wharf_job *job);

/* The next job as a piece; false: the lease has to end.  now_ns: roughly now. */
bool wharf_lease_next(struct wharf_lease *lease, uint64_t now_ns, struct wharf_piece *ret_piece);

/* Ends a piece: completes its job and publishes the completion. */
void wharf_lease_done(struct wharf_lease *lease, const struct wharf_piece *piece);

/* Wakes the client, if that was postponed. */
void wharf_lease_wake(struct wharf_lease *lease);

/* Takes the submissions in the ring, so that they are queued when the lease ends. */
void wharf_lease_refill(struct wharf_lease *lease, uint64_t now_ns);

/* Ends the lease.  `running` is a piece that goes on as an ordinary one, or NULL. */
void wharf_lease_end(struct wharf_core *core, struct wharf_lease *lease,
                     struct wharf_piece *running);

#endif
