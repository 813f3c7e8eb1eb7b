/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_parts.c: chunks that are decoded in parts, one item a part.
 *
 * The device determines and verifies a part (kernels/part.cuh); this file combines the parts'
 * outcomes to the chunk's.  If a part could not be decoded by itself, the chunk's outcome is
 * unknown, and one decoder runs the whole chunk: on the GPU if it is small enough, else on the CPU,
 * or, if the client wants only the GPU, in a place for large chunks.
 */
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/piece.h"
#include "daemon/core/residency.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/place_cost.h"
#include "daemon/placement/place_parts.h"
#include "kernels/work_parts.h"

bool wharf_gpu_parts_join(struct wharf_gpu_backend *backend, const struct wharf_gpu_piece *piece,
                          struct wharf_outcome *ret_outcome)
{
    struct wharf_work_part parts[WHARF_WORK_MAX_PARTS];
    struct wharf_piece_chunk chunk = wharf_piece_chunk_at(&piece->piece, 0);

    for (uint32_t i = 0; i < piece->n_items; i++) {
        const struct wharf_gpu_item *item = wharf_gpu_item_at(backend, piece->first + i);
        parts[i] = (struct wharf_work_part){
            .result = item->outcome.result,
            .reason = item->outcome.reason,
            .bit_offset = (uint32_t)item->outcome.bit_offset,
            .out_nbytes = (uint32_t)item->outcome.out_nbytes,
            .part = item->part,
        };
    }
    return wharf_work_parts_settle(parts, piece->n_items, &chunk.job, ret_outcome) == 0;
}

static void submit_whole(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece,
                         uint64_t now_ns)
{
    const struct wharf_piece piece = gpu_piece->piece;
    const struct wharf_submission *submission = &piece.job->submission;

    wharf_list_append(&backend->free_pieces, &gpu_piece->link);
    wharf_gpu_items_submit(backend, &piece, 1,
                           wharf_place_warp_ns(backend->gpu, piece.job, submission->src_nbytes,
                                               submission->dst_nbytes),
                           now_ns);
}

/* Whether it can be handed over again, now. */
static bool can_submit(struct wharf_gpu_backend *backend, const struct wharf_job *job)
{
    return backend->state == WHARF_GPU_UP && !backend->is_alone &&
           job->session->tenant->gpu_trust.n_alone == 0 &&
           wharf_gpu_memory_of_job(job, backend->gpu) == WHARF_GPU_MEMORY_READY &&
           wharf_parts_least(backend->core, job) == 1 && wharf_gpu_items_find_place(backend);
}

void wharf_gpu_parts_take_whole(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece,
                                uint64_t now_ns)
{
    const struct wharf_job *job = piece->piece.job;

    backend->is_alone = false;
    job->session->placing.whole_until_ns = now_ns + WHARF_PARTS_REFUSED_NS;
    if (job->stopped) {
        wharf_gpu_results_end(backend, piece, WHARF_ENGINE_AUTO,
                              &(struct wharf_outcome){.result = job->stopped});
    } else if (can_submit(backend, job)) {
        submit_whole(backend, piece, now_ns);
    } else if (piece->has_device) {
        wharf_list_append(&backend->again, &piece->link);
        backend->flight.n_without_places++;
    } else if (wharf_gpu_is_forced(backend, piece) && backend->state == WHARF_GPU_UP) {
        wharf_gpu_large_await(backend, piece);
    } else {
        wharf_gpu_recovery_requeue(backend, piece);
    }
}
