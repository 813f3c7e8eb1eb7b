/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connection_accept.h: accepts or refuses new clients.  Loop thread.
 */
#ifndef WHARF_DAEMON_CONTROL_CONNECTION_ACCEPT_H
#define WHARF_DAEMON_CONTROL_CONNECTION_ACCEPT_H

#include <sys/types.h>

struct wharf_server;

/*
 * Takes ownership of an accepted socket, whose peer is `uid` and `pid`.  Refuses and closes it if
 * it exceeds a quota.  `group` is the group that gives its tenant limits; "": none; NULL: the last
 * known one.
 */
void wharf_connection_new(struct wharf_server *server, int fd, uid_t uid, pid_t pid,
                          const char *tenant_name, const char *group);

#endif
