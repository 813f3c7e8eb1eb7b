/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop_source.h: descriptors and timers that a loop waits for.
 */
#ifndef WHARF_DAEMON_BASE_LOOP_SOURCE_H
#define WHARF_DAEMON_BASE_LOOP_SOURCE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/fair_queue.h"
#include "daemon/base/heap.h"
#include "daemon/base/list.h"

struct wharf_loop;
struct wharf_source;
struct wharf_timer;

/* `ready` has POLLIN, POLLOUT, POLLRDHUP, POLLHUP and POLLERR, as poll() sets them. */
typedef void wharf_source_fn(struct wharf_source *source, uint32_t ready);
typedef void wharf_timer_fn(struct wharf_timer *timer);

/* A descriptor to wait for.  It is a member of the object that it belongs to. */
struct wharf_source {
    int fd;
    /* POLLIN, POLLOUT, POLLRDHUP; 0: nothing at present, not even its end or an error. */
    uint32_t wanted;
    wharf_source_fn *call;
    /* The loop's own. */
    uint32_t slot; /* from 1; 0: not in a loop */
    bool is_armed;
    uint32_t ready;                 /* argument of the call, while it waits for its turn */
    struct wharf_list turn_link;    /* in the party's waiting work */
    struct wharf_fair_party *party; /* or NULL */
};

struct wharf_timer {
    struct wharf_heap_node node;
    wharf_timer_fn *call;
};

enum wharf_loop_kind { WHARF_LOOP_URING, WHARF_LOOP_EPOLL };

#endif
