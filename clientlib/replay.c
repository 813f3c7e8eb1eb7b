/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c: resubmits jobs after a daemon's end.
 *
 * Jobs return to the front of the queue in their order.  The marks of the dead daemon tell which
 * jobs it had started; only these count its death.  A job with several such deaths is suspected and
 * runs alone, so that its guilt or innocence shows. A started write to a file is never repeated.
 */
#include "clientlib/replay.h"

#include "clientlib/completions.h"
#include "clientlib/handle.h"
#include "clientlib/now.h"
#include "clientlib/rings.h"

static int is_file(const struct wharf *wharf, uint16_t region)
{
    const struct wharf_client_region *its = wharf->regions.by_number[region];

    return its && its->kind == WHARF_CLIENT_FILE;
}

/* Whether it may have written to a file.  What the last daemon's process for files began can come
 * there later than anything that is done now. */
static int writes_file(const struct wharf *wharf, const struct wharf_client_job *job)
{
    if (!job->batch)
        return is_file(wharf, job->submission.dst_region);
    for (uint32_t i = 0; i < job->batch->n_chunks; i++)
        if (is_file(wharf, job->batch->chunks[i].dst_region))
            return 1;
    return 0;
}

static void requeue(struct wharf *wharf, int is_death)
{
    struct wharf_client_jobs *jobs = &wharf->jobs;
    struct wharf_client_rings *rings = wharf->link.rings;
    struct wharf_client_job *job = wharf_client_list_first(jobs, &jobs->in_ring);

    wharf_client_rings_find_marks(rings);
    for (; job; job = wharf_client_list_next(jobs, job)) {
        int was_begun = wharf_client_rings_were_begun(rings, job->ring_index);
        job->state = WHARF_CLIENT_JOB_QUEUED;
        job->is_write_unknown |= was_begun && writes_file(wharf, job);
        if (is_death && was_begun && ++job->n_deaths == WHARF_CLIENT_SUSPECT_DEATHS)
            jobs->n_suspects++;
        if (job->is_cancel_sent)
            jobs->n_unwanted++;
        job->is_cancel_sent = 0;
    }
    wharf_client_list_prepend_all(jobs, &jobs->queued[0], &jobs->in_ring);
}

void wharf_client_replay_prepare(struct wharf *wharf)
{
    const struct wharf_client_link *link = &wharf->link;
    uint32_t flags = wharf_ring_load_flags(&link->rings->ring.d->flags);
    /* One that says why it ends the connection has not died of a job. */
    int is_death = !(flags & WHARF_RING_DRAINING) && !link->farewell[0];

    /* What makes no sense is the end of what can be taken, and no more: it is dead. */
    (void)wharf_client_reap(wharf);
    requeue(wharf, is_death);
}

/* ---- what goes next ------------------------------------------------------------------------ */

/* Takes the time that has passed off a timeout.  Returns whether some is left. */
static int shorten_timeout(struct wharf_client_job *job)
{
    uint64_t passed_us;

    if (!job->timeout_us)
        return 1;
    passed_us = (wharf_client_now_ns() - job->queued_ns) / 1000;
    if (passed_us >= job->timeout_us)
        return 0;
    job->submission.timeout_us = job->timeout_us - (uint32_t)passed_us;
    return 1;
}

/* Whether a queued job ends here, and how. */
static int ends_unrun(struct wharf_client_job *job, struct wharf_completion *ret_completion)
{
    uint16_t *ret_result = &ret_completion->result;

    /* Its memory may be in use already by who waited for the word. */
    if (wharf_client_take_done_word(job, ret_completion))
        return 1;
    *ret_completion = (struct wharf_completion){.result = WHARF_FILE_ERROR};
    if (job->is_write_unknown)
        ret_completion->reason = WHARF_REASON_FILE_ABANDONED;
    else if (job->is_unwanted)
        *ret_result = WHARF_CANCELLED;
    else if (job->n_deaths >= WHARF_CLIENT_GIVE_UP_DEATHS)
        *ret_result = WHARF_INTERNAL;
    else if (job->was_published && !shorten_timeout(job))
        *ret_result = WHARF_DEADLINE;
    else
        return 0;
    return 1;
}

static struct wharf_client_job *first_suspect(const struct wharf_client_jobs *jobs)
{
    struct wharf_client_job *job = wharf_client_list_first(jobs, &jobs->queued[0]);

    while (job && !wharf_client_is_suspect(job))
        job = wharf_client_list_next(jobs, job);
    return job;
}

struct wharf_client_job *wharf_client_replay_next(struct wharf *wharf)
{
    struct wharf_client_jobs *jobs = &wharf->jobs;
    struct wharf_client_job *job;
    struct wharf_completion completion;

    for (;;) {
        /* The ring's last place is for cancels. */
        if (jobs->in_ring.n == wharf->link.n_entries - 1 || (jobs->n_suspects && jobs->in_ring.n))
            return NULL;
        job = jobs->n_suspects ? first_suspect(jobs)
                               : wharf_client_list_first(jobs, &jobs->queued[0]);
        if (!job || !ends_unrun(job, &completion))
            return job;
        wharf_client_list_remove(jobs, &jobs->queued[0], job);
        wharf_client_finish(wharf, job, &completion);
    }
}
