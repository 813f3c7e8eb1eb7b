/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish.c: writes completions and wakes clients.
 *
 * Completions are written under the core lock and published together when it is released, so that a
 * batch of them costs one store of the tail and at most one wake-up.
 */
#include "daemon/core/publish.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/heap.h"
#include "daemon/base/list.h"
#include "daemon/core/activity.h"
#include "daemon/core/core.h"
#include "daemon/core/job.h"
#include "daemon/core/session_lease.h"
#include "daemon/core/stats.h"
#include "proto/control.h"
#include "proto/wharf_job.h"

void wharf_core_wake_client(struct wharf_session *session, uint64_t kinds)
{
    struct wharf_ring_d *d = session->ring.d;

    if (kinds & WHARF_WAIT_FUTEX)
        syscall(SYS_futex, &d->cq_tail, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    if (kinds & WHARF_WAIT_PACKET)
        wharf_control_wake(session->socket);
}

void wharf_core_complete(struct wharf_core *core, struct wharf_session *session,
                         const struct wharf_completion *completion)
{
    if (session->is_broken)
        return;
    wharf_ring_complete(&session->ring, completion);
    if (!wharf_list_is_linked(&session->publish_link))
        wharf_list_append(&core->unpublished, &session->publish_link);
}

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

    if (job->source)
        job->source->n_users--;
    if (job->words && job->words->done)
        job->words->done->n_users--;
    if (job->words && job->words->start)
        job->words->start->n_users--;
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

void wharf_core_complete_job(struct wharf_core *core, struct wharf_job *job,
                             const struct wharf_job_end *end)
{
    struct wharf_completion completion = wharf_job_completion(job, end);

    count(job, &completion);
    wharf_heap_remove(&core->deadlines, &job->deadline);
    if (job->session->lease) {
        wharf_lease_keep(job->session->lease, job, &completion);
        return;
    }
    wharf_job_free(job);
    wharf_core_count_active(core, job->session);
    wharf_core_complete(core, job->session, &completion);
}
