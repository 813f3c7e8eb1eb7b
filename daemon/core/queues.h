/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queues.h: the queues of jobs, as tenants, sessions and the core have them.
 *
 * sched.h says in which order jobs leave them.  Guarded by the core lock.
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
 * Who may run a job, hence which of several schedulers has it.  Fairness is within each; who picks
 * from more than one sees to it between them (place_pick.h).
 */
enum wharf_pool {
    WHARF_POOL_CPU, /* the CPU alone */
    WHARF_POOL_GPU, /* a GPU's worker alone, as long as there is one */
    WHARF_POOL_ANY, /* whichever is done earlier */
    /* a GPU's worker alone, in its places for large chunks */
    WHARF_POOL_LARGE,
    WHARF_POOL_OWN, /* the first GPU alone, and so on for each of them */
    WHARF_N_POOLS = WHARF_POOL_OWN + WHARF_MAX_GPUS,
};

struct wharf_sched {
    enum wharf_pool pool;
    struct wharf_turns tenants[WHARF_N_LANES];
    uint32_t n_queued;   /* jobs in all queues */
    uint64_t backlog_ns; /* the CPU's time for all of them, estimated */
    uint64_t slice_ns;   /* quantum of a tenant of weight 100, and of a session */
};

/* A queued job is in no pool while it waits for its memory to be made ready for the GPU. */
#define WHARF_POOL_NONE WHARF_N_POOLS

/* Parts of a tenant and of a session, for each pool. */
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
    uint64_t backlog_ns; /* of its jobs here */
};

/* Normal jobs of a session that were taken out of its queue together. */
struct wharf_sched_bundle {
    struct wharf_list jobs;
    uint32_t n;
    uint64_t backlog_ns;
};

void wharf_sched_init(struct wharf_sched *sched, enum wharf_pool pool, uint64_t slice_ns);
void wharf_sched_tenant_init(struct wharf_sched_tenant *tenant);
void wharf_sched_session_init(struct wharf_sched_session *session);

#endif
