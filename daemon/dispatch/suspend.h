/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspend.h: suspends the jobs of tenants whose memory blocks workers.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_DISPATCH_SUSPEND_H
#define WHARF_DAEMON_DISPATCH_SUSPEND_H

#include <stdint.h>

struct wharf_core;
struct wharf_tenant;

/* A worker is blocked in the tenant's memory; it is not blocked any more.  While any worker is
 * blocked, and for as long again if other tenants have work, no job of the tenant starts. */
void wharf_core_suspend(struct wharf_core *core, struct wharf_tenant *tenant, uint64_t now_ns);
void wharf_core_unsuspend(struct wharf_core *core, struct wharf_tenant *tenant, uint64_t now_ns);

/* Checks for blocked workers and for tenants whose suspension has ended.  Returns when to check
 * again; WHARF_NEVER: after the next call of a worker. */
uint64_t wharf_core_watch_over(struct wharf_core *core, uint64_t now_ns);

#endif
