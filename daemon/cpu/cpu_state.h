/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_state.h: the CPU workers, which poll the rings and decode.
 *
 * cpu_worker.c has a worker's loop.  cpu_pieces.c runs a piece, and serves other tenants in the
 * middle of a long one.  There are as many spare workers as workers.  A spare worker runs while a
 * regular worker is blocked in a client's memory.
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

/* How deep a worker's pieces can interrupt each other. */
#define WHARF_CPU_MOST_DEEP 4

/* A piece within this time is brief: no other worker is called to poll the rings meanwhile. */
#define WHARF_CPU_BRIEF_NS 100000u

struct wharf_cpu_worker {
    struct wharf_cpu_backend *backend;
    pthread_t thread;
    bool is_started;
    sem_t called;
    struct wharf_cpu_buffer buffers[WHARF_CPU_MOST_DEEP];
    struct wharf_lease lease;
    struct wharf_cpu_time time;
    uint32_t n_given_way; /* the core's n_urgent_wakes when it last gave way */
    pid_t tid;
    bool is_spare;
    bool is_blocked;                       /* written under the core lock, atomically */
    struct wharf_cpu_worker *next_sleeper; /* core lock, as all below */
    uint64_t busy_since_ns;                /* since when it has not polled the rings */
    uint64_t suspect_since_ns;             /* when it was first seen waiting, after busy_since_ns */
    struct wharf_tenant *tenant;           /* of its piece, while it is busy */
    bool counts_long;                      /* it counts in n_long, else in n_short */
    bool counts_brief;
    bool waits_for_helpers; /* helpers can be blocked themselves */
    bool waits_for_file;    /* written atomically, without the lock */
};

struct wharf_cpu_backend {
    struct wharf_backend base;
    struct wharf_core *core;
    cpu_set_t cpus;
    int nice;
    bool stop;                        /* core lock */
    struct wharf_cpu_worker *sleeper; /* the last one to fall asleep, with the warmest caches */
    struct wharf_cpu_worker *spare;   /* the first idle spare worker, linked by next_sleeper */
    uint32_t n_spares_at_work;        /* spare workers that replace a blocked one */
    uint32_t n_threads;               /* workers and spare workers */
    struct wharf_cpu_worker workers[];
};

/* The thread's function; its argument is the worker. */
void *wharf_cpu_worker_run(void *worker);

/* Run pieces, or the jobs of a leased session, without the lock, and hand them back. */
void wharf_cpu_run_pieces(struct wharf_cpu_worker *worker, struct wharf_piece *pieces, unsigned n);
void wharf_cpu_run_lease(struct wharf_cpu_worker *worker);

/* Under the core lock: an awake worker becomes busy with work of that tenant, and returns the time;
 * and it is not busy any more. */
uint64_t wharf_cpu_begin(struct wharf_cpu_worker *worker, struct wharf_tenant *tenant, bool is_long,
                         bool is_brief);
void wharf_cpu_end(struct wharf_cpu_worker *worker);

/* ---- cpu_blocked.c: workers that block in a client's memory; under the core lock ------------ */

/* `watch` of struct wharf_backend_ops. */
uint64_t wharf_cpu_watch(struct wharf_backend *backend, uint64_t now_ns);

/* The worker is not blocked any more. */
void wharf_cpu_unstick(struct wharf_cpu_worker *worker);

#endif
