/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/wakeup_fd.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clientlib/error_text.h"
#include "clientlib/exchange.h"
#include "clientlib/handle.h"
#include "clientlib/rings.h"

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

int wharf_client_wakeup_fd_open(struct wharf *wharf)
{
    struct wharf_client_wakeup_fd *wakeup = &wharf->wakeup;

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

/* ---- what makes it readable ---------------------------------------------------------------- */

static void watch_socket(struct wharf *wharf)
{
    struct wharf_client_wakeup_fd *wakeup = &wharf->wakeup;

    if (wharf->link.socket == wakeup->watched_socket)
        return;
    if (watch(wakeup->epoll_fd, wharf->link.socket) == 0)
        wakeup->watched_socket = wharf->link.socket;
}

static void set_timer(struct wharf *wharf)
{
    uint64_t at_ns = wharf->link.state == WHARF_CLIENT_LINK_DOWN && wharf->is_daemon
                         ? wharf->link.next_try_ns
                         : 0;
    struct itimerspec when = {
        .it_value = {(time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u)}};

    /* Setting it also takes back that it has gone off. */
    if (at_ns != wharf->wakeup.timer_ns)
        timerfd_settime(wharf->wakeup.timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
    wharf->wakeup.timer_ns = at_ns;
}

static void signal_event(struct wharf_client_wakeup_fd *wakeup, int is_wanted)
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

/*
 * Lets the daemon send a packet for the next completion.  Returns whether it will, or there is
 * nothing to come.
 */
static int arm(struct wharf *wharf)
{
    struct wharf_client_rings *rings = wharf->link.rings;

    if (wharf->link.state != WHARF_CLIENT_LINK_UP || !wharf_client_rings_n_outstanding(rings) ||
        wharf_client_rings_is_armed(rings, WHARF_WAIT_PACKET))
        return 1;
    return wharf_client_rings_arm(rings, WHARF_WAIT_PACKET, 1) == 0;
}

static int has_work(const struct wharf *wharf)
{
    const struct wharf_client_jobs *jobs = &wharf->jobs;

    if (wharf->is_daemon)
        return jobs->done.n || wharf->link.state == WHARF_CLIENT_LINK_BROKEN;
    return jobs->done.n || jobs->queued[1].n || jobs->queued[2].n || jobs->queued[3].n;
}

void wharf_client_wakeup_fd_update(struct wharf *wharf)
{
    int is_armed = arm(wharf);

    /* What came meanwhile is taken here, and then the next one is asked for; a few times. */
    for (int i = 0; !is_armed && i < 4; i++) {
        wharf_client_exchange(wharf);
        is_armed = arm(wharf);
    }
    if (wharf->link.socket >= 0 && wharf->link.state != WHARF_CLIENT_LINK_BROKEN)
        watch_socket(wharf);
    set_timer(wharf);
    signal_event(&wharf->wakeup, !is_armed || has_work(wharf));
}
