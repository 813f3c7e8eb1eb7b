/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener.h: the sockets that clients connect to.  Loop thread.
 */
#ifndef WHARF_DAEMON_CONTROL_LISTENER_H
#define WHARF_DAEMON_CONTROL_LISTENER_H

#include <stdbool.h>

#include "daemon/base/config.h"

struct wharf_server;

/*
 * wharf_listeners_open: takes the sockets that systemd hands over or, if it hands over none, makes
 * those that the configuration names.  Nothing is accepted before wharf_listeners_start.  Logs what
 * goes wrong and returns 0 or -errno.
 */
int wharf_listeners_open(struct wharf_server *server);
int wharf_listeners_start(struct wharf_server *server);

/* Accepts no more; sockets of its own are closed, and their paths removed. */
void wharf_listeners_close(struct wharf_server *server);

/*
 * The lock that keeps Hello's promise (PROTOCOL.md, section 1): as long as a process of an earlier
 * daemon on these sockets could write to clients' memory, it holds the lock, and this daemon
 * answers nobody.  wharf_listeners_open makes its file and tries to take it; this tries again: 0,
 * -EWOULDBLOCK or another -errno.
 */
int wharf_promise_try(struct wharf_server *server);

/* For a daemon that drains, and holds it: makes and takes the lock anew if somebody has removed its
 * file, before the next daemon does. */
void wharf_promise_renew(struct wharf_server *server);

#endif
