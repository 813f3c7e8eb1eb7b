/* SPDX-License-Identifier: Apache-2.0 */
/*
 * activity.h: which sessions are watched, and which are active.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_CORE_ACTIVITY_H
#define WHARF_DAEMON_CORE_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/core.h"

/* The session is active: its ring is looked at without being rung for, until it is quiet again; or
 * at once no more. */
void wharf_core_watch(struct wharf_core *core, struct wharf_session *session, uint64_t now_ns);
void wharf_core_unwatch(struct wharf_core *core, struct wharf_session *session);

/* After a change of what makes a session active: being watched, or having jobs. */
void wharf_core_count_active(struct wharf_core *core, struct wharf_session *session);
/* Those that have not been active for a while are not counted any more. */
void wharf_core_drop_stale(struct wharf_core *core, uint64_t now_ns);

/* It is watched for longer, since all workers are busy; or as long as others. */
void wharf_core_set_lingers(struct wharf_core *core, struct wharf_session *session, bool lingers);

/* Whether there are rings to be watched. */
static inline bool wharf_core_watches(const struct wharf_core *core)
{
    return !wharf_list_is_empty(&core->watching.watched);
}

/* Whether the CPU's threads are all awake, and there is something to do for each of them. */
bool wharf_core_has_plenty(const struct wharf_core *core);

#endif
