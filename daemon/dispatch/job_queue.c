/* SPDX-License-Identifier: Apache-2.0 */
/* job_queue.c: puts jobs that were checked into the queues. */
#include "daemon/dispatch/job_queue.h"

#include "daemon/base/clock.h"
#include "daemon/base/heap.h"
#include "daemon/core/activity.h"
#include "daemon/core/core.h"
#include "daemon/core/estimate.h"
#include "daemon/core/job.h"
#include "daemon/core/queues.h"
#include "daemon/core/session.h"
#include "daemon/placement/place.h"
#include "daemon/placement/place_cost.h"
#include "proto/wharf_job.h"

/* The price of checking one entry of a table. */
#define CHECK_ENTRY_NS 50u

/* The most interactive time that a tenant can save: a burst of 20 ms. */
#define INTERACTIVE_BURST_NS ((int64_t)20 * WHARF_NS_PER_MS)

static uint64_t estimate(const struct wharf_job *job)
{
    const struct wharf_submission *submission = &job->submission;

    if (submission->opcode == WHARF_OP_BATCH)
        return (uint64_t)wharf_job_n_chunks(job) * CHECK_ENTRY_NS;
    return wharf_estimate_ns(wharf_job_estimates(job), submission->codec, submission->src_nbytes,
                             submission->dst_nbytes);
}

/*
 * Refills the tenant's interactive time with its part of its share since the last refill, as if the
 * tenants that are active now had been active since then.
 */
static void refill_interactive(struct wharf_core *core, struct wharf_tenant *tenant,
                               uint64_t now_ns)
{
    uint64_t elapsed_ns = now_ns - tenant->interactive_at_ns;
    uint64_t own_weight = tenant->n_active ? tenant->active_weight : tenant->quota.weight;

    wharf_core_drop_stale(core, now_ns);
    uint64_t all_weight = core->watching.active_weight + (tenant->n_active ? 0 : own_weight);
    if (elapsed_ns > WHARF_NS_PER_S)
        elapsed_ns = WHARF_NS_PER_S;
    tenant->interactive_at_ns = now_ns;
    /* Below 2^30 ns of some thousand processors, and weights are below 2^14: below 2^60. */
    uint64_t time_ns =
        elapsed_ns * core->workers.n_workers * core->config.interactive_percent / 100;
    tenant->interactive_ns += (int64_t)(time_ns * own_weight / all_weight);
    if (tenant->interactive_ns > INTERACTIVE_BURST_NS)
        tenant->interactive_ns = INTERACTIVE_BURST_NS;
}

static uint8_t class_of(const struct wharf_session *session,
                        const struct wharf_submission *submission)
{
    return submission->job_class == WHARF_CLASS_DEFAULT ? session->default_class
                                                        : submission->job_class;
}

static enum wharf_lane choose_lane(struct wharf_core *core, struct wharf_job *job, uint64_t now_ns)
{
    struct wharf_tenant *tenant = job->session->tenant;
    uint8_t class = job->job_class;

    if (class == WHARF_CLASS_BACKGROUND)
        return wharf_job_compresses(job) ? WHARF_LANE_IDLE : WHARF_LANE_BACKGROUND;
    if (class != WHARF_CLASS_INTERACTIVE)
        return WHARF_LANE_NORMAL;
    refill_interactive(core, tenant, now_ns);
    if (tenant->interactive_ns < (int64_t)job->estimate_ns)
        return WHARF_LANE_NORMAL;
    tenant->interactive_ns -= (int64_t)job->estimate_ns;
    return WHARF_LANE_INTERACTIVE;
}

bool wharf_job_may_be_plain(const struct wharf_session *session,
                            const struct wharf_submission *submission)
{
    const uint16_t others = WHARF_JOB_COMPRESS | WHARF_JOB_DISCARD | WHARF_SUBMISSION_DONE_WORD |
                            WHARF_SUBMISSION_START_WORD;

    return submission->opcode == WHARF_OP_DECODE && !(submission->flags & others) &&
           class_of(session, submission) == WHARF_CLASS_NORMAL && submission->timeout_us == 0;
}

void wharf_job_set_plain(struct wharf_job *job)
{
    job->is_plain = true;
    job->session->n_plain++;
}

void wharf_core_ready_job(struct wharf_core *core, struct wharf_job *job, uint64_t now_ns)
{
    uint64_t timeout_ns = (uint64_t)job->submission.timeout_us * WHARF_NS_PER_US;

    if (timeout_ns)
        wharf_heap_insert(&core->deadlines, &job->deadline, job->taken_ns + timeout_ns);
    /* The wait for the client's stream is not the daemon's time. */
    job->taken_ns = now_ns;
    job->estimate_ns = estimate(job);
    job->job_class = class_of(job->session, &job->submission);
    job->lane = (uint8_t)choose_lane(core, job, now_ns);
    job->session->activity.is_interactive = job->lane == WHARF_LANE_INTERACTIVE;
    if (!job->words && wharf_job_may_be_plain(job->session, &job->submission) &&
        !wharf_place_needs_gpu(job) && !wharf_regions_have_file(job->source, job->destination))
        wharf_job_set_plain(job);
    job->pool = WHARF_POOL_NONE;
}

void wharf_core_queue_job(struct wharf_core *core, struct wharf_job *job, uint64_t now_ns)
{
    wharf_core_ready_job(core, job, now_ns);
    wharf_place_push(core, job, false);
}
