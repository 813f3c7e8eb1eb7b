/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/schedule/unqueued_work.h"

#include "daemon/core/core.h"
#include "daemon/core/queues.h"
#include "daemon/schedule/sched.h"

/* In both pools that the processors serve: the tenant's jobs are in the one or the other. */
void wharf_core_charge_unqueued(struct wharf_core *core, struct wharf_session *session,
                                int64_t used_ns)
{
    wharf_sched_charge_unqueued(&core->sched[WHARF_POOL_CPU], session, used_ns);
    wharf_sched_charge_unqueued(&core->sched[WHARF_POOL_ANY], session, used_ns);
}
