/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend.h: an engine, as the core sees it.
 *
 * A backend has threads of its own.  They take pieces of jobs with wharf_core_next and return them
 * with wharf_core_done; for these two calls they hold the core lock (wharf_core_enter,
 * wharf_core_leave) and no other.  CPU threads decode the pieces.  For each GPU (gpus.h) one thread
 * feeds a worker process and collects its results.
 */
#ifndef WHARF_DAEMON_CORE_BACKEND_H
#define WHARF_DAEMON_CORE_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_config;
struct wharf_backend;
struct wharf_core;

struct wharf_backend_ops {
    uint32_t number; /* enum wharf_engine */

    /* Creates it, starts its threads and sets core->backend.  0 or -errno. */
    int (*start)(struct wharf_core *core, const struct wharf_config *config);
    /* Ends its threads after their current pieces, and clears core->backend.  Without the core
     * lock.  NULL is allowed. */
    void (*stop)(struct wharf_backend *backend);
    /*
     * Under the core lock: there is work, or a ring to watch.  If a thread sleeps, marks it as
     * awake and returns the argument for `wake`, which the caller calls without the lock.  NULL:
     * all threads are busy.
     */
    void *(*call)(struct wharf_backend *backend);
    void (*wake)(void *called);
    /* For the watchdog, under the core lock: the start time of the oldest running piece;
     * WHARF_NEVER if all threads are idle. */
    uint64_t (*busy_since)(const struct wharf_backend *backend);
    /* Under the core lock: finds threads that are blocked in a client's memory.  Returns when to
     * check again, WHARF_NEVER while all threads are idle.  NULL: no check is needed. */
    uint64_t (*watch)(struct wharf_backend *backend, uint64_t now_ns);
};

struct wharf_backend {
    const struct wharf_backend_ops *ops;
};

extern const struct wharf_backend_ops wharf_cpu_backend;

#endif
