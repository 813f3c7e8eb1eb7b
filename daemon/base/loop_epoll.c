/* SPDX-License-Identifier: Apache-2.0 */
/* loop_epoll.c: readiness by epoll, for where io_uring is refused. */
#include <assert.h>
#include <sys/epoll.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/loop_backend.h"

#define MAX_EVENTS 64

static_assert((int)EPOLLIN == POLLIN && (int)EPOLLOUT == POLLOUT && (int)EPOLLERR == POLLERR &&
                  (int)EPOLLHUP == POLLHUP && (int)EPOLLRDHUP == POLLRDHUP,
              "events pass through without translation");

struct epoll_backend {
    int fd;
};

static int init(struct wharf_loop *loop)
{
    struct epoll_backend *data = malloc(sizeof(*data));

    if (!data)
        return -ENOMEM;
    data->fd = epoll_create1(EPOLL_CLOEXEC);
    if (data->fd < 0) {
        int saved = errno;
        free(data);
        return -saved;
    }
    loop->backend_data = data;
    return 0;
}

static void deinit(struct wharf_loop *loop)
{
    struct epoll_backend *data = loop->backend_data;

    wharf_close_fd(data->fd);
    free(data);
}

/* Sources of parties are reported once, and armed again after their turn.  Otherwise those that
 * wait for turns would fill the events of every wait. */
static struct epoll_event event_of(const struct wharf_loop *loop, const struct wharf_source *source)
{
    return (struct epoll_event){
        .events = source->wanted | (source->party ? (uint32_t)EPOLLONESHOT : 0),
        .data.u64 = wharf_loop_token(loop, source),
    };
}

/* A source that wants nothing is unregistered, since epoll would report its hang-up for ever. */
static int want(struct wharf_loop *loop, struct wharf_source *source, uint32_t before)
{
    struct epoll_backend *data = loop->backend_data;
    struct epoll_event event = event_of(loop, source);
    int operation = EPOLL_CTL_MOD;

    if (!before)
        operation = EPOLL_CTL_ADD;
    else if (!source->wanted)
        operation = EPOLL_CTL_DEL;
    if (epoll_ctl(data->fd, operation, source->fd, &event) < 0)
        return -errno;
    source->is_armed = source->wanted != 0;
    return 0;
}

/* The source is registered, so this allocates nothing. */
static void again(struct wharf_loop *loop, struct wharf_source *source)
{
    struct epoll_backend *data = loop->backend_data;
    struct epoll_event event = event_of(loop, source);

    source->is_armed = epoll_ctl(data->fd, EPOLL_CTL_MOD, source->fd, &event) == 0;
}

/* Rounds up, so that a timer is due when the sleep ends. */
static int milliseconds(uint64_t timeout_ns)
{
    uint64_t ms = timeout_ns / WHARF_NS_PER_MS + (timeout_ns % WHARF_NS_PER_MS != 0);

    if (timeout_ns == WHARF_NEVER)
        return -1;
    return ms < 1000000 ? (int)ms : 1000000;
}

static int wait_ready(struct wharf_loop *loop, uint64_t timeout_ns)
{
    struct epoll_backend *data = loop->backend_data;
    struct epoll_event events[MAX_EVENTS];
    int n = epoll_wait(data->fd, events, MAX_EVENTS, milliseconds(timeout_ns));

    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    for (int i = 0; i < n; i++) {
        struct wharf_source *source = wharf_loop_source(loop, events[i].data.u64);
        if (!source || !source->is_armed)
            continue;
        source->is_armed = !source->party;
        wharf_loop_ready(loop, source, events[i].events);
    }
    return 0;
}

const struct wharf_loop_backend wharf_loop_epoll = {init, deinit, want, again, wait_ready};
