/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_link.h: starts a GPU worker's process, exchanges messages with it, and notices its end.
 *
 * The worker ends with the thread that started it (PDEATHSIG).  It is gone only when its pidfd is
 * readable.  The end of its socket does not suffice: the driver may still write for it then.  One
 * thread uses a link.
 */
#ifndef WHARF_DAEMON_GPU_WORKER_LINK_H
#define WHARF_DAEMON_GPU_WORKER_LINK_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/gpu/worker_message.h"

struct wharf_worker_link {
    pid_t pid; /* 0: there is none */
    int pidfd;
    int socket; /* -1: it was closed */
};

#define WHARF_WORKER_LINK_NONE ((struct wharf_worker_link){.pidfd = -1, .socket = -1})

/*
 * Starts `program` (a path) for the GPU of that name.  promise_fd is the lock of Hello's promise,
 * which the worker inherits; -1: none.  Returns 0 or -errno.
 */
int wharf_worker_link_start(const char *program, const char *gpu, int promise_fd,
                            struct wharf_worker_link *ret_link);

/* With a descriptor, or -1.  Returns 0, or -errno; -EAGAIN: its socket is full. */
int wharf_worker_link_send(const struct wharf_worker_link *link,
                           const struct wharf_worker_message *message, int fd);

/* Returns 1, 0 if there is no message, or -errno: -EPIPE when the worker has closed its end,
 * -EPROTO for a malformed message. */
int wharf_worker_link_receive(const struct wharf_worker_link *link,
                              struct wharf_worker_message *ret_message);

/* Sends SIGKILL.  Until the worker is gone it may still write. */
void wharf_worker_link_kill(const struct wharf_worker_link *link);

/* Whether the worker is gone, so that nothing writes for it any more.  Then reaps it, closes
 * everything, and returns its exit status, or 128 plus the signal. */
bool wharf_worker_link_is_gone(struct wharf_worker_link *link, int *ret_status);

#endif
