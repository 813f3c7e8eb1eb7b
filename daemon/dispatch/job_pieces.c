/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_pieces.c: cuts pieces from jobs for engines, and takes them back.
 *
 * A tenant is charged the estimate when a piece is taken, and the difference to the measured time
 * when it ends; so a wrong estimate delays others, but is always paid.  While an engine has a
 * piece, nothing that the piece refers to changes.  A job is completed when its last piece has
 * ended and nothing of it is queued.
 */
#include "daemon/dispatch/job_pieces.h"

#include "daemon/base/clock.h"
#include "daemon/base/heap.h"
#include "daemon/core/activity.h"
#include "daemon/core/batch_close.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/estimate.h"
#include "daemon/core/file_io.h"
#include "daemon/core/job.h"
#include "daemon/core/publish.h"
#include "daemon/core/queues.h"
#include "daemon/core/retry_queue.h"
#include "daemon/core/session.h"
#include "daemon/core/session_events.h"
#include "daemon/dispatch/chains.h"
#include "daemon/dispatch/job_end.h"
#include "daemon/placement/place.h"
#include "daemon/placement/place_cost.h"
#include "daemon/placement/place_pick.h"
#include "daemon/schedule/idle_work.h"
#include "daemon/schedule/sched.h"
#include "proto/wharf_job.h"

/* The most chunks of a batch in a piece, since estimating them happens under the core lock. */
#define MOST_CHUNKS 64

/* ---- out ----------------------------------------------------------------------------------- */

static uint64_t estimate_chunk(const struct wharf_job *job, uint32_t index)
{
    const struct wharf_chunk *chunk = &job->batch->entries[index].chunk;

    return wharf_estimate_ns(wharf_job_estimates(job), job->submission.codec, chunk->src_nbytes,
                             chunk->dst_nbytes);
}

/* The estimates of a batch's chunk, or a single chunk, on a processor and on a warp. */
static uint64_t chunk_cpu_ns(uint32_t gpu, const struct wharf_job *job, uint32_t index)
{
    (void)gpu;
    return job->batch ? estimate_chunk(job, index) : job->estimate_ns;
}

static uint64_t chunk_warp_ns(uint32_t gpu, const struct wharf_job *job, uint32_t index)
{
    const struct wharf_chunk *chunk = job->batch ? &job->batch->entries[index].chunk : NULL;

    return wharf_place_warp_ns(gpu, job, chunk ? chunk->src_nbytes : job->submission.src_nbytes,
                               chunk ? chunk->dst_nbytes : job->submission.dst_nbytes);
}

void wharf_core_unqueue(struct wharf_core *core, struct wharf_job *job)
{
    wharf_place_remove(core, job);
    core->nothing_fits = false;
}

/* In each pool, makes a queue's first background job normal if it has waited long enough. */
static void age_background(struct wharf_core *core, uint64_t now_ns)
{
    for (unsigned i = 0; i < WHARF_N_POOLS; i++) {
        struct wharf_job *job = wharf_sched_background(&core->sched[i]);
        if (!job || now_ns - job->taken_ns < core->config.background_age_ns)
            continue;
        wharf_core_unqueue(core, job);
        job->lane = WHARF_LANE_NORMAL;
        wharf_place_push(core, job, false);
    }
}

/* The bounds of a piece. */
struct appetite {
    uint64_t (*chunk_ns)(uint32_t gpu, const struct wharf_job *job, uint32_t index);
    uint32_t gpu;     /* number of the GPU, if the engine is one */
    uint64_t most_ns; /* most total time, but at least one chunk */
    uint32_t most_chunks;
};

/* Chooses as many chunks as the bounds allow, at least one; for a stopped batch all the rest, since
 * each then costs almost nothing.  Returns their time, by the engine's measure. */
static uint64_t cut_slice(struct wharf_core *core, struct wharf_job *job,
                          const struct appetite *appetite, struct wharf_piece *piece)
{
    struct wharf_batch *batch = job->batch;
    uint32_t left = batch->n_chunks - batch->n_handed_out;
    uint64_t sum_ns = 0;

    piece->kind = WHARF_PIECE_SLICE;
    piece->first_chunk = batch->n_handed_out;
    piece->n_chunks = left;
    if (!job->stopped) {
        piece->n_chunks = 1;
        sum_ns = appetite->chunk_ns(appetite->gpu, job, piece->first_chunk);
        while (piece->n_chunks < left && piece->n_chunks < appetite->most_chunks) {
            uint64_t more_ns =
                appetite->chunk_ns(appetite->gpu, job, piece->first_chunk + piece->n_chunks);
            if (sum_ns + more_ns > appetite->most_ns)
                break;
            sum_ns += more_ns;
            piece->n_chunks++;
        }
    }
    batch->n_handed_out += piece->n_chunks;
    if (batch->n_handed_out == batch->n_chunks) {
        wharf_core_unqueue(core, job);
    } else {
        wharf_sched_shrink(&core->sched[job->pool], job, job->backlog_ns / left * piece->n_chunks);
        job->estimate_ns = estimate_chunk(job, batch->n_handed_out);
    }
    return sum_ns;
}

/* Its mark has the place of its slot, which no other job uses before it is completed. */
static uint32_t mark_place(const struct wharf_job *job)
{
    return (uint32_t)(job - job->session->jobs);
}

void wharf_job_begin(struct wharf_job *job, uint64_t now_ns)
{
    wharf_ring_mark_begun(&job->session->ring, mark_place(job), job->index);
    job->state = WHARF_JOB_RUNNING;
    job->begun_ns = now_ns;
}

static uint64_t cut_piece(struct wharf_core *core, struct wharf_job *job, uint64_t now_ns,
                          const struct appetite *appetite, struct wharf_piece *piece)
{
    uint64_t sum_ns;

    *piece = (struct wharf_piece){.job = job, .pool = job->pool};
    if (wharf_job_is_owed_word(job)) {
        piece->kind = WHARF_PIECE_WORD;
        piece->n_chunks = 1;
        sum_ns = job->estimate_ns;
        wharf_core_unqueue(core, job);
    } else if (job->batch) {
        sum_ns = cut_slice(core, job, appetite, piece);
    } else {
        piece->kind =
            job->submission.opcode == WHARF_OP_BATCH ? WHARF_PIECE_OPEN : WHARF_PIECE_CHUNK;
        piece->n_chunks = 1;
        sum_ns = appetite->chunk_ns(appetite->gpu, job, 0);
        wharf_core_unqueue(core, job);
        wharf_job_begin(job, now_ns);
    }
    job->n_pieces++;
    job->session->n_pieces++;
    return sum_ns;
}

static void charge_estimate(struct wharf_core *core, struct wharf_piece *piece,
                            uint64_t estimate_ns)
{
    piece->estimate_ns = piece->charged_ns = estimate_ns;
    wharf_sched_charge(&core->sched[piece->pool], piece->job, (int64_t)estimate_ns);
}

struct wharf_job *wharf_core_first(struct wharf_core *core, uint64_t most_ns)
{
    if (wharf_place_n_for_cpu(core) == 0)
        return NULL;
    age_background(core, wharf_now_ns());
    return wharf_place_first_for_cpu(core, most_ns);
}

void wharf_core_take(struct wharf_core *core, struct wharf_job *job, struct wharf_piece *ret_piece)
{
    struct appetite appetite = {chunk_cpu_ns, 0, core->config.slice_ns, MOST_CHUNKS};
    uint64_t now_ns = wharf_now_ns();
    uint64_t cpu_ns = cut_piece(core, job, now_ns, &appetite, ret_piece);

    wharf_idle_work_taken(core, ret_piece, now_ns);
    charge_estimate(core, ret_piece, cpu_ns);
    wharf_place_took_by_cpu(core, ret_piece);
}

bool wharf_core_next(struct wharf_core *core, uint64_t most_ns, struct wharf_piece *ret_piece)
{
    if (wharf_retry_take(&core->retries, ret_piece))
        return true;
    struct wharf_job *job = wharf_core_first(core, most_ns);
    if (!job) {
        core->nothing_fits |= wharf_place_n_for_cpu(core) > 0;
        return false;
    }
    wharf_core_take(core, job, ret_piece);
    return true;
}

uint64_t wharf_core_take_for_gpu(struct wharf_core *core, uint32_t gpu, struct wharf_job *job,
                                 uint32_t most_chunks, uint64_t now_ns,
                                 struct wharf_piece *ret_piece)
{
    const uint32_t n_warps = core->fleet.gpus[gpu].n_warps;
    /* Pieces small enough for the limit on handed-over work, and large enough for all warps. */
    struct appetite appetite = {chunk_warp_ns, gpu, core->config.gpu_ahead_ns * n_warps,
                                most_chunks < MOST_CHUNKS ? most_chunks : MOST_CHUNKS};
    uint64_t warp_ns = cut_piece(core, job, now_ns, &appetite, ret_piece);

    charge_estimate(core, ret_piece, warp_ns / n_warps);
    wharf_place_took_by_gpu(core, ret_piece, gpu);
    return warp_ns;
}

/* ---- back ---------------------------------------------------------------------------------- */

static void chunk_done(struct wharf_core *core, const struct wharf_piece *piece)
{
    struct wharf_job *job = piece->job;
    struct wharf_job_end end = {
        .outcome = piece->outcome,
        .engine = piece->engine,
        .ended_ns = piece->ended_ns,
    };

    /* What its done word says is so. */
    if (piece->is_told)
        job->words->is_told = true;
    else if (job->stopped == WHARF_DEADLINE ||
             (job->deadline.is_linked && job->deadline.key <= piece->ended_ns))
        end.outcome = (struct wharf_outcome){.result = WHARF_DEADLINE};
    wharf_core_end_job(core, job, &end);
}

static void word_done(struct wharf_core *core, const struct wharf_piece *piece)
{
    struct wharf_job *job = piece->job;

    job->words->is_told = true;
    job->words->is_owed = false;
    wharf_chains_let_go(core, job);
    wharf_core_complete_job(core, job, &job->words->end);
}

static void open_done(struct wharf_core *core, const struct wharf_piece *piece)
{
    struct wharf_job *job = piece->job;
    struct wharf_job_end end = {
        .outcome = piece->outcome,
        .bad_chunk = piece->bad_chunk,
        .ended_ns = piece->ended_ns,
    };

    if (!piece->batch) {
        wharf_core_end_job(core, job, &end);
        return;
    }
    job->batch = piece->batch;
    job->estimate_ns = estimate_chunk(job, 0);
    wharf_place_push(core, job, true);
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

static void slice_done(struct wharf_core *core, const struct wharf_piece *piece)
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
    wharf_core_end_job(core, job, &end);
}

/* Adjusts the piece's charge to the time that it used, and returns that time. */
static uint64_t charge(struct wharf_core *core, struct wharf_piece *piece, uint64_t now_ns)
{
    struct wharf_job *job = piece->job;
    uint64_t used_ns = now_ns - piece->begun_ns - piece->others_ns + piece->helped_ns;
    int64_t missing_ns = (int64_t)(used_ns - piece->charged_ns);

    wharf_sched_charge(&core->sched[piece->pool], job, missing_ns);
    if (job->lane == WHARF_LANE_INTERACTIVE)
        job->session->tenant->interactive_ns -= missing_ns;
    piece->charged_ns = used_ns;
    return used_ns;
}

void wharf_core_going_on(struct wharf_core *core, struct wharf_piece *piece, uint64_t now_ns)
{
    const struct wharf_submission *submission = &piece->job->submission;
    struct wharf_estimates *estimates = wharf_job_estimates(piece->job);
    uint64_t used_ns = now_ns - piece->begun_ns - piece->others_ns;

    if (used_ns <= piece->charged_ns)
        return;
    charge(core, piece, now_ns);
    /* So that the next similar piece has a better estimate at once. */
    if (piece->kind == WHARF_PIECE_CHUNK)
        wharf_estimates_learn(estimates, submission->codec, submission->src_nbytes,
                              submission->dst_nbytes, used_ns);
}

/* Corrects the charge and the estimates by the measured time. */
static void balance_account(struct wharf_core *core, struct wharf_piece *piece)
{
    struct wharf_job *job = piece->job;
    struct wharf_tenant *tenant = job->session->tenant;
    struct wharf_engine_stats *stats = &tenant->stats.engines[piece->engine];
    uint64_t took_ns = charge(core, piece, piece->ended_ns);

    stats->busy_ns += took_ns;
    if (piece->kind == WHARF_PIECE_OPEN || piece->kind == WHARF_PIECE_WORD ||
        piece->engine == WHARF_ENGINE_AUTO)
        return;
    stats->n_chunks += piece->n_chunks;
    stats->in_nbytes += piece->in_nbytes;
    stats->out_nbytes += piece->out_nbytes;
    tenant->stats.file_in_nbytes += piece->file_in_nbytes;
    if (piece->file_in_nbytes && job->session->file_io)
        wharf_file_io_count(job->session->file_io, false, &tenant->stats.files);
    tenant->stats.file_out_nbytes += piece->file_out_nbytes;
    if (wharf_job_compresses(job)) {
        tenant->stats.n_compressed += piece->n_chunks;
        tenant->stats.compressed_in_nbytes += piece->in_nbytes;
        tenant->stats.compressed_out_nbytes += piece->out_nbytes;
    }
    wharf_place_learn(core, piece, took_ns);
}

void wharf_core_forget_job(struct wharf_core *core, struct wharf_job *job)
{
    if (job->state == WHARF_JOB_FREE)
        return;
    if (job->n_pieces > 0) {
        __atomic_store_n(&job->stopped, WHARF_CANCELLED, __ATOMIC_RELAXED);
        core->n_stopped++;
        return;
    }
    wharf_heap_remove(&core->deadlines, &job->deadline);
    wharf_chain_forget(core, job);
    wharf_batch_close(job->batch, job->session);
    job->batch = NULL;
    job->state = WHARF_JOB_FREE;
}

void wharf_core_put_back(struct wharf_core *core, struct wharf_piece *piece)
{
    struct wharf_job *job = piece->job;
    struct wharf_session *session = job->session;
    struct wharf_job_end end = {.outcome.result = job->stopped, .ended_ns = wharf_now_ns()};

    job->n_pieces--;
    session->n_pieces--;
    wharf_idle_work_ended(core, piece);
    wharf_sched_charge(&core->sched[piece->pool], job, -(int64_t)piece->charged_ns);
    if (piece->kind != WHARF_PIECE_WORD)
        job->begun_ns = 0;
    if (session->state == WHARF_SESSION_DEAD) {
        wharf_core_forget_job(core, job);
        wharf_core_release(core, session);
    } else if (piece->kind == WHARF_PIECE_WORD) {
        wharf_place_push_word(core, job);
    } else if (job->stopped) {
        wharf_core_end_job(core, job, &end);
    } else {
        wharf_ring_unmark_begun(&session->ring, mark_place(job));
        job->state = WHARF_JOB_QUEUED;
        wharf_place_push(core, job, true);
    }
}

void wharf_core_done(struct wharf_core *core, struct wharf_piece *piece)
{
    struct wharf_job *job = piece->job;
    struct wharf_session *session = job->session;

    job->n_pieces--;
    session->n_pieces--;
    wharf_idle_work_ended(core, piece);
    if (piece->attempt > job->attempt)
        job->attempt = piece->attempt;
    balance_account(core, piece);
    if (session->state == WHARF_SESSION_DEAD) {
        if (piece->kind == WHARF_PIECE_OPEN)
            job->batch = piece->batch;
        wharf_core_forget_job(core, job);
        wharf_core_release(core, session);
    } else if (piece->is_lost) {
        /* The job waits for the session's end, which the lost files cause below. */
    } else if (piece->kind == WHARF_PIECE_CHUNK) {
        chunk_done(core, piece);
    } else if (piece->kind == WHARF_PIECE_WORD) {
        word_done(core, piece);
    } else if (piece->kind == WHARF_PIECE_OPEN) {
        open_done(core, piece);
    } else {
        slice_done(core, piece);
    }
    if (session->file_io && wharf_file_io_is_lost(session->file_io))
        wharf_core_tell_loop(core, session);
    /* Its client has a completion now, and may submit again soon. */
    wharf_core_watch(core, session, piece->ended_ns);
}
