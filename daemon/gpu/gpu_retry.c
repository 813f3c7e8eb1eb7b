/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_retry.c: retries chunks that only a GPU can run: those in a client's own GPU memory after
 * their worker ended, and those of sessions that want only the GPU after they were withdrawn
 * (gpu_large.c).
 *
 * The CPU cannot take these chunks over.  Each one is cut out of its piece and waits until the next
 * worker has registered its memory.  Chunks of suspects then run alone.  A chunk that ran alone
 * when its worker ended is not retried.
 */
#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/piece.h"
#include "daemon/core/residency.h"
#include "daemon/core/session.h"
#include "daemon/gpu/gpu_stage.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/gpu_room.h"
#include "daemon/placement/place_cost.h"
#include "proto/wharf_job.h"

/* Chunks that are visited under one hold of the core lock. */
#define MOST_LOOKS 64

/* ---- cutting pieces ------------------------------------------------------------------------ */

/* Makes one of the piece's chunks a piece of its own, with its share of the piece's charge. */
static struct wharf_piece cut_out(const struct wharf_gpu_piece *gpu_piece, uint32_t at)
{
    const struct wharf_piece *whole = &gpu_piece->piece;
    struct wharf_piece piece = *whole;

    piece.first_chunk += at;
    piece.n_chunks = 1;
    piece.estimate_ns = whole->estimate_ns / whole->n_chunks;
    piece.charged_ns = whole->charged_ns / whole->n_chunks;
    if (at == 0)
        piece.charged_ns += whole->charged_ns % whole->n_chunks;
    return piece;
}

static struct wharf_gpu_piece *take_free(struct wharf_gpu_backend *backend,
                                         const struct wharf_piece *piece)
{
    struct wharf_gpu_piece *taken =
        WHARF_LIST_FIRST(&backend->free_pieces, struct wharf_gpu_piece, link);

    wharf_list_remove(&taken->link);
    taken->piece = *piece;
    return taken;
}

void wharf_gpu_retry_keep(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *kept,
                          bool is_faulting)
{
    if (kept->piece.attempt < kept->piece.job->attempt)
        kept->piece.attempt = kept->piece.job->attempt;
    kept->piece.attempt += kept->piece.attempt < UINT8_MAX;
    kept->is_faulting = is_faulting;
    struct wharf_piece_span chunk = wharf_piece_span_at(&kept->piece, 0);
    if (!wharf_regions_need_gpu(chunk.source, chunk.destination)) {
        wharf_gpu_recovery_requeue(backend, kept);
        return;
    }
    wharf_list_append(&backend->again, &kept->link);
    backend->flight.n_without_places++;
}

/* Queues chunks that only the GPU may run for the large places, where they delay no other job. */
static void keep_for_large(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *kept,
                           bool is_faulting)
{
    (void)is_faulting;
    wharf_gpu_large_await(backend, kept);
}

/* Whether a chunk has a result.  One that was withdrawn for its time has none, although the worker
 * reported it as cancelled. */
static bool has_result(const struct wharf_gpu_piece *whole, const struct wharf_gpu_item *item)
{
    return item->is_done && !wharf_gpu_piece_has_parts(whole) &&
           (item->outcome.result != WHARF_CANCELLED || whole->piece.job->stopped);
}

static void cut(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece,
                void (*keep_one)(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *kept,
                                 bool is_faulting))
{
    wharf_gpu_stage_release(backend, gpu_piece);
    const struct wharf_gpu_piece whole = *gpu_piece;
    struct wharf_job *job = whole.piece.job;
    uint32_t n_chunks = whole.piece.n_chunks;

    /* Its places go to other items now, which a cancel of its job must not reach. */
    gpu_piece->n_left = 0;
    /* There is a free gpu_piece for each chunk, since no more were handed over (n_free_places). */
    wharf_list_remove(&gpu_piece->link);
    wharf_list_append(&backend->free_pieces, &gpu_piece->link);
    job->n_pieces += n_chunks - 1;
    job->session->n_pieces += n_chunks - 1;
    wharf_gpu_end_use(backend, job);
    /* Parts of one chunk are nothing alone. */
    for (uint32_t i = n_chunks; i < whole.n_items; i++)
        wharf_gpu_item_free(backend, &whole, i);
    for (uint32_t i = 0; i < n_chunks; i++) {
        const struct wharf_gpu_item item = *wharf_gpu_item_at(backend, whole.first + i);
        struct wharf_piece piece = cut_out(&whole, i);
        wharf_gpu_item_free(backend, &whole, i);
        if (has_result(&whole, &item))
            wharf_gpu_results_end(backend, take_free(backend, &piece), backend->engine,
                                  &item.outcome);
        else
            keep_one(backend, take_free(backend, &piece), whole.is_faulting);
    }
}

void wharf_gpu_retry_cut(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece)
{
    backend->flight.n_warp_ns -= gpu_piece->warp_ns;
    backend->flight.n_nbytes -= gpu_piece->nbytes;
    cut(backend, gpu_piece, wharf_gpu_retry_keep);
}

void wharf_gpu_retry_cut_recalled(struct wharf_gpu_backend *backend,
                                  struct wharf_gpu_piece *gpu_piece)
{
    cut(backend, gpu_piece, keep_for_large);
}

void wharf_gpu_retry_cut_up(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece,
                            void (*keep_one)(struct wharf_gpu_backend *backend,
                                             struct wharf_gpu_piece *kept))
{
    const struct wharf_gpu_piece whole = *gpu_piece;
    struct wharf_job *job = whole.piece.job;
    uint32_t n_chunks = whole.piece.n_chunks;

    wharf_list_append(&backend->free_pieces, &gpu_piece->link);
    job->n_pieces += n_chunks - 1;
    job->session->n_pieces += n_chunks - 1;
    for (uint32_t i = 0; i < n_chunks; i++) {
        struct wharf_piece piece = cut_out(&whole, i);
        keep_one(backend, take_free(backend, &piece));
    }
}

/* ---- trying again -------------------------------------------------------------------------- */

uint32_t wharf_gpu_retry_result(const struct wharf_gpu_backend *backend,
                                const struct wharf_gpu_piece *gpu_piece, uint64_t now_ns)
{
    const struct wharf_job *job = gpu_piece->piece.job;

    if (job->stopped)
        return job->stopped;
    if (gpu_piece->is_faulting || backend->view->is_lost ||
        job->session->tenant->gpu_trust.banned_until_ns > now_ns)
        return WHARF_DEVICE_FAULT;
    if (backend->state == WHARF_GPU_UP &&
        wharf_gpu_memory_of_job(job, backend->gpu) == WHARF_GPU_MEMORY_REFUSED)
        return WHARF_NO_MEMORY;
    return WHARF_OK;
}

/* Whether the chunk can be handed over; if not, whether all others must wait for it. */
static bool can_try(struct wharf_gpu_backend *backend, const struct wharf_gpu_piece *gpu_piece,
                    bool *ret_others_wait)
{
    const struct wharf_job *job = gpu_piece->piece.job;
    bool is_suspect = job->session->tenant->gpu_trust.n_alone > 0;

    *ret_others_wait = false;
    if (backend->state != WHARF_GPU_UP || backend->is_alone ||
        wharf_gpu_memory_of_job(job, backend->gpu) != WHARF_GPU_MEMORY_READY)
        return false;
    *ret_others_wait = is_suspect && backend->flight.n_items > 0;
    return !*ret_others_wait && wharf_gpu_items_find_place(backend);
}

static void try_again(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece,
                      uint64_t now_ns)
{
    struct wharf_piece piece = gpu_piece->piece;
    struct wharf_piece_chunk chunk = wharf_piece_chunk_at(&piece, 0);

    wharf_list_remove(&gpu_piece->link);
    backend->flight.n_without_places--;
    if (chunk.source->is_file) {
        wharf_gpu_stage_await(backend, gpu_piece);
        return;
    }
    wharf_list_append(&backend->free_pieces, &gpu_piece->link);
    wharf_gpu_items_submit(
        backend, &piece, 1,
        wharf_place_warp_ns(backend->gpu, piece.job, chunk.job.in_nbytes, chunk.job.out_avail),
        now_ns);
    backend->is_alone = piece.job->session->tenant->gpu_trust.n_alone > 0;
}

/* Whether it is too large for a warp of the main kernel. */
static bool is_large(const struct wharf_gpu_backend *backend,
                     const struct wharf_gpu_piece *gpu_piece)
{
    struct wharf_piece_span chunk = wharf_piece_span_at(&gpu_piece->piece, 0);
    uint64_t most = backend->core->config.gpu_chunk_nbytes;

    return !chunk.source->is_file && (chunk.in_nbytes > most || chunk.out_avail > most);
}

/* Queues a chunk to be retried aside. */
static void await_place(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece)
{
    wharf_list_remove(&gpu_piece->link);
    backend->flight.n_without_places--;
    if (wharf_job_compresses(gpu_piece->piece.job))
        wharf_gpu_encode_await(backend, gpu_piece);
    else
        wharf_gpu_large_await(backend, gpu_piece);
}

bool wharf_gpu_retry_pump(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    const struct wharf_list *last = backend->again.prev;
    bool is_last = wharf_list_is_empty(&backend->again), others_wait = false;

    for (unsigned n = 0; n < MOST_LOOKS && !is_last && !others_wait; n++) {
        struct wharf_gpu_piece *gpu_piece =
            WHARF_LIST_FIRST(&backend->again, struct wharf_gpu_piece, link);
        uint32_t result = wharf_gpu_retry_result(backend, gpu_piece, now_ns);
        is_last = &gpu_piece->link == last;
        if (result != WHARF_OK) {
            wharf_list_remove(&gpu_piece->link);
            backend->flight.n_without_places--;
            wharf_gpu_results_end(backend, gpu_piece, WHARF_ENGINE_AUTO,
                                  &(struct wharf_outcome){.result = result});
        } else if (backend->state == WHARF_GPU_UP &&
                   (is_large(backend, gpu_piece) || wharf_job_compresses(gpu_piece->piece.job))) {
            await_place(backend, gpu_piece);
        } else if (can_try(backend, gpu_piece, &others_wait)) {
            try_again(backend, gpu_piece, now_ns);
        } else if (!others_wait) {
            /* What waits for its memory is not in the way of others. */
            wharf_gpu_room_want(backend->core, gpu_piece->piece.job, now_ns);
            wharf_list_rotate(&backend->again);
        }
    }
    return !others_wait;
}
