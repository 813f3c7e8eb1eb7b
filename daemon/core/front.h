/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.h: what the daemon's threads have in common: sessions, queues, workers, GPUs.
 *
 * All of it is guarded by the front lock (front_lock.h), which DESIGN.md explains.
 */
#ifndef WHARF_DAEMON_CORE_FRONT_H
#define WHARF_DAEMON_CORE_FRONT_H

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

struct wharf_front {
    pthread_mutex_t lock;
    struct wharf_loop *loop;
    struct wharf_backend *backend; /* the CPU's */
    struct wharf_gpu_view gpus[WHARF_MAX_GPUS];
    uint32_t n_gpus;             /* that there are, or may be */
    pthread_cond_t gpus_changed; /* what became of a worker */
    uint32_t gpu_engine;         /* enum wharf_engine: GPU or SIMT; AUTO: none, nor will be */
    uint64_t gpu_codecs;         /* bit i: workers decode codec i; 0: none was ready yet */
    uint32_t gpus_up;            /* bits: whose worker takes items */
    uint32_t gpus_asleep;        /* whose thread sleeps */
    uint32_t gpus_looking;       /* whose thread is awake and looks at the rings */
    uint32_t gpus_wanted;        /* whose thread has something to look at */
    uint32_t gpus_left;          /* which a CPU thread left a job to */
    uint32_t gpus_called;        /* whose thread is woken when the lock is left */
    bool gpu_was_up;             /* some worker has been ready: what engines take is known */
    uint32_t n_stopped;          /* jobs that were stopped while an engine had pieces of them */
    int promise_fd;              /* the lock of Hello's promise, for workers; -1: none */
    uint32_t n_gpu_tenants;      /* that have items with GPUs */
    uint64_t n_parted_chunks;    /* that GPUs have decoded in parts */
    uint64_t n_parts;            /* in so many */
    uint64_t n_parts_refused;    /* chunks that could not be decoded so, and were decoded whole */
    struct wharf_residency residency;
    struct wharf_retry_queue retries;
    struct wharf_config config; /* as the loop thread last gave it */
    uint64_t generation;
    /* What statistics tell of the daemon. */
    double started_s;      /* Unix time */
    double configured_s;   /* when the configuration was last read well, likewise */
    bool has_bad_config;   /* what was read last was refused */
    uint32_t n_gpus_there; /* that the machine shows, or the configuration names */
    bool is_draining;

    struct wharf_tenants tenants;
    struct wharf_list sessions; /* all that are not freed */
    struct wharf_list watched;  /* whose rings are looked at without being rung for */
    struct wharf_list leases;   /* lease.h: that there are, the oldest first */
    struct wharf_list unpublished;
    struct wharf_list shares; /* share.h: chunks that idle workers can help with */
    struct wharf_list stale;  /* sessions that are counted as active and are not */
    struct wharf_list events; /* sessions that the loop thread has to look at */
    struct wharf_sched sched[WHARF_N_POOLS];
    struct wharf_list suspended;                /* tenants whose jobs are not begun for a while */
    char newly_stuck[WHARF_CONFIG_NAME_NBYTES]; /* a tenant that the loop thread has to name; or ""
                                                 */
    bool is_watched_over;        /* the loop thread looks whether workers are stuck */
    uint32_t n_waiting;          /* jobs that wait for memory, or are due */
    struct wharf_list due;       /* sessions with jobs that may have to wait no longer */
    uint64_t active_weight;      /* of tenants that have active sessions */
    int64_t cpu_lead_ns;         /* what pool ANY has had more of the CPU than its own one */
    struct wharf_heap deadlines; /* of jobs */
    uint64_t loop_wakes_at_ns;   /* when the loop thread will look at them by itself */
    /* To be done when the lock is left. */
    bool wake_loop;
    void *called[2]; /* threads of engines */
    uint32_t n_called;

    /* The engine's threads.  One that is awake looks at the rings before it does anything long. */
    uint32_t n_workers;
    uint32_t n_awake; /* looking, or called and soon looking */
    uint32_t n_short; /* doing something that is not estimated to be long */
    uint32_t n_long;  /* doing something that is */
    uint32_t n_brief; /* of the short ones, those that look at the rings within some 100 us */
    uint32_t n_stuck; /* of the long ones, those blocked in a client's memory */
    uint32_t n_sleeping;
    uint32_t n_lingering;     /* sessions that linger */
    bool nothing_fits;        /* what is queued cannot be begun now */
    uint64_t n_shared_chunks; /* that several workers could decode together */
    uint64_t n_shared_ranges; /* in so many ranges of parts */
    uint64_t n_helped_ranges; /* of which others than the chunk's worker took so many */

    /* Looked at without the lock all the time, so on a cache line of their own. */
    _Alignas(64) uint32_t n_gpus_coming; /* threads of GPUs that want the lock */
    uint32_t n_urgent_wakes;             /* of clients that had interactive jobs */
};

/* `config` is copied; its lists stay the caller's.  Returns 0 or -errno; deinit is good either way.
 * Without the lock. */
int wharf_front_init(struct wharf_front *front, const struct wharf_config *config,
                     struct wharf_loop *loop);
void wharf_front_deinit(struct wharf_front *front);

#endif
