/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify.h: tells systemd about the daemon's state, if systemd started it; otherwise does nothing.
 * Loop thread.
 *
 * Never blocks on systemd's socket.  What systemd does not take at once is kept, the latest message
 * of each kind, and sent again.
 */
#ifndef WHARF_DAEMON_BASE_NOTIFY_H
#define WHARF_DAEMON_BASE_NOTIFY_H

#include <stdint.h>

struct wharf_loop;

/* Finds systemd's socket.  Call it first. */
void wharf_notify_init(void);

/* Uses the loop's timers to send messages again; NULL: does not send again. */
void wharf_notify_use_loop(struct wharf_loop *loop);

void wharf_notify_ready(const char *status);
void wharf_notify_status(const char *status);
/* Announces a reload; wharf_notify_ready must follow. */
void wharf_notify_reloading(void);
/* Announces the end, and that it may take timeout_ns, in case the unit allows less. */
void wharf_notify_stopping(uint64_t timeout_ns);
void wharf_notify_alive(void);

/* How often systemd expects wharf_notify_alive; WHARF_NEVER if it does not. */
uint64_t wharf_notify_watchdog_ns(void);

#endif
