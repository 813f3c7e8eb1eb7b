/* SPDX-License-Identifier: Apache-2.0 */
/* served_path.c: finds out whether a process serves the path of a socket. */
#include "daemon/control/served_path.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"

/* Whether the process that listens on the socket that fd is connected to has ended. */
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

/* Returns 0; -ESRCH if the listening process has ended; or why the socket cannot be reached. */
static int try_to_connect(const struct sockaddr_un *address, int type)
{
    WHARF_CLEANUP_FD int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
        return -errno;
    return listener_is_dead(fd) ? -ESRCH : 0;
}

bool wharf_path_is_served(const struct sockaddr_un *address, int type)
{
    int r = try_to_connect(address, type);

    return r == 0 || r == -EAGAIN;
}

const char *wharf_path_other_kind(const char *path, int type)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat st;

    if (lstat(path, &st) < 0)
        return NULL;
    if (S_ISSOCK(st.st_mode) && !type)
        return NULL;
    if (S_ISSOCK(st.st_mode)) {
        snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        return try_to_connect(&address, type) == -EPROTOTYPE ? "a socket of another type" : NULL;
    }
    if (S_ISREG(st.st_mode))
        return "a regular file";
    if (S_ISLNK(st.st_mode))
        return "a symbolic link";
    return S_ISDIR(st.st_mode) ? "a folder" : "a device or pipe";
}
