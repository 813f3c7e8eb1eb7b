/* SPDX-License-Identifier: Apache-2.0 */
/*
 * activity.c: which sessions are watched, and the counts of active sessions and weights.
 *
 * A session is active while it is watched or has jobs that do not wait for start words, and for a
 * while afterwards (the list `stale`), so that a short pause does not change the shares of others.
 */
#include "daemon/core/activity.h"

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/session.h"
#include "daemon/core/tenant.h"

/* Sessions that stop being counted under one hold of the lock. */
#define MOST_EXPIRED 16
/* A session is called active for so long after it was: clients of a flood have to do something with
 * what they have got before they submit more. */
#define STALE_NS ((uint64_t)WHARF_NS_PER_MS)

static void count_active(struct wharf_core *core, struct wharf_session *session, bool is_active)
{
    struct wharf_tenant *tenant = session->tenant;

    if (is_active == session->activity.is_active)
        return;
    session->activity.is_active = is_active;
    if (is_active && tenant->n_active++ == 0) {
        tenant->active_weight = tenant->quota.weight;
        core->watching.active_weight += tenant->active_weight;
    } else if (!is_active && --tenant->n_active == 0) {
        core->watching.active_weight -= tenant->active_weight;
    }
}

void wharf_core_count_active(struct wharf_core *core, struct wharf_session *session)
{
    bool is_active = (session->activity.is_watched && !session->activity.lingers) ||
                     session->lease || session->n_in_flight > session->placing.n_held;

    wharf_list_remove(&session->activity.stale_link);
    if (session->state != WHARF_SESSION_LIVE)
        count_active(core, session, false);
    else if (is_active)
        count_active(core, session, true);
    else if (session->activity.is_active)
        wharf_list_append(&core->watching.stale, &session->activity.stale_link);
}

void wharf_core_drop_stale(struct wharf_core *core, uint64_t now_ns)
{
    for (unsigned n = 0; n < MOST_EXPIRED; n++) {
        struct wharf_session *session =
            WHARF_LIST_FIRST(&core->watching.stale, struct wharf_session, activity.stale_link);
        if (!session || now_ns - session->activity.active_ns < STALE_NS)
            return;
        wharf_list_remove(&session->activity.stale_link);
        count_active(core, session, false);
    }
}

void wharf_core_set_lingers(struct wharf_core *core, struct wharf_session *session, bool lingers)
{
    if (lingers == session->activity.lingers)
        return;
    session->activity.lingers = lingers;
    core->watching.n_lingering += lingers ? 1 : UINT32_MAX;
    wharf_core_count_active(core, session);
}

void wharf_core_watch(struct wharf_core *core, struct wharf_session *session, uint64_t now_ns)
{
    session->activity.active_ns = now_ns;
    wharf_core_set_lingers(core, session, false);
    if (session->activity.is_watched || session->state != WHARF_SESSION_LIVE)
        return;
    session->activity.is_watched = true;
    wharf_list_append(&core->watching.watched, &session->activity.watch_link);
    wharf_ring_daemon_disarm(&session->ring);
    wharf_core_count_active(core, session);
}

void wharf_core_unwatch(struct wharf_core *core, struct wharf_session *session)
{
    wharf_core_set_lingers(core, session, false);
    session->activity.is_watched = false;
    wharf_list_remove(&session->activity.watch_link);
    wharf_core_count_active(core, session);
}

bool wharf_core_has_plenty(const struct wharf_core *core)
{
    return core->workers.n_sleeping == 0 && core->workers.n_workers > 0 &&
           wharf_place_n_for_cpu(core) >= core->workers.n_workers;
}
