/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.h: the data that all threads of the daemon share: sessions, queues, workers, GPUs.
 *
 * The core lock (core_lock.h) guards all of it; DESIGN.md explains the lock.
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

/* How many CPU threads are in which state; cpu/ counts them.  An awake thread polls the rings
 * before it begins anything long. */
struct wharf_worker_counts {
    uint32_t n_workers;
    uint32_t n_awake;   /* polling, or called and about to poll */
    uint32_t n_short;   /* running a piece that is not estimated to be long */
    uint32_t n_long;    /* running a long piece */
    uint32_t n_brief;   /* of n_short: those that poll the rings again within about 100 us */
    uint32_t n_blocked; /* of n_long: those that are blocked in a client's memory */
    uint32_t n_sleeping;
    uint64_t n_shared_chunks; /* chunks that several workers could decode together */
    uint64_t n_shared_ranges; /* ranges of parts into which these were split */
    uint64_t n_helped_ranges; /* ranges that another worker than the chunk's took */
};

/* Whose rings are polled: activity.h. */
struct wharf_watching {
    struct wharf_list watched; /* sessions whose rings are polled without a doorbell */
    struct wharf_list stale;   /* sessions that still count as active, but are not */
    uint32_t n_lingering;      /* sessions that linger */
    uint64_t active_weight;    /* of tenants that have active sessions */
};

/* Tenants with jobs that wait for their start words: starts.h. */
struct wharf_starts {
    struct wharf_heap looks; /* all of them, by when their words are polled next */
    struct wharf_list young; /* those for whom threads poll, the one with the newest job last */
    uint64_t spun_ns;        /* time that threads polled for them since the last look */
    uint64_t woken_ns;       /* the price of the loop thread's wake-up, unless it was paid */
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
    /* For statistics. */
    double started_s;    /* Unix time */
    double configured_s; /* when a good configuration was last read, likewise */
    bool has_bad_config; /* the last configuration that was read was refused */
    bool is_draining;

    struct wharf_tenants tenants;
    struct wharf_watching watching;
    struct wharf_starts starts;
    struct wharf_list sessions; /* all that are not freed */
    struct wharf_list leases;   /* current leases, oldest first: lease.h */
    struct wharf_list unpublished;
    struct wharf_list split_decodes; /* split_decode.h: chunks that idle workers can help with */
    struct wharf_list events;        /* sessions that the loop thread has to look at */
    struct wharf_sched sched[WHARF_N_POOLS];
    struct wharf_list suspended; /* tenants whose jobs do not start for a while */
    /* The name of a tenant that the loop thread has to log; or "". */
    char newly_blocked[WHARF_CONFIG_NAME_NBYTES];
    bool is_watched_over;        /* the loop thread checks for blocked workers */
    uint32_t n_waiting;          /* jobs that wait for memory, or are due */
    struct wharf_list due;       /* sessions with jobs that may not have to wait any more */
    int64_t cpu_lead_ns;         /* CPU time of pool ANY minus that of pool CPU */
    int64_t cpu_stream_lead_ns;  /* and of both minus that of pool STREAM */
    struct wharf_heap deadlines; /* of jobs */
    uint64_t loop_wakes_at_ns;   /* when the loop thread checks the deadlines next */
    /* What the thread that leaves the lock has to do. */
    bool wake_loop;
    void *called[2]; /* engine threads to wake */
    uint32_t n_called;

    struct wharf_worker_counts workers;
    struct wharf_idle_work idle_work; /* of the CPU's workers */
    bool is_short_of_workers;         /* all spare workers replace blocked ones; read atomically */
    bool nothing_fits;                /* no queued job can start now */

    /* Polled without the lock, so on a cache line of their own. */
    _Alignas(64) uint32_t n_gpus_coming; /* wharf-gpu threads that wait for the lock */
    uint32_t n_asleep;                   /* threads that sleep until they get the lock */
    uint32_t n_urgent_wakes;             /* of clients that had interactive jobs */
};

/* `config` is copied; its lists stay the caller's.  Returns 0 or -errno; deinit is good either way.
 * Without the lock. */
int wharf_core_init(struct wharf_core *core, const struct wharf_config *config,
                    struct wharf_loop *loop);
void wharf_core_deinit(struct wharf_core *core);

#endif
