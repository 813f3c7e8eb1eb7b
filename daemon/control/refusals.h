/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusals.h: logs refusals.
 *
 * A refusal is counted under the core lock (wharf_tenant_count_refusal).  The loop thread logs it
 * later, without the lock: at most one line a minute for each tenant and limit, and a few lines a
 * second in total.  A line has the count of all refusals since the previous one.
 */
#ifndef WHARF_DAEMON_CONTROL_REFUSALS_H
#define WHARF_DAEMON_CONTROL_REFUSALS_H

struct wharf_server;

/* Writes due lines, and sets a timer for later ones.  Loop thread, in each turn. */
void wharf_refusals_say(struct wharf_server *server);

#endif
