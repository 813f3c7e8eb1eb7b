/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closer_thread.h: a thread that closes clients' sockets which contain no descriptors.
 *
 * Such a close never hangs, but it takes time when many clients come and go, and more on older
 * kernels while many sockets are in flight inside other sockets.  The loop thread cannot spend that
 * time.  Sockets that may contain descriptors go to the closer process (closer_process.h).  For the
 * loop thread.
 */
#ifndef WHARF_DAEMON_DISPOSABLE_CLOSER_THREAD_H
#define WHARF_DAEMON_DISPOSABLE_CLOSER_THREAD_H

struct wharf_closer_thread;

/* Starts the thread.  0 or -errno. */
int wharf_closer_thread_new(struct wharf_closer_thread **ret_closer);

/* Ends the thread when it has closed all sockets.  NULL is allowed. */
void wharf_closer_thread_free(struct wharf_closer_thread *closer);

/* Takes ownership of a socket.  If 256 are waiting for the thread, closes it here. */
void wharf_closer_thread_take(struct wharf_closer_thread *closer, int fd);

#endif
