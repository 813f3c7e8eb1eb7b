/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_end.h: sessions are had alone, drain and end.
 *
 * Under the core lock, unless they say otherwise.
 */
#ifndef WHARF_DAEMON_DISPATCH_SESSION_END_H
#define WHARF_DAEMON_DISPATCH_SESSION_END_H

#include <stdbool.h>

#include "daemon/core/session.h"

struct wharf_core;
struct wharf_gpu_memory;

/* Takes nothing more; the news is IS_DRAINED, once.  False: a worker that is blocked has it. */
bool wharf_core_drain_session(struct wharf_core *core, struct wharf_session *session);

/* Sees to it that no worker has the session to itself, until it is let go; gives up the lock
 * meanwhile.  False: a worker has it that is blocked; it is not to be let go. */
bool wharf_core_recall(struct wharf_core *core, struct wharf_session *session);
static inline void wharf_core_let_go(struct wharf_session *session)
{
    session->n_recalls--;
}

/* Takes the lock so that no worker has the session to itself, for a change of its regions or
 * models.  0; or -ETIME without the lock: a worker has it that is blocked. */
int wharf_core_enter_alone(struct wharf_core *core, struct wharf_session *session);
void wharf_core_leave_alone(struct wharf_core *core, struct wharf_session *session);

/* A region or model is taken away from the session, with `use` that it was charged: leaves there
 * what is to be given back when its segment is freed.  Under the lock. */
void wharf_core_part_with(struct wharf_core *core, struct wharf_session *session,
                          struct wharf_gpu_memory *memory, struct wharf_use *use);

/* Ends all leases that there are, of that tenant unless it is NULL, one after the other, but for
 * those of workers that are blocked: what was done is counted then.  For any thread. */
void wharf_core_recall_all(struct wharf_core *core, const struct wharf_tenant *tenant);

/* Its client is told, in D, not to go on with its arena.  Without the lock. */
void wharf_core_revoke_session(struct wharf_core *core, struct wharf_session *session);

/* The session is over: nothing more is published.  The news is IS_FREE, once.  Without the lock. */
void wharf_core_kill_session(struct wharf_core *core, struct wharf_session *session);

/* The rest of a dead session's end, when no worker has it to itself. */
void wharf_core_retire_session(struct wharf_core *core, struct wharf_session *session);

#endif
