/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease.c: runs a session's jobs without the core lock.
 *
 * Invariant: while session->lease is set, only the leasing worker touches the session's ring, queue
 * and jobs.  It sees a recall in is_revoked after each chunk.  All counters and charges are kept in
 * the lease and added under the lock when it ends, so nobody else sees a half-finished state.
 */
#include "daemon/cpu/lease.h"

#include <sched.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/activity.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/estimate.h"
#include "daemon/core/job.h"
#include "daemon/core/publish.h"
#include "daemon/core/queues.h"
#include "daemon/core/session.h"
#include "daemon/core/session_events.h"
#include "daemon/core/session_lease.h"
#include "daemon/core/stats.h"
#include "daemon/dispatch/admit.h"
#include "daemon/dispatch/job_pieces.h"
#include "daemon/dispatch/session_end.h"
#include "daemon/schedule/sched.h"

/*
 * How long a lease starts new chunks, while others' jobs wait.  It grows with the number of
 * workers: with more of them another one is free sooner, and the core lock is more contended.
 */
#define LEASE_NS_A_WORKER 20000u
#define LEAST_LEASE_NS 100000u
#define MOST_LEASE_NS 300000u

/*
 * How long to wait for a busy client that has all its completions: it will submit more, perhaps as
 * soon as it gets this processor.  Sleeping and waking would take as long.
 */
#define DRY_NS 100000u

/* If a client has to be woken and has more jobs than this in the queue, the wake-up is postponed
 * until it has more completions, but no longer than this time.  The client needs the time of the
 * last jobs to submit more. */
#define LAST_JOBS 2
#define LATEST_WAKE_NS 100000u

/* Submissions that are taken from the ring at once. */
#define MOST_TAKEN 32

/* ---- beginning ----------------------------------------------------------------------------- */

/* Of all tenants with work. */
static bool is_alone(const struct wharf_core *core, const struct wharf_tenant *tenant)
{
    return tenant->active_weight == core->watching.active_weight;
}

/*
 * A leased session has one worker, so its tenant must be the only one with work: otherwise, while
 * some of its sessions are leased and others wait for their clients, another tenant would get more
 * than its share.  And the tenant needs as many active sessions as there are workers; otherwise its
 * jobs are for all workers.
 */
static bool has_enough_sessions(const struct wharf_core *core, const struct wharf_tenant *tenant)
{
    return is_alone(core, tenant) && tenant->n_active >= core->workers.n_workers;
}

/* Half of that suffices while only this worker is idle. */
static bool has_almost_enough(const struct wharf_core *core, const struct wharf_tenant *tenant)
{
    return is_alone(core, tenant) && 2 * tenant->n_active >= core->workers.n_workers &&
           core->workers.n_sleeping == 0 && core->workers.n_awake == 1;
}

static bool is_leasable(const struct wharf_core *core, const struct wharf_session *session)
{
    uint32_t n_queued = session->sched[WHARF_POOL_CPU].lane[WHARF_LANE_NORMAL].n_jobs;

    return session->state == WHARF_SESSION_LIVE && !session->is_broken && session->n_recalls == 0 &&
           !session->cancel.is_under_way && !session->lease &&
           session->n_in_flight == session->n_plain &&
           session->n_in_flight == n_queued + session->n_pieces &&
           !wharf_place_has_gpu(core, session->engine);
}

static const struct wharf_job *choose(struct wharf_core *core, const struct wharf_lease *lease,
                                      const struct wharf_job *job)
{
    struct wharf_tenant *tenant = job->session->tenant;
    struct wharf_session *own = lease->session;

    if (job->lane != WHARF_LANE_NORMAL || job->pool != WHARF_POOL_CPU)
        return NULL;
    if (own && (own->tenant != tenant || lease->in_a_row_ns >= core->config.slice_ns))
        own = NULL;
    job = wharf_sched_first_of_good(&core->sched[WHARF_POOL_CPU], tenant, own, is_leasable, core);
    return job && job->estimate_ns <= core->config.slice_ns ? job : NULL;
}

static uint64_t lease_ns(const struct wharf_core *core)
{
    uint64_t ns = (uint64_t)core->workers.n_workers * LEASE_NS_A_WORKER;

    return ns < LEAST_LEASE_NS ? LEAST_LEASE_NS : ns > MOST_LEASE_NS ? MOST_LEASE_NS : ns;
}

/* A new lease; of the last one only the session's history remains. */
static void set_session(struct wharf_lease *lease, struct wharf_session *session, uint64_t most_ns)
{
    bool goes_on = lease->session == session && lease->in_a_row_ns < most_ns;
    uint64_t in_a_row_ns = goes_on ? lease->in_a_row_ns : 0;

    wharf_lease_forget(lease);
    if (session->home)
        wharf_lease_forget(session->home);
    memset(lease, 0, sizeof(*lease));
    lease->session = session;
    lease->in_a_row_ns = in_a_row_ns;
    session->home = session->lease = lease;
}

bool wharf_lease_begin(struct wharf_core *core, struct wharf_lease *lease,
                       const struct wharf_job *job)
{
    struct wharf_tenant *tenant = job->session->tenant;
    uint64_t now_ns = wharf_now_ns();

    wharf_core_drop_stale(core, now_ns);
    bool has_enough = has_enough_sessions(core, tenant);
    if (!has_enough && !has_almost_enough(core, tenant))
        return false;
    job = choose(core, lease, job);
    if (!job)
        return false;
    struct wharf_session *session = job->session;
    set_session(lease, session, core->config.slice_ns);
    lease->codec = job->submission.codec;
    lease->ns_per_kib = tenant->estimates.ns_per_kib[lease->codec];
    lease->why = job->why;
    lease->begun_ns = now_ns;
    lease->until_ns = now_ns + lease_ns(core);
    lease->most_ns = core->config.slice_ns;
    if (has_enough)
        lease->dry_ns = core->config.spin_ns < DRY_NS ? core->config.spin_ns : DRY_NS;
    lease->engine = wharf_session_cpu_engine(session);
    wharf_list_init(&lease->queue.jobs);
    wharf_list_init(&lease->ended);
    wharf_sched_take_all(&core->sched[WHARF_POOL_CPU], session, &lease->queue);
    lease->charged_ns =
        lease->queue.backlog_ns < lease_ns(core) ? lease->queue.backlog_ns : lease_ns(core);
    wharf_sched_charge_normal(&core->sched[WHARF_POOL_CPU], session, (int64_t)lease->charged_ns);
    session->n_pins++;
    wharf_list_append(&core->leases, &lease->link);
    /* It counts as watched, by this worker alone. */
    wharf_core_watch(core, session, now_ns);
    wharf_list_remove(&session->activity.watch_link);
    return true;
}

/* ---- running ------------------------------------------------------------------------------- */

static void queue(struct wharf_lease *lease, struct wharf_job *job)
{
    const struct wharf_submission *submission = &job->submission;

    job->estimate_ns = job->backlog_ns =
        wharf_estimate_at(lease->ns_per_kib, submission->src_nbytes, submission->dst_nbytes);
    job->pool = WHARF_POOL_CPU;
    job->why = lease->why;
    wharf_list_append(&lease->queue.jobs, &job->link);
    lease->queue.n++;
    lease->queue.backlog_ns += job->backlog_ns;
}

void wharf_lease_refill(struct wharf_lease *lease, uint64_t now_ns)
{
    struct wharf_session *session = lease->session;
    struct wharf_submission submission;
    unsigned n = 0;
    int r = 1;

    for (; n < MOST_TAKEN && !lease->has_other && !lease->is_broken; n++) {
        r = wharf_ring_take(&session->ring, &submission);
        if (r <= 0)
            break;
        struct wharf_job *job = submission.codec == lease->codec
                                    ? wharf_admit_plain(session, &submission, now_ns)
                                    : NULL;
        if (job) {
            queue(lease, job);
        } else {
            lease->other = submission;
            lease->has_other = true;
        }
    }
    lease->is_broken |= r < 0;
    if (n == 0)
        return;
    lease->has_taken = true;
    wharf_ring_publish_taken(&session->ring);
}

static void wait_for_client(struct wharf_lease *lease, uint64_t now_ns)
{
    uint64_t until_ns = now_ns + lease->dry_ns;

    while (now_ns < until_ns && lease->queue.n == 0 && !lease->has_other && !lease->is_broken &&
           !wharf_lease_is_revoked(lease)) {
        sched_yield();
        now_ns = wharf_now_ns();
        wharf_lease_refill(lease, now_ns);
    }
    lease->dry_ns = 0;
}

bool wharf_lease_next(struct wharf_lease *lease, uint64_t now_ns, struct wharf_piece *ret_piece)
{
    if (wharf_lease_is_revoked(lease) || now_ns >= lease->until_ns)
        return false;
    if (lease->queue.n == 0)
        wharf_lease_refill(lease, now_ns);
    if (lease->queue.n == 0)
        wait_for_client(lease, now_ns);
    struct wharf_job *job = WHARF_LIST_FIRST(&lease->queue.jobs, struct wharf_job, link);
    /* A long chunk starts under the core lock, which ensures that not all workers have one. */
    if (!job || job->submission.codec != lease->codec || job->estimate_ns > lease->most_ns)
        return false;
    wharf_list_remove(&job->link);
    lease->queue.n--;
    lease->queue.backlog_ns -= job->backlog_ns;
    wharf_job_begin(job, now_ns);
    *ret_piece = (struct wharf_piece){
        .kind = WHARF_PIECE_CHUNK,
        .job = job,
        .n_chunks = 1,
        .pool = WHARF_POOL_CPU,
        .estimate_ns = job->estimate_ns,
    };
    return true;
}

void wharf_lease_wake(struct wharf_lease *lease)
{
    if (lease->wake_kinds)
        wharf_core_wake_client(lease->session, lease->wake_kinds);
    lease->wake_kinds = 0;
}

static void count(struct wharf_lease *lease, const struct wharf_piece *piece,
                  const struct wharf_completion *completion)
{
    struct wharf_engine_stats *stats = &lease->stats;
    uint64_t took_ns = piece->ended_ns - piece->begun_ns - piece->others_ns;

    stats->n_jobs[completion->result]++;
    stats->n_chunks++;
    stats->in_nbytes += piece->in_nbytes;
    stats->out_nbytes += piece->out_nbytes;
    stats->busy_ns += took_ns;
    wharf_histogram_add(&stats->queue, completion->queue_ns);
    wharf_histogram_add(&stats->run, completion->run_ns);
    wharf_histogram_add(&lease->latency, completion->queue_ns + completion->run_ns);
    lease->used_ns += took_ns;
    lease->source_nbytes += piece->source_nbytes;
    lease->capacity_nbytes += piece->capacity_nbytes;
}

void wharf_lease_done(struct wharf_lease *lease, const struct wharf_piece *piece)
{
    struct wharf_session *session = lease->session;
    struct wharf_job *job = piece->job;
    struct wharf_job_end end = {
        .outcome = piece->outcome,
        .engine = piece->engine,
        .ended_ns = piece->ended_ns,
    };

    job->begun_ns = piece->begun_ns;
    struct wharf_completion completion = wharf_job_completion(job, &end);
    count(lease, piece, &completion);
    wharf_job_free(job);
    wharf_ring_complete(&session->ring, &completion);
    uint64_t kinds = wharf_ring_publish_completions(&session->ring);
    if (kinds && !lease->wake_kinds)
        lease->wake_by_ns = piece->ended_ns + LATEST_WAKE_NS;
    lease->wake_kinds |= kinds;
    if (lease->queue.n <= LAST_JOBS || piece->ended_ns >= lease->wake_by_ns)
        wharf_lease_wake(lease);
}

/* ---- the end ------------------------------------------------------------------------------- */

static void complete_ended(struct wharf_core *core, struct wharf_lease *lease)
{
    while (!wharf_list_is_empty(&lease->ended)) {
        struct wharf_job *job = WHARF_LIST_FIRST(&lease->ended, struct wharf_job, link);
        struct wharf_completion completion = job->completion;
        wharf_list_remove(&job->link);
        wharf_job_free(job);
        wharf_core_complete(core, lease->session, &completion);
    }
}

/* The measured time against the charge. */
static void balance_account(struct wharf_core *core, struct wharf_lease *lease)
{
    struct wharf_session *session = lease->session;
    struct wharf_tenant *tenant = session->tenant;

    wharf_sched_charge_normal(&core->sched[WHARF_POOL_CPU], session,
                              (int64_t)(lease->used_ns - lease->charged_ns));
    if (core->sched[WHARF_POOL_ANY].n_queued == 0)
        core->cpu_lead_ns = 0;
    else
        core->cpu_lead_ns -= (int64_t)lease->used_ns;
    if (lease->stats.n_chunks == 0)
        return;
    wharf_engine_stats_add(&tenant->stats.engines[lease->engine], &lease->stats);
    wharf_histogram_merge(&tenant->stats.latency[WHARF_CLASS_NORMAL - 1], &lease->latency);
    tenant->stats.n_placed[lease->why] += lease->stats.n_chunks;
    wharf_estimates_learn(&tenant->estimates, lease->codec, lease->source_nbytes,
                          lease->capacity_nbytes, lease->used_ns);
}

/* Jobs that were not started go back to the common queue, in their order. */
static void give_back(struct wharf_core *core, struct wharf_lease *lease, uint64_t now_ns)
{
    struct wharf_session *session = lease->session;

    complete_ended(core, lease);
    wharf_sched_give(&core->sched[WHARF_POOL_CPU], session, &lease->queue);
    core->nothing_fits = false;
    if (lease->is_broken) {
        wharf_core_set_broken(core, session);
        return;
    }
    /* It was watched by this worker alone; now it is in the list. */
    wharf_list_append(&core->watching.watched, &session->activity.watch_link);
    session->activity.active_ns = now_ns;
    session->activity.comes_back |= lease->has_taken;
    if (!lease->has_other)
        return;
    /* The last one that was taken.  Now it is checked for good. */
    wharf_ring_mark_look(&session->ring, session->ring.sq_head - 1);
    wharf_core_enqueue(core, session, &lease->other, now_ns);
    wharf_ring_unmark_look(&session->ring);
}

void wharf_lease_end(struct wharf_core *core, struct wharf_lease *lease,
                     struct wharf_piece *running)
{
    struct wharf_session *session = lease->session;

    session->lease = NULL;
    wharf_list_remove(&lease->link);
    wharf_core_count_active(core, session);
    lease->in_a_row_ns += lease->used_ns;
    balance_account(core, lease);
    if (running) {
        running->job->n_pieces++;
        session->n_pieces++;
        session->tenant->stats.n_placed[lease->why]++;
    }
    if (session->state == WHARF_SESSION_DEAD) {
        wharf_list_init(&lease->queue.jobs);
        wharf_core_retire_session(core, session);
    } else {
        give_back(core, lease, wharf_now_ns());
    }
    session->n_pins--;
    wharf_core_release(core, session);
}
