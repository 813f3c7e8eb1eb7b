/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wakeup_fd.c: an epoll set with the socket, a timer and an eventfd, as one descriptor.
 */
#include "clientlib/wakeup_fd.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clientlib/error_text.h"

void wharf_client_wakeup_fd_init(struct wharf_client_wakeup_fd *wakeup)
{
    memset(wakeup, 0, sizeof(*wakeup));
    wakeup->epoll_fd = wakeup->event_fd = wakeup->timer_fd = wakeup->watched_socket = -1;
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void wharf_client_wakeup_fd_deinit(struct wharf_client_wakeup_fd *wakeup)
{
    close_one(&wakeup->epoll_fd);
    close_one(&wakeup->event_fd);
    close_one(&wakeup->timer_fd);
}

static int watch(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

int wharf_client_wakeup_fd_open(struct wharf_client_wakeup_fd *wakeup)
{
    wakeup->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    wakeup->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    wakeup->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (wakeup->event_fd < 0 || wakeup->timer_fd < 0 || wakeup->epoll_fd < 0 ||
        watch(wakeup->epoll_fd, wakeup->event_fd) < 0 ||
        watch(wakeup->epoll_fd, wakeup->timer_fd) < 0) {
        int r = wharf_client_fail(-errno, "no descriptor for event loops: %s", strerror(errno));
        wharf_client_wakeup_fd_deinit(wakeup);
        return r;
    }
    return 0;
}

void wharf_client_wakeup_fd_forget(struct wharf_client_wakeup_fd *wakeup, int socket)
{
    if (wakeup->watched_socket != socket)
        return;
    epoll_ctl(wakeup->epoll_fd, EPOLL_CTL_DEL, socket, NULL);
    wakeup->watched_socket = -1;
}

void wharf_client_wakeup_fd_watch(struct wharf_client_wakeup_fd *wakeup, int socket)
{
    if (socket != wakeup->watched_socket && watch(wakeup->epoll_fd, socket) == 0)
        wakeup->watched_socket = socket;
}

void wharf_client_wakeup_fd_set_timer(struct wharf_client_wakeup_fd *wakeup, uint64_t at_ns)
{
    struct itimerspec when = {
        .it_value = {(time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u)}};

    /* Setting it also takes back that it has gone off. */
    if (at_ns != wakeup->timer_ns)
        timerfd_settime(wakeup->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
    wakeup->timer_ns = at_ns;
}

void wharf_client_wakeup_fd_signal(struct wharf_client_wakeup_fd *wakeup, int is_wanted)
{
    uint64_t count = 1;
    ssize_t n = 0;

    if (is_wanted && !wakeup->is_signalled)
        n = write(wakeup->event_fd, &count, sizeof(count));
    else if (!is_wanted && wakeup->is_signalled)
        n = read(wakeup->event_fd, &count, sizeof(count));
    /* Neither can fail: it is written to once and read once. */
    (void)n;
    wakeup->is_signalled = is_wanted;
}
