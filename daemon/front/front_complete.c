/* SPDX-License-Identifier: Apache-2.0 */
/* front_complete.c: the end of jobs: done, cancelled or too late. */
#include "daemon/cpu/lease.h"
#include "daemon/front/front_parts.h"
#include "proto/wharf_job.h"

void wharf_front_complete(struct wharf_front *front, struct wharf_session *session,
                          const struct wharf_completion *completion)
{
    if (session->is_broken)
        return;
    wharf_ring_complete(&session->ring, completion);
    if (!wharf_list_is_linked(&session->publish_link))
        wharf_list_append(&front->unpublished, &session->publish_link);
}

/* ---- jobs ---------------------------------------------------------------------------------- */

static void count(struct wharf_job *job, const struct wharf_completion *completion)
{
    struct wharf_engine_stats *stats = &job->session->tenant->stats.engines[completion->engine];

    stats->n_jobs[completion->result]++;
    if (!job->begun_ns)
        return;
    wharf_histogram_add(&stats->queue, completion->queue_ns);
    wharf_histogram_add(&stats->run, completion->run_ns);
    wharf_histogram_add(&job->session->tenant->stats.latency[job->job_class - 1],
                        completion->queue_ns + completion->run_ns);
}

void wharf_job_free(struct wharf_job *job)
{
    struct wharf_session *session = job->session;

    job->source->n_users--;
    if (job->destination)
        job->destination->n_users--;
    if (job->model)
        job->model->n_users--;
    job->state = WHARF_JOB_FREE;
    job->next_free = session->free_job;
    session->free_job = (uint32_t)(job - session->jobs);
    session->n_in_flight--;
    session->n_plain -= job->is_plain;
}

struct wharf_completion wharf_job_completion(const struct wharf_job *job,
                                             const struct wharf_job_end *end)
{
    const struct wharf_outcome *outcome = &end->outcome;
    uint64_t begun_ns = job->begun_ns ? job->begun_ns : end->ended_ns;

    return (struct wharf_completion){
        .user_data = job->submission.user_data,
        .result = (uint16_t)outcome->result,
        .reason = (uint16_t)outcome->reason,
        .engine = (uint8_t)end->engine,
        .attempt = job->attempt,
        .flags = end->has_results ? WHARF_COMPLETION_RESULTS : 0,
        .bit_offset = outcome->bit_offset,
        .in_nbytes = outcome->in_nbytes,
        .out_nbytes = outcome->out_nbytes,
        .queue_ns = begun_ns - job->taken_ns,
        .run_ns = end->ended_ns - begun_ns,
        .first_bad_chunk = outcome->result == WHARF_OK ? 0 : end->bad_chunk,
    };
}

void wharf_front_complete_job(struct wharf_front *front, struct wharf_job *job,
                              const struct wharf_job_end *end)
{
    struct wharf_completion completion = wharf_job_completion(job, end);

    count(job, &completion);
    wharf_heap_remove(&front->deadlines, &job->deadline);
    if (job->session->lease) {
        wharf_lease_keep(job->session->lease, job, &completion);
        return;
    }
    wharf_job_free(job);
    wharf_front_count_active(front, job->session);
    wharf_front_complete(front, job->session, &completion);
}

/* What is left of a batch costs next to nothing: it need not wait for its turn. */
static void hurry(struct wharf_front *front, struct wharf_job *job)
{
    if (!wharf_list_is_linked(&job->link))
        return;
    wharf_front_unqueue(front, job);
    job->lane = WHARF_LANE_INTERACTIVE;
    job->estimate_ns = 0;
    wharf_place_push(front, job, true);
}

void wharf_front_stop_job(struct wharf_front *front, struct wharf_job *job, uint32_t result,
                          uint64_t now_ns)
{
    struct wharf_job_end end = {.outcome.result = result, .ended_ns = now_ns};

    wharf_heap_remove(&front->deadlines, &job->deadline);
    /* A dead session's queues were dropped: its jobs are in none, and are being forgotten. */
    if (job->session->state == WHARF_SESSION_DEAD)
        return;
    if (job->state == WHARF_JOB_QUEUED) {
        wharf_front_unqueue(front, job);
        wharf_front_charge_aside(front, job->session, WHARF_FRONT_UNBEGUN_NS);
        job->session->n_owed += WHARF_FRONT_ASIDE_PRICE - 1;
        wharf_front_complete_job(front, job, &end);
    } else if (!job->stopped) {
        __atomic_store_n(&job->stopped, (uint8_t)result, __ATOMIC_RELAXED);
        front->n_stopped++;
        hurry(front, job);
    }
}

/* ---- cancel -------------------------------------------------------------------------------- */

/* Slots that are looked at for the price of one job. */
#define CANCEL_LOOKS 16

static void cancel_complete(struct wharf_front *front, struct wharf_session *session)
{
    uint32_t n_found = session->cancel.n_found;
    struct wharf_completion completion = {
        .user_data = session->cancel.own_user_data,
        .result = n_found ? WHARF_OK : WHARF_BAD_REQUEST,
        .reason = n_found ? WHARF_REASON_NONE : WHARF_REASON_REQUEST_NO_JOB,
    };

    session->cancel.is_under_way = false;
    session->tenant->stats.engines[WHARF_ENGINE_AUTO].n_jobs[completion.result]++;
    wharf_front_complete(front, session, &completion);
}

uint32_t wharf_front_cancel_step(struct wharf_front *front, struct wharf_session *session,
                                 uint32_t budget, uint64_t now_ns)
{
    struct wharf_session_cancel *cancel = &session->cancel;
    uint32_t looks = budget * CANCEL_LOOKS;

    while (looks > 0 && cancel->next_job < session->ring.n_entries) {
        struct wharf_job *job = &session->jobs[cancel->next_job++];
        looks--;
        if (job->state == WHARF_JOB_FREE || job->submission.user_data != cancel->user_data)
            continue;
        cancel->n_found++;
        wharf_front_stop_job(front, job, WHARF_CANCELLED, now_ns);
        looks -= looks < CANCEL_LOOKS ? looks : CANCEL_LOOKS - 1;
    }
    if (cancel->next_job == session->ring.n_entries)
        cancel_complete(front, session);
    return looks / CANCEL_LOOKS;
}
