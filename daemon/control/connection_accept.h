/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connection_accept.h: who is let in as a client.  Loop thread.
 */
#ifndef WHARF_DAEMON_CONTROL_CONNECTION_ACCEPT_H
#define WHARF_DAEMON_CONTROL_CONNECTION_ACCEPT_H

#include <sys/types.h>

struct wharf_server;

/*
 * Takes over an accepted socket, whose peer is `uid` and `pid`.  Refuses and closes it where a
 * quota says so.  `group` is the group that gives its tenant limits, "" for none, NULL for the one
 * that was known last.
 */
void wharf_connection_new(struct wharf_server *server, int fd, uid_t uid, pid_t pid,
                          const char *tenant_name, const char *group);

#endif
