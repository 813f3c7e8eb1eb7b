/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completions.c: takes completions from the ring and ends jobs.
 */
#include "clientlib/completions.h"

#include "clientlib/handle.h"
#include "clientlib/job_words.h"
#include "clientlib/rings.h"

/* ---- jobs that end ------------------------------------------------------------------------- */

static void release_regions(struct wharf *wharf, const struct wharf_client_job *job)
{
    struct wharf_client_region **regions = wharf->regions.by_number;

    regions[job->submission.src_region]->n_uses--;
    regions[job->submission.dst_region]->n_uses--;
    if (job->words.done)
        regions[job->words.in_ring.done_region]->n_uses--;
    if (job->words.has_start)
        regions[job->words.in_ring.start_region]->n_uses--;
    for (uint32_t i = 0; job->batch && i < job->batch->n_chunks; i++) {
        regions[job->batch->chunks[i].src_region]->n_uses--;
        regions[job->batch->chunks[i].dst_region]->n_uses--;
    }
}

void wharf_client_finish(struct wharf *wharf, struct wharf_client_job *job,
                         const struct wharf_completion *completion)
{
    struct wharf_client_jobs *jobs = &wharf->jobs;

    wharf_client_done_tell(job, completion);
    release_regions(wharf, job);
    wharf_client_model_release(job->model);
    if (job->batch)
        wharf_client_arena_give_back(&wharf->arena, job->batch->table);
    if (wharf_client_is_suspect(job))
        jobs->n_suspects--;
    if (job->is_unwanted && !job->is_cancel_sent)
        jobs->n_unwanted--;
    job->completion = *completion;
    job->completion.user_data = job->user_data;
    job->state = WHARF_CLIENT_JOB_DONE;
    if (!job->is_private)
        wharf_client_list_append(jobs, &jobs->done, job);
    else if (job->is_abandoned)
        wharf_client_free_private(wharf, job);
    wharf_client_has_changed(wharf);
}

void wharf_client_finish_unrun(struct wharf *wharf, struct wharf_client_job *job, uint16_t result)
{
    struct wharf_completion completion = {.result = result};

    wharf_client_finish(wharf, job, &completion);
}

void wharf_client_drop_copy(struct wharf *wharf, const void *copy)
{
    if (!copy)
        return;
    wharf_client_arena_give_back(&wharf->arena, copy);
    wharf->n_copies--;
    wharf_client_has_changed(wharf);
}

void wharf_client_free_private(struct wharf *wharf, struct wharf_client_job *job)
{
    wharf_client_drop_copy(wharf, job->in_copy);
    wharf_client_drop_copy(wharf, job->out_copy);
    wharf_client_job_free(&wharf->jobs, job);
    wharf_client_has_changed(wharf);
}

int wharf_client_take_done(struct wharf *wharf, struct wharf_completion *ret_completion)
{
    struct wharf_client_job *job = wharf_client_list_first(&wharf->jobs, &wharf->jobs.done);

    if (!job)
        return 0;
    wharf_client_list_remove(&wharf->jobs, &wharf->jobs.done, job);
    *ret_completion = job->completion;
    wharf_client_job_free(&wharf->jobs, job);
    return 1;
}

/* ---- completions from the daemon, or from done words ----------------------------------------- */

/*
 * Copies a batch's results to where the program wants them, each looked at once.  Returns whether
 * they can be true.
 */
static int copy_results(const struct wharf_client_batch *batch)
{
    const struct wharf_chunk_result *shared =
        (const struct wharf_chunk_result *)((const char *)batch->table +
                                            batch->n_chunks * sizeof(struct wharf_chunk));

    for (uint32_t i = 0; i < batch->n_chunks; i++) {
        struct wharf_chunk_result result;
        wharf_ring_copy_in(&result, &shared[i], sizeof(result));
        if (result.result != WHARF_OK)
            result.in_nbytes = result.out_nbytes = 0;
        if (result.in_nbytes > batch->chunks[i].src_nbytes ||
            result.out_nbytes > batch->chunks[i].dst_nbytes)
            return 0;
        batch->results[i] = result;
    }
    return 1;
}

static int batch_is_possible(const struct wharf_client_batch *batch,
                             const struct wharf_completion *completion)
{
    uint64_t in_nbytes = 0, out_nbytes = 0;

    for (uint32_t i = 0; i < batch->n_chunks; i++) {
        in_nbytes += batch->chunks[i].src_nbytes;
        out_nbytes += batch->chunks[i].dst_nbytes;
    }
    return completion->in_nbytes <= in_nbytes && completion->out_nbytes <= out_nbytes &&
           completion->first_bad_chunk < batch->n_chunks;
}

/* Whether a completion can be true of its job; makes of it what programs may rely on. */
static int is_possible(const struct wharf_client_job *job, struct wharf_completion *completion)
{
    completion->flags &= WHARF_COMPLETION_RESULTS;
    completion->reserved = 0;
    if (completion->result != WHARF_OK)
        completion->in_nbytes = completion->out_nbytes = 0;
    if (!job->batch) {
        completion->flags = 0;
        completion->first_bad_chunk = 0;
        return completion->in_nbytes <= job->submission.src_nbytes &&
               completion->out_nbytes <= job->submission.dst_nbytes;
    }
    if (!job->batch->results)
        completion->flags = 0;
    return batch_is_possible(job->batch, completion) &&
           (!completion->flags || copy_results(job->batch));
}

int wharf_client_take_done_word(const struct wharf_client_job *job,
                                struct wharf_completion *ret_completion)
{
    if (!wharf_client_done_read(job, ret_completion))
        return 0;
    /* What else the program writes there is its own affair; but the job is over. */
    if (!is_possible(job, ret_completion))
        *ret_completion = (struct wharf_completion){.result = WHARF_INTERNAL};
    return 1;
}

/* Returns NULL, or what is wrong with it. */
static const char *accept_completion(struct wharf *wharf, struct wharf_completion *completion)
{
    struct wharf_client_jobs *jobs = &wharf->jobs;
    struct wharf_client_job *job;

    if (completion->user_data == WHARF_CLIENT_CANCEL_TAG && wharf->link.is_cancelling) {
        wharf->link.is_cancelling = 0;
        return NULL;
    }
    job = wharf_client_job_find(jobs, completion->user_data);
    if (!job || job->state != WHARF_CLIENT_JOB_IN_RING)
        return "it completed a job that it does not have";
    if (!is_possible(job, completion))
        return "it completed a job with sizes that cannot be";
    wharf_client_link_heard(&wharf->link);
    wharf_client_list_remove(jobs, &jobs->in_ring, job);
    wharf_client_finish(wharf, job, completion);
    return NULL;
}

const char *wharf_client_reap(struct wharf *wharf)
{
    struct wharf_ring_client *ring = &wharf->link.rings->ring;
    struct wharf_completion completion;
    const char *wrong = NULL;
    int r;

    while (!wrong && (r = wharf_ring_reap(ring, &completion)) != 0)
        wrong =
            r < 0 ? "its completion index is out of bounds" : accept_completion(wharf, &completion);
    return wrong;
}
