/* SPDX-License-Identifier: Apache-2.0 */
/* front_jobs.c: pieces of jobs, to engines and back. */
#include "daemon/clock.h"
#include "daemon/front.h"
#include "proto/wharf_job.h"

/* Chunks of a batch that are handed out at once, whatever they are estimated to take: estimating
 * them is done under the front lock. */
#define MOST_CHUNKS 64

/* ---- out ----------------------------------------------------------------------------------- */

static uint64_t estimate_chunk(const struct wharf_job *job, uint32_t index)
{
    const struct wharf_chunk *chunk = &job->batch->entries[index].chunk;

    return wharf_estimate_ns(&job->session->tenant->estimates, job->submission.codec,
                             chunk->src_nbytes, chunk->dst_nbytes);
}

void wharf_front_unqueue(struct wharf_front *front, struct wharf_job *job)
{
    wharf_sched_remove(&front->sched, job);
    front->nothing_fits = false;
}

/* The first background job of some queue has waited long enough: it is a normal one now. */
static void age_background(struct wharf_front *front, uint64_t now_ns)
{
    struct wharf_job *job = wharf_sched_background(&front->sched);

    if (!job || now_ns - job->taken_ns < front->config.background_age_ns)
        return;
    wharf_front_unqueue(front, job);
    job->lane = WHARF_LANE_NORMAL;
    wharf_sched_push(&front->sched, job);
}

/* As many chunks as fit into a slice, at least one; all that are left of a batch that was stopped,
 * since each of them costs next to nothing then. */
static void cut_slice(struct wharf_front *front, struct wharf_job *job, struct wharf_piece *piece)
{
    struct wharf_batch *batch = job->batch;
    uint32_t left = batch->n_chunks - batch->n_handed_out;

    piece->kind = WHARF_PIECE_SLICE;
    piece->first_chunk = batch->n_handed_out;
    piece->n_chunks = left;
    if (!job->stopped) {
        piece->n_chunks = 1;
        piece->estimate_ns = estimate_chunk(job, piece->first_chunk);
        while (piece->n_chunks < left && piece->n_chunks < MOST_CHUNKS) {
            uint64_t more_ns = estimate_chunk(job, piece->first_chunk + piece->n_chunks);
            if (piece->estimate_ns + more_ns > front->config.slice_ns)
                break;
            piece->estimate_ns += more_ns;
            piece->n_chunks++;
        }
    }
    batch->n_handed_out += piece->n_chunks;
    if (batch->n_handed_out == batch->n_chunks)
        wharf_front_unqueue(front, job);
    else
        job->estimate_ns = estimate_chunk(job, batch->n_handed_out);
}

static void cut_piece(struct wharf_front *front, struct wharf_job *job, uint64_t now_ns,
                      struct wharf_piece *piece)
{
    *piece = (struct wharf_piece){.job = job};
    if (job->batch) {
        cut_slice(front, job, piece);
    } else {
        piece->kind =
            job->submission.opcode == WHARF_OP_BATCH ? WHARF_PIECE_OPEN : WHARF_PIECE_CHUNK;
        piece->estimate_ns = job->estimate_ns;
        wharf_front_unqueue(front, job);
        job->state = WHARF_JOB_RUNNING;
        job->begun_ns = now_ns;
    }
    job->n_pieces++;
    job->session->n_pieces++;
    piece->charged_ns = piece->estimate_ns;
    wharf_sched_charge(&front->sched, job, (int64_t)piece->estimate_ns);
}

bool wharf_front_next(struct wharf_front *front, uint64_t most_ns, struct wharf_piece *ret_piece)
{
    uint64_t now_ns;

    if (front->sched.n_queued == 0)
        return false;
    now_ns = wharf_now_ns();
    age_background(front, now_ns);
    struct wharf_job *job = wharf_sched_first(&front->sched, most_ns);
    if (!job) {
        front->nothing_fits = true;
        return false;
    }
    cut_piece(front, job, now_ns, ret_piece);
    return true;
}

/* ---- back ---------------------------------------------------------------------------------- */

static void chunk_done(struct wharf_front *front, const struct wharf_piece *piece)
{
    struct wharf_job *job = piece->job;
    struct wharf_job_end end = {
        .outcome = piece->outcome,
        .engine = piece->engine,
        .ended_ns = piece->ended_ns,
    };

    if (job->stopped == WHARF_DEADLINE ||
        (job->deadline.is_linked && job->deadline.key <= piece->ended_ns))
        end.outcome = (struct wharf_outcome){.result = WHARF_DEADLINE};
    wharf_front_complete_job(front, job, &end);
}

static void open_done(struct wharf_front *front, const struct wharf_piece *piece)
{
    struct wharf_job *job = piece->job;
    struct wharf_job_end end = {
        .outcome = piece->outcome,
        .bad_chunk = piece->bad_chunk,
        .ended_ns = piece->ended_ns,
    };

    if (!piece->batch) {
        wharf_front_complete_job(front, job, &end);
        return;
    }
    job->batch = piece->batch;
    job->estimate_ns = estimate_chunk(job, 0);
    wharf_sched_push_front(&front->sched, job);
    front->nothing_fits = false;
}

static void merge_slice(struct wharf_batch *batch, const struct wharf_piece *piece)
{
    bool was_good = batch->first_bad == batch->n_chunks;

    batch->n_done += piece->n_chunks;
    if (piece->outcome.result == WHARF_OK) {
        if (!was_good)
            return;
        batch->outcome.in_nbytes += piece->outcome.in_nbytes;
        batch->outcome.out_nbytes += piece->outcome.out_nbytes;
        batch->engine = piece->engine;
    } else if (piece->bad_chunk < batch->first_bad) {
        batch->first_bad = piece->bad_chunk;
        batch->outcome = piece->outcome;
        batch->engine = piece->engine;
    }
}

static void slice_done(struct wharf_front *front, const struct wharf_piece *piece)
{
    struct wharf_job *job = piece->job;
    struct wharf_batch *batch = job->batch;

    merge_slice(batch, piece);
    if (batch->n_done < batch->n_chunks)
        return;
    struct wharf_job_end end = {
        .outcome = batch->outcome,
        .engine = batch->engine,
        .bad_chunk = batch->first_bad,
        .has_results = job->destination != NULL,
        .ended_ns = piece->ended_ns,
    };
    job->batch = NULL;
    wharf_batch_close(batch, job->session);
    wharf_front_complete_job(front, job, &end);
}

/* Makes what the piece is charged what it has used; returns that. */
static uint64_t charge(struct wharf_front *front, struct wharf_piece *piece, uint64_t now_ns)
{
    struct wharf_job *job = piece->job;
    uint64_t used_ns = now_ns - piece->begun_ns - piece->others_ns;
    int64_t missing_ns = (int64_t)(used_ns - piece->charged_ns);

    wharf_sched_charge(&front->sched, job, missing_ns);
    if (job->lane == WHARF_LANE_INTERACTIVE)
        job->session->tenant->interactive_ns -= missing_ns;
    piece->charged_ns = used_ns;
    return used_ns;
}

void wharf_front_going_on(struct wharf_front *front, struct wharf_piece *piece, uint64_t now_ns)
{
    const struct wharf_submission *submission = &piece->job->submission;
    struct wharf_estimates *estimates = &piece->job->session->tenant->estimates;
    uint64_t used_ns = now_ns - piece->begun_ns - piece->others_ns;

    if (used_ns <= piece->charged_ns)
        return;
    charge(front, piece, now_ns);
    /* The next one like it is to be estimated better, at once. */
    if (piece->kind == WHARF_PIECE_CHUNK)
        wharf_estimates_learn(estimates, submission->codec, submission->src_nbytes,
                              submission->dst_nbytes, used_ns);
}

/* Corrects what was charged and estimated by what it took. */
static void settle_account(struct wharf_front *front, struct wharf_piece *piece)
{
    struct wharf_job *job = piece->job;
    struct wharf_tenant *tenant = job->session->tenant;
    struct wharf_engine_stats *stats = &tenant->stats.engines[piece->engine];
    uint64_t took_ns = charge(front, piece, piece->ended_ns);

    stats->busy_ns += took_ns;
    if (piece->kind == WHARF_PIECE_OPEN || piece->engine == WHARF_ENGINE_AUTO)
        return;
    stats->n_chunks += piece->kind == WHARF_PIECE_SLICE ? piece->n_chunks : 1;
    stats->in_nbytes += piece->in_nbytes;
    stats->out_nbytes += piece->out_nbytes;
    /* What was stopped half-way tells nothing. */
    if (!job->stopped)
        wharf_estimates_learn(&tenant->estimates, job->submission.codec, piece->source_nbytes,
                              piece->capacity_nbytes, took_ns);
}

void wharf_front_forget_job(struct wharf_front *front, struct wharf_job *job)
{
    if (job->state == WHARF_JOB_FREE)
        return;
    if (job->n_pieces > 0) {
        __atomic_store_n(&job->stopped, WHARF_CANCELLED, __ATOMIC_RELAXED);
        return;
    }
    wharf_heap_remove(&front->deadlines, &job->deadline);
    wharf_batch_close(job->batch, job->session);
    job->batch = NULL;
    job->state = WHARF_JOB_FREE;
}

void wharf_front_done(struct wharf_front *front, struct wharf_piece *piece)
{
    struct wharf_job *job = piece->job;
    struct wharf_session *session = job->session;

    job->n_pieces--;
    session->n_pieces--;
    settle_account(front, piece);
    if (session->state == WHARF_SESSION_DEAD) {
        if (piece->kind == WHARF_PIECE_OPEN)
            job->batch = piece->batch;
        wharf_front_forget_job(front, job);
        wharf_front_release(front, session);
    } else if (piece->kind == WHARF_PIECE_CHUNK) {
        chunk_done(front, piece);
    } else if (piece->kind == WHARF_PIECE_OPEN) {
        open_done(front, piece);
    } else {
        slice_done(front, piece);
    }
    /* Its client has something to do now, and may be back soon. */
    wharf_front_watch(front, session, piece->ended_ns);
}
