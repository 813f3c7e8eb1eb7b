/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_state.h: threads that watch the rings and decode what they find there.
 *
 * cpu_worker.c is a worker's loop; cpu_pieces.c runs the piece that it was given, and serves other
 * tenants in the middle of a long one.  Each worker has a stand-in, a spare worker that runs while
 * a regular worker is blocked in a client's memory.
 */
#ifndef WHARF_DAEMON_CPU_CPU_STATE_H
#define WHARF_DAEMON_CPU_CPU_STATE_H

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/backend.h"
#include "daemon/cpu/cpu_run.h"
#include "daemon/cpu/cpu_time.h"
#include "daemon/cpu/lease.h"

/* Pieces of a worker that are in the middle of each other. */
#define WHARF_CPU_MOST_DEEP 4

/* What is done in that time is brief: another one waits for it rather than to be called. */
#define WHARF_CPU_BRIEF_NS 100000u

struct wharf_cpu_worker {
    struct wharf_cpu_backend *backend;
    pthread_t thread;
    bool is_started;
    sem_t called;
    struct wharf_cpu_buffer buffers[WHARF_CPU_MOST_DEEP];
    struct wharf_lease lease;
    struct wharf_cpu_time time;
    uint32_t n_given_way; /* the core's n_urgent_wakes when it last did */
    pid_t tid;
    bool is_spare;
    bool is_blocked;                       /* written under the core lock, atomically */
    struct wharf_cpu_worker *next_sleeper; /* core lock, as all below */
    uint64_t busy_since_ns;                /* it has not looked around since */
    uint64_t suspect_since_ns;             /* it was seen waiting, later than that */
    struct wharf_tenant *tenant;           /* whose piece it has; while it is busy */
    bool counts_long;                      /* it is one of n_long, else of n_short */
    bool counts_brief;
    bool waits_for_helpers; /* which can be blocked themselves */
    bool waits_for_file;    /* written atomically, without the lock */
};

struct wharf_cpu_backend {
    struct wharf_backend base;
    struct wharf_core *core;
    cpu_set_t cpus;
    int nice;
    bool stop;                        /* core lock */
    struct wharf_cpu_worker *sleeper; /* that went to sleep last, whose caches are warmest */
    struct wharf_cpu_worker *spare;   /* one that nobody needs at present, and so on */
    uint32_t n_spares_at_work;        /* those that somebody does */
    uint32_t n_threads;               /* workers and stand-ins */
    struct wharf_cpu_worker workers[];
};

/* The thread; its argument is the worker. */
void *wharf_cpu_worker_run(void *worker);

/* Run pieces that the worker was given, or the jobs of the session that it has to itself, without
 * the lock, and hand them back. */
void wharf_cpu_run_pieces(struct wharf_cpu_worker *worker, struct wharf_piece *pieces, unsigned n);
void wharf_cpu_run_lease(struct wharf_cpu_worker *worker);

/* Under the core lock: the worker, which was awake, is busy with something of that tenant's from
 * now on; returns the time.  And no more. */
uint64_t wharf_cpu_begin(struct wharf_cpu_worker *worker, struct wharf_tenant *tenant, bool is_long,
                         bool is_brief);
void wharf_cpu_end(struct wharf_cpu_worker *worker);

/* ---- cpu_blocked.c: workers whom a client's memory keeps waiting; under the core lock -----------
 */

/* Of struct wharf_backend_ops. */
uint64_t wharf_cpu_watch(struct wharf_backend *backend, uint64_t now_ns);

/* It goes on. */
void wharf_cpu_unstick(struct wharf_cpu_worker *worker);

#endif
