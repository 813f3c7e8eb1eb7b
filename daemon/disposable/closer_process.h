/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closer_process.h: closes clients' sockets in a process that may hang.
 *
 * The last close of a socket also closes the descriptors in its unread packets.  That can hang: a
 * lingering TCP socket waits for its peer, a file for its server.  So the core collects the sockets
 * of departed clients for a moment, starts a process that inherits them, closes its own copies, and
 * tells the process to exit.  An exiting process does not linger.  If it still hangs in a file,
 * only these sockets, which were shut down, hang with it.
 *
 * A socket without unread packets needs no process: a thread closes it (closer_thread.h).  A socket
 * that may contain descriptors is *doubtful*.  Its tenant pays for it until it is closed, and
 * shares a process with no other tenant.
 *
 * Two bounds limit what a tenant can do to others.  It has at most half of all processes; its other
 * sockets wait.  And it has at most as many doubtful sockets as connections, because only an
 * accepted connection, which is charged, takes descriptors (pass_rights.h).  Kernels before 6.16
 * cannot refuse descriptors.  There a refused client can leave doubtful sockets beyond its quota,
 * and if too many of these wait, no client is accepted.
 */
#ifndef WHARF_DAEMON_DISPOSABLE_CLOSER_PROCESS_H
#define WHARF_DAEMON_DISPOSABLE_CLOSER_PROCESS_H

#include <stdbool.h>

#include "daemon/base/loop.h"

struct wharf_core;
struct wharf_tenant;
struct wharf_closer_process;
struct wharf_use;

/* A process takes this many sockets of one tenant, or those that came within this time.  Starting a
 * process costs about as much as a hundred requests. */
#define WHARF_CLOSER_N_SOCKETS 64
#define WHARF_CLOSER_KEPT_NS ((uint64_t)200000000)

/* While this many processes of a tenant are alive, its sockets wait until one ends, or until there
 * are WHARF_CLOSER_MOST_SOCKETS. */
#define WHARF_CLOSER_MOST_HUNG 2
#define WHARF_CLOSER_MOST_SOCKETS 256

/* The most live processes, of all tenants and of one.  Beyond that, sockets wait. */
#define WHARF_CLOSER_MOST_PROCESSES 64
#define WHARF_CLOSER_MOST_OF_TENANT (WHARF_CLOSER_MOST_PROCESSES / 2)

/* ---- the core's side: loop thread, without the core lock --------------------------------- */

/* Starts no process yet.  0 or -errno. */
int wharf_closer_process_new(struct wharf_loop *loop, struct wharf_core *core,
                             struct wharf_closer_process **ret_closer_process);

/* NULL is allowed.  The daemon's exit closes the remaining sockets. */
void wharf_closer_process_free(struct wharf_closer_process *closer_process);

/*
 * Shuts a client's socket down, which its peer sees at once, and takes ownership of it.
 *
 * `tenant` is the client's, or NULL if unknown.  `use` is its charge for the socket, which is
 * returned at once, or, for a doubtful socket, after it is closed.  NULL: nothing is charged yet; a
 * doubtful socket is then charged like a connection, beyond the quota if necessary.
 */
void wharf_closer_process_take(struct wharf_closer_process *closer_process, int fd,
                               struct wharf_tenant *tenant, const struct wharf_use *use);

/* Whether so many sockets of refused clients wait, which no quota bounds, that no more connections
 * should be accepted. */
bool wharf_closer_process_is_full(const struct wharf_closer_process *closer_process);

/* ---- the process --------------------------------------------------------------------------- */

/* Its main function; `fd` is a pipe from the core, whose process id is `parent`.  Returns the exit
 * status. */
int wharf_closer_main(int fd, int parent);

#endif
