/* SPDX-License-Identifier: Apache-2.0 */
/* pump.c: moves jobs into the daemon's ring, and takes completions. */
#include "clientlib/pump.h"

#include "clientlib/completions.h"
#include "clientlib/handle.h"
#include "clientlib/job_words.h"
#include "clientlib/link.h"
#include "clientlib/link_drive.h"
#include "clientlib/replay.h"
#include "clientlib/rings.h"

static void harvest(struct wharf *wharf)
{
    const char *wrong = wharf_client_reap(wharf);

    if (wrong)
        wharf_client_link_break(wharf, "%s", wrong);
}

/* ---- jobs to the daemon -------------------------------------------------------------------- */

/* A daemon that came later may be too old for them.  Then the library writes the done word; and a
 * job with a start word is refused for its flags. */
static void put_words(struct wharf_ring_client *ring, struct wharf_client_job *job)
{
    uint16_t *flags = &job->submission.flags;

    if (job->words.has_start)
        *flags |= WHARF_SUBMISSION_START_WORD;
    *flags &= (uint16_t)~WHARF_SUBMISSION_DONE_WORD;
    if (!ring->words)
        return;
    if (job->words.done)
        *flags |= WHARF_SUBMISSION_DONE_WORD;
    wharf_ring_submit_words(ring, &job->words.in_ring);
}

static void put_into_ring(struct wharf *wharf, struct wharf_client_job *job)
{
    struct wharf_client_jobs *jobs = &wharf->jobs;

    wharf_client_list_remove(jobs, &jobs->queued[0], job);
    wharf_client_list_append(jobs, &jobs->in_ring, job);
    job->state = WHARF_CLIENT_JOB_IN_RING;
    wharf->link.n_resubmitted += job->was_published;
    job->was_published = 1;
    job->ring_index = wharf->link.rings->ring.sq_tail;
    if (job->words.done || job->words.has_start)
        put_words(&wharf->link.rings->ring, job);
    wharf_ring_submit(&wharf->link.rings->ring, &job->submission);
}

/* One cancel at a time: the ring has one place more than there are jobs. */
static void put_cancel_into_ring(struct wharf *wharf)
{
    struct wharf_client_jobs *jobs = &wharf->jobs;
    struct wharf_client_job *job = wharf_client_list_first(jobs, &jobs->in_ring);

    while (job && (!job->is_unwanted || job->is_cancel_sent))
        job = wharf_client_list_next(jobs, job);
    if (!job)
        return;
    struct wharf_submission cancel = {
        .opcode = WHARF_OP_CANCEL,
        .user_data = WHARF_CLIENT_CANCEL_TAG,
        .src_offset = job->submission.user_data,
    };
    job->is_cancel_sent = 1;
    jobs->n_unwanted--;
    wharf->link.is_cancelling = 1;
    wharf_ring_submit(&wharf->link.rings->ring, &cancel);
}

/* Submits queued jobs and cancels, if the link is UP. */
static void flush(struct wharf *wharf)
{
    struct wharf_client_link *link = &wharf->link;
    struct wharf_client_job *job;

    if (link->state != WHARF_CLIENT_LINK_UP)
        return;
    while ((job = wharf_client_replay_next(wharf)))
        put_into_ring(wharf, job);
    if (wharf->jobs.n_unwanted && !link->is_cancelling)
        put_cancel_into_ring(wharf);
    if ((wharf_ring_publish_submissions(&link->rings->ring) & WHARF_WAIT_PACKET) &&
        wharf_control_wake(link->socket) < 0)
        wharf_client_link_listen(wharf, 0);
}

void wharf_client_pump(struct wharf *wharf)
{
    if (!wharf->is_daemon)
        return;
    if (wharf->link.state == WHARF_CLIENT_LINK_UP)
        harvest(wharf);
    wharf_client_link_step(wharf);
    if (wharf_client_link_is_lost(&wharf->link))
        wharf_client_done_lose(wharf, WHARF_REASON_DAEMON_LOST);
    flush(wharf);
}
