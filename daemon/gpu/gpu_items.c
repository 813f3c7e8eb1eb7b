/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_items.c: feeds a GPU's worker, and withdraws items.
 *
 * Under the core lock, pieces are taken and written to the queue while the GPU has room; the
 * queue's tail is published after the unlock.  Stopped jobs, and pieces that take longer than
 * `longest`, are withdrawn by cancels. A suspect's piece is fed only when nothing else runs.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/piece.h"
#include "daemon/core/residency.h"
#include "daemon/core/segment.h"
#include "daemon/dispatch/job_pieces.h"
#include "daemon/gpu/gpu_files.h"
#include "daemon/gpu/gpu_stage.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/gpu/worker_message.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/gpu_models.h"
#include "daemon/placement/gpu_room.h"
#include "daemon/placement/place_cost.h"
#include "daemon/placement/place_parts.h"
#include "daemon/placement/place_pick.h"
#include "kernels/work_parts.h"
#include "proto/wharf_job.h"

/* Pieces that are taken or withdrawn under one hold of the core lock. */
#define MOST_PIECES 64
#define MOST_CANCEL_LOOKS 1024
/* The most chunks of a piece, since their places are searched under the lock; a batch is cut into
 * several pieces. */
#define MOST_CHUNKS 64

/* From all queues. */
static void take_done(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    while (wharf_gpu_results_reap(backend, now_ns) || wharf_gpu_large_reap(backend, now_ns) ||
           wharf_gpu_encode_reap(backend, now_ns))
        ;
}

int wharf_gpu_items_init(struct wharf_gpu_backend *backend)
{
    backend->take_done = take_done;
    backend->queue.fd = -1;
    wharf_list_init(&backend->free_pieces);
    wharf_list_init(&backend->under_way);
    wharf_list_init(&backend->finished);
    wharf_list_init(&backend->again);
    wharf_list_init(&backend->told.asked);
    wharf_list_init(&backend->told.forgotten);
    wharf_gpu_large_init(backend);
    wharf_gpu_encode_init(backend);
    wharf_gpu_stage_init(backend);
    backend->items = calloc(WHARF_GPU_N_ENTRIES, sizeof(*backend->items));
    backend->pieces = calloc(WHARF_GPU_N_ENTRIES, sizeof(*backend->pieces));
    if (!backend->items || !backend->pieces)
        return -ENOMEM;
    for (uint32_t i = 0; i < WHARF_GPU_N_ENTRIES; i++) {
        backend->pieces[i].backend = backend;
        wharf_list_append(&backend->free_pieces, &backend->pieces[i].link);
    }
    return 0;
}

void wharf_gpu_items_deinit(struct wharf_gpu_backend *backend)
{
    wharf_segment_free(&backend->queue);
    wharf_segment_free(&backend->proof.memory);
    free(backend->items);
    free(backend->pieces);
}

int wharf_gpu_items_begin(struct wharf_gpu_backend *backend)
{
    struct wharf_segment queue;
    int r = wharf_segment_make(WHARF_SEGMENT_WORKER,
                               wharf_worker_queues_nbytes(WHARF_GPU_N_ENTRIES), &queue);

    if (r < 0)
        return r;
    wharf_segment_free(&backend->queue);
    backend->queue = queue;
    wharf_work_submitter_init(&backend->submitter, queue.address, WHARF_GPU_N_ENTRIES);
    wharf_work_reaper_init(&backend->done, backend->submitter.queue.done, WHARF_GPU_N_ENTRIES);
    wharf_gpu_large_begin(backend);
    wharf_gpu_encode_begin(backend);
    return 0;
}

/* ---- cancels ------------------------------------------------------------------------------- */

/* Withdraws a piece.  Returns whether the ring of cancels had room for all of its items. */
static bool withdraw(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece)
{
    for (uint32_t i = 0; i < piece->n_items; i++) {
        struct wharf_gpu_item *item = wharf_gpu_item_at(backend, piece->first + i);
        if (item->is_done)
            continue;
        if (!wharf_work_withdraw(&backend->submitter, piece->first + i, item->attempt))
            return false;
    }
    return true;
}

/* After any job was stopped, visits all pieces, some at a time, to find those of stopped jobs. */
static void pass_cancels_on(struct wharf_gpu_backend *backend)
{
    uint32_t n_stopped = backend->core->n_stopped;

    if (backend->flight.n_stopped != n_stopped) {
        backend->flight.n_stopped = n_stopped;
        backend->flight.n_cancel_looks = WHARF_GPU_N_ENTRIES;
    }
    for (unsigned n = 0; n < MOST_CANCEL_LOOKS && backend->flight.n_cancel_looks > 0; n++) {
        struct wharf_gpu_piece *piece = &backend->pieces[backend->flight.cancel_look_at];
        if (piece->n_left > 0 && piece->piece.job->stopped && !piece->is_withdrawn)
            piece->is_withdrawn = withdraw(backend, piece);
        /* No room for more cancels: visits it again. */
        if (piece->n_left > 0 && piece->piece.job->stopped && !piece->is_withdrawn)
            break;
        /* Does not start over when more jobs are stopped, which can happen all the time. */
        backend->flight.cancel_look_at = (backend->flight.cancel_look_at + 1) % WHARF_GPU_N_ENTRIES;
        backend->flight.n_cancel_looks--;
    }
}

/* The most pieces to visit: those that cannot be withdrawn precede those that can. */
#define MOST_RECALL_LOOKS 512

/* Withdraws pieces after `longest`, because everything that needs an idle GPU waits for them.  The
 * CPU can be interrupted in the middle of such a chunk; for sessions that want only the GPU there
 * are the large places.  Oldest pieces first. */
static void recall_longest(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    uint64_t most_ns = backend->core->config.gpu_longest_ns;
    unsigned n_looked_at = 0, n_recalled = 0;

    if (most_ns == 0)
        return;
    if (backend->engine == WHARF_ENGINE_SIMT)
        most_ns *= WHARF_GPU_SIMT_TIMES;
    WHARF_LIST_FOR(link, &backend->under_way)
    {
        struct wharf_gpu_piece *piece = WHARF_LIST_ENTRY(link, struct wharf_gpu_piece, link);
        if (now_ns < piece->handed_ns + most_ns || n_recalled == MOST_PIECES ||
            n_looked_at++ == MOST_RECALL_LOOKS)
            return;
        if (piece->is_withdrawn || piece->has_device)
            continue;
        /* Also if only some of its items were withdrawn: those may complete sooner. */
        piece->is_recalled = true;
        piece->is_withdrawn = withdraw(backend, piece);
        if (!piece->is_withdrawn)
            return;
        n_recalled++;
    }
}

/* ---- to the worker ------------------------------------------------------------------------- */

/* The client wants only the GPU, which cannot register its memory. */
static void refuse_piece(struct wharf_gpu_backend *backend, const struct wharf_piece *piece,
                         uint64_t now_ns)
{
    struct wharf_gpu_piece *gpu_piece =
        WHARF_LIST_FIRST(&backend->free_pieces, struct wharf_gpu_piece, link);

    wharf_list_remove(&gpu_piece->link);
    gpu_piece->piece = *piece;
    gpu_piece->piece.begun_ns = now_ns;
    wharf_gpu_results_end(backend, gpu_piece, WHARF_ENGINE_AUTO,
                          &(struct wharf_outcome){.result = WHARF_NO_MEMORY});
}

static bool is_too_large(const struct wharf_piece *piece)
{
    for (uint32_t i = 0; i < piece->n_chunks; i++) {
        struct wharf_piece_span chunk = wharf_piece_span_at(piece, i);
        if (chunk.in_nbytes > UINT32_MAX || chunk.out_avail > UINT32_MAX)
            return true;
    }
    return false;
}

/* Takes one piece.  Returns whether there may be more. */
static bool feed_one(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_core *core = backend->core;
    struct wharf_piece piece;
    uint64_t warp_ns;
    struct wharf_job *job = wharf_place_first_for_gpu(core, backend->gpu);

    if (!job)
        return false;
    bool is_suspect = job->session->tenant->gpu_trust.n_alone > 0;
    /* Large chunks can take a minute, so a suspect's item does not wait for them. */
    if (is_suspect && backend->flight.n_items > 0)
        return false;
    bool is_file;
    uint64_t nbytes;
    uint32_t n_run = wharf_gpu_files_run(job, is_suspect ? 1 : MOST_CHUNKS, &is_file, &nbytes);
    /* Without a staging area, as where the tenant's quota had no room for one, it is refused. */
    if (is_file && wharf_gpu_memory_of_job(job, backend->gpu) == WHARF_GPU_MEMORY_READY)
        return wharf_gpu_files_feed(backend, job, n_run, nbytes, now_ns);
    uint32_t n_parts = wharf_parts_now(core, job, backend->view);
    uint32_t n_least = wharf_parts_least(core, job);
    uint32_t n_free =
        wharf_gpu_items_free_places(backend, n_least, is_suspect || !job->batch ? n_parts : n_run);
    if (n_free < n_least)
        return false;
    warp_ns = wharf_core_take_for_gpu(core, backend->gpu, job, n_free, now_ns, &piece);
    if (wharf_gpu_memory_of_job(piece.job, backend->gpu) != WHARF_GPU_MEMORY_READY ||
        is_too_large(&piece)) {
        refuse_piece(backend, &piece, now_ns);
        return true;
    }
    n_parts = n_parts < n_free ? n_parts : n_free;
    wharf_gpu_items_submit(backend, &piece, n_parts > 1 ? n_parts : piece.n_chunks, warp_ns,
                           now_ns);
    backend->is_alone = is_suspect;
    return !is_suspect;
}

static void feed(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_core *core = backend->core;

    for (unsigned n = 0; n < MOST_PIECES && !backend->is_alone; n++) {
        wharf_gpu_tell_place(backend);
        if (!wharf_place_gpu_has_room(core, backend->gpu)) {
            wharf_place_pass_on(core);
            break;
        }
        if (wharf_list_is_empty(&backend->free_pieces) || !feed_one(backend, now_ns))
            break;
    }
    wharf_gpu_tell_place(backend);
}

void wharf_gpu_items_pump(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    wharf_gpu_results_hand_back(backend, now_ns);
    bool may_feed = backend->stop || wharf_gpu_retry_pump(backend, now_ns);
    may_feed &= wharf_gpu_files_pump(backend, now_ns);
    if (backend->state != WHARF_GPU_UP)
        return;
    pass_cancels_on(backend);
    recall_longest(backend, now_ns);
    may_feed &= wharf_gpu_large_pump(backend, now_ns);
    may_feed &= wharf_gpu_encode_pump(backend, now_ns);
    /* After the jobs that were taken just now. */
    if (!backend->stop && may_feed)
        feed(backend, wharf_now_ns());
}

void wharf_gpu_items_see_to_streams(struct wharf_gpu_backend *backend)
{
    const struct wharf_core *core = backend->core;
    bool has_streams = backend->flight.has_served_stream || core->starts.looks.root;

    backend->flight.is_to_leave = backend->flight.has_kernel && has_streams &&
                                  backend->state == WHARF_GPU_UP && !backend->is_beside &&
                                  !backend->is_per_batch;
    backend->view->n_left += backend->flight.is_to_leave;
}

void wharf_gpu_items_leave(struct wharf_gpu_backend *backend)
{
    const struct wharf_worker_message message = {.kind = WHARF_WORKER_LEAVE};

    if (!backend->flight.is_to_leave)
        return;
    backend->flight.is_to_leave = backend->flight.has_kernel = false;
    backend->flight.has_served_stream = false;
    /* A worker that cannot be told has ended. */
    (void)wharf_worker_link_send(&backend->link, &message, -1);
}

bool wharf_gpu_items_hang(const struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_gpu_piece *oldest =
        WHARF_LIST_FIRST(&backend->under_way, struct wharf_gpu_piece, link);

    return oldest && now_ns > oldest->handed_ns && now_ns - oldest->handed_ns > oldest->patience_ns;
}

void wharf_gpu_items_publish(struct wharf_gpu_backend *backend)
{
    if (!backend->queue.address)
        return;
    wharf_gpu_publish_queue(&backend->submitter);
    wharf_gpu_large_publish(backend);
    wharf_gpu_encode_publish(backend);
}
