/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queues.h: the data of the job queues, in tenants, sessions and the core.
 *
 * sched.h defines the order in which jobs leave them.  Guarded by the core lock.
 */
#ifndef WHARF_DAEMON_CORE_QUEUES_H
#define WHARF_DAEMON_CORE_QUEUES_H

#include <stdint.h>

#include "daemon/base/config.h"
#include "daemon/base/list.h"
#include "daemon/base/turns.h"

enum wharf_lane {
    WHARF_LANE_INTERACTIVE,
    WHARF_LANE_NORMAL,
    WHARF_LANE_BACKGROUND,
    WHARF_LANE_IDLE, /* idle_work.h: background jobs that compress */
    WHARF_N_LANES,
};

/*
 * The engines that may run a job.  Each pool has a scheduler of its own, which is fair within the
 * pool.  An engine that picks from several pools is fair between them (place_pick.h).
 */
enum wharf_pool {
    WHARF_POOL_CPU, /* the CPU alone */
    WHARF_POOL_GPU, /* GPUs alone, as long as there is one */
    WHARF_POOL_ANY, /* any engine */
    /* GPUs alone, in a place for large chunks */
    WHARF_POOL_LARGE,
    /* GPUs, in such a place, when a stream can begin there at once; else the CPU */
    WHARF_POOL_STREAM,
    /* GPUs alone, to be compressed by one of their warps for that */
    WHARF_POOL_ENCODE,
    WHARF_POOL_OWN, /* the first GPU alone; one such pool for each GPU */
    WHARF_N_POOLS = WHARF_POOL_OWN + WHARF_MAX_GPUS,
};

struct wharf_sched {
    enum wharf_pool pool;
    struct wharf_turns tenants[WHARF_N_LANES];
    uint32_t n_queued;   /* jobs in all queues */
    uint64_t backlog_ns; /* estimated CPU time for all of them */
    uint64_t slice_ns;   /* quantum of a tenant of weight 100, and of a session */
};

/* The pool of a queued job that waits for its memory to be registered. */
#define WHARF_POOL_NONE WHARF_N_POOLS

/* The scheduler's data in a tenant and in a session, one for each pool. */
struct wharf_sched_tenant {
    struct {
        struct wharf_turn turn;
        struct wharf_turns sessions;
    } lane[WHARF_N_LANES];
};
struct wharf_sched_session {
    struct {
        struct wharf_turn turn;
        struct wharf_list jobs;
        uint32_t n_jobs;
    } lane[WHARF_N_LANES];
    uint64_t backlog_ns; /* of the session's jobs in this pool */
};

/* All normal jobs of a session, taken from its queue together. */
struct wharf_sched_bundle {
    struct wharf_list jobs;
    uint32_t n;
    uint64_t backlog_ns;
};

void wharf_sched_init(struct wharf_sched *sched, enum wharf_pool pool, uint64_t slice_ns);
void wharf_sched_tenant_init(struct wharf_sched_tenant *tenant);
void wharf_sched_session_init(struct wharf_sched_session *session);

#endif
