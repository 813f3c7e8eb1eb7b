/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn.h: the daemon's program, run again for one of its other processes.
 */
#ifndef WHARF_DAEMON_BASE_SPAWN_H
#define WHARF_DAEMON_BASE_SPAWN_H

#include <sys/types.h>

/*
 * wharf_spawn_self: runs this program as `role` (--fd-filter, --closer or --owners), which is told
 * the number of `fd` and the id of this process.  It inherits that descriptor and `kept`, under the
 * numbers that they have here, where they stay the caller's; and the environment.  Returns 0 or
 * -errno.
 */
int wharf_spawn_self(const char *role, int fd, const int *kept, unsigned n_kept, pid_t *ret_pid);

#endif
