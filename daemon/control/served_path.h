/* SPDX-License-Identifier: Apache-2.0 */
/*
 * served_path.h: what stands at the path of a socket that is to be made: whether a process that
 * lives accepts connections there.
 *
 * The socket of a daemon that was killed accepts for a moment longer, because the kernel lets go
 * of what io_uring waited for after the process.  So the process that listens is looked at as well.
 */
#ifndef WHARF_DAEMON_CONTROL_SERVED_PATH_H
#define WHARF_DAEMON_CONTROL_SERVED_PATH_H

#include <stdbool.h>

struct sockaddr_un;

/* type: SOCK_STREAM or SOCK_SEQPACKET.  Does not block. */
bool wharf_path_is_served(const struct sockaddr_un *address, int type);

/* What stands there and is no socket of this type, "a regular file", or NULL.  It is somebody's,
 * and stays as it is; a socket of another type is told while its owner has it.  To find that out it
 * connects, which starts what is started by connections: with type 0 all sockets are good.  Does
 * not block. */
const char *wharf_path_other_kind(const char *path, int type);

#endif
