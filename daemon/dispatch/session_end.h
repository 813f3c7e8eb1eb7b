/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_end.h: recalls leases, and drains and ends sessions.
 *
 * Under the core lock, unless a function says otherwise.
 */
#ifndef WHARF_DAEMON_DISPATCH_SESSION_END_H
#define WHARF_DAEMON_DISPATCH_SESSION_END_H

#include <stdbool.h>

#include "daemon/core/session.h"

struct wharf_core;
struct wharf_gpu_memory;

/* Drains the session: it takes nothing more, and the news IS_DRAINED follows once.  False: a
 * blocked worker has a lease of it. */
bool wharf_core_drain_session(struct wharf_core *core, struct wharf_session *session);

/* Ends the session's lease, and prevents another one until wharf_core_let_go; releases the lock
 * meanwhile.  False: a blocked worker has the lease; do not call wharf_core_let_go then. */
bool wharf_core_recall(struct wharf_core *core, struct wharf_session *session);
static inline void wharf_core_let_go(struct wharf_session *session)
{
    session->n_recalls--;
}

/* Takes the lock and ends the session's lease, for a change of its regions or models.  0; or
 * -ETIME, without the lock, if a blocked worker has the lease. */
int wharf_core_enter_alone(struct wharf_core *core, struct wharf_session *session);
void wharf_core_leave_alone(struct wharf_core *core, struct wharf_session *session);

/* Removes a region or model with its charge, `use`, from the session.  Leaves in `use` what the
 * caller has to give back when the segment is freed.  Under the lock. */
void wharf_core_part_with(struct wharf_core *core, struct wharf_session *session,
                          struct wharf_gpu_memory *memory, struct wharf_use *use);

/* Ends all leases (of that tenant, unless it is NULL), one after the other, so that their work is
 * counted.  Skips those of blocked workers.  For any thread. */
void wharf_core_recall_all(struct wharf_core *core, const struct wharf_tenant *tenant);

/* Tells the client, in D, not to reuse its arena.  Without the lock. */
void wharf_core_revoke_session(struct wharf_core *core, struct wharf_session *session);

/* Kills the session: nothing more is published, and the news IS_FREE follows once.  Without the
 * lock. */
void wharf_core_kill_session(struct wharf_core *core, struct wharf_session *session);

/* The rest of a dead session's end, after its lease. */
void wharf_core_retire_session(struct wharf_core *core, struct wharf_session *session);

#endif
