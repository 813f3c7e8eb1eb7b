/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embedded.c: runs jobs in this process.
 */
#include "clientlib/embedded.h"

#include "clientlib/completions.h"
#include "clientlib/compress_here.h"
#include "clientlib/handle.h"
#include "clientlib/now.h"
#include "clientlib/pump.h"
#include "encoders/outcome.h"

/* What is wrong with a job itself, in the daemon's order: codec, flags, class, parameter, ranges.
 * *ret_outcome is OK or BAD_REQUEST. */
static void check_job(const struct wharf_decode_job *job, uint32_t job_class,
                      struct wharf_outcome *ret_outcome)
{
    struct wharf_decode_job nothing = {.codec = job->codec, .flags = job->flags};

    wharf_outcome_ok(ret_outcome, 0, 0);
    if (!wharf_decode_job_check(&nothing, ret_outcome))
        return;
    if (job_class > WHARF_CLASS_BACKGROUND)
        wharf_outcome_fail(ret_outcome, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_CLASS, 0);
    else
        wharf_decode_job_check(job, ret_outcome);
}

void wharf_client_run_here(const struct wharf_client_work *work, uint32_t job_class,
                           uint32_t engine, struct wharf_outcome *ret_outcome)
{
    if (work->job.flags & WHARF_JOB_COMPRESS) {
        wharf_client_compress(&work->job, &work->choice, job_class, ret_outcome);
        return;
    }
    check_job(&work->job, job_class, ret_outcome);
    if (ret_outcome->result == WHARF_OK)
        wharf_decode_job_run(&work->job, engine == WHARF_ENGINE_REFERENCE, ret_outcome);
}

struct wharf_codec_setting wharf_client_setting(const struct wharf_client_model *model,
                                                uint32_t parameter)
{
    if (model)
        return (struct wharf_codec_setting){.model = model->image};
    return (struct wharf_codec_setting){.parameter = parameter};
}

/* ---- one job, without the lock ------------------------------------------------------------- */

/* The source and the destination of a job in flight stay registered. */
static struct wharf_client_work work_of(const struct wharf *wharf,
                                        const struct wharf_submission *submission,
                                        const struct wharf_client_model *model)
{
    const struct wharf_client_regions *regions = &wharf->regions;
    struct wharf_client_work work = {
        .choice = {submission->codec, submission->parameter, submission->encoder,
                   submission->level},
    };

    work.job = (struct wharf_decode_job){
        .codec = submission->codec,
        .flags = submission->flags,
        .checksum = submission->checksum,
        .setting = wharf_client_setting(model, submission->parameter),
        .in = wharf_client_regions_address(regions, submission->src_region, submission->src_offset),
        .in_nbytes = submission->src_nbytes,
        .out =
            wharf_client_regions_address(regions, submission->dst_region, submission->dst_offset),
        .out_avail = submission->dst_nbytes,
    };
    return work;
}

/* A chunk of a batch as the job that it is. */
static struct wharf_client_work chunk_work_of(const struct wharf *wharf,
                                              const struct wharf_client_job *job, uint32_t at)
{
    const struct wharf_chunk *chunk = &job->batch->chunks[at];
    struct wharf_submission submission = {
        .codec = job->submission.codec,
        .flags = job->submission.flags,
        .parameter = job->submission.parameter,
        .checksum = chunk->checksum,
        .src_region = chunk->src_region,
        .src_offset = chunk->src_offset,
        .src_nbytes = chunk->src_nbytes,
        .dst_region = chunk->dst_region,
        .dst_offset = chunk->dst_offset,
        .dst_nbytes = chunk->dst_nbytes,
        .encoder = job->submission.encoder,
        .level = job->submission.level,
    };

    return work_of(wharf, &submission, job->model);
}

static void set_outcome(struct wharf_completion *completion, const struct wharf_outcome *outcome)
{
    completion->result = (uint16_t)outcome->result;
    completion->reason = (uint16_t)outcome->reason;
    completion->bit_offset = outcome->bit_offset;
    completion->in_nbytes = outcome->in_nbytes;
    completion->out_nbytes = outcome->out_nbytes;
}

static void run_chunk(const struct wharf *wharf, const struct wharf_client_job *job,
                      struct wharf_completion *completion)
{
    struct wharf_client_work work = work_of(wharf, &job->submission, job->model);
    struct wharf_outcome outcome;

    wharf_client_run_here(&work, job->submission.job_class, wharf->engine, &outcome);
    set_outcome(completion, &outcome);
}

/* Of chunks in their order: sums, until one is bad, which then stands for all. */
static void add_outcome(struct wharf_completion *completion, const struct wharf_outcome *outcome,
                        uint32_t at)
{
    if (completion->result != WHARF_OK)
        return;
    if (outcome->result == WHARF_OK) {
        completion->in_nbytes += outcome->in_nbytes;
        completion->out_nbytes += outcome->out_nbytes;
        return;
    }
    set_outcome(completion, outcome);
    completion->first_bad_chunk = at;
}

/* What is wrong with the job itself, whatever it does. */
static void check_work(const struct wharf_client_work *work, uint32_t job_class,
                       struct wharf_outcome *ret_outcome)
{
    wharf_outcome_ok(ret_outcome, 0, 0);
    if (work->job.flags & WHARF_JOB_COMPRESS)
        wharf_client_compress_check(&work->job, &work->choice, job_class, ret_outcome);
    else
        check_job(&work->job, job_class, ret_outcome);
}

/* Whether all chunks make sense: else the first that does not is the batch's outcome. */
static int batch_is_good(const struct wharf *wharf, const struct wharf_client_job *job,
                         struct wharf_completion *completion)
{
    uint32_t job_class = job->submission.job_class;
    struct wharf_client_work work = chunk_work_of(wharf, job, 0);
    struct wharf_outcome outcome;

    work.job.in_nbytes = work.job.out_avail = 0;
    check_work(&work, job_class, &outcome);
    for (uint32_t at = 0; outcome.result == WHARF_OK && at < job->batch->n_chunks; at++) {
        work = chunk_work_of(wharf, job, at);
        completion->first_bad_chunk = at;
        check_work(&work, job_class, &outcome);
    }
    if (outcome.result != WHARF_OK)
        set_outcome(completion, &outcome);
    else
        completion->first_bad_chunk = 0;
    return outcome.result == WHARF_OK;
}

static void run_batch(const struct wharf *wharf, const struct wharf_client_job *job,
                      struct wharf_completion *completion)
{
    struct wharf_client_batch *batch = job->batch;
    struct wharf_outcome outcome;

    if (!batch_is_good(wharf, job, completion))
        return;
    for (uint32_t at = 0; at < batch->n_chunks; at++) {
        struct wharf_client_work work = chunk_work_of(wharf, job, at);
        wharf_client_run_here(&work, job->submission.job_class, wharf->engine, &outcome);
        add_outcome(completion, &outcome, at);
        if (batch->results)
            batch->results[at] = (struct wharf_chunk_result){
                .bit_offset = outcome.bit_offset,
                .in_nbytes = (uint32_t)outcome.in_nbytes,
                .out_nbytes = (uint32_t)outcome.out_nbytes,
                .result = (uint16_t)outcome.result,
                .reason = (uint16_t)outcome.reason,
                .engine = (uint8_t)wharf->engine,
            };
    }
    completion->flags = batch->results ? WHARF_COMPLETION_RESULTS : 0;
}

static void run(const struct wharf *wharf, const struct wharf_client_job *job,
                struct wharf_completion *completion)
{
    uint64_t start_ns = wharf_client_now_ns();

    completion->engine = (uint8_t)wharf->engine;
    if (job->submission.opcode == WHARF_OP_DECODE)
        run_chunk(wharf, job, completion);
    else if (job->submission.opcode == WHARF_OP_BATCH)
        run_batch(wharf, job, completion);
    completion->queue_ns = start_ns - job->queued_ns;
    completion->run_ns = wharf_client_now_ns() - start_ns;
}

/* ---- the queues ---------------------------------------------------------------------------- */

/* The next job to run, RUNNING; those that are too late end here. */
static struct wharf_client_job *begin_next(struct wharf *wharf)
{
    struct wharf_client_jobs *jobs = &wharf->jobs;

    for (uint32_t c = WHARF_CLASS_INTERACTIVE; c <= WHARF_CLASS_BACKGROUND;) {
        struct wharf_client_job *job = wharf_client_list_first(jobs, &jobs->queued[c]);
        if (!job) {
            c++;
            continue;
        }
        wharf_client_list_remove(jobs, &jobs->queued[c], job);
        uint64_t late_ns = job->queued_ns + (uint64_t)job->timeout_us * 1000;
        if (job->timeout_us && wharf_client_now_ns() > late_ns) {
            wharf_client_finish_unrun(wharf, job, WHARF_DEADLINE);
            continue;
        }
        job->state = WHARF_CLIENT_JOB_RUNNING;
        wharf_client_list_append(jobs, &jobs->running, job);
        return job;
    }
    return NULL;
}

int wharf_client_embedded_run(struct wharf *wharf)
{
    struct wharf_completion completion = {.result = WHARF_OK};
    struct wharf_client_job *job = begin_next(wharf);

    if (!job)
        return 0;
    pthread_mutex_unlock(&wharf->lock);
    run(wharf, job, &completion);
    pthread_mutex_lock(&wharf->lock);
    wharf_client_list_remove(&wharf->jobs, &wharf->jobs.running, job);
    wharf_client_finish(wharf, job, &completion);
    return 1;
}

void wharf_client_embedded_rest(struct wharf *wharf, uint64_t deadline_ns)
{
    if (!wharf_client_embedded_run(wharf) && wharf->jobs.running.n)
        wharf_client_wait_changed(wharf, deadline_ns);
}
