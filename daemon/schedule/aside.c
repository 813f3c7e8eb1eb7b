/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/schedule/aside.h"

#include "daemon/core/front.h"
#include "daemon/core/queues.h"
#include "daemon/schedule/sched.h"

/* In both pools that the processors serve: the tenant's jobs are in the one or the other. */
void wharf_front_charge_aside(struct wharf_front *front, struct wharf_session *session,
                              int64_t used_ns)
{
    wharf_sched_charge_aside(&front->sched[WHARF_POOL_CPU], session, used_ns);
    wharf_sched_charge_aside(&front->sched[WHARF_POOL_ANY], session, used_ns);
}
