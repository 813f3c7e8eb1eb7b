/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_recovery.c: recovers the pieces that a worker had when it ended.
 *
 * Invariant: until the worker's pidfd says that it is gone, the GPU may still write to the
 * destinations of its items, so these pieces wait.  Then CPU threads run them, before all else.
 *
 * This thread decodes none of them itself, because touching clients' memory can block.  There are
 * several CPU threads, and spare workers replace those that block.
 */
#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/core/core.h"
#include "daemon/core/piece.h"
#include "daemon/core/retry_queue.h"
#include "daemon/core/session.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/gpu/gpu_stage.h"
#include "daemon/gpu/gpu_state.h"

/* Pieces that are left to the CPU under one hold of the core lock. */
#define MOST_ORPHANS 16

static void begin_anew(struct wharf_piece *piece)
{
    if (piece->attempt == 0 && piece->job->attempt < UINT8_MAX)
        piece->attempt = (uint8_t)(piece->job->attempt + 1);
}

/* Hands the whole piece to the CPU threads.  Under the lock. */
static void requeue(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece)
{
    for (uint32_t i = 0; i < piece->n_items; i++)
        wharf_gpu_item_free(backend, piece, i);
    wharf_gpu_end_use(backend, piece->piece.job);
    wharf_gpu_stage_release(backend, piece);
    backend->flight.n_warp_ns -= piece->warp_ns;
    backend->flight.n_nbytes -= piece->nbytes;
    piece->n_left = 0;
    begin_anew(&piece->piece);
    wharf_list_remove(&piece->link);
    wharf_gpu_recovery_requeue(backend, piece);
}

static struct wharf_gpu_piece *lose_one(struct wharf_gpu_backend *backend)
{
    struct wharf_gpu_piece *piece = wharf_gpu_large_lose(backend);

    return piece ? piece : wharf_gpu_encode_lose(backend);
}

/* Recovers pieces that had places for large chunks or for compressing, or waited for one. */
static void hand_on_aside(struct wharf_gpu_backend *backend)
{
    struct wharf_gpu_piece *piece;

    do {
        wharf_core_enter(backend->core);
        for (unsigned n = 0; n < MOST_ORPHANS && (piece = lose_one(backend)) != NULL; n++) {
            struct wharf_piece_span chunk = wharf_piece_span_at(&piece->piece, 0);
            if (wharf_regions_need_gpu(chunk.source, chunk.destination)) {
                wharf_gpu_retry_keep(backend, piece, piece->is_faulting);
                continue;
            }
            begin_anew(&piece->piece);
            wharf_gpu_recovery_requeue(backend, piece);
        }
        wharf_core_leave(backend->core);
    } while (piece);
}

void wharf_gpu_recovery_hand_on(struct wharf_gpu_backend *backend)
{
    struct wharf_core *core = backend->core;

    /* Threads are called each time that the lock is given back. */
    while (!wharf_list_is_empty(&backend->under_way)) {
        wharf_core_enter(core);
        for (unsigned n = 0; n < MOST_ORPHANS;) {
            struct wharf_gpu_piece *piece =
                WHARF_LIST_FIRST(&backend->under_way, struct wharf_gpu_piece, link);
            if (!piece)
                break;
            n += piece->has_device ? piece->piece.n_chunks : 1;
            if (piece->has_device)
                wharf_gpu_retry_cut(backend, piece);
            else
                requeue(backend, piece);
        }
        wharf_core_leave(core);
    }
    hand_on_aside(backend);
    backend->is_alone = false;
}
