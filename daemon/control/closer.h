/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closer.h: a thread that closes sockets in which nothing is left.
 *
 * Closing such a socket waits for nobody, but takes a while where many come and go, and on older
 * kernels longer while many sockets are on their way in others: not the loop thread's time.
 */
#ifndef WHARF_DAEMON_CONTROL_CLOSER_H
#define WHARF_DAEMON_CONTROL_CLOSER_H

struct wharf_closer;

/* Starts the thread.  0 or -errno. */
int wharf_closer_new(struct wharf_closer **ret_closer);

/* Ends it when all are closed.  NULL is allowed. */
void wharf_closer_free(struct wharf_closer *closer);

/* Takes a socket over.  If so many wait already that the thread cannot keep up, this one is closed
 * here. */
void wharf_closer_take(struct wharf_closer *closer, int fd);

#endif
