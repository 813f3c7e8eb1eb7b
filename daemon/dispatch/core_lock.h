/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_lock.h: the core lock, and what is done when it is given back.
 *
 * DESIGN.md explains the lock and the invariant about watched and armed sessions.
 */
#ifndef WHARF_DAEMON_DISPATCH_CORE_LOCK_H
#define WHARF_DAEMON_DISPATCH_CORE_LOCK_H

#include <stdint.h>

struct wharf_core;
struct wharf_tenant;
struct wharf_use;

/*
 * Take and give back the core lock.  Leaving publishes what was completed, sees to it that
 * somebody looks at the rings, and wakes clients, workers and the loop, with the lock already given
 * back.
 */
void wharf_core_enter(struct wharf_core *core);
/* For the thread of a GPU, which has work for as many warps as all others together: those let it go
 * first. */
void wharf_core_enter_first(struct wharf_core *core);
void wharf_core_leave(struct wharf_core *core);

/* wharf_tenant_charge and wharf_tenant_give_back for those who have not the lock. */
int wharf_core_charge(struct wharf_core *core, struct wharf_tenant *tenant,
                      const struct wharf_use *use, const char **ret_text);
void wharf_core_give_back(struct wharf_core *core, struct wharf_tenant *tenant,
                          const struct wharf_use *use);

/* Does what is due: rings that nobody else looks at, deadlines.  Returns when the loop thread has
 * to come again for deadlines, or WHARF_NEVER.  Without the lock. */
uint64_t wharf_core_serve(struct wharf_core *core);

#endif
