/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched.h: which job is next.
 *
 * Three lanes, served in this order; in each, deficit round robin over tenants and then over their
 * sessions; in each session, first come, first served.  Guarded by the front lock.
 */
#ifndef WHARF_DAEMON_FRONT_SCHED_H
#define WHARF_DAEMON_FRONT_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/config.h"
#include "daemon/base/list.h"
#include "daemon/front/turns.h"

enum wharf_lane {
    WHARF_LANE_INTERACTIVE,
    WHARF_LANE_NORMAL,
    WHARF_LANE_BACKGROUND,
    WHARF_N_LANES,
};

/*
 * Who may run a job, hence which of several schedulers has it.  Fairness is within each; who picks
 * from more than one sees to it between them (front_place.h).
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

struct wharf_front;
struct wharf_job;
struct wharf_session;
struct wharf_tenant;

struct wharf_sched {
    enum wharf_pool pool;
    struct wharf_turns tenants[WHARF_N_LANES];
    uint32_t n_queued;   /* jobs in all queues */
    uint64_t backlog_ns; /* the CPU's time for all of them, estimated */
    uint64_t slice_ns;   /* quantum of a tenant of weight 100, and of a session */
};

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

void wharf_sched_init(struct wharf_sched *sched, enum wharf_pool pool, uint64_t slice_ns);
void wharf_sched_tenant_init(struct wharf_sched_tenant *tenant);
void wharf_sched_session_init(struct wharf_sched_session *session);

/* Puts a job at the end of its lane's queue (job->lane), or at the beginning. */
void wharf_sched_push(struct wharf_sched *sched, struct wharf_job *job);
void wharf_sched_push_front(struct wharf_sched *sched, struct wharf_job *job);
void wharf_sched_remove(struct wharf_sched *sched, struct wharf_job *job);

/*
 * All normal jobs of a session, taken out at once and without touching more than one of them, into
 * `jobs`, which is empty; and jobs put behind what is there.
 */
struct wharf_sched_bundle {
    struct wharf_list jobs;
    uint32_t n;
    uint64_t backlog_ns;
};
void wharf_sched_take_all(struct wharf_sched *sched, struct wharf_session *session,
                          struct wharf_sched_bundle *bundle);
void wharf_sched_give(struct wharf_sched *sched, struct wharf_session *session,
                      struct wharf_sched_bundle *bundle);

/* Forgets all jobs of a session at once, without touching them. */
void wharf_sched_drop(struct wharf_sched *sched, struct wharf_session *session);

/* Its estimated backlog, job->backlog_ns, is less by this much. */
void wharf_sched_shrink(struct wharf_sched *sched, struct wharf_job *job, uint64_t less_ns);

/* Whether a job is one that is looked for. */
typedef bool wharf_sched_is_good(const struct wharf_job *job, const void *context);

/* Of those that are first in their sessions' queues and good, the one whose turn is nearest, which
 * stays in its queue; of many queues not all may be looked at. */
struct wharf_job *wharf_sched_first_good(struct wharf_sched *sched, unsigned lane,
                                         wharf_sched_is_good *is_good, const void *context);

/*
 * The job whose turn it is, which stays in its queue; NULL if there is none.  With most_ns, only
 * one whose estimate is at most that; of many queues not all may be looked at then.
 */
struct wharf_job *wharf_sched_first(struct wharf_sched *sched, uint64_t most_ns);
struct wharf_job *wharf_sched_first_of_lane(struct wharf_sched *sched, unsigned lane,
                                            uint64_t most_ns);

/*
 * Of the tenant's sessions whose turn it could be now, one that is good: its first normal job.
 * `first` is looked at before others if it is not NULL; of many not all are looked at.
 */
struct wharf_job *wharf_sched_first_of_good(struct wharf_sched *sched, struct wharf_tenant *tenant,
                                            struct wharf_session *first,
                                            bool (*is_good)(const struct wharf_front *front,
                                                            const struct wharf_session *session),
                                            const struct wharf_front *front);

/* The first job of some background queue, a different queue each time; NULL if there is none. */
struct wharf_job *wharf_sched_background(struct wharf_sched *sched);

/* The job has been given, or was found to have used, so much time (less than 0: gives back). */
void wharf_sched_charge(struct wharf_sched *sched, struct wharf_job *job, int64_t used_ns);
/* Likewise for normal jobs of a session. */
void wharf_sched_charge_normal(struct wharf_sched *sched, struct wharf_session *session,
                               int64_t used_ns);

/* Likewise for what was done for a session without being queued; of that a tenant owes some quanta
 * at most. */
void wharf_sched_charge_aside(struct wharf_sched *sched, struct wharf_session *session,
                              int64_t used_ns);

/* Takes the tenant out of all turns, without its jobs; or puts it in again. */
void wharf_sched_suspend(struct wharf_sched *sched, struct wharf_tenant *tenant);
void wharf_sched_resume(struct wharf_sched *sched, struct wharf_tenant *tenant);

/* Tenants that have jobs in a lane. */
uint32_t wharf_sched_n_tenants(const struct wharf_sched *sched, enum wharf_lane lane);

#endif
