/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_link.h: a GPU's worker as a process: starting it, talking to it, its end.
 *
 * It ends with the thread that started it (PDEATHSIG), and it is gone when its pidfd says so: never
 * only because its socket ended, which happens while the driver may still be writing for it.
 * One thread uses a link.
 */
#ifndef WHARF_DAEMON_GPU_WORKER_LINK_H
#define WHARF_DAEMON_GPU_WORKER_LINK_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/gpu/worker_message.h"

struct wharf_worker_link {
    pid_t pid; /* 0: there is none */
    int pidfd;
    int socket; /* -1: it has ended, or was closed */
};

#define WHARF_WORKER_LINK_NONE ((struct wharf_worker_link){.pidfd = -1, .socket = -1})

/*
 * Starts `program` (a path) for the GPU of that name.  promise_fd is the lock that keeps Hello's
 * promise, which the worker holds too; -1: none.  Returns 0 or -errno.
 */
int wharf_worker_link_start(const char *program, const char *gpu, int promise_fd,
                            struct wharf_worker_link *ret_link);

/* With a descriptor, or -1.  Returns 0, or -errno; -EAGAIN: its socket is full. */
int wharf_worker_link_send(const struct wharf_worker_link *link,
                           const struct wharf_worker_message *message, int fd);

/* Returns 1, 0 if there is nothing, or -errno: -EPIPE when the worker has closed its end, -EPROTO
 * for what is no message. */
int wharf_worker_link_receive(const struct wharf_worker_link *link,
                              struct wharf_worker_message *ret_message);

/* Sends SIGKILL.  What it could write is its own until it is gone. */
void wharf_worker_link_kill(const struct wharf_worker_link *link);

/* Whether it is gone, and nothing of it writes any more; then reaps it, closes everything, and says
 * how it ended: its exit status, or 128 and the signal. */
bool wharf_worker_link_is_gone(struct wharf_worker_link *link, int *ret_status);

#endif
