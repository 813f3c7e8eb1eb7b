/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease.h: a session that one worker has to itself for a while.
 *
 * Where all workers are busy and there are sessions for all of them, a worker takes a whole
 * session: all its jobs, its ring, and what they change.  Until the lease ends, which is after
 * 100 us, up to 300 us where there are many workers, or a chunk more, it takes submissions, decodes
 * them and publishes completions without the core lock; under it nothing is done for each chunk.
 * What was used is accounted for when it ends.
 *
 * A session can be leased if its jobs in flight are all plain (job->is_plain: one chunk, normal, no
 * deadline) and for the CPU, apart from those that engines have already.  While it lasts,
 * session->lease is set, and nobody else touches the session's ring, jobs and cancel, or changes
 * its regions, not even under the core lock, without recalling the lease first
 * (wharf_core_recall).  Its killer leaves the rest to the worker.
 *
 * Begin and end are called under the core lock, all else without it, by the worker.
 */
#ifndef WHARF_DAEMON_CPU_LEASE_H
#define WHARF_DAEMON_CPU_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/session_lease.h"

struct wharf_core;
struct wharf_session;

/*
 * Whether the worker has a session to itself from now on: one of the tenant whose turn it is on the
 * CPU, `job` being its first.  That is the session that it had last, if it is its turn, for a slice
 * in a row: outputs are written to the same memory again, which otherwise comes from another
 * processor's cache.
 */
bool wharf_lease_begin(struct wharf_core *core, struct wharf_lease *lease,
                       const struct wharf_job *job);

/* The next job as a piece; false: it is time to end.  now_ns: about now. */
bool wharf_lease_next(struct wharf_lease *lease, uint64_t now_ns, struct wharf_piece *ret_piece);

/* The piece is done: completes its job, and publishes that. */
void wharf_lease_done(struct wharf_lease *lease, const struct wharf_piece *piece);

/* Wakes the client, if that was put off. */
void wharf_lease_wake(struct wharf_lease *lease);

/* Takes what is in the ring, so that it is queued when the lease has ended. */
void wharf_lease_refill(struct wharf_lease *lease, uint64_t now_ns);

/* The end.  A piece that is in the middle, or NULL: it goes on as one of a session that nobody has
 * to himself. */
void wharf_lease_end(struct wharf_core *core, struct wharf_lease *lease,
                     struct wharf_piece *running);

#endif
