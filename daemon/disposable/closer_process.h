/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closer_process.h: closes the sockets of clients, where nobody waits for it.
 *
 * With the last reference to a socket go the packets that nobody has read, and the descriptors in
 * them.  Letting go of one of these can hang: a TCP socket that lingers waits for its peer, a file
 * for its server.  So the core collects the sockets of clients that are gone for a moment, starts
 * a process that inherits them, closes its own, and tells the process to end: a process that ends
 * does not linger, and if it hangs all the same in a file, nothing hangs with it but these sockets,
 * which were shut down.
 *
 * A socket in which nothing is left needs no process: a thread closes it (closer_thread.h).  One in
 * which descriptors may be left is doubtful.  Its tenant goes on paying for it until it is closed,
 * and shares a process with no other tenant.
 *
 * What one tenant can do to others by that is bounded twice.  It has half of all processes at most;
 * its other sockets wait for these to end.  And it has no more doubtful sockets than connections,
 * since only one that was let in takes descriptors (pass_rights.h), is charged, and stays charged.
 * Kernels before 6.16 cannot refuse them; there a client that is turned away can leave doubtful
 * sockets beyond its quota, and where too many of these wait nobody is let in.
 */
#ifndef WHARF_DAEMON_DISPOSABLE_CLOSER_PROCESS_H
#define WHARF_DAEMON_DISPOSABLE_CLOSER_PROCESS_H

#include <stdbool.h>

#include "daemon/base/loop.h"

struct wharf_core;
struct wharf_tenant;
struct wharf_closer_process;
struct wharf_use;

/* What a process that was started with descriptors of one tenant takes at once: so many, or what
 * has come in that time.  Starting one costs about as much as a hundred requests. */
#define WHARF_CLOSER_N_SOCKETS 64
#define WHARF_CLOSER_KEPT_NS ((uint64_t)200000000)

/* While so many processes of a tenant have not ended, its sockets wait for one of them to end, or
 * until there are so many. */
#define WHARF_CLOSER_MOST_HUNG 2
#define WHARF_CLOSER_MOST_SOCKETS 256

/* Processes that have not ended, of all tenants and of one.  Beyond that sockets wait. */
#define WHARF_CLOSER_MOST_PROCESSES 64
#define WHARF_CLOSER_MOST_OF_TENANT (WHARF_CLOSER_MOST_PROCESSES / 2)

/* ---- the core's side: loop thread, without the core lock --------------------------------- */

/* Starts no process yet.  0 or -errno. */
int wharf_closer_process_new(struct wharf_loop *loop, struct wharf_core *core,
                             struct wharf_closer_process **ret_closer_process);

/* NULL is allowed.  What it still has is left to the end of the daemon's own process. */
void wharf_closer_process_free(struct wharf_closer_process *closer_process);

/*
 * Shuts a client's socket down, which its peer sees at once, and takes it over.
 *
 * `tenant` is the client's, or NULL if nobody knows it.  `use` is what is charged to it for the
 * socket, and given back: at once, or if the socket is doubtful when it is closed.  NULL: nothing
 * is charged yet; if it is doubtful, then it is like a connection, beyond the quota if need be.
 */
void wharf_closer_process_take(struct wharf_closer_process *closer_process, int fd,
                               struct wharf_tenant *tenant, const struct wharf_use *use);

/* Whether so many sockets wait that no quota bounds, those of clients that were turned away, that
 * no more should come. */
bool wharf_closer_process_is_full(const struct wharf_closer_process *closer_process);

/* ---- the process --------------------------------------------------------------------------- */

/* Its main function; `fd` is a pipe from the core, whose process id is `parent`.  Returns the exit
 * status. */
int wharf_closer_main(int fd, int parent);

#endif
