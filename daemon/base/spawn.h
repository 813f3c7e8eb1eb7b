/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn.h: runs the daemon's program again for one of its helper processes.
 */
#ifndef WHARF_DAEMON_BASE_SPAWN_H
#define WHARF_DAEMON_BASE_SPAWN_H

#include <sys/types.h>

/*
 * wharf_spawn_self: runs this program as `role` (--fd-filter, --closer or --owners).  Its arguments
 * are the number of `fd` and this process's id.  It inherits `fd` and `kept` under the numbers that
 * they have here, and the environment; the caller keeps its descriptors.  Returns 0 or -errno.
 */
int wharf_spawn_self(const char *role, int fd, const int *kept, unsigned n_kept, pid_t *ret_pid);

#endif
