/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_parts.c: chooses the number of a chunk's parts on a GPU.
 *
 * More parts shorten a lone chunk, and cost work that repeats in each part.  So the number is the
 * least of several bounds: the tenant's part of the idle warps, parts that still pay, and as many
 * as keep the link busy.
 */
#include "daemon/placement/place_parts.h"

#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/queues.h"
#include "daemon/core/split_parts.h"
#include "daemon/placement/place_cost.h"
#include "encoders/codec.h"
#include "kernels/device_batch.h"
#include "kernels/work_parts.h"

/* Parts of a large chunk are planned to fill this part of an item's room, since splits are uneven,
 * and a part that does not fit is refused. */
#define FILL_PART 2

static uint64_t larger_of(const struct wharf_job *job)
{
    const struct wharf_submission *submission = &job->submission;

    return submission->src_nbytes > submission->dst_nbytes ? submission->src_nbytes
                                                           : submission->dst_nbytes;
}

/* Whether the codec's streams can have splits, and none of the session's was refused recently.  A
 * session that wants only the GPU has no other choice for a large chunk. */
static bool may_have_parts(const struct wharf_core *core, const struct wharf_job *job)
{
    const struct wharf_session *session = job->session;

    return job->submission.opcode != WHARF_OP_BATCH && !wharf_job_has_file_source(job) &&
           wharf_parts_has_splits(job->submission.codec) &&
           larger_of(job) <= WHARF_DEVICE_CHUNK_MAX_NBYTES &&
           (session->engine == core->fleet.gpu_engine ||
            job->taken_ns >= session->placing.whole_until_ns);
}

static uint64_t n_at_least(const struct wharf_core *core, const struct wharf_job *job)
{
    uint64_t most_nbytes = core->config.gpu_chunk_nbytes;
    uint64_t nbytes = larger_of(job);

    return nbytes <= most_nbytes ? 1 : (nbytes * FILL_PART + most_nbytes - 1) / most_nbytes;
}

bool wharf_parts_can_do(const struct wharf_core *core, const struct wharf_job *job)
{
    return may_have_parts(core, job) && !wharf_place_needs_gpu(job) &&
           n_at_least(core, job) <= WHARF_WORK_MAX_PARTS;
}

uint32_t wharf_parts_least(const struct wharf_core *core, const struct wharf_job *job)
{
    return wharf_parts_can_do(core, job) ? (uint32_t)n_at_least(core, job) : 1;
}

/* Its part of the idle warps, shared with other waiting jobs. */
static uint64_t idle_share(const struct wharf_core *core, const struct wharf_gpu_view *gpu)
{
    uint32_t n_idle = gpu->n_warps > gpu->n_in_flight ? gpu->n_warps - gpu->n_in_flight : 0;
    uint32_t n_waiting =
        wharf_place_n_queued(core) - core->n_waiting - core->sched[WHARF_POOL_CPU].n_queued -
        core->sched[WHARF_POOL_LARGE].n_queued - core->sched[WHARF_POOL_STREAM].n_queued;

    return n_waiting > 1 ? n_idle / n_waiting : n_idle;
}

/* The warps that its tenant may still use; all tenants with items get the same number. */
static uint64_t tenant_share(const struct wharf_core *core, const struct wharf_job *job,
                             const struct wharf_gpu_view *gpu)
{
    uint32_t n_items = job->session->tenant->n_gpu_items;
    uint32_t n_tenants = core->fleet.n_gpu_tenants + (n_items == 0);

    return gpu->n_warps / n_tenants > n_items ? gpu->n_warps / n_tenants - n_items : 0;
}

/* So many that the parts end no sooner than the bytes in flight have passed the link; more would
 * only wait. */
static uint64_t worth_it(const struct wharf_job *job, const struct wharf_gpu_view *gpu)
{
    const struct wharf_submission *submission = &job->submission;
    uint64_t nbytes = gpu->in_flight_nbytes + submission->src_nbytes + submission->dst_nbytes;
    uint64_t warp_ns =
        wharf_place_warp_ns(gpu->number, job, submission->src_nbytes, submission->dst_nbytes);

    return warp_ns / (wharf_place_flow_ns(gpu, nbytes) + 1) + 1;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint32_t wharf_parts_now(const struct wharf_core *core, const struct wharf_job *job,
                         const struct wharf_gpu_view *gpu)
{
    uint64_t least = wharf_parts_least(core, job);
    uint64_t n = job->submission.dst_nbytes / WHARF_PARTS_LEAST_NBYTES;

    if (!may_have_parts(core, job) || job->session->tenant->gpu_trust.n_alone > 0)
        return (uint32_t)least;
    n = least_of(n, WHARF_WORK_MAX_PARTS);
    n = least_of(n, idle_share(core, gpu));
    n = least_of(n, tenant_share(core, job, gpu));
    n = least_of(n, worth_it(job, gpu));
    return (uint32_t)(n > least ? n : least);
}
