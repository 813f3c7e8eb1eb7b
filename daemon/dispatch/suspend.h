/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspend.h: tenants whose memory keeps workers waiting, and whose jobs wait in their turn.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_DISPATCH_SUSPEND_H
#define WHARF_DAEMON_DISPATCH_SUSPEND_H

#include <stdint.h>

struct wharf_core;
struct wharf_tenant;

/* A worker is blocked in the tenant's memory, or no more.  As long as one is, and for as long again
 * if other tenants have work, no job of the tenant's is begun. */
void wharf_core_suspend(struct wharf_core *core, struct wharf_tenant *tenant, uint64_t now_ns);
void wharf_core_unsuspend(struct wharf_core *core, struct wharf_tenant *tenant, uint64_t now_ns);

/* Looks for workers that are blocked and tenants that are suspended no more; returns when to look
 * again, WHARF_NEVER: when a worker was called. */
uint64_t wharf_core_watch_over(struct wharf_core *core, uint64_t now_ns);

#endif
