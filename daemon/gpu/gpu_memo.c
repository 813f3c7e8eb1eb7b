/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_memo.c: decoded chunks that a GPU's worker keeps.
 *
 * The core only says whose an item's chunk is; the kernel finds and keeps chunks (epoch_memo.cuh).
 * Tenants get parts of that memory in the order in which they come, and nobody's part changes when
 * others come or go: the time of a decode tells its tenant nothing of them.
 */
#include "daemon/base/log.h"
#include "daemon/core/core.h"
#include "daemon/core/session.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/gpu/worker_message.h"
#include "kernels/memo.h"

void wharf_gpu_memo_ready(struct wharf_gpu_backend *backend, const struct wharf_worker_ready *ready)
{
    backend->has_memo = ready->has_memo != 0;
    if (backend->config.gpu_memo_nbytes > 0 && !backend->has_memo)
        wharf_log(WHARF_LOG_WARNING, NULL,
                  "GPU %s: there is no memory of it for [gpu] memo: no decoded chunks are kept",
                  backend->name);
}

uint64_t wharf_gpu_memo_owner(struct wharf_gpu_backend *backend, const struct wharf_job *job)
{
    if (!backend->has_memo || !(WHARF_MEMO_CODECS >> job->submission.codec & 1))
        return 0;
    return wharf_tenant_memo_owner(&backend->core->tenants, job->session->tenant,
                                   (uint32_t)backend->config.n_gpu_memo_users);
}

void wharf_gpu_memo_count(struct wharf_gpu_piece *piece, const struct wharf_gpu_item *item)
{
    piece->memo.n_looked += (item->part & WHARF_MEMO_LOOKED) != 0;
    piece->memo.n_hits += (item->part & WHARF_MEMO_HIT) != 0;
    piece->memo.n_kept += (item->part & WHARF_MEMO_KEPT) != 0;
    piece->memo.n_evicted += item->part / WHARF_MEMO_EVICTED;
}
