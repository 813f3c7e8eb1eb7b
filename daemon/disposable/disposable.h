/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disposable.h: processes for system calls that can hang for as long as an outsider likes.
 *
 * A client's descriptor, or a directory service, can make close(), read() or a look-up wait
 * forever.  A thread that hangs cannot be ended, and keeps all the daemon's descriptors open.  A
 * process can be killed, and has only what it was given.  So each kind of call that can hang has
 * its own process.  DESIGN.md says who kills it, who pays, and what replaces it.
 *
 * The daemon starts its own program again, with an option that names the process, and exchanges
 * packets by a socket, which is descriptor `fd` there.
 */
#ifndef WHARF_DAEMON_DISPOSABLE_DISPOSABLE_H
#define WHARF_DAEMON_DISPOSABLE_DISPOSABLE_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/base/clock.h"

/* Even on a loaded machine a process has started within this time, or never will. */
#define WHARF_DISPOSABLE_START_NS (10 * (uint64_t)WHARF_NS_PER_S)

/* ---- the core's side ---------------------------------------------------------------------- */

/* Starts the daemon's program with `option`.  Returns the core's end of its socket, or -errno. */
int wharf_disposable_spawn(const char *option, pid_t *ret_pid);

/* Kills a process that could not be added to the loop, and waits for its end, which is safe since
 * it was asked nothing yet; pid 0: none. */
void wharf_disposable_undo(pid_t pid);

/* Whether an answer can be received. */
bool wharf_disposable_has_answered(int fd);

/* ---- the process --------------------------------------------------------------------------- */

/* The first step of its main function: makes it end with the core, whose process id is `parent`,
 * and gain no rights.  False: the core has ended. */
bool wharf_disposable_begin(const char *name, pid_t parent);

#endif
