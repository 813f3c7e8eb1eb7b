/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_results.c: takes completions from a GPU's worker and hands pieces back to the core.
 *
 * A piece goes through three steps.  Without the lock, completions are checked and collected; an
 * impossible one kills the worker.  Without the lock, a finished batch's results are written to the
 * client's memory, which can block; the time is measured and charged.  Under the lock, pieces go
 * back to the core, a bounded number at a time.
 */
#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/thread_waits.h"
#include "daemon/core/core.h"
#include "daemon/core/done_word.h"
#include "daemon/core/job.h"
#include "daemon/core/piece.h"
#include "daemon/dispatch/job_pieces.h"
#include "daemon/gpu/gpu_stage.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/placement/place_cost.h"
#include "daemon/schedule/sched.h"
#include "proto/wharf_job.h"

/* The most completions that are taken at a time. */
#define MOST_REAPED 1024
/* Pieces that are handed back under one hold of the core lock, at about 200 ns each. */
#define MOST_BACK 64
/* Writing a piece's results that takes longer has been blocked by the client's memory. */
#define SLOW_NS (50 * (uint64_t)WHARF_NS_PER_MS)

/* A longer time is examined more closely; unblocked writing takes about 10 ns for each chunk. */
#define DOUBTFUL_NS 50000u

/* ---- back from the worker ------------------------------------------------------------------ */

/* The piece's last item is completed. */
static void finish(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece)
{
    wharf_list_remove(&piece->link);
    wharf_list_append(&backend->finished, &piece->link);
    backend->flight.n_warp_ns -= piece->warp_ns;
    if (backend->flight.n_nbytes > piece->round.nbytes)
        piece->round.nbytes = backend->flight.n_nbytes;
    backend->flight.n_nbytes -= piece->nbytes;
}

/* Whether a completion is possible.  An impossible one kills the worker; its other completions are
 * still checked one by one. */
static bool is_sane(const struct wharf_work_completion *completion,
                    const struct wharf_gpu_item *item)
{
    if (!item->piece || item->is_done || completion->attempt != item->attempt)
        return false;
    if (completion->in_nbytes > item->src_nbytes || completion->out_nbytes > item->dst_nbytes)
        return false;
    return wharf_gpu_results_can_be(completion->result, completion->out_nbytes);
}

/* The worker's own times, as far as they are plausible. */
static uint64_t time_of(const struct wharf_work_completion *completion, uint64_t elapsed_ns)
{
    uint64_t ns = (uint64_t)completion->fetch_ns + completion->decode_ns + completion->move_ns;

    return ns < elapsed_ns ? ns : elapsed_ns;
}

static bool take_completion(struct wharf_gpu_backend *backend,
                            const struct wharf_work_completion *completion, uint64_t now_ns)
{
    struct wharf_gpu_item *item = wharf_gpu_item_at(backend, completion->item);

    if (!is_sane(completion, item)) {
        wharf_gpu_worker_kill(backend, "it completed what it did not have");
        return false;
    }
    item->is_done = true;
    item->piece->round.elapsed_ns = now_ns - item->piece->handed_ns;
    item->took_ns = time_of(completion, item->piece->round.elapsed_ns);
    if (completion->decode_ns > item->piece->round.decode_ns)
        item->piece->round.decode_ns = completion->decode_ns;
    item->outcome = (struct wharf_outcome){
        .result = completion->result,
        .reason = completion->reason,
        .bit_offset = completion->bit_offset,
        .in_nbytes = completion->in_nbytes,
        .out_nbytes = completion->out_nbytes,
    };
    item->part = completion->part;
    /* Its part of the piece's estimate. */
    uint64_t part_ns = item->piece->warp_ns / item->piece->n_left;
    item->piece->warp_ns -= part_ns;
    backend->flight.n_warp_ns -= part_ns;
    backend->flight.n_items--;
    if (--item->piece->n_left == 0)
        finish(backend, item->piece);
    return true;
}

bool wharf_gpu_results_reap(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_work_completion completion;
    unsigned n = 0;

    if (!backend->queue.address)
        return false;
    while (n < MOST_REAPED && wharf_work_reap(&backend->done, &completion)) {
        if (!take_completion(backend, &completion, now_ns))
            break;
        backend->flight.active_ns = now_ns;
        n++;
    }
    return n > 0;
}

/* ---- back to the core --------------------------------------------------------------------- */

/* A suspect's item ran alone, perhaps beside chunks that are aside, and did no harm. */
static void clear_suspect(struct wharf_gpu_backend *backend,
                          const struct wharf_gpu_piece *gpu_piece)
{
    struct wharf_tenant *tenant = gpu_piece->piece.job->session->tenant;

    if (!backend->is_alone || (gpu_piece->is_aside && !gpu_piece->is_alone))
        return;
    backend->is_alone = false;
    if (tenant->gpu_trust.n_alone > 0 && --tenant->gpu_trust.n_alone == 0)
        tenant->gpu_trust.n_worker_faults = 0;
}

/* A worker reports every withdrawn item as cancelled, whatever stopped the job. */
static struct wharf_outcome outcome_of(const struct wharf_job *job,
                                       const struct wharf_outcome *outcome)
{
    uint8_t stopped = __atomic_load_n(&job->stopped, __ATOMIC_RELAXED);

    if (outcome->result == WHARF_CANCELLED && stopped)
        return (struct wharf_outcome){.result = stopped};
    return *outcome;
}

static void tell_of_parts(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece)
{
    struct wharf_outcome outcome;

    gpu_piece->is_refused = !wharf_gpu_parts_join(backend, gpu_piece, &outcome);
    if (gpu_piece->is_refused)
        return;
    outcome = outcome_of(gpu_piece->piece.job, &outcome);
    wharf_piece_take_outcome(&gpu_piece->piece, 0, backend->engine, &outcome);
    for (uint32_t i = 0; i < gpu_piece->n_items; i++)
        gpu_piece->took_ns += wharf_gpu_item_at(backend, gpu_piece->first + i)->took_ns;
    gpu_piece->n_of_gpu = 1;
    gpu_piece->out_nbytes = outcome.out_nbytes;
}

/* Whether some of it was withdrawn because it took too long. */
static bool is_given_up(const struct wharf_gpu_backend *backend,
                        const struct wharf_gpu_piece *piece)
{
    const struct wharf_job *job = piece->piece.job;

    if (!piece->is_recalled || __atomic_load_n(&job->stopped, __ATOMIC_RELAXED))
        return false;
    if (piece->is_aside)
        return true;
    for (uint32_t i = 0; i < piece->n_items; i++)
        if (wharf_gpu_item_at(backend, piece->first + i)->outcome.result == WHARF_CANCELLED)
            return true;
    return false;
}

/* Records a piece whose chunks all ended alike, or the only chunk of one that was aside. */
static void tell_kept(struct wharf_gpu_piece *gpu_piece)
{
    struct wharf_piece *piece = &gpu_piece->piece;
    struct wharf_outcome kept = outcome_of(piece->job, &gpu_piece->outcome);

    for (uint32_t i = 0; i < piece->n_chunks; i++)
        wharf_piece_take_outcome(piece, i, gpu_piece->engine, &kept);
    if (!gpu_piece->is_aside)
        return;
    gpu_piece->n_of_gpu = 1;
    gpu_piece->out_nbytes = gpu_piece->outcome.out_nbytes;
    gpu_piece->took_ns = gpu_piece->is_stream ? gpu_piece->stream_ns : gpu_piece->round.elapsed_ns;
}

static void tell(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece)
{
    struct wharf_piece *piece = &gpu_piece->piece;

    gpu_piece->is_told = true;
    gpu_piece->is_given_up = is_given_up(backend, gpu_piece);
    if (gpu_piece->is_given_up)
        return;
    gpu_piece->n_of_gpu = 0;
    gpu_piece->out_nbytes = gpu_piece->took_ns = 0;
    if (gpu_piece->has_places && wharf_gpu_piece_has_parts(gpu_piece)) {
        tell_of_parts(backend, gpu_piece);
        return;
    }
    if (!gpu_piece->has_places) {
        tell_kept(gpu_piece);
        return;
    }
    for (uint32_t i = 0; i < piece->n_chunks; i++) {
        const struct wharf_gpu_item *item = wharf_gpu_item_at(backend, gpu_piece->first + i);
        struct wharf_outcome outcome = outcome_of(piece->job, &item->outcome);
        wharf_piece_take_outcome(piece, i, backend->engine, &outcome);
        wharf_gpu_memo_count(gpu_piece, item);
        gpu_piece->took_ns += item->took_ns;
        gpu_piece->n_of_gpu++;
        gpu_piece->out_nbytes += item->outcome.out_nbytes;
    }
}

/* Whether this tenant's memory recently blocked the thread.  Only then are the waits for its tables
 * measured, which costs two system calls for each piece. */
static bool is_watched(const struct wharf_gpu_piece *gpu_piece, uint64_t now_ns)
{
    const struct wharf_tenant *tenant = gpu_piece->piece.job->session->tenant;

    return now_ns < __atomic_load_n(&tenant->gpu_trust.watched_until_ns, __ATOMIC_RELAXED);
}

/* The part of passed_ns in which the thread really waited, without the time that it was ready and
 * had no processor. */
static uint64_t leave_delays_out(uint64_t passed_ns, uint64_t before_ns)
{
    uint64_t delay_ns = wharf_thread_delay_ns() - before_ns;

    return passed_ns > delay_ns ? passed_ns - delay_ns : 0;
}

/* Results and done words are in the client's memory, which can block; normally each takes about
 * 10 ns.  The client is not charged while another program has the processor. */
static void tell_in_time(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece)
{
    struct wharf_piece *piece = &gpu_piece->piece;
    bool has_word = piece->kind == WHARF_PIECE_CHUNK && wharf_done_word_is_due(piece->job);
    bool has_results = has_word || (piece->kind == WHARF_PIECE_SLICE && piece->job->destination);
    uint64_t begun_ns = has_results ? wharf_now_ns() : 0;
    /* UINT64_MAX: not known. */
    uint64_t delay_ns =
        has_results && is_watched(gpu_piece, begun_ns) ? wharf_thread_delay_ns() : UINT64_MAX;
    long n_waits = has_results ? wharf_thread_waits() : 0;

    tell(backend, gpu_piece);
    if (has_word && !gpu_piece->is_refused && !gpu_piece->is_given_up)
        wharf_done_word_tell(piece);
    backend->flight.has_served_stream |= piece->job->words != NULL;
    uint64_t passed_ns = has_results ? wharf_now_ns() - begun_ns : 0;
    gpu_piece->has_waited = passed_ns > DOUBTFUL_NS && wharf_thread_waits() != n_waits;
    if (gpu_piece->has_waited && delay_ns != UINT64_MAX)
        passed_ns = gpu_piece->waited_ns = leave_delays_out(passed_ns, delay_ns);
    else
        gpu_piece->waited_ns = 0;
    gpu_piece->is_slow = gpu_piece->has_waited && passed_ns > SLOW_NS;
}

void wharf_gpu_results_tell(struct wharf_gpu_backend *backend)
{
    struct wharf_list *link = backend->finished.next;

    for (unsigned n = 0; n < MOST_BACK && link != &backend->finished; n++, link = link->next) {
        struct wharf_gpu_piece *piece = WHARF_LIST_ENTRY(link, struct wharf_gpu_piece, link);
        if (!piece->is_told)
            tell_in_time(backend, piece);
    }
}

static void free_places(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece)
{
    wharf_gpu_stage_release(backend, gpu_piece);
    if (gpu_piece->is_aside)
        wharf_gpu_end_use(backend, gpu_piece->piece.job);
    if (!gpu_piece->has_places) {
        backend->flight.n_without_places--;
        return;
    }
    for (uint32_t i = 0; i < gpu_piece->n_items; i++)
        wharf_gpu_item_free(backend, gpu_piece, i);
    wharf_gpu_end_use(backend, gpu_piece->piece.job);
}

/* Counts a chunk that was decoded in parts, or could not be. */
static void count_parts(struct wharf_core *core, const struct wharf_gpu_piece *gpu_piece)
{
    if (gpu_piece->is_refused) {
        core->fleet.n_parts_refused++;
        return;
    }
    core->fleet.n_parted_chunks++;
    core->fleet.n_parts += gpu_piece->n_items;
}

/* Whether the whole GPU has decoded it. */
static bool is_stream(const struct wharf_gpu_piece *gpu_piece)
{
    return gpu_piece->is_aside && gpu_piece->is_stream;
}

static void count_decoded(struct wharf_gpu_backend *backend,
                          const struct wharf_gpu_piece *gpu_piece)
{
    backend->view->n_chunks += gpu_piece->n_of_gpu;
    backend->view->busy_ns += gpu_piece->took_ns;
    backend->view->away_ns += gpu_piece->n_of_gpu * gpu_piece->round.elapsed_ns;
    backend->view->out_nbytes += gpu_piece->out_nbytes;
    backend->view->n_large_chunks += gpu_piece->is_aside;
    backend->view->n_streams += is_stream(gpu_piece);
    if (gpu_piece->has_places)
        wharf_memo_stats_add(&gpu_piece->piece.job->session->tenant->stats.memo, &gpu_piece->memo);
}

static void hand_back(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece,
                      uint64_t now_ns)
{
    struct wharf_piece *piece = &gpu_piece->piece;
    uint64_t used_ns = gpu_piece->took_ns;

    wharf_list_remove(&gpu_piece->link);
    if (gpu_piece->has_places && wharf_gpu_piece_has_parts(gpu_piece))
        count_parts(backend->core, gpu_piece);
    free_places(backend, gpu_piece);
    if (gpu_piece->is_slow)
        wharf_gpu_recovery_blame_slow(backend, piece->job->session->tenant, now_ns);
    if (gpu_piece->has_waited)
        wharf_gpu_recovery_blame_waits(backend, piece->job->session->tenant, gpu_piece->waited_ns,
                                       now_ns);
    if (gpu_piece->is_refused) {
        wharf_gpu_parts_take_whole(backend, gpu_piece, now_ns);
        return;
    }
    piece->ended_ns = now_ns;
    if (wharf_job_compresses(piece->job))
        wharf_gpu_encode_count(backend, gpu_piece);
    else
        count_decoded(backend, gpu_piece);
    if (gpu_piece->n_of_gpu == piece->n_chunks) {
        if (!gpu_piece->is_aside) {
            piece->warp_ns = used_ns > 0 ? used_ns : 1;
            wharf_place_learn_latency(backend->view, piece, &gpu_piece->round);
        }
        if (!is_stream(gpu_piece))
            used_ns /= backend->view->n_warps;
        clear_suspect(backend, gpu_piece);
    }
    /* The rest of the time it only waited. */
    if (used_ns < now_ns - piece->begun_ns)
        piece->others_ns = now_ns - piece->begun_ns - used_ns;
    wharf_core_done(backend->core, piece);
    /* To the front, because it is in the caches. */
    wharf_list_append(backend->free_pieces.next, &gpu_piece->link);
}

/* Gives a piece up whose results were not written. */
static void give_up(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece)
{
    struct wharf_gpu_trust *trust = &gpu_piece->piece.job->session->tenant->gpu_trust;
    /* What is aside was there before a suspect's item that runs alone, unless it is that item. */
    bool was_alone = backend->is_alone && (!gpu_piece->is_aside || gpu_piece->is_alone);

    backend->is_alone &= !was_alone;
    /* Pieces of a dead worker go to the CPU, since there may never be another worker. */
    if (backend->state == WHARF_GPU_UP && wharf_gpu_is_forced(backend, gpu_piece) &&
        !gpu_piece->stage.is_there && !gpu_piece->is_aside && !was_alone) {
        wharf_gpu_retry_cut_recalled(backend, gpu_piece);
        return;
    }
    /* The suspect's item was executed. */
    if (was_alone && trust->n_alone > 0 && gpu_piece->is_aside)
        trust->n_alone--;
    wharf_list_remove(&gpu_piece->link);
    free_places(backend, gpu_piece);
    /* The CPU's time is charged when that is done. */
    if (is_stream(gpu_piece))
        wharf_sched_charge(&backend->core->sched[gpu_piece->piece.pool], gpu_piece->piece.job,
                           (int64_t)gpu_piece->stream_ns);
    backend->view->n_given_up += gpu_piece->piece.n_chunks;
    wharf_place_learn_too_long(backend->view, gpu_piece->piece.job, &gpu_piece->round);
    wharf_gpu_recovery_requeue(backend, gpu_piece);
}

void wharf_gpu_results_hand_back(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    for (unsigned n = 0; n < MOST_BACK; n++) {
        struct wharf_gpu_piece *piece =
            WHARF_LIST_FIRST(&backend->finished, struct wharf_gpu_piece, link);
        if (!piece || !piece->is_told)
            return;
        if (piece->is_given_up)
            give_up(backend, piece);
        else
            hand_back(backend, piece, now_ns);
    }
}
