/* SPDX-License-Identifier: Apache-2.0 */
/* region_place.c: enters regions into sessions. */
#include "daemon/control/region_place.h"

#include "daemon/control/connection.h"
#include "daemon/core/limits.h"
#include "daemon/core/residency.h"
#include "daemon/core/session.h"
#include "daemon/core/session_events.h"
#include "daemon/core/tenant.h"
#include "daemon/core/totals.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/session_end.h"
#include "daemon/placement/gpu_memory.h"

void wharf_connection_part_from_blocked(struct wharf_connection *connection)
{
    wharf_connection_part(connection, "its memory keeps the daemon waiting: connect again");
}

/* Only the loop thread adds and removes regions, so a free place stays free. */
int wharf_region_begin(struct wharf_connection *connection, const struct wharf_region *wanted,
                       struct wharf_region **ret_place, const char **ret_text)
{
    struct wharf_core *core = &connection->server->core;
    struct wharf_session *session = connection->session;
    struct wharf_use use = wharf_region_use(wanted);

    *ret_text = "its number is in use";
    if (wharf_session_region(session, wanted->number))
        return -EEXIST;
    *ret_text = "over max_regions, the limit of one session";
    *ret_place = wharf_session_region_place(session);
    if (!*ret_place)
        return -wharf_connection_is_over(connection, WHARF_LIMIT_REGIONS);
    *ret_text = NULL;
    int r = wharf_core_enter_alone(core, session);
    if (r < 0)
        return r;
    r = wharf_tenant_charge(session->tenant, &use, ret_text);
    if (r < 0)
        wharf_core_let_go(session);
    wharf_core_leave(core);
    return r;
}

int wharf_region_enter(struct wharf_connection *connection, const struct wharf_region *wanted,
                       struct wharf_region *place, int r)
{
    struct wharf_core *core = &connection->server->core;
    struct wharf_session *session = connection->session;
    struct wharf_use use = wharf_region_use(wanted);

    wharf_core_enter(core);
    if (r < 0) {
        wharf_tenant_give_back(connection->tenant, &use);
    } else {
        *place = *wanted;
        session->n_device_regions += wanted->is_device;
        wharf_use_add(&session->use, &use);
        wharf_gpu_memory_add(core, wanted->memory);
        /* If there will be no worker, nobody tells. */
        if (wanted->is_device)
            wharf_core_tell_decided(core, session);
    }
    wharf_core_leave_alone(core, session);
    return r;
}
