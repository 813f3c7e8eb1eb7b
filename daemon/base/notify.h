/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify.h: what systemd is told, if it started the daemon.  Without it nothing happens.  Loop
 * thread.
 *
 * systemd's socket is never waited for.  What it does not take at once is kept, the latest of each
 * kind, and sent again.
 */
#ifndef WHARF_DAEMON_BASE_NOTIFY_H
#define WHARF_DAEMON_BASE_NOTIFY_H

#include <stdint.h>

struct wharf_loop;

/* Finds systemd's socket.  Before all else. */
void wharf_notify_init(void);

/* By whose timers things are sent again; NULL: they are not, any more. */
void wharf_notify_use_loop(struct wharf_loop *loop);

void wharf_notify_ready(const char *status);
void wharf_notify_status(const char *status);
/* Followed by wharf_notify_ready. */
void wharf_notify_reloading(void);
/* And that it may take so long, if that is more than the unit allows. */
void wharf_notify_stopping(uint64_t timeout_ns);
void wharf_notify_alive(void);

/* How often systemd wants to hear that the daemon is alive; WHARF_NEVER if it does not. */
uint64_t wharf_notify_watchdog_ns(void);

#endif
