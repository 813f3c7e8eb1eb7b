/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_link.c: starts a worker process with its socket and pidfd, and exchanges messages.
 */
#include "daemon/gpu/worker_link.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "daemon/base/cleanup.h"
#include "proto/control.h"

/* ---- start --------------------------------------------------------------------------------- */

/* Both descriptors are moved out of the way of each other's number first. */
static int spawn(const char *program, const char *gpu, int socket, int promise_fd, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char parent[16];
    char *argv[] = {(char *)program, (char *)"--worker", parent, (char *)gpu, NULL};
    sigset_t none;

    snprintf(parent, sizeof(parent), "%d", (int)getpid());
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, socket, WHARF_WORKER_SOCKET_FD);
    if (promise_fd >= 0)
        posix_spawn_file_actions_adddup2(&actions, promise_fd, WHARF_WORKER_PROMISE_FD);
    int r = posix_spawn(ret_pid, program, &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return -r;
}

/* Duplicates a descriptor to a number that none of the worker's descriptors gets. */
static int copy_above(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, WHARF_WORKER_PROMISE_FD + 1);
}

int wharf_worker_link_start(const char *program, const char *gpu, int promise_fd,
                            struct wharf_worker_link *ret_link)
{
    struct wharf_worker_link link = WHARF_WORKER_LINK_NONE;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    WHARF_CLEANUP_FD int own = pair[0];
    WHARF_CLEANUP_FD int theirs = pair[1];
    WHARF_CLEANUP_FD int socket = copy_above(theirs);
    WHARF_CLEANUP_FD int promise = promise_fd >= 0 ? copy_above(promise_fd) : -1;
    if (socket < 0 || (promise_fd >= 0 && promise < 0))
        return -errno;
    int r = spawn(program, gpu, socket, promise, &link.pid);
    if (r < 0)
        return r;
    link.pidfd = (int)syscall(SYS_pidfd_open, link.pid, 0);
    if (link.pidfd < 0) {
        r = -errno;
        kill(link.pid, SIGKILL);
        waitpid(link.pid, NULL, 0);
        return r;
    }
    link.socket = wharf_steal_fd(&own);
    *ret_link = link;
    return 0;
}

/* ---- messages ------------------------------------------------------------------------------ */

int wharf_worker_link_send(const struct wharf_worker_link *link,
                           const struct wharf_worker_message *message, int fd)
{
    return wharf_control_send(link->socket, (const uint8_t *)message, sizeof(*message), &fd,
                              fd >= 0, MSG_DONTWAIT);
}

int wharf_worker_link_receive(const struct wharf_worker_link *link,
                              struct wharf_worker_message *ret_message)
{
    /* It sends no descriptors: without room for them the kernel drops any. */
    ssize_t n = recv(link->socket, ret_message, sizeof(*ret_message), MSG_DONTWAIT | MSG_TRUNC);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -EPIPE;
    if (n != (ssize_t)sizeof(*ret_message))
        return -EPROTO;
    ret_message->text[sizeof(ret_message->text) - 1] = 0;
    /* Not to be taken for what functions return. */
    if (ret_message->error < 0)
        ret_message->error = EPROTO;
    return 1;
}

/* ---- end ----------------------------------------------------------------------------------- */

void wharf_worker_link_kill(const struct wharf_worker_link *link)
{
    if (link->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, link->pidfd, SIGKILL, NULL, 0);
}

bool wharf_worker_link_is_gone(struct wharf_worker_link *link, int *ret_status)
{
    struct pollfd poll_pidfd = {.fd = link->pidfd, .events = POLLIN};
    siginfo_t info = {.si_code = 0};

    if (link->pidfd < 0 || poll(&poll_pidfd, 1, 0) <= 0)
        return false;
    waitid(P_PIDFD, (id_t)link->pidfd, &info, WEXITED);
    *ret_status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    wharf_close_fd(link->pidfd);
    wharf_close_fd(link->socket);
    *link = WHARF_WORKER_LINK_NONE;
    return true;
}
