/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched.h: which job is next.
 *
 * The lanes of queues.h are served in their order.  Each runs deficit round robin over tenants,
 * then over their sessions; a session is first come, first served.  Guarded by the core lock.
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
 * Takes all normal jobs of a session at once, in constant time, into an empty bundle; and appends a
 * bundle to the session's normal jobs.
 */
void wharf_sched_take_all(struct wharf_sched *sched, struct wharf_session *session,
                          struct wharf_sched_bundle *bundle);
void wharf_sched_give(struct wharf_sched *sched, struct wharf_session *session,
                      struct wharf_sched_bundle *bundle);

/* Forgets all jobs of a session at once, without touching them. */
void wharf_sched_drop(struct wharf_sched *sched, struct wharf_session *session);

/* Reduces a job's estimated backlog, job->backlog_ns. */
void wharf_sched_shrink(struct wharf_sched *sched, struct wharf_job *job, uint64_t less_ns);

/* Whether a job meets the caller's condition. */
typedef bool wharf_sched_is_good(const struct wharf_job *job, const void *context);

/* Among good jobs at the head of their sessions' queues, the one whose turn is next; it stays in
 * its queue.  With many queues, checks only some. */
struct wharf_job *wharf_sched_first_good(struct wharf_sched *sched, unsigned lane,
                                         wharf_sched_is_good *is_good, const void *context);

/*
 * The next job, which stays in its queue; NULL: none.  With most_ns, only a job with at most that
 * estimate; then, with many queues, checks only some.
 */
struct wharf_job *wharf_sched_first(struct wharf_sched *sched, uint64_t most_ns);
struct wharf_job *wharf_sched_first_of_lane(struct wharf_sched *sched, unsigned lane,
                                            uint64_t most_ns);

/*
 * The first normal job of a good session of the tenant.  Checks `first`, unless NULL, before the
 * other sessions; with many sessions, checks only some.
 */
struct wharf_job *wharf_sched_first_of_good(struct wharf_sched *sched, struct wharf_tenant *tenant,
                                            struct wharf_session *first,
                                            bool (*is_good)(const struct wharf_core *core,
                                                            const struct wharf_session *session),
                                            const struct wharf_core *core);

/* The first job of some background queue, a different queue each time; NULL if there is none. */
struct wharf_job *wharf_sched_background(struct wharf_sched *sched);

/* Charges a job's tenant and session with time (below 0: refunds it). */
void wharf_sched_charge(struct wharf_sched *sched, struct wharf_job *job, int64_t used_ns);
/* The same for normal jobs of a session. */
void wharf_sched_charge_normal(struct wharf_sched *sched, struct wharf_session *session,
                               int64_t used_ns);

/* The same for a session's unqueued work, for which a tenant owes a few quanta at most. */
void wharf_sched_charge_unqueued(struct wharf_sched *sched, struct wharf_session *session,
                                 int64_t used_ns);

/* Removes the tenant from all turns, but keeps its jobs queued; and adds it again. */
void wharf_sched_suspend(struct wharf_sched *sched, struct wharf_tenant *tenant);
void wharf_sched_resume(struct wharf_sched *sched, struct wharf_tenant *tenant);

/* Tenants that have jobs in a lane. */
uint32_t wharf_sched_n_tenants(const struct wharf_sched *sched, enum wharf_lane lane);

#endif
