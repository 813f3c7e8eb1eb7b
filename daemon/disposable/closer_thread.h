/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closer_thread.h: a thread that closes sockets of clients in which no descriptor is left.
 *
 * Such a close waits for nobody, but it takes time when many clients come and go, and on older
 * kernels more while many sockets are on their way inside other sockets.  The loop thread does not
 * have that time.  Sockets that may hold descriptors go to the closer process instead
 * (closer_process.h). Used by the loop thread.
 */
#ifndef WHARF_DAEMON_DISPOSABLE_CLOSER_THREAD_H
#define WHARF_DAEMON_DISPOSABLE_CLOSER_THREAD_H

struct wharf_closer_thread;

/* Starts the thread.  0 or -errno. */
int wharf_closer_thread_new(struct wharf_closer_thread **ret_closer);

/* Ends the thread when it has closed all sockets.  NULL is allowed. */
void wharf_closer_thread_free(struct wharf_closer_thread *closer);

/* Takes a socket over.  While 256 wait, since the thread cannot keep up, closes it here. */
void wharf_closer_thread_take(struct wharf_closer_thread *closer, int fd);

#endif
