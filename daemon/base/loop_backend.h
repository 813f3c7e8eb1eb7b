/* SPDX-License-Identifier: Apache-2.0 */
/* loop_backend.h: what io_uring and epoll have to do for a loop. */
#ifndef WHARF_DAEMON_BASE_LOOP_BACKEND_H
#define WHARF_DAEMON_BASE_LOOP_BACKEND_H

#include "daemon/base/loop_source.h"

/* Token of a source for the kernel: its slot, and which use of the slot it is. */
struct wharf_loop_slot {
    struct wharf_source *source; /* NULL: free */
    uint32_t use;
};

struct wharf_loop_backend {
    int (*init)(struct wharf_loop *loop);
    void (*deinit)(struct wharf_loop *loop);
    /* Tells the kernel what source->wanted has become.  It then reports a source of a party once.
     */
    int (*want)(struct wharf_loop *loop, struct wharf_source *source, uint32_t before);
    /* A source that was called, and wants something, is to be reported again. */
    void (*again)(struct wharf_loop *loop, struct wharf_source *source);
    /* Sleeps until `timeout_ns` (WHARF_NEVER: for ever) have passed or something is ready, and
     * calls wharf_loop_ready for it.  0: only takes what is there. */
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
    uint32_t wake_pending; /* written by all threads */
    void (*woken)(void *context);
    void *woken_context;
};

/* What a backend gives the kernel for a source, and gets back with its readiness. */
uint64_t wharf_loop_token(const struct wharf_loop *loop, const struct wharf_source *source);

/* The token's source, or NULL when it is not there (any more). */
struct wharf_source *wharf_loop_source(struct wharf_loop *loop, uint64_t token);

/* Calls a source that is ready, or has it wait for its turn; returns whether it was called. */
bool wharf_loop_ready(struct wharf_loop *loop, struct wharf_source *source, uint32_t ready);

#endif
