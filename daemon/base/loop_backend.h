/* SPDX-License-Identifier: Apache-2.0 */
/* loop_backend.h: the interface between the loop and its two backends, io_uring and epoll. */
#ifndef WHARF_DAEMON_BASE_LOOP_BACKEND_H
#define WHARF_DAEMON_BASE_LOOP_BACKEND_H

#include "daemon/base/loop_source.h"

/* A source's token for the kernel is its slot and the slot's `use`, which changes with each
 * source. */
struct wharf_loop_slot {
    struct wharf_source *source; /* NULL: free */
    uint32_t use;
};

struct wharf_loop_backend {
    int (*init)(struct wharf_loop *loop);
    void (*deinit)(struct wharf_loop *loop);
    /* Tells the kernel that source->wanted has changed.  It then reports a source of a party
     * once. */
    int (*want)(struct wharf_loop *loop, struct wharf_source *source, uint32_t before);
    /* Makes the kernel report a source again that was called, and still wants something. */
    void (*again)(struct wharf_loop *loop, struct wharf_source *source);
    /* Sleeps until something is ready or `timeout_ns` have passed (WHARF_NEVER: no limit; 0: does
     * not sleep), and calls wharf_loop_ready for each ready source. */
    int (*wait)(struct wharf_loop *loop, uint64_t timeout_ns);
};

extern const struct wharf_loop_backend wharf_loop_uring;
extern const struct wharf_loop_backend wharf_loop_epoll;

struct wharf_loop {
    enum wharf_loop_kind kind;
    const struct wharf_loop_backend *backend;
    void *backend_data;
    struct wharf_loop_slot *slots;
    uint32_t n_slots;
    uint32_t free_hint; /* no slot below it is free */
    struct wharf_heap timers;
    struct wharf_fair_queue turns;
    struct wharf_source wake_source;
    uint32_t wake_pending; /* set by any thread */
    void (*woken)(void *context);
    void *woken_context;
};

/* The value that the kernel stores with a source's request and returns with its readiness. */
uint64_t wharf_loop_token(const struct wharf_loop *loop, const struct wharf_source *source);

/* The token's source, or NULL if it has been removed. */
struct wharf_source *wharf_loop_source(struct wharf_loop *loop, uint64_t token);

/* Calls a ready source, or queues it for its turn.  Returns whether it was called. */
bool wharf_loop_ready(struct wharf_loop *loop, struct wharf_source *source, uint32_t ready);

#endif
