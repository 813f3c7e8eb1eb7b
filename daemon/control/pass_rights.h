/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass_rights.h: whether descriptors can be sent to a socket (SO_PASSRIGHTS, Linux 6.16).
 *
 * A packet can bring a descriptor that hangs whoever closes it, and packets can be sent as soon as
 * a connection waits to be accepted: turning it away is then as bad as letting it in.  So listening
 * sockets take none, which holds for connections that wait in them too: sendmsg fails with EPERM.
 * A connection takes descriptors when its Hello is answered, and is charged by then.
 */
#ifndef WHARF_DAEMON_CONTROL_PASS_RIGHTS_H
#define WHARF_DAEMON_CONTROL_PASS_RIGHTS_H

#include <stdbool.h>
#include <sys/socket.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* An older kernel has no such option: then all sockets take descriptors. */
static inline void wharf_pass_rights(int fd, bool may)
{
    const int value = may;

    setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &value, sizeof(value));
}

#endif
