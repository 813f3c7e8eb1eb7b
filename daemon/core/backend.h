/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend.h: what runs jobs: the daemon's side of an engine.
 *
 * A backend takes pieces of jobs from the core with wharf_core_next and hands them back with
 * wharf_core_done, both from threads of its own, which hold the core lock for that
 * (wharf_core_enter, wharf_core_leave) and nothing else.  How it runs a piece is its business:
 * the CPU's threads decode, one for each GPU (gpus.h) feeds a worker process and collects what
 * comes back.
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

    /* Makes it, starts its threads and enters it in front->backend.  0 or -errno. */
    int (*start)(struct wharf_core *core, const struct wharf_config *config);
    /* Ends its threads, after the pieces that they have, and takes it out of core->backend.
     * Without the core lock.  NULL is allowed. */
    void (*stop)(struct wharf_backend *backend);
    /*
     * Under the core lock: there is work, or a ring to be watched.  If one of its threads
     * sleeps, promises that it will look, and returns what wakes it: given to `wake` without the
     * lock.  NULL: all are busy.
     */
    void *(*call)(struct wharf_backend *backend);
    void (*wake)(void *called);
    /* Under the core lock: when the piece that has been worked on for longest was begun;
     * WHARF_NEVER if all are idle.  For the watchdog. */
    uint64_t (*busy_since)(const struct wharf_backend *backend);
    /* Under the core lock: finds those of its threads that a client's memory keeps waiting;
     * returns when to look again, WHARF_NEVER while all are idle.  NULL: nobody looks. */
    uint64_t (*watch)(struct wharf_backend *backend, uint64_t now_ns);
};

struct wharf_backend {
    const struct wharf_backend_ops *ops;
};

extern const struct wharf_backend_ops wharf_cpu_backend;

#endif
