/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/served_path.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"

/* Of the socket that this one is connected to. */
static bool listener_is_dead(int fd)
{
    struct ucred peer;
    socklen_t nbytes = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &nbytes) < 0 || peer.pid <= 0)
        return false;
    WHARF_CLEANUP_FD int pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    return pidfd < 0 ? errno == ESRCH : poll(&end, 1, 0) > 0;
}

bool wharf_path_is_served(const struct sockaddr_un *address, int type)
{
    WHARF_CLEANUP_FD int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return false;
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
        return errno == EAGAIN;
    return !listener_is_dead(fd);
}
