/* SPDX-License-Identifier: Apache-2.0 */
/*
 * served_path.h: examines the path of a socket before it is created: whether a living process
 * accepts connections there.
 *
 * A killed daemon's socket accepts connections for a moment longer, because the kernel releases
 * io_uring's references after the process.  So the listening process is checked too.
 */
#ifndef WHARF_DAEMON_CONTROL_SERVED_PATH_H
#define WHARF_DAEMON_CONTROL_SERVED_PATH_H

#include <stdbool.h>

struct sockaddr_un;

/* type: SOCK_STREAM or SOCK_SEQPACKET.  Does not block. */
bool wharf_path_is_served(const struct sockaddr_un *address, int type);

/* Returns the kind of another file at the path, such as "a regular file"; NULL if there is none, or
 * a socket of this type.  A socket of another type counts while its owner has it open; the test
 * connects, which can start a service.  Type 0 accepts all sockets.  Does not block. */
const char *wharf_path_other_kind(const char *path, int type);

#endif
