/* SPDX-License-Identifier: Apache-2.0 */
/*
 * undertaker.h: closes the sockets of clients, where nobody waits for it.
 *
 * With the last reference to a socket go the packets that nobody has read, and the descriptors in
 * them.  Letting go of one of these can hang: a TCP socket that lingers waits for its peer, a file
 * for its server.  So the front hands sockets to a process that does nothing but keep them, and has
 * it end when it has some or when some time has passed: a process that ends does not linger, and if
 * it hangs all the same in a file, nothing hangs with it but these sockets, which were shut down.
 */
#ifndef WHARF_DAEMON_UNDERTAKER_H
#define WHARF_DAEMON_UNDERTAKER_H

#include <stdbool.h>

#include "daemon/loop.h"

struct wharf_undertaker;

/* ---- the front's side: loop thread --------------------------------------------------------- */

int wharf_undertaker_new(struct wharf_loop *loop, struct wharf_undertaker **ret_undertaker);

/* What it still has is left to the end of the daemon's own process. */
void wharf_undertaker_free(struct wharf_undertaker *undertaker);

/* Shuts a client's socket down, which its peer sees at once, and takes it over. */
void wharf_undertaker_take(struct wharf_undertaker *undertaker, int fd);

/* Whether processes hang and so many sockets wait for others that no more should come. */
bool wharf_undertaker_is_full(const struct wharf_undertaker *undertaker);

/* ---- the process --------------------------------------------------------------------------- */

/* Its main function; `fd` leads to the front, whose process id is `parent`.  Returns the exit
 * status. */
int wharf_undertaker_main(int fd, int parent);

#endif
