/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner_process.c: starts, asks and kills a process that looks up owners.
 */
#include "daemon/disposable/owner_process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/exit_text.h"
#include "daemon/base/list.h"
#include "daemon/base/loop.h"
#include "daemon/base/loop_source.h"
#include "daemon/disposable/disposable.h"

/* Lets go of what the core has of it. */
static void forget(struct wharf_owner_process *process)
{
    wharf_loop_remove(process->loop, &process->source);
    wharf_loop_remove(process->loop, &process->exit_source);
    wharf_close_fd(process->source.fd);
    wharf_close_fd(process->exit_source.fd);
    wharf_list_remove(&process->link);
    free(process);
}

/* SIGKILL changes nothing of the end of a process whose socket was closed by its end. */
static void tell_end(const struct wharf_owner_process *process, const siginfo_t *info)
{
    int status = info->si_code == CLD_EXITED ? info->si_status : 128 + info->si_status;
    char text[WHARF_EXIT_TEXT_NBYTES], end[WHARF_EXIT_TEXT_NBYTES + sizeof("has ended ")];

    if (!process->tell)
        return;
    snprintf(end, sizeof(end), "has ended %s", wharf_exit_text(status, text));
    process->tell(end);
}

static void on_exit_of_process(struct wharf_source *source, uint32_t ready)
{
    struct wharf_owner_process *process =
        WHARF_LIST_ENTRY(source, struct wharf_owner_process, exit_source);
    siginfo_t info = {0};

    (void)ready;
    waitid(P_PIDFD, (id_t)source->fd, &info, WEXITED);
    tell_end(process, &info);
    process->killed->n--;
    forget(process);
}

/* Takes the socket, also when it fails.  Its end is waited for when it was killed: before that its
 * socket tells. */
static int watch(struct wharf_owner_process *process, int fd, wharf_source_fn *on_answer)
{
    int r = wharf_loop_add(process->loop, &process->source, fd, POLLIN, on_answer);

    process->source.fd = fd;
    if (r < 0)
        return r;
    process->exit_source.fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    return process->exit_source.fd < 0 ? -errno : 0;
}

static int spawn(struct wharf_owner_process *process, const struct wharf_owner_files *files,
                 wharf_source_fn *on_answer)
{
    int fd = wharf_disposable_spawn("--owners", &process->pid);

    if (fd < 0)
        return fd;
    int r = watch(process, fd, on_answer);
    if (r == 0 && send(fd, files, sizeof(*files), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        r = -errno;
    return r;
}

int wharf_owner_process_new(struct wharf_loop *loop, const struct wharf_owner_files *files,
                            wharf_source_fn *on_answer, void *context,
                            struct wharf_owner_killed *killed,
                            struct wharf_owner_process **ret_process)
{
    struct wharf_owner_process *process = calloc(1, sizeof(*process));

    if (!process)
        return -ENOMEM;
    process->loop = loop;
    process->context = context;
    process->killed = killed;
    wharf_list_init(&process->link);
    process->source.fd = process->exit_source.fd = -1;
    int r = spawn(process, files, on_answer);
    if (r < 0) {
        wharf_disposable_undo(process->pid);
        forget(process);
        return r;
    }
    *ret_process = process;
    return 0;
}

void wharf_owner_process_kill(struct wharf_owner_process *process, void (*tell)(const char *end))
{
    process->tell = tell;
    kill(process->pid, SIGKILL);
    wharf_loop_remove(process->loop, &process->source);
    process->source.fd = wharf_close_fd(process->source.fd);
    process->killed->n++;
    wharf_list_append(&process->killed->list, &process->link);
    /* Where that fails it stays counted: fewer are started. */
    int r = wharf_loop_add(process->loop, &process->exit_source, process->exit_source.fd, POLLIN,
                           on_exit_of_process);
    if (r < 0 && tell)
        tell("has ended");
}

void wharf_owner_process_free(struct wharf_owner_process *process)
{
    if (!process)
        return;
    kill(process->pid, SIGKILL);
    forget(process);
}

int wharf_owner_process_ask(struct wharf_owner_process *process, enum wharf_owner_kind kind,
                            uid_t uid)
{
    struct wharf_owner_question question = {.uid = uid, .kind = kind};

    return send(process->source.fd, &question, sizeof(question), MSG_DONTWAIT | MSG_NOSIGNAL) < 0
               ? -errno
               : 0;
}

int wharf_owner_process_receive(struct wharf_owner_process *process,
                                struct wharf_owner_answer *ret_answer)
{
    struct wharf_owner_answer answer;
    ssize_t n = recv(process->source.fd, &answer, sizeof(answer), MSG_DONTWAIT);

    if (n < 0)
        return -errno;
    if (n != sizeof(answer))
        return -EPIPE;
    if (!process->is_up) {
        process->is_up = true;
        return 0;
    }
    *ret_answer = answer;
    return 1;
}

bool wharf_owner_process_has_answered(const struct wharf_owner_process *process)
{
    return wharf_disposable_has_answered(process->source.fd);
}
