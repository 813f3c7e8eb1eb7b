/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_end.c: recalls leases, and drains and ends sessions.
 *
 * A session can be changed only while no worker has a lease of it.  So each operation first recalls
 * the lease, and n_recalls keeps workers from taking another one.  A worker that is blocked in the
 * client's memory cannot give its lease back: then the operation fails, or leaves its rest to the
 * worker.
 */
#include "daemon/dispatch/session_end.h"

#include <sched.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/activity.h"
#include "daemon/core/core.h"
#include "daemon/core/session.h"
#include "daemon/core/session_events.h"
#include "daemon/core/session_lease.h"
#include "daemon/core/totals.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/job_pieces.h"
#include "daemon/dispatch/job_stop.h"
#include "daemon/dispatch/suspend.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/place.h"

/* Jobs of a dead session that are dropped under one hold of the lock. */
#define MOST_FORGOTTEN 256

bool wharf_core_drain_session(struct wharf_core *core, struct wharf_session *session)
{
    if (session->state != WHARF_SESSION_LIVE)
        return true;
    if (!wharf_core_recall(core, session))
        return false;
    wharf_core_let_go(session);
    if (session->state != WHARF_SESSION_LIVE)
        return true;
    session->state = WHARF_SESSION_DRAINING;
    wharf_core_unwatch(core, session);
    session->ring_flags |= WHARF_RING_DRAINING;
    wharf_ring_store_flags(&session->ring.d->flags, session->ring_flags);
    /* The whole ring, since nobody polls it later. */
    if (session->cancel.is_under_way)
        wharf_core_cancel_step(core, session, session->ring.n_entries, wharf_now_ns());
    if (session->n_in_flight == 0)
        wharf_core_tell_loop(core, session);
    return true;
}

void wharf_core_revoke_session(struct wharf_core *core, struct wharf_session *session)
{
    wharf_core_enter(core);
    session->ring_flags |= WHARF_RING_FORFEITED;
    wharf_ring_store_flags(&session->ring.d->flags, session->ring_flags);
    wharf_core_leave(core);
}

bool wharf_core_recall(struct wharf_core *core, struct wharf_session *session)
{
    session->n_recalls++;
    while (session->lease && !session->lease->is_blocked) {
        wharf_lease_revoke(session->lease);
        wharf_core_leave(core);
        sched_yield();
        wharf_core_enter(core);
        /* No other thread does that meanwhile. */
        wharf_core_watch_over(core, wharf_now_ns());
    }
    if (session->lease)
        session->n_recalls--;
    return !session->lease;
}

int wharf_core_enter_alone(struct wharf_core *core, struct wharf_session *session)
{
    wharf_core_enter(core);
    if (wharf_core_recall(core, session))
        return 0;
    wharf_core_leave(core);
    return -ETIME;
}

void wharf_core_leave_alone(struct wharf_core *core, struct wharf_session *session)
{
    wharf_core_let_go(session);
    wharf_core_leave(core);
}

void wharf_core_part_with(struct wharf_core *core, struct wharf_session *session,
                          struct wharf_gpu_memory *memory, struct wharf_use *use)
{
    wharf_use_subtract(&session->use, use);
    /* The GPU's thread returns the charge when it has released the memory. */
    if (wharf_gpu_memory_drop(core, memory, use))
        *use = (struct wharf_use){.n_jobs = 0};
}

static struct wharf_session *first_leased(const struct wharf_core *core,
                                          const struct wharf_tenant *tenant)
{
    WHARF_LIST_FOR(link, &core->leases)
    {
        struct wharf_lease *lease = WHARF_LIST_ENTRY(link, struct wharf_lease, link);
        if (!lease->is_blocked && (!tenant || lease->session->tenant == tenant))
            return lease->session;
    }
    return NULL;
}

void wharf_core_recall_all(struct wharf_core *core, const struct wharf_tenant *tenant)
{
    /* Other leases may begin meanwhile. */
    for (uint32_t n = 0; n < core->workers.n_workers; n++) {
        struct wharf_session *session = first_leased(core, tenant);
        if (!session)
            return;
        /* The session may end meanwhile; then the loop thread frees it. */
        session->n_pins++;
        if (wharf_core_recall(core, session))
            wharf_core_let_go(session);
        session->n_pins--;
        wharf_core_release(core, session);
    }
}

void wharf_core_retire_session(struct wharf_core *core, struct wharf_session *session)
{
    if (session->home)
        wharf_lease_forget(session->home);
    wharf_list_remove(&session->publish_link);
    wharf_place_drop(core, session);
    core->nothing_fits = false;
    /* Keeps it from being released during the loop over its jobs. */
    session->n_pins++;
    for (uint32_t i = 0; i < session->ring.n_entries; i++) {
        wharf_core_forget_job(core, &session->jobs[i]);
        if (i % MOST_FORGOTTEN == MOST_FORGOTTEN - 1) {
            wharf_core_leave(core);
            wharf_core_enter(core);
        }
    }
    session->n_pins--;
    wharf_core_release(core, session);
}

void wharf_core_kill_session(struct wharf_core *core, struct wharf_session *session)
{
    wharf_core_enter(core);
    session->state = WHARF_SESSION_DEAD;
    wharf_core_unwatch(core, session);
    /* A leasing worker does the rest after its current chunk. */
    if (session->lease)
        wharf_lease_revoke(session->lease);
    else
        wharf_core_retire_session(core, session);
    wharf_core_leave(core);
}
