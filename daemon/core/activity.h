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

/* Polls the session's ring without a doorbell until the client is quiet for a while; stops polling
 * it at once. */
void wharf_core_watch(struct wharf_core *core, struct wharf_session *session, uint64_t now_ns);
void wharf_core_unwatch(struct wharf_core *core, struct wharf_session *session);

/* Call after any change that can make a session active: being watched, or having jobs. */
void wharf_core_count_active(struct wharf_core *core, struct wharf_session *session);
/* Stops counting sessions that have not been active for a while. */
void wharf_core_drop_stale(struct wharf_core *core, uint64_t now_ns);

/* Watches the session longer than usual, because all workers are busy; or as long as others. */
void wharf_core_set_lingers(struct wharf_core *core, struct wharf_session *session, bool lingers);

/* Whether any ring is watched. */
static inline bool wharf_core_watches(const struct wharf_core *core)
{
    return !wharf_list_is_empty(&core->watching.watched);
}

/* Whether all CPU threads are awake and each has something to do. */
bool wharf_core_has_plenty(const struct wharf_core *core);

#endif
