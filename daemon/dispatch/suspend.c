/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspend.c: suspends tenants whose memory blocks workers.
 *
 * A suspended tenant is taken out of all turns; its jobs stay queued.  The suspension lasts while a
 * worker is blocked, and as long again afterwards if others have work.  So a tenant that blocks
 * workers loses at least the time that it takes from others.
 */
#include "daemon/dispatch/suspend.h"

#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/queues.h"
#include "daemon/core/retry_queue.h"
#include "daemon/schedule/sched.h"

static bool is_alone(const struct wharf_core *core, const struct wharf_tenant *tenant)
{
    return core->watching.active_weight == (tenant->n_active ? tenant->active_weight : 0);
}

static void resume(struct wharf_core *core, struct wharf_tenant *tenant)
{
    tenant->is_suspended = false;
    wharf_list_remove(&tenant->suspended_link);
    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        wharf_sched_resume(&core->sched[i], tenant);
    wharf_retry_resume(&core->retries);
    core->nothing_fits = false;
}

/* Others are served for as long as it blocked a worker. */
static bool is_over(const struct wharf_core *core, const struct wharf_tenant *tenant,
                    uint64_t now_ns)
{
    return tenant->n_blocked == 0 &&
           (now_ns >= tenant->suspended_until_ns || is_alone(core, tenant));
}

void wharf_core_suspend(struct wharf_core *core, struct wharf_tenant *tenant, uint64_t now_ns)
{
    if (tenant->n_blocked++ > 0)
        return;
    tenant->blocked_since_ns = now_ns;
    memcpy(core->newly_blocked, tenant->name, sizeof(core->newly_blocked));
    if (tenant->is_suspended)
        return;
    tenant->is_suspended = true;
    wharf_list_append(&core->suspended, &tenant->suspended_link);
    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        wharf_sched_suspend(&core->sched[i], tenant);
}

void wharf_core_unsuspend(struct wharf_core *core, struct wharf_tenant *tenant, uint64_t now_ns)
{
    if (--tenant->n_blocked > 0)
        return;
    tenant->suspended_until_ns = now_ns + (now_ns - tenant->blocked_since_ns);
    if (is_over(core, tenant, now_ns))
        resume(core, tenant);
    else
        core->wake_loop = true;
}

uint64_t wharf_core_watch_over(struct wharf_core *core, uint64_t now_ns)
{
    uint64_t next_ns = WHARF_NEVER;

    if (core->backend && core->backend->ops->watch)
        next_ns = core->backend->ops->watch(core->backend, now_ns);
    WHARF_LIST_FOR(link, &core->suspended)
    {
        struct wharf_tenant *tenant = WHARF_LIST_ENTRY(link, struct wharf_tenant, suspended_link);
        if (is_over(core, tenant, now_ns))
            resume(core, tenant);
        else if (tenant->n_blocked == 0 && tenant->suspended_until_ns < next_ns)
            next_ns = tenant->suspended_until_ns;
    }
    return next_ns;
}
