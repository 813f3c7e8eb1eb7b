/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_pick.c: picks the next job for an engine from its pools.
 *
 * An engine serves two kinds of pools, its own and those that it shares.  A counter of the lead of
 * one over the other, in time, decides between them, so that neither starves.  Jobs that do not
 * belong into their pool any more are moved first, a bounded number at each pick.
 */
#include "daemon/placement/place_pick.h"

#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/queues.h"
#include "daemon/core/residency.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/place.h"
#include "daemon/placement/place_cost.h"
#include "daemon/placement/place_offer.h"
#include "daemon/schedule/idle_work.h"
#include "daemon/schedule/sched.h"

/* The most jobs that one pick moves to another pool, because their memory's state has changed. */
#define MOST_MOVED 16
/* The most jobs of other tenants that are checked when the first job is left to a GPU. */
#define MOST_OTHERS 8

/* Of the first jobs of an engine's two pools, the one whose pool has used less of the engine's
 * time. */
static struct wharf_job *by_turns(struct wharf_job *own, struct wharf_job *any, int64_t lead_ns)
{
    if (!own || !any)
        return own ? own : any;
    return lead_ns > 0 ? own : any;
}

/* Adjusts the lead of one of an engine's two pools. */
static void count_lead(const struct wharf_core *core, int64_t *lead_ns, unsigned other,
                       int64_t more_ns)
{
    *lead_ns = core->sched[other].n_queued > 0 ? *lead_ns + more_ns : 0;
}

void wharf_place_took_by_cpu(struct wharf_core *core, const struct wharf_piece *piece)
{
    int64_t more_ns = (int64_t)piece->estimate_ns;

    wharf_offer_count(core, piece, WHARF_OFFER_NO_GPU);
    if (piece->pool == WHARF_POOL_STREAM) {
        unsigned other = core->sched[WHARF_POOL_CPU].n_queued > 0 ? WHARF_POOL_CPU : WHARF_POOL_ANY;
        count_lead(core, &core->cpu_stream_lead_ns, other, -more_ns);
        return;
    }
    count_lead(core, &core->cpu_stream_lead_ns, WHARF_POOL_STREAM, more_ns);
    if (piece->pool == WHARF_POOL_ANY)
        count_lead(core, &core->cpu_lead_ns, WHARF_POOL_CPU, more_ns);
    else
        count_lead(core, &core->cpu_lead_ns, WHARF_POOL_ANY, -more_ns);
}

void wharf_place_took_by_gpu(struct wharf_core *core, const struct wharf_piece *piece, uint32_t gpu)
{
    struct wharf_gpu_view *view = &core->fleet.gpus[gpu];
    unsigned own = WHARF_POOL_OWN + gpu;
    int64_t more_ns = (int64_t)piece->estimate_ns;

    wharf_offer_count(core, piece, gpu);
    if (piece->pool == WHARF_POOL_LARGE || piece->pool == WHARF_POOL_STREAM ||
        piece->pool == WHARF_POOL_ENCODE)
        return;
    if (piece->pool == WHARF_POOL_ANY) {
        count_lead(core, &view->lead_ns,
                   core->sched[own].n_queued > 0 ? own : (unsigned)WHARF_POOL_GPU, more_ns);
        return;
    }
    count_lead(core, &view->lead_ns, WHARF_POOL_ANY, -more_ns);
    if (piece->pool == own)
        count_lead(core, &view->own_lead_ns, WHARF_POOL_GPU, more_ns);
    else
        count_lead(core, &view->own_lead_ns, own, -more_ns);
}

/* The first job of a lane that still belongs into its pool; moves the jobs before it. */
static struct wharf_job *
first_in_place(struct wharf_core *core, unsigned pool, unsigned lane, uint64_t most_ns,
               bool (*stays)(const struct wharf_core *core, const struct wharf_job *job))
{
    for (unsigned n = 0; n < MOST_MOVED && core->sched[pool].n_queued > 0; n++) {
        struct wharf_job *job = wharf_sched_first_of_lane(&core->sched[pool], lane, most_ns);
        if (!job || stays(core, job))
            return job;
        wharf_place_remove(core, job);
        wharf_place_push(core, job, false);
    }
    return NULL;
}

/* A job that was queued while its GPU was up, and can run only there, waits for it. */
static bool can_do_without(const struct wharf_core *core, const struct wharf_job *job)
{
    (void)core;
    return job->stopped || !wharf_place_needs_gpu(job);
}

/* A job that was queued for a GPU, which has lost its memory, moves to the right pool. */
static bool is_ready(const struct wharf_core *core, const struct wharf_job *job)
{
    return wharf_place_pool_of(core, job) == job->pool;
}

/* For the pools of GPUs without a worker. */
static struct wharf_job *first_left_by_gpus(struct wharf_core *core, unsigned lane,
                                            uint64_t most_ns)
{
    struct wharf_job *job = NULL;

    if (!core->fleet.gpus_up) {
        job = first_in_place(core, WHARF_POOL_GPU, lane, most_ns, can_do_without);
        if (!job)
            job = first_in_place(core, WHARF_POOL_LARGE, lane, most_ns, can_do_without);
        if (!job)
            job = first_in_place(core, WHARF_POOL_ENCODE, lane, most_ns, can_do_without);
    }
    for (uint32_t gpu = 0; gpu < core->fleet.n_gpus && !job; gpu++)
        if (!wharf_place_is_up(core, gpu))
            job = first_in_place(core, WHARF_POOL_OWN + gpu, lane, most_ns, can_do_without);
    return job;
}

/* The next of the streams that no GPU could begin at once, if it is their turn: `other` is the next
 * job of the CPU's other pools. */
static struct wharf_job *stream_or(struct wharf_core *core, unsigned lane, uint64_t most_ns,
                                   struct wharf_job *other)
{
    struct wharf_job *stream = NULL;

    if (wharf_place_n_streams_left(core) > 0)
        stream = wharf_sched_first_of_lane(&core->sched[WHARF_POOL_STREAM], lane, most_ns);
    return by_turns(stream, other, core->cpu_stream_lead_ns);
}

/* A search for a job of another tenant, because this one's jobs are left to a GPU. */
struct others {
    const struct wharf_core *core;
    const struct wharf_tenant *tenant;
    uint64_t most_ns;
    unsigned *n_looks;
};

static bool is_others_for_cpu(const struct wharf_job *job, const void *context)
{
    const struct others *others = context;
    struct wharf_offer best;

    return job->session->tenant != others->tenant && job->estimate_ns <= others->most_ns &&
           (*others->n_looks)++ < MOST_OTHERS && !wharf_offer_wins(others->core, job, 0, &best);
}

/* In pool ANY: if the first job is left to a GPU, other tenants' jobs do not wait behind it. */
static struct wharf_job *first_of_any_for_cpu(struct wharf_core *core, unsigned lane,
                                              uint64_t most_ns)
{
    struct wharf_sched *sched = &core->sched[WHARF_POOL_ANY];
    struct wharf_job *job = wharf_sched_first_of_lane(sched, lane, most_ns);
    struct wharf_offer best;
    unsigned n_looks = 0;

    if (!job || !wharf_offer_wins(core, job, 0, &best))
        return job;
    core->fleet.gpus_wanted |= 1u << best.gpu;
    core->fleet.gpus_left |= 1u << best.gpu;
    if (wharf_sched_n_tenants(sched, (enum wharf_lane)lane) < 2)
        return NULL;
    struct others others = {core, job->session->tenant, most_ns, &n_looks};
    return wharf_sched_first_good(sched, lane, is_others_for_cpu, &others);
}

struct wharf_job *wharf_place_first_for_cpu(struct wharf_core *core, uint64_t most_ns)
{
    struct wharf_sched *sched = core->sched;
    struct wharf_job *job = NULL;

    for (unsigned lane = 0; lane < WHARF_N_LANES && !job; lane++) {
        if (lane == WHARF_LANE_IDLE && !wharf_idle_work_may_begin(core))
            break;
        struct wharf_job *own = wharf_sched_first_of_lane(&sched[WHARF_POOL_CPU], lane, most_ns);
        struct wharf_job *any = first_of_any_for_cpu(core, lane, most_ns);
        job = stream_or(core, lane, most_ns, by_turns(own, any, core->cpu_lead_ns));
        if (!job)
            job = first_left_by_gpus(core, lane, most_ns);
    }
    return job;
}

static bool has_memory(const struct wharf_job *job, const void *gpu)
{
    return wharf_gpu_memory_of_job(job, *(const uint32_t *)gpu) == WHARF_GPU_MEMORY_READY;
}

/* The next job for any of several engines.  If only another GPU has its memory, a job that does not
 * wait for it. */
static struct wharf_job *first_with_memory(struct wharf_core *core, unsigned pool, uint32_t gpu,
                                           unsigned lane)
{
    struct wharf_job *job = first_in_place(core, pool, lane, UINT64_MAX, is_ready);

    if (!job || has_memory(job, &gpu) ||
        wharf_gpu_memory_anywhere(core, job) != WHARF_GPU_MEMORY_READY)
        return job;
    struct wharf_offer best;
    if (wharf_offer_best(core, job, &best))
        core->fleet.gpus_wanted |= 1u << best.gpu;
    struct wharf_job *other = wharf_sched_first_good(&core->sched[pool], lane, has_memory, &gpu);
    return other && is_ready(core, other) ? other : job;
}

/* Of the jobs for any GPU, one that this GPU can run; or one whose memory no GPU has, to be
 * refused. */
static struct wharf_job *first_of_all_gpus(struct wharf_core *core, uint32_t gpu, unsigned lane)
{
    struct wharf_job *job = first_with_memory(core, WHARF_POOL_GPU, gpu, lane);
    struct wharf_offer best;

    if (!job || wharf_gpu_memory_anywhere(core, job) == WHARF_GPU_MEMORY_REFUSED)
        return job;
    return wharf_offer_best(core, job, &best) && wharf_offer_takes(core, job, gpu, &best) ? job
                                                                                          : NULL;
}

static struct wharf_job *first_of_any(struct wharf_core *core, uint32_t gpu, unsigned lane)
{
    struct wharf_job *job = first_with_memory(core, WHARF_POOL_ANY, gpu, lane);
    struct wharf_offer best;

    if (!job || !wharf_offer_wins(core, job, wharf_offer_before_ns(core, job), &best))
        return NULL;
    return wharf_offer_takes(core, job, gpu, &best) ? job : NULL;
}

struct wharf_job *wharf_place_first_for_gpu(struct wharf_core *core, uint32_t gpu)
{
    const struct wharf_gpu_view *view = &core->fleet.gpus[gpu];
    struct wharf_job *job = NULL;
    bool wants_any = false;

    for (unsigned lane = 0; lane < WHARF_N_LANES && !job; lane++) {
        struct wharf_job *own =
            first_in_place(core, WHARF_POOL_OWN + gpu, lane, UINT64_MAX, is_ready);
        struct wharf_job *all = first_of_all_gpus(core, gpu, lane);
        struct wharf_job *any = first_of_any(core, gpu, lane);
        /* In this order, because own_lead_ns is the lead of the GPU's own pool. */
        own = by_turns(all, own, view->own_lead_ns);
        job = by_turns(own, any, view->lead_ns);
        wants_any |= any != NULL;
    }
    /* A CPU thread left a job to this GPU, which does not want it either any more. */
    if (!wants_any && core->fleet.gpus_left >> gpu & 1) {
        core->fleet.gpus_left &= ~(1u << gpu);
        core->nothing_fits = false;
    }
    return job;
}

/* The first job of a pool whose jobs any GPU can run that has their memory. */
static struct wharf_job *first_of_pool(struct wharf_core *core, unsigned pool, uint32_t gpu,
                                       unsigned n_lanes)
{
    struct wharf_job *job = NULL;

    for (unsigned lane = 0; lane < n_lanes && !job; lane++)
        job = first_in_place(core, pool, lane, UINT64_MAX, is_ready);
    if (!job || has_memory(job, &gpu) ||
        wharf_gpu_memory_anywhere(core, job) != WHARF_GPU_MEMORY_READY)
        return job;
    /* Another GPU has its memory. */
    core->fleet.gpus_wanted |= core->fleet.gpus_up & ~(1u << gpu);
    return NULL;
}

struct wharf_job *wharf_place_first_large(struct wharf_core *core, uint32_t gpu)
{
    struct wharf_job *job = NULL;

    if (core->sched[WHARF_POOL_LARGE].n_queued > 0 && wharf_place_may_take_large(core, gpu))
        job = first_of_pool(core, WHARF_POOL_LARGE, gpu, WHARF_N_LANES);
    if (!job && core->sched[WHARF_POOL_STREAM].n_queued > 0 &&
        core->fleet.gpus[gpu].n_stream_free > 0)
        job = first_of_pool(core, WHARF_POOL_STREAM, gpu, WHARF_N_LANES);
    return job;
}

struct wharf_job *wharf_place_first_to_encode(struct wharf_core *core, uint32_t gpu,
                                              bool takes_idle)
{
    if (core->sched[WHARF_POOL_ENCODE].n_queued == 0)
        return NULL;
    return first_of_pool(core, WHARF_POOL_ENCODE, gpu,
                         takes_idle ? WHARF_N_LANES : WHARF_LANE_IDLE);
}

void wharf_place_pass_on(struct wharf_core *core)
{
    if (core->fleet.n_gpus < 2)
        return;
    for (unsigned lane = 0; lane < WHARF_N_LANES; lane++) {
        struct wharf_job *job =
            wharf_sched_first_of_lane(&core->sched[WHARF_POOL_ANY], lane, UINT64_MAX);
        struct wharf_offer best;
        if (job && wharf_offer_wins(core, job, wharf_offer_before_ns(core, job), &best)) {
            core->fleet.gpus_wanted |= 1u << best.gpu;
            return;
        }
    }
}
