/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.h: what the daemon's threads have in common: sessions, queues, workers, GPUs.
 *
 * All of it is guarded by the core lock (core_lock.h), which DESIGN.md explains.
 */
#ifndef WHARF_DAEMON_CORE_CORE_H
#define WHARF_DAEMON_CORE_CORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/config.h"
#include "daemon/base/heap.h"
#include "daemon/base/list.h"
#include "daemon/core/backend.h"
#include "daemon/core/gpu_view.h"
#include "daemon/core/job.h"
#include "daemon/core/queues.h"
#include "daemon/core/residency.h"
#include "daemon/core/retry_queue.h"
#include "daemon/core/session.h"
#include "daemon/core/tenant.h"

struct wharf_loop;

/* The CPU's threads; cpu/ counts them.  One that is awake looks at the rings before it does
 * anything long. */
struct wharf_worker_counts {
    uint32_t n_workers;
    uint32_t n_awake;   /* looking, or called and soon looking */
    uint32_t n_short;   /* doing something that is not estimated to be long */
    uint32_t n_long;    /* doing something that is */
    uint32_t n_brief;   /* of the short ones, those that look at the rings within some 100 us */
    uint32_t n_blocked; /* of the long ones, those blocked in a client's memory */
    uint32_t n_sleeping;
    uint64_t n_shared_chunks; /* that several workers could decode together */
    uint64_t n_shared_ranges; /* in so many ranges of parts */
    uint64_t n_helped_ranges; /* of which others than the chunk's worker took so many */
};

/* Which sessions are looked at: activity.h. */
struct wharf_watching {
    struct wharf_list watched; /* whose rings are looked at without being rung for */
    struct wharf_list stale;   /* sessions that are counted as active and are not */
    uint32_t n_lingering;      /* sessions that linger */
    uint64_t active_weight;    /* of tenants that have active sessions */
};

/* Work that only idle processors do: idle_work.h. */
struct wharf_idle_work {
    uint32_t n_running; /* pieces of it that workers have */
    uint32_t n_fewer;   /* workers than there are that may have some, as many as that */
    uint32_t n_calm;    /* pieces that ended since somebody waited */
    uint64_t n_pieces;  /* begun */
    uint64_t n_throttled;
};

struct wharf_core {
    pthread_mutex_t lock;
    struct wharf_loop *loop;
    struct wharf_backend *backend; /* the CPU's */
    struct wharf_gpu_fleet fleet;
    uint32_t n_stopped; /* jobs that were stopped while an engine had pieces of them */
    int promise_fd;     /* the lock of Hello's promise, for workers; -1: none */
    struct wharf_residency residency;
    struct wharf_retry_queue retries;
    struct wharf_config config; /* as the loop thread last gave it */
    uint64_t generation;
    /* What statistics tell of the daemon. */
    double started_s;    /* Unix time */
    double configured_s; /* when the configuration was last read well, likewise */
    bool has_bad_config; /* what was read last was refused */
    bool is_draining;

    struct wharf_tenants tenants;
    struct wharf_watching watching;
    struct wharf_list sessions; /* all that are not freed */
    struct wharf_list leases;   /* lease.h: that there are, the oldest first */
    struct wharf_list unpublished;
    struct wharf_list split_decodes; /* split_decode.h: chunks that idle workers can help with */
    struct wharf_list events;        /* sessions that the loop thread has to look at */
    struct wharf_sched sched[WHARF_N_POOLS];
    struct wharf_list suspended; /* tenants whose jobs are not begun for a while */
    /* A tenant that the loop thread has to name in the log; or "". */
    char newly_blocked[WHARF_CONFIG_NAME_NBYTES];
    bool is_watched_over;        /* the loop thread looks whether workers are blocked */
    uint32_t n_waiting;          /* jobs that wait for memory, or are due */
    struct wharf_list due;       /* sessions with jobs that may have to wait no longer */
    int64_t cpu_lead_ns;         /* what pool ANY has had more of the CPU than its own one */
    struct wharf_heap deadlines; /* of jobs */
    uint64_t loop_wakes_at_ns;   /* when the loop thread will look at them by itself */
    /* To be done when the lock is left. */
    bool wake_loop;
    void *called[2]; /* threads of engines */
    uint32_t n_called;

    struct wharf_worker_counts workers;
    struct wharf_idle_work idle_work;
    bool is_short_of_workers; /* all spare workers replace blocked ones; read atomically */
    bool nothing_fits;        /* what is queued cannot be begun now */

    /* Looked at without the lock all the time, so on a cache line of their own. */
    _Alignas(64) uint32_t n_gpus_coming; /* threads of GPUs that want the lock */
    uint32_t n_urgent_wakes;             /* of clients that had interactive jobs */
};

/* `config` is copied; its lists stay the caller's.  Returns 0 or -errno; deinit is good either way.
 * Without the lock. */
int wharf_core_init(struct wharf_core *core, const struct wharf_config *config,
                    struct wharf_loop *loop);
void wharf_core_deinit(struct wharf_core *core);

#endif
