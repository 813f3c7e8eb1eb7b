/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusals.h: lines of the log about what tenants were refused.
 *
 * Whoever refuses counts, under the core lock (wharf_tenant_count_refusal).  The loop thread says
 * it later, without the lock: one line for each tenant and limit, at most one a minute, and some
 * lines a second for all tenants.  What a line has to wait for is in its count.
 */
#ifndef WHARF_DAEMON_CONTROL_REFUSALS_H
#define WHARF_DAEMON_CONTROL_REFUSALS_H

struct wharf_server;

/* Says what there is to say, now or when it is time.  Loop thread, in each turn. */
void wharf_refusals_say(struct wharf_server *server);

#endif
