/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_finish.c: ends pieces that the worker does not complete, or passes them to another engine. */
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/retry_queue.h"
#include "daemon/core/session.h"
#include "daemon/gpu/gpu_state.h"

void wharf_gpu_results_end(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece,
                           uint32_t engine, const struct wharf_outcome *outcome)
{
    piece->has_places = piece->is_told = piece->is_refused = piece->is_recalled = false;
    piece->is_aside = false;
    piece->engine = (uint8_t)engine;
    piece->outcome = *outcome;
    backend->flight.n_without_places++;
    wharf_list_append(&backend->finished, &piece->link);
}

/* The results that a decoder can end with. */
static bool is_result(uint32_t result)
{
    return result <= WHARF_CANCELLED || result == WHARF_BAD_REQUEST;
}

bool wharf_gpu_results_can_be(uint32_t result, uint64_t out_nbytes)
{
    return is_result(result) && (result == WHARF_OK || out_nbytes == 0);
}

bool wharf_gpu_is_forced(const struct wharf_gpu_backend *backend,
                         const struct wharf_gpu_piece *piece)
{
    return piece->piece.job->session->engine == backend->engine;
}

static void retry_taken(struct wharf_retry *retry)
{
    struct wharf_gpu_piece *piece = WHARF_LIST_ENTRY(retry, struct wharf_gpu_piece, retry);

    piece->backend->flight.n_requeued--;
    wharf_list_append(&piece->backend->free_pieces, &piece->link);
}

void wharf_gpu_recovery_requeue(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece)
{
    struct wharf_core *core = backend->core;

    piece->retry = (struct wharf_retry){.piece = &piece->piece, .taken = retry_taken};
    wharf_retry_add(&core->retries, &piece->retry);
    piece->backend->flight.n_requeued++;
    core->nothing_fits = false;
}
