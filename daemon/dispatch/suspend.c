/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/dispatch/suspend.h"

#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/front.h"
#include "daemon/core/queues.h"
#include "daemon/core/retry_queue.h"
#include "daemon/schedule/sched.h"

static bool is_alone(const struct wharf_front *front, const struct wharf_tenant *tenant)
{
    return front->watching.active_weight == (tenant->n_active ? tenant->active_weight : 0);
}

static void resume(struct wharf_front *front, struct wharf_tenant *tenant)
{
    tenant->is_suspended = false;
    wharf_list_remove(&tenant->suspended_link);
    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        wharf_sched_resume(&front->sched[i], tenant);
    wharf_retry_resume(&front->retries);
    front->nothing_fits = false;
}

/* Others are served for as long as it kept a worker waiting. */
static bool is_over(const struct wharf_front *front, const struct wharf_tenant *tenant,
                    uint64_t now_ns)
{
    return tenant->n_stuck == 0 &&
           (now_ns >= tenant->suspended_until_ns || is_alone(front, tenant));
}

void wharf_front_suspend(struct wharf_front *front, struct wharf_tenant *tenant, uint64_t now_ns)
{
    if (tenant->n_stuck++ > 0)
        return;
    tenant->stuck_since_ns = now_ns;
    memcpy(front->newly_stuck, tenant->name, sizeof(front->newly_stuck));
    if (tenant->is_suspended)
        return;
    tenant->is_suspended = true;
    wharf_list_append(&front->suspended, &tenant->suspended_link);
    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        wharf_sched_suspend(&front->sched[i], tenant);
}

void wharf_front_unsuspend(struct wharf_front *front, struct wharf_tenant *tenant, uint64_t now_ns)
{
    if (--tenant->n_stuck > 0)
        return;
    tenant->suspended_until_ns = now_ns + (now_ns - tenant->stuck_since_ns);
    if (is_over(front, tenant, now_ns))
        resume(front, tenant);
    else
        front->wake_loop = true;
}

uint64_t wharf_front_watch_over(struct wharf_front *front, uint64_t now_ns)
{
    uint64_t next_ns = WHARF_NEVER;

    if (front->backend && front->backend->ops->watch)
        next_ns = front->backend->ops->watch(front->backend, now_ns);
    WHARF_LIST_FOR(link, &front->suspended)
    {
        struct wharf_tenant *tenant = WHARF_LIST_ENTRY(link, struct wharf_tenant, suspended_link);
        if (is_over(front, tenant, now_ns))
            resume(front, tenant);
        else if (tenant->n_stuck == 0 && tenant->suspended_until_ns < next_ns)
            next_ns = tenant->suspended_until_ns;
    }
    return next_ns;
}
