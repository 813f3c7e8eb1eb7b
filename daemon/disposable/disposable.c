/* SPDX-License-Identifier: Apache-2.0 */
/* disposable.c: how such processes begin, and what the core looks for. */
#include "daemon/disposable/disposable.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/spawn.h"

int wharf_disposable_spawn(const char *option, pid_t *ret_pid)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    int r = wharf_spawn_self(option, pair[1], NULL, 0, ret_pid);
    wharf_close_fd(pair[1]);
    if (r < 0) {
        wharf_close_fd(pair[0]);
        return r;
    }
    return pair[0];
}

void wharf_disposable_undo(pid_t pid)
{
    if (pid == 0)
        return;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

bool wharf_disposable_has_answered(int fd)
{
    struct pollfd answer = {.fd = fd, .events = POLLIN};

    return poll(&answer, 1, 0) == 1 && answer.revents & POLLIN;
}

bool wharf_disposable_begin(const char *name, pid_t parent)
{
    prctl(PR_SET_NAME, name);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* It may have died before that. */
    if (getppid() != parent)
        return false;
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    signal(SIGPIPE, SIG_IGN);
    return true;
}
