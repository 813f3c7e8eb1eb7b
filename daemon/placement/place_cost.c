/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_cost.c: learns what engines take for chunks.
 *
 * The CPU's cost is a mean for each tenant and codec (estimate.h).  A GPU's has two parts: the time
 * of a warp, and the latency by the number of chunks in flight (gpu_latency.h).  The throughput of
 * the link is learnt from pieces that were limited by it, by Little's law: bytes in flight divided
 * by the time that they are there.
 */
#include "daemon/placement/place_cost.h"

#include "daemon/base/clock.h"
#include "daemon/core/core.h"
#include "daemon/core/estimate.h"
#include "daemon/core/gpu_latency.h"
#include "daemon/core/queues.h"
#include "daemon/core/rate_probe.h"
#include "daemon/core/session.h"
#include "daemon/schedule/idle_work.h"
#include "kernels/device_batch.h"

uint64_t wharf_place_warp_ns(uint32_t gpu, const struct wharf_job *job, uint64_t in_nbytes,
                             uint64_t out_nbytes)
{
    /* Larger chunks never run on a device, so the time for refusing them does not matter. */
    if (in_nbytes > WHARF_DEVICE_CHUNK_MAX_NBYTES)
        in_nbytes = WHARF_DEVICE_CHUNK_MAX_NBYTES;
    if (out_nbytes > WHARF_DEVICE_CHUNK_MAX_NBYTES)
        out_nbytes = WHARF_DEVICE_CHUNK_MAX_NBYTES;
    return wharf_estimate_ns(&job->session->tenant->gpu_costs[gpu].warps, job->submission.codec,
                             in_nbytes, out_nbytes);
}

bool wharf_place_needs_gpu(const struct wharf_job *job)
{
    return job->batch ? job->batch->has_device
                      : wharf_regions_need_gpu(job->source, job->destination);
}

/*
 * The initial throughput of the link, 64 GB/s of input plus output, which is about that of PCIe 5;
 * and its bounds, five times that and an eighth of it.
 */
#define START_FLOW_PS_PER_KIB 16000u
#define LEAST_FLOW_PS_PER_KIB 3200u
#define MOST_FLOW_PS_PER_KIB 128000u
/* With fewer bytes in flight a sample does not show the link's throughput, because hand-over and
 * notice take a part of the time. */
#define LEAST_FLOW_NBYTES ((uint64_t)4 << 20)

static uint64_t flow_of(uint64_t nbytes, uint64_t ps_per_kib)
{
    /* Items are below 2^14 and their bytes below 2^31: below 2^52 in all. */
    return nbytes / 1024 * ps_per_kib / 1000;
}

uint64_t wharf_place_flow_ns(const struct wharf_gpu_view *gpu, uint64_t nbytes)
{
    return flow_of(nbytes, gpu->flow_ps_per_kib ? gpu->flow_ps_per_kib : START_FLOW_PS_PER_KIB);
}

/* The bytes in flight, divided by the time that a piece is there without being decoded, are the
 * link's throughput, or a lower bound of it. */
static void learn_flow(struct wharf_gpu_view *gpu, const struct wharf_gpu_round *round)
{
    uint64_t own_ns = gpu->latency_ns + round->decode_ns;
    uint64_t way_ns = round->elapsed_ns > own_ns ? round->elapsed_ns - own_ns : 0;

    if (round->nbytes < LEAST_FLOW_NBYTES || way_ns > WHARF_NS_PER_S)
        return;
    uint64_t ps = way_ns * 1000 / (round->nbytes / 1024);
    ps = ps < LEAST_FLOW_PS_PER_KIB ? LEAST_FLOW_PS_PER_KIB : ps;
    ps = ps > MOST_FLOW_PS_PER_KIB ? MOST_FLOW_PS_PER_KIB : ps;
    if (!gpu->flow_ps_per_kib)
        gpu->flow_ps_per_kib = START_FLOW_PS_PER_KIB;
    if (ps < gpu->flow_ps_per_kib)
        gpu->flow_ps_per_kib -= (gpu->flow_ps_per_kib - ps) / 16;
    else
        gpu->flow_ps_per_kib += (ps - gpu->flow_ps_per_kib + 15) / 16;
}

static struct wharf_gpu_latencies *latencies_of(const struct wharf_gpu_view *gpu,
                                                const struct wharf_job *job)
{
    return &job->session->tenant->gpu_costs[gpu->number].latencies;
}

static uint64_t chunk_nbytes(const struct wharf_piece *piece)
{
    return (piece->source_nbytes + piece->capacity_nbytes) / piece->n_chunks;
}

/* Whether a piece's latency tells of the idle work beside it.  Then it is compared with the latency
 * that was learnt, and nothing is learnt from it: else a GPU that is never without idle work would
 * take the delays for its own.  One piece of idle work does not matter. */
static bool is_delay(struct wharf_gpu_view *gpu, const struct wharf_piece *piece,
                     const struct wharf_gpu_round *round)
{
    bool is_known;

    if (round->n_idle <= 1)
        return false;
    uint64_t alone_ns =
        wharf_gpu_latency_ns(latencies_of(gpu, piece->job), piece->job->submission.codec,
                             chunk_nbytes(piece), round->n_there, &is_known);
    if (piece->job->lane < WHARF_LANE_BACKGROUND && alone_ns > 0)
        wharf_idle_work_compare(&gpu->idle_work, gpu->n_encode, round->elapsed_ns, alone_ns);
    return is_known;
}

/* Warps that wait for the link take longer.  That is not a cost of the data; the estimate of the
 * link has it. */
void wharf_place_learn_latency(struct wharf_gpu_view *gpu, struct wharf_piece *piece,
                               const struct wharf_gpu_round *round)
{
    uint64_t flow_ns = wharf_place_flow_ns(gpu, round->nbytes);

    piece->is_crowded =
        piece->warp_ns > round->estimate_ns && piece->warp_ns / piece->n_chunks < 2 * flow_ns;
    learn_flow(gpu, round);
    piece->gpu = (uint8_t)gpu->number;
    if (!piece->job->stopped && !wharf_place_needs_gpu(piece->job) && !is_delay(gpu, piece, round))
        wharf_gpu_latencies_learn(latencies_of(gpu, piece->job), piece->job->submission.codec,
                                  chunk_nbytes(piece), round->n_there, round->elapsed_ns);
}

void wharf_place_learn_too_long(const struct wharf_gpu_view *gpu, const struct wharf_job *job,
                                const struct wharf_gpu_round *round)
{
    uint64_t nbytes = job->batch ? job->batch->total_nbytes / job->batch->n_chunks
                                 : job->submission.src_nbytes + job->submission.dst_nbytes;

    wharf_gpu_latencies_learn(latencies_of(gpu, job), job->submission.codec, nbytes, round->n_there,
                              round->elapsed_ns);
}

/* An upper bound of the CPU's throughput for a tenant's chunks of a codec, KiB a second. */
static uint64_t cpu_rate(const struct wharf_core *core, const struct wharf_tenant *tenant,
                         uint32_t codec)
{
    return core->workers.n_workers * (uint64_t)WHARF_NS_PER_S /
           tenant->estimates.mean_ns_per_kib[codec];
}

void wharf_place_learn(struct wharf_core *core, const struct wharf_piece *piece, uint64_t took_ns)
{
    const struct wharf_job *job = piece->job;
    struct wharf_tenant *tenant = job->session->tenant;
    uint32_t codec = job->submission.codec;

    if (piece->pool == WHARF_POOL_ANY)
        wharf_rate_probe_count(&tenant->probes[codec], piece->ended_ns, piece->n_chunks,
                               piece->source_nbytes + piece->capacity_nbytes,
                               piece->n_chunks * (piece->ended_ns - job->taken_ns),
                               core->fleet.gpus_up != 0, cpu_rate(core, tenant, codec));
    /* A stopped piece is no sample. */
    if (!job->stopped && !piece->is_crowded)
        wharf_estimates_learn(piece->warp_ns ? &tenant->gpu_costs[piece->gpu].warps
                                             : wharf_job_estimates(job),
                              codec, piece->source_nbytes, piece->capacity_nbytes,
                              piece->warp_ns ? piece->warp_ns : took_ns);
}

/*
 * The time until the GPU can start one more item: until a warp is free, by the items beyond the
 * warps' first ones, which all warps share; or until the link is free, while a warp decodes.
 */
static uint64_t wait_of(const struct wharf_gpu_view *gpu, uint64_t ps_per_kib)
{
    uint64_t for_warp_ns = 0;

    if (gpu->n_in_flight == 0)
        return 0;
    uint64_t mean_ns = gpu->in_flight_ns / gpu->n_in_flight;
    uint64_t flow_ns = flow_of(gpu->in_flight_nbytes, ps_per_kib);
    uint64_t for_way_ns = flow_ns > mean_ns ? flow_ns - mean_ns : 0;
    if (gpu->n_in_flight >= gpu->n_warps)
        for_warp_ns = mean_ns * (gpu->n_in_flight - gpu->n_warps + 1) / gpu->n_warps;
    return for_warp_ns > for_way_ns ? for_warp_ns : for_way_ns;
}

static uint64_t wait_ns(const struct wharf_gpu_view *gpu)
{
    return wait_of(gpu, gpu->flow_ps_per_kib ? gpu->flow_ps_per_kib : START_FLOW_PS_PER_KIB);
}

/* Not by recent throughput, which is small when little was handed over. */
bool wharf_place_gpu_has_room(const struct wharf_core *core, uint32_t gpu)
{
    return wait_of(&core->fleet.gpus[gpu], START_FLOW_PS_PER_KIB) <= core->config.gpu_ahead_ns;
}

/* ---- what a job takes next ------------------------------------------------------------------ */

struct wharf_next_chunk wharf_place_next_chunk(const struct wharf_job *job)
{
    const struct wharf_submission *submission = &job->submission;
    struct wharf_next_chunk next = {submission->src_nbytes, submission->dst_nbytes, 0};

    if (job->batch) {
        const struct wharf_chunk *chunk = &job->batch->entries[job->batch->n_handed_out].chunk;
        next.in_nbytes = chunk->src_nbytes;
        next.out_nbytes = chunk->dst_nbytes;
    }
    next.cpu_ns = wharf_estimate_mean_ns(wharf_job_estimates(job), submission->codec,
                                         next.in_nbytes, next.out_nbytes);
    return next;
}

uint64_t wharf_place_latency_ns(const struct wharf_gpu_view *gpu, const struct wharf_job *job,
                                const struct wharf_next_chunk *next)
{
    const struct wharf_gpu_costs *costs = &job->session->tenant->gpu_costs[gpu->number];
    uint32_t codec = job->submission.codec;
    bool is_known;
    uint64_t ns = wharf_gpu_latency_ns(&costs->latencies, codec, next->in_nbytes + next->out_nbytes,
                                       gpu->n_in_flight + 1, &is_known);

    if (is_known)
        return ns;
    /* No sample has that many in flight: add the waits that are known. */
    if (ns == 0)
        ns = gpu->latency_ns +
             wharf_estimate_mean_ns(&costs->warps, codec, next->in_nbytes, next->out_nbytes);
    return ns + wait_ns(gpu);
}
