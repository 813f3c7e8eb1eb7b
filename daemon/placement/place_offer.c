/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_offer.c: compares when engines would finish a job.
 *
 * For each engine that may run the job: the wait until it starts, plus the job's learnt time.  The
 * smallest sum wins.  Two rules override it: under load the throughput probe (rate_probe.h)
 * decides, and an engine without recent samples gets a chunk now and then.
 */
#include "daemon/placement/place_offer.h"

#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/job.h"
#include "daemon/core/queues.h"
#include "daemon/core/rate_probe.h"
#include "daemon/core/residency.h"
#include "daemon/core/stats.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/place_cost.h"
#include "encoders/codec.h"

/* An engine, or a GPU, that got none of a tenant's chunks of a codec while others got this many,
 * gets one as a sample, unless that would take this many times as long. */
#define TRY_AFTER 512
#define TRY_FACTOR 8
/* The GPU wins although it is later by this part, because it costs no processor.  A larger part
 * would cost clients that wait for each chunk more than a twentieth of their throughput. */
#define WORTH_PART 24

/* Whether idle threads of the CPU may help with such a chunk: split_decode.h. */
static bool is_shared(uint32_t codec, uint64_t out_nbytes)
{
    uint64_t least = wharf_codec_find(codec)->ops->least_shared_nbytes;

    return least > 0 && out_nbytes >= least;
}

/* Numbers of chunks in the same class have the same latency. */
static bool is_better(const struct wharf_offer *offer, const struct wharf_offer *than)
{
    return offer->ns < than->ns ||
           (offer->ns == than->ns && offer->n_in_flight < than->n_in_flight);
}

/* Chunks of the job's kind that others ran since this GPU's last one. */
static uint32_t n_elsewhere(const struct wharf_job *job, uint32_t gpu)
{
    const struct wharf_estimates *warps = &job->session->tenant->gpu_costs[gpu].warps;

    return warps->n_elsewhere[job->submission.codec];
}

/* False: its worker cannot take the job now. */
static bool offer_of(const struct wharf_core *core, const struct wharf_job *job, uint32_t gpu,
                     const struct wharf_next_chunk *next, struct wharf_offer *ret_offer)
{
    const struct wharf_gpu_view *view = &core->fleet.gpus[gpu];

    if (!wharf_place_is_up(core, gpu) || view->is_alone ||
        wharf_gpu_memory_of_job(job, gpu) != WHARF_GPU_MEMORY_READY ||
        wharf_gpu_memory_is_full(job))
        return false;
    *ret_offer = (struct wharf_offer){
        .gpu = gpu,
        .n_in_flight = view->n_in_flight,
        .ns = wharf_place_latency_ns(view, job, next),
        .is_to_learn = n_elsewhere(job, gpu) >= TRY_AFTER,
    };
    return true;
}

/* A GPU that needs a sample counts only if it has room: the sample does not wait. */
static bool is_neglected(const struct wharf_core *core, const struct wharf_offer *offer)
{
    return offer->is_to_learn && wharf_place_gpu_has_room(core, offer->gpu);
}

static bool best_of(const struct wharf_core *core, const struct wharf_job *job,
                    const struct wharf_next_chunk *next, struct wharf_offer *ret_best)
{
    struct wharf_offer neglected = {.is_to_learn = false};
    bool is_any = false;

    for (uint32_t bits = core->fleet.gpus_up; bits; bits &= bits - 1) {
        struct wharf_offer offer;
        if (!offer_of(core, job, (uint32_t)__builtin_ctz(bits), next, &offer))
            continue;
        if (is_neglected(core, &offer) && (!neglected.is_to_learn || is_better(&offer, &neglected)))
            neglected = offer;
        if (is_any && !is_better(&offer, ret_best))
            continue;
        *ret_best = offer;
        is_any = true;
    }
    if (neglected.is_to_learn && neglected.ns / TRY_FACTOR < ret_best->ns)
        *ret_best = neglected;
    return is_any;
}

bool wharf_offer_best(const struct wharf_core *core, const struct wharf_job *job,
                      struct wharf_offer *ret_best)
{
    struct wharf_next_chunk next = wharf_place_next_chunk(job);

    return best_of(core, job, &next, ret_best);
}

bool wharf_offer_wins(const struct wharf_core *core, const struct wharf_job *job,
                      uint64_t before_ns, struct wharf_offer *ret_best)
{
    const struct wharf_tenant *tenant = job->session->tenant;
    uint32_t codec = job->submission.codec;
    enum wharf_policy policy = (enum wharf_policy)tenant->probes[codec].policy;

    /* Under load this runs twice for each chunk, so it computes no more than it needs. */
    if (policy == WHARF_POLICY_CPU)
        return false;
    struct wharf_next_chunk next = wharf_place_next_chunk(job);
    if (!best_of(core, job, &next, ret_best))
        return false;
    if (policy == WHARF_POLICY_GPU)
        return true;
    uint64_t cpu_ns = next.cpu_ns;
    if (is_shared(codec, next.out_nbytes))
        cpu_ns /= 1 + core->workers.n_sleeping;
    cpu_ns += before_ns;
    uint64_t gpu_ns = ret_best->ns;
    if (ret_best->is_to_learn && gpu_ns / TRY_FACTOR < cpu_ns)
        return true;
    if (tenant->estimates.n_elsewhere[codec] >= TRY_AFTER && cpu_ns / TRY_FACTOR < gpu_ns)
        return false;
    return gpu_ns < cpu_ns + cpu_ns / WORTH_PART;
}

/* A job is left to another GPU only if that would be sooner by this part; less is not worth waking
 * it. */
#define SOONER_PART 8

/* Whether a GPU that could take a job now leaves it to the best offer. */
static bool is_left(const struct wharf_core *core, const struct wharf_offer *own,
                    const struct wharf_offer *best)
{
    return (best->is_to_learn || own->ns > best->ns + best->ns / SOONER_PART) &&
           wharf_place_gpu_has_room(core, best->gpu);
}

bool wharf_offer_takes(struct wharf_core *core, const struct wharf_job *job, uint32_t gpu,
                       const struct wharf_offer *best)
{
    struct wharf_offer own;

    if (best->gpu == gpu)
        return true;
    struct wharf_next_chunk next = wharf_place_next_chunk(job);
    if (offer_of(core, job, gpu, &next, &own) && !is_left(core, &own, best))
        return true;
    core->fleet.gpus_wanted |= 1u << best->gpu;
    return false;
}

uint64_t wharf_offer_before_ns(const struct wharf_core *core, const struct wharf_job *job)
{
    uint64_t sum_ns =
        core->sched[WHARF_POOL_CPU].backlog_ns + core->sched[WHARF_POOL_ANY].backlog_ns;
    uint64_t own_ns = job->estimate_ns < job->backlog_ns ? job->estimate_ns : job->backlog_ns;

    return core->workers.n_workers == 0 ? 0 : (sum_ns - own_ns) / core->workers.n_workers;
}

/* Counts a piece's chunks that went to another engine than this one. */
static void count_elsewhere(struct wharf_estimates *estimates, const struct wharf_piece *piece)
{
    uint32_t *n = &estimates->n_elsewhere[piece->job->submission.codec];

    if (*n < TRY_AFTER)
        *n += piece->n_chunks;
}

/* In pool ANY all other engines could have run them, in pool GPU the other GPUs. */
static void count_for_others(const struct wharf_core *core, const struct wharf_piece *piece,
                             uint32_t gpu)
{
    struct wharf_tenant *tenant = piece->job->session->tenant;
    bool is_any = piece->pool == WHARF_POOL_ANY;

    if (is_any && gpu != WHARF_OFFER_NO_GPU)
        count_elsewhere(&tenant->estimates, piece);
    for (uint32_t i = 0; i < core->fleet.n_gpus && (is_any || piece->pool == WHARF_POOL_GPU); i++)
        if (i != gpu)
            count_elsewhere(&tenant->gpu_costs[i].warps, piece);
}

void wharf_offer_count(const struct wharf_core *core, const struct wharf_piece *piece, uint32_t gpu)
{
    bool is_any = piece->pool == WHARF_POOL_ANY, is_gpu = gpu != WHARF_OFFER_NO_GPU;
    enum wharf_placement why = (enum wharf_placement)piece->job->why;
    struct wharf_tenant *tenant = piece->job->session->tenant;
    struct wharf_estimates *own = is_gpu && !wharf_job_compresses(piece->job)
                                      ? &tenant->gpu_costs[gpu].warps
                                      : wharf_job_estimates(piece->job);
    uint32_t codec = piece->job->submission.codec;

    if (piece->kind == WHARF_PIECE_OPEN || piece->kind == WHARF_PIECE_WORD || piece->job->stopped)
        return;
    /* In the order in which wharf_offer_wins decides. */
    if (is_any && tenant->probes[codec].policy != WHARF_POLICY_BY_TIME)
        why = is_gpu ? WHARF_PLACED_GPU_MORE : WHARF_PLACED_CPU_MORE;
    else if (is_any && own->n_elsewhere[codec] >= TRY_AFTER)
        why = WHARF_PLACED_TO_LEARN;
    else if (is_any || piece->pool == WHARF_POOL_STREAM)
        why = is_gpu ? WHARF_PLACED_GPU_SOONER : WHARF_PLACED_CPU_SOONER;
    else if ((piece->pool == WHARF_POOL_GPU || piece->pool == WHARF_POOL_LARGE ||
              piece->pool == WHARF_POOL_ENCODE) &&
             !is_gpu)
        why = WHARF_PLACED_NO_GPU;
    tenant->stats.n_placed[why] += piece->n_chunks;
    own->n_elsewhere[codec] = 0;
    count_for_others(core, piece, gpu);
    if (is_gpu)
        tenant->stats.n_on_gpus[gpu] += piece->n_chunks;
}
