/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd_filter_process.c: starts, asks and retires a filter process.
 */
#include "daemon/disposable/fd_filter_process.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/exit_text.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "daemon/base/loop.h"
#include "daemon/base/loop_source.h"
#include "daemon/disposable/disposable.h"

void wharf_fd_filter_process_free(struct wharf_fd_filter_process *process)
{
    wharf_loop_remove(process->loop, &process->source);
    wharf_loop_remove(process->loop, &process->exit_source);
    process->source.fd = wharf_close_fd(process->source.fd);
    process->exit_source.fd = wharf_close_fd(process->exit_source.fd);
    wharf_list_remove(&process->link);
    free(process);
}

/* Takes the socket, also when it fails. */
static int watch(struct wharf_fd_filter_process *process, int fd, wharf_source_fn *on_answer,
                 wharf_source_fn *on_exit)
{
    int r = wharf_loop_add(process->loop, &process->source, fd, POLLIN, on_answer);

    if (r < 0)
        return r;
    int pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    if (pidfd < 0)
        return -errno;
    return wharf_loop_add(process->loop, &process->exit_source, pidfd, POLLIN, on_exit);
}

int wharf_fd_filter_process_new(struct wharf_loop *loop, void *context, wharf_source_fn *on_answer,
                                wharf_source_fn *on_exit,
                                struct wharf_fd_filter_process **ret_process)
{
    struct wharf_fd_filter_process *process = calloc(1, sizeof(*process));

    if (!process)
        return -ENOMEM;
    process->context = context;
    process->loop = loop;
    process->source.fd = process->exit_source.fd = -1;
    wharf_list_init(&process->link);
    int r = wharf_disposable_spawn("--fd-filter", &process->pid);
    if (r >= 0)
        r = watch(process, r, on_answer, on_exit);
    if (r < 0) {
        wharf_disposable_undo(process->pid);
        wharf_fd_filter_process_free(process);
        return r;
    }
    *ret_process = process;
    return 0;
}

void wharf_fd_filter_process_retire(struct wharf_fd_filter_process *process)
{
    kill(process->pid, SIGKILL);
    wharf_loop_remove(process->loop, &process->source);
    process->source.fd = wharf_close_fd(process->source.fd);
}

bool wharf_fd_filter_process_has_answered(const struct wharf_fd_filter_process *process)
{
    return wharf_disposable_has_answered(process->source.fd);
}

int wharf_fd_filter_process_receive(struct wharf_fd_filter_process *process,
                                    struct wharf_fd_filter_answer *ret_answer, uint8_t *packet,
                                    int *ret_fd)
{
    struct iovec iov[2] = {{ret_answer, sizeof(*ret_answer)}, {packet, WHARF_CONTROL_MAX_NBYTES}};
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))];
    struct msghdr header = {
        .msg_iov = iov,
        .msg_iovlen = 2,
        .msg_control = control,
        .msg_controllen = sizeof(control),
    };
    ssize_t n = recvmsg(process->source.fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (n < 0)
        return -errno;
    struct cmsghdr *c = CMSG_FIRSTHDR(&header);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
    if (n < (ssize_t)sizeof(*ret_answer) ||
        ret_answer->packet_nbytes != (size_t)n - sizeof(*ret_answer))
        return -EIO;
    return 0;
}

void wharf_fd_filter_process_log_end(const struct wharf_fd_filter_process *process)
{
    enum wharf_log_level level = process->is_up ? WHARF_LOG_WARNING : WHARF_LOG_ERROR;
    char text[WHARF_EXIT_TEXT_NBYTES];
    siginfo_t info = {0};

    waitid(P_PIDFD, (id_t)process->exit_source.fd, &info, WEXITED);
    int status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    wharf_log_client(level, NULL, "the filter, which receives descriptors, %s %s",
                     process->is_up ? "has ended" : "does not start: it has ended",
                     wharf_exit_text(status, text));
}

void wharf_fd_filter_process_log_late(void)
{
    wharf_log_client(WHARF_LOG_ERROR, NULL,
                     "the filter, which receives descriptors, does not start: it has said nothing "
                     "for %" PRIu64 " s",
                     WHARF_DISPOSABLE_START_NS / WHARF_NS_PER_S);
}
