/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_lock.h: the core lock, and the work at each unlock.
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
 * Take and release the core lock.  Leaving publishes completions, ensures that some thread polls
 * the rings, unlocks, and then wakes clients, workers and the loop thread.
 */
void wharf_core_enter(struct wharf_core *core);
/* For wharf-gpu threads, which each feed thousands of warps: other threads let them go first. */
void wharf_core_enter_first(struct wharf_core *core);
/* For threads that only poll: threads that sleep for the lock go first, as far as they come within
 * most_ns. */
void wharf_core_enter_last(struct wharf_core *core, uint64_t most_ns);
void wharf_core_leave(struct wharf_core *core);

/* wharf_tenant_charge and wharf_tenant_give_back, for callers without the lock. */
int wharf_core_charge(struct wharf_core *core, struct wharf_tenant *tenant,
                      const struct wharf_use *use, const char **ret_text);
void wharf_core_give_back(struct wharf_core *core, struct wharf_tenant *tenant,
                          const struct wharf_use *use);

/* Handles deadlines, and rings that no other thread polls.  Returns when the loop thread has to
 * call again for deadlines, or WHARF_NEVER.  Without the lock. */
uint64_t wharf_core_serve(struct wharf_core *core);

#endif
