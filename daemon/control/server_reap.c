/* SPDX-License-Identifier: Apache-2.0 */
/* server_reap.c: frees the memory of sessions, and returns its charge. */
#include "daemon/control/server_reap.h"

#include "daemon/control/kept_rings.h"
#include "daemon/control/reaper.h"
#include "daemon/control/server.h"
#include "daemon/core/file_io.h"
#include "daemon/core/file_staging.h"
#include "daemon/core/session.h"
#include "daemon/core/shared_charge.h"
#include "daemon/core/tenant.h"
#include "daemon/core/totals.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/placement/gpu_memory.h"

/* Memory that the GPU's worker still has stays charged until the worker releases it. */
static void drop_memory(struct wharf_server *server, struct wharf_session *session,
                        struct wharf_gpu_memory *memory, const struct wharf_use *use)
{
    if (!wharf_gpu_memory_drop(&server->core, memory, use))
        return;
    wharf_use_subtract(&session->use, use);
}

static void drop_memories(struct wharf_server *server, struct wharf_session *session)
{
    wharf_core_enter(&server->core);
    for (uint32_t i = 0; i < session->n_regions; i++) {
        struct wharf_region *region = &session->regions[i];
        struct wharf_use use = wharf_region_use(region);
        drop_memory(server, session, region->memory, &use);
    }
    if (session->file_io)
        wharf_file_io_count(session->file_io, true, &session->tenant->stats.files);
    if (session->file_io && session->file_io->staging)
        wharf_gpu_memory_drop(&server->core, session->file_io->staging->account,
                              &(struct wharf_use){.n_jobs = 0});
    for (uint32_t i = 0; i < session->n_models; i++)
        drop_memory(server, session, session->models[i].memory, &session->models[i].use);
    wharf_core_leave(&server->core);
}

/* Returns the use of a session that has ended, and lets go of what it shared, which may be NULL.
 * The tenant may be dropped by this. */
static void take_back(struct wharf_server *server, struct wharf_tenant *tenant,
                      const struct wharf_use *use, struct wharf_shared_charge *shared)
{
    tenant->n_endings--;
    wharf_core_enter(&server->core);
    wharf_tenant_give_back(tenant, use);
    wharf_shared_charge_release(shared);
    wharf_core_leave(&server->core);
}

void wharf_server_reap_session(struct wharf_server *server, struct wharf_session *session)
{
    struct wharf_tenant *tenant = session->tenant;

    drop_memories(server, session);
    struct wharf_use use = session->use;
    struct wharf_shared_charge *shared = wharf_file_io_charge(session->file_io);
    if (!wharf_reaper_session(server->reaper, session))
        take_back(server, tenant, &use, shared);
}

void wharf_server_reap_segment(struct wharf_server *server, const struct wharf_segment *segment,
                               struct wharf_tenant *tenant, const struct wharf_use *use)
{
    tenant->n_endings++;
    if (!wharf_reaper_segment(server->reaper, segment, tenant, use))
        take_back(server, tenant, use, NULL);
}

void wharf_server_take_reaped(struct wharf_server *server)
{
    struct wharf_reaped reaped;

    while (wharf_reaper_next(server->reaper, &reaped)) {
        struct wharf_use left = wharf_left_rings_use(&reaped.left);
        if (!wharf_use_is_nothing(&left))
            wharf_kept_rings_add(server, reaped.tenant, &reaped.left);
        wharf_use_subtract(&reaped.use, &left);
        take_back(server, reaped.tenant, &reaped.use, reaped.shared);
    }
}
