/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front_parts.h: what the files of the front call in each other.
 *
 * All under the front lock, unless they say otherwise.
 */
#ifndef WHARF_DAEMON_FRONT_FRONT_PARTS_H
#define WHARF_DAEMON_FRONT_FRONT_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/front/front.h"

/* ---- front.c ------------------------------------------------------------------------------- */

/* Wakes a session's client, in these ways (WHARF_WAIT_*).  Without the lock, while somebody pins
 * the session. */
void wharf_front_wake_client(struct wharf_session *session, uint64_t kinds);

/* ---- front_watch.c ------------------------------------------------------------------------- */

/* The session is active: its ring is looked at without being rung for, until it is quiet again; or
 * at once no more. */
void wharf_front_watch(struct wharf_front *front, struct wharf_session *session, uint64_t now_ns);
void wharf_front_unwatch(struct wharf_front *front, struct wharf_session *session);

/* After a change of what makes a session active: being watched, or having jobs. */
void wharf_front_count_active(struct wharf_front *front, struct wharf_session *session);
/* Those that have not been active for a while are not counted any more. */
void wharf_front_drop_stale(struct wharf_front *front, uint64_t now_ns);

/* Calls a sleeping thread of the CPU's, which counts as awake from now on; whether one is called.
 */
bool wharf_front_call_worker(struct wharf_front *front);

/* Before the lock is given back: no ring is overlooked, no work waits while somebody sleeps. */
void wharf_front_settle(struct wharf_front *front);

/* ---- front_suspend.c ----------------------------------------------------------------------- */

/* A worker is stuck in the tenant's memory, or no more.  As long as one is, and for as long again
 * if other tenants have work, no job of the tenant's is begun. */
void wharf_front_suspend(struct wharf_front *front, struct wharf_tenant *tenant, uint64_t now_ns);
void wharf_front_unsuspend(struct wharf_front *front, struct wharf_tenant *tenant, uint64_t now_ns);

/* Looks for workers that are stuck and tenants that are suspended no more; returns when to look
 * again, WHARF_NEVER: when a worker was called. */
uint64_t wharf_front_watch_over(struct wharf_front *front, uint64_t now_ns);

/* ---- what is done beside jobs -------------------------------------------------------------- */

/* Taking and completing what is no job, an operation that does nothing or what is refused: 25 ns
 * where all is in this processor's cache, but what the client wrote is in another's. */
#define WHARF_FRONT_ASIDE_NS 150u
/* Taking, queueing, finding and completing a job that nobody begins. */
#define WHARF_FRONT_UNBEGUN_NS 300
/* What is done at once and queues nothing counts as so many submissions that are taken, where there
 * are jobs for everybody: who sends nothing else would have as much of the time between two pieces
 * as it likes. */
#define WHARF_FRONT_ASIDE_PRICE 8

/* ---- admit.c ------------------------------------------------------------------------------- */

/* What was done for a session beside its jobs, in time of a processor. */
void wharf_front_charge_aside(struct wharf_front *front, struct wharf_session *session,
                              int64_t used_ns);

/* Takes in one submission: queues a job, or completes it at once; whether it is a job. */
bool wharf_front_admit(struct wharf_front *front, struct wharf_session *session,
                       const struct wharf_submission *submission, uint64_t now_ns);

/* ---- front_jobs.c -------------------------------------------------------------------------- */

/* An engine begins a job that it has not begun yet.  Without the lock where a worker has the
 * session to itself. */
void wharf_job_begin(struct wharf_job *job, uint64_t now_ns);

/* Takes a job out of its queue: what is behind it may be what can be begun. */
void wharf_front_unqueue(struct wharf_front *front, struct wharf_job *job);

/* Forgets a dead session's job; one that an engine has it tells to end. */
void wharf_front_forget_job(struct wharf_front *front, struct wharf_job *job);

/* ---- front_complete.c ---------------------------------------------------------------------- */

/* Completions, which are published when the lock is left. */
void wharf_front_complete(struct wharf_front *front, struct wharf_session *session,
                          const struct wharf_completion *completion);

/* What became of a job. */
struct wharf_job_end {
    struct wharf_outcome outcome;
    uint32_t engine;    /* enum wharf_engine */
    uint32_t bad_chunk; /* of a batch that is not OK */
    bool has_results;   /* a table of results was filled */
    uint64_t ended_ns;
};
/* Completes a job that no engine runs any more, and frees its slot. */
void wharf_front_complete_job(struct wharf_front *front, struct wharf_job *job,
                              const struct wharf_job_end *end);

/* Parts of that, which a lease needs too: the completion; giving back the slot. */
struct wharf_completion wharf_job_completion(const struct wharf_job *job,
                                             const struct wharf_job_end *end);
void wharf_job_free(struct wharf_job *job);

/* Begins nothing more of a job, for this reason (WHARF_CANCELLED or WHARF_DEADLINE); completes it
 * if no engine has begun it. */
void wharf_front_stop_job(struct wharf_front *front, struct wharf_job *job, uint32_t result,
                          uint64_t now_ns);

/* Goes on with a session's cancel, for at most `budget` jobs; returns how much budget is left. */
uint32_t wharf_front_cancel_step(struct wharf_front *front, struct wharf_session *session,
                                 uint32_t budget, uint64_t now_ns);

/* ---- front_sessions.c ---------------------------------------------------------------------- */

/* The client broke the order of indices. */
void wharf_front_set_broken(struct wharf_front *front, struct wharf_session *session);

/* The rest of a dead session's end, when no worker has it to itself. */
void wharf_front_bury(struct wharf_front *front, struct wharf_session *session);

/* Tells the loop thread of a dead session that nobody uses any more. */
void wharf_front_release(struct wharf_front *front, struct wharf_session *session);

/* The loop thread is to hear of the session. */
void wharf_front_tell_loop(struct wharf_front *front, struct wharf_session *session);

#endif
