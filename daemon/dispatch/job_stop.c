/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_stop.c: ends jobs early.
 *
 * A stopped job starts no more pieces.  Engines that have pieces see `stopped` and end them soon;
 * the last piece completes the job.  A cancel visits the slots of its session in steps of bounded
 * length.
 */
#include "daemon/dispatch/job_stop.h"

#include "daemon/base/heap.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/job.h"
#include "daemon/core/publish.h"
#include "daemon/core/queues.h"
#include "daemon/core/session.h"
#include "daemon/dispatch/job_end.h"
#include "daemon/dispatch/job_pieces.h"
#include "daemon/dispatch/starts.h"
#include "daemon/placement/place.h"
#include "daemon/schedule/unqueued_work.h"
#include "proto/wharf_job.h"

/* The rest of a stopped batch costs almost nothing, so it need not wait for its turn. */
static void hurry(struct wharf_core *core, struct wharf_job *job)
{
    if (!wharf_list_is_linked(&job->link))
        return;
    wharf_core_unqueue(core, job);
    job->lane = WHARF_LANE_INTERACTIVE;
    job->estimate_ns = 0;
    wharf_place_push(core, job, true);
}

void wharf_core_stop_job(struct wharf_core *core, struct wharf_job *job, uint32_t result,
                         uint64_t now_ns)
{
    struct wharf_job_end end = {.outcome.result = result, .ended_ns = now_ns};

    wharf_heap_remove(&core->deadlines, &job->deadline);
    /* A dead session's queues were dropped, so its jobs are in no queue, and are being freed. */
    if (job->session->state == WHARF_SESSION_DEAD)
        return;
    if (job->state == WHARF_JOB_QUEUED) {
        if (result == WHARF_DEADLINE && wharf_starts_is_late(job))
            end.outcome.reason = WHARF_REASON_START_TIME;
        if (result == WHARF_DEADLINE)
            wharf_starts_expired(core, job, now_ns);
        wharf_core_unqueue(core, job);
        wharf_core_charge_unqueued(core, job->session, WHARF_UNBEGUN_NS);
        job->session->n_owed += WHARF_UNQUEUED_PRICE - 1;
        wharf_core_end_job(core, job, &end);
    } else if (!job->stopped && !wharf_job_is_owed_word(job)) {
        __atomic_store_n(&job->stopped, (uint8_t)result, __ATOMIC_RELAXED);
        core->n_stopped++;
        hurry(core, job);
    }
}

/* ---- cancel -------------------------------------------------------------------------------- */

/* Slots that are visited for the price of one job. */
#define CANCEL_LOOKS 16

static void cancel_complete(struct wharf_core *core, struct wharf_session *session)
{
    uint32_t n_found = session->cancel.n_found;
    struct wharf_completion completion = {
        .user_data = session->cancel.own_user_data,
        .result = n_found ? WHARF_OK : WHARF_BAD_REQUEST,
        .reason = n_found ? WHARF_REASON_NONE : WHARF_REASON_REQUEST_NO_JOB,
    };

    session->cancel.is_under_way = false;
    session->tenant->stats.engines[WHARF_ENGINE_AUTO].n_jobs[completion.result]++;
    wharf_core_complete(core, session, &completion);
}

uint32_t wharf_core_cancel_step(struct wharf_core *core, struct wharf_session *session,
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
        wharf_core_stop_job(core, job, WHARF_CANCELLED, now_ns);
        looks -= looks < CANCEL_LOOKS ? looks : CANCEL_LOOKS - 1;
    }
    if (cancel->next_job == session->ring.n_entries)
        cancel_complete(core, session);
    return looks / CANCEL_LOOKS;
}
