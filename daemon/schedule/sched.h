/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched.h: which job is next.
 *
 * Three lanes, served in this order; in each, deficit round robin over tenants and then over their
 * sessions; in each session, first come, first served.  Guarded by the core lock.
 */
#ifndef WHARF_DAEMON_SCHEDULE_SCHED_H
#define WHARF_DAEMON_SCHEDULE_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/queues.h"

struct wharf_core;
struct wharf_job;
struct wharf_session;
struct wharf_tenant;

/* Puts a job at the end of its lane's queue (job->lane), or at the beginning. */
void wharf_sched_push(struct wharf_sched *sched, struct wharf_job *job);
void wharf_sched_push_front(struct wharf_sched *sched, struct wharf_job *job);
void wharf_sched_remove(struct wharf_sched *sched, struct wharf_job *job);

/*
 * All normal jobs of a session, taken out at once and without touching more than one of them, into
 * `jobs`, which is empty; and jobs put behind what is there.
 */
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
                                            bool (*is_good)(const struct wharf_core *core,
                                                            const struct wharf_session *session),
                                            const struct wharf_core *core);

/* The first job of some background queue, a different queue each time; NULL if there is none. */
struct wharf_job *wharf_sched_background(struct wharf_sched *sched);

/* The job has been given, or was found to have used, so much time (less than 0: gives back). */
void wharf_sched_charge(struct wharf_sched *sched, struct wharf_job *job, int64_t used_ns);
/* Likewise for normal jobs of a session. */
void wharf_sched_charge_normal(struct wharf_sched *sched, struct wharf_session *session,
                               int64_t used_ns);

/* Likewise for what was done for a session without being queued; of that a tenant owes some quanta
 * at most. */
void wharf_sched_charge_unqueued(struct wharf_sched *sched, struct wharf_session *session,
                                 int64_t used_ns);

/* Takes the tenant out of all turns, without its jobs; or puts it in again. */
void wharf_sched_suspend(struct wharf_sched *sched, struct wharf_tenant *tenant);
void wharf_sched_resume(struct wharf_sched *sched, struct wharf_tenant *tenant);

/* Tenants that have jobs in a lane. */
uint32_t wharf_sched_n_tenants(const struct wharf_sched *sched, enum wharf_lane lane);

#endif
