/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/queues.h"

#include "daemon/base/list.h"
#include "daemon/base/turns.h"

void wharf_sched_init(struct wharf_sched *sched, enum wharf_pool pool, uint64_t slice_ns)
{
    *sched = (struct wharf_sched){.pool = pool, .slice_ns = slice_ns};
    for (unsigned i = 0; i < WHARF_N_LANES; i++)
        wharf_turns_init(&sched->tenants[i]);
}

void wharf_sched_tenant_init(struct wharf_sched_tenant *tenant)
{
    for (unsigned i = 0; i < WHARF_N_LANES; i++) {
        wharf_turn_init(&tenant->lane[i].turn);
        wharf_turns_init(&tenant->lane[i].sessions);
    }
}

void wharf_sched_session_init(struct wharf_sched_session *session)
{
    for (unsigned i = 0; i < WHARF_N_LANES; i++) {
        wharf_turn_init(&session->lane[i].turn);
        wharf_list_init(&session->lane[i].jobs);
        session->lane[i].n_jobs = 0;
    }
    session->backlog_ns = 0;
}
