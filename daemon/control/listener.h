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
 * wharf_listeners_open: takes the sockets that systemd hands over; if there are none, creates those
 * that the configuration names.  Nothing is accepted before wharf_listeners_start.  Returns 0 or
 * -errno, having logged the reason.
 */
int wharf_listeners_open(struct wharf_server *server);
int wharf_listeners_start(struct wharf_server *server);

/* Accepts no more; closes the daemon's own sockets and removes their paths. */
void wharf_listeners_close(struct wharf_server *server);

/*
 * The lock of Hello's promise (PROTOCOL.md, section 1).  Every process of an earlier daemon on
 * these sockets that can write to clients' memory holds it; until they are gone this daemon answers
 * nobody. wharf_listeners_open creates the file and tries to lock it; this tries again: 0,
 * -EWOULDBLOCK or another -errno.
 */
int wharf_promise_try(struct wharf_server *server);

/* For a draining daemon that holds the lock: if somebody has removed the file, creates and locks it
 * again before the next daemon can. */
void wharf_promise_renew(struct wharf_server *server);

#endif
