/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disposable.h: processes for system calls that can hang for as long as somebody outside likes.
 *
 * What a client hands over, or a directory service is asked, can make close(), read() or a look-up
 * wait without end.  A thread that hangs so cannot be ended, and keeps the descriptors of all the
 * daemon open.  A process can be killed, and has nothing but what it was given: so each kind of
 * call that can hang has one.  DESIGN.md says who kills it, who pays and what comes in its place.
 *
 * The daemon starts itself again with an option that names the process, and sends and receives
 * packets by a socket, its descriptor `fd` there.
 */
#ifndef WHARF_DAEMON_DISPOSABLE_DISPOSABLE_H
#define WHARF_DAEMON_DISPOSABLE_DISPOSABLE_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/base/clock.h"

/* A process that has not started by then, on the most loaded machine, will not. */
#define WHARF_DISPOSABLE_START_NS (10 * (uint64_t)WHARF_NS_PER_S)

/* ---- the core's side ---------------------------------------------------------------------- */

/* Starts the daemon's program with `option`.  Returns the core's end of its socket, or -errno. */
int wharf_disposable_spawn(const char *option, pid_t *ret_pid);

/* Kills one that could not be watched, and waits for its end, since it was asked nothing yet; 0:
 * there is none. */
void wharf_disposable_undo(pid_t pid);

/* Whether an answer is there to be received. */
bool wharf_disposable_has_answered(int fd);

/* ---- the process --------------------------------------------------------------------------- */

/* The first step of its main function: it ends with the core, whose process id is `parent`, and
 * gets no further rights.  False: the core has ended. */
bool wharf_disposable_begin(const char *name, pid_t parent);

#endif
