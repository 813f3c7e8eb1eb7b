/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass_rights.h: whether descriptors can be sent to a socket (SO_PASSRIGHTS, Linux 6.16).
 *
 * A descriptor in a packet can hang whoever closes it.  Clients can send packets while the
 * connection still waits to be accepted, so refusing it would be as bad as accepting it.  Therefore
 * listening sockets, and connections that wait in them, take no descriptors: sendmsg fails with
 * EPERM.  A connection takes descriptors once its Hello is answered, when it is charged.
 */
#ifndef WHARF_DAEMON_CONTROL_PASS_RIGHTS_H
#define WHARF_DAEMON_CONTROL_PASS_RIGHTS_H

#include <stdbool.h>
#include <sys/socket.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* On older kernels, without this option, all sockets take descriptors. */
static inline void wharf_pass_rights(int fd, bool may)
{
    const int value = may;

    setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &value, sizeof(value));
}

#endif
