/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/engine_status.h"

#include "daemon/core/core.h"
#include "daemon/core/job.h"
#include "daemon/core/queues.h"

bool wharf_place_is_up(const struct wharf_core *core, uint32_t gpu)
{
    return core->fleet.gpus_up >> gpu & 1;
}

bool wharf_place_has_gpu(const struct wharf_core *core, uint32_t engine)
{
    return core->fleet.gpus_up && (engine == WHARF_ENGINE_AUTO || engine == core->fleet.gpu_engine);
}

uint32_t wharf_place_n_queued(const struct wharf_core *core)
{
    uint32_t n = core->n_waiting;

    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        n += core->sched[i].n_queued;
    return n;
}

static uint32_t n_of_own(const struct wharf_core *core, uint32_t gpu)
{
    return core->sched[WHARF_POOL_OWN + gpu].n_queued;
}

uint32_t wharf_place_n_streams_left(const struct wharf_core *core)
{
    uint32_t n = 0, n_queued = core->sched[WHARF_POOL_STREAM].n_queued;

    for (uint32_t bits = n_queued ? core->fleet.gpus_up : 0; bits; bits &= bits - 1)
        n += core->fleet.gpus[__builtin_ctz(bits)].n_stream_free;
    return n_queued > n ? n_queued - n : 0;
}

uint32_t wharf_place_n_for_cpu(const struct wharf_core *core)
{
    uint32_t n = core->retries.n + core->sched[WHARF_POOL_CPU].n_queued +
                 core->sched[WHARF_POOL_ANY].n_queued;

    if (!core->fleet.gpus_up)
        n += core->sched[WHARF_POOL_GPU].n_queued + core->sched[WHARF_POOL_LARGE].n_queued +
             core->sched[WHARF_POOL_ENCODE].n_queued;
    n += wharf_place_n_streams_left(core);
    /* What was queued for a GPU that has no worker now is the CPU's to move. */
    for (uint32_t gpu = 0; gpu < core->fleet.n_gpus; gpu++)
        n += wharf_place_is_up(core, gpu) ? 0 : n_of_own(core, gpu);
    return n;
}

bool wharf_place_may_be_gpus(const struct wharf_core *core)
{
    return core->fleet.gpus_up && core->retries.n == 0 && core->sched[WHARF_POOL_CPU].n_queued == 0;
}

bool wharf_place_may_import(const struct wharf_core *core)
{
    for (uint32_t gpu = 0; gpu < core->fleet.n_gpus; gpu++)
        if (core->fleet.gpus[gpu].may_come)
            return true;
    return false;
}

bool wharf_place_gpu_codes(const struct wharf_core *core, const struct wharf_job *job)
{
    uint64_t codecs = wharf_job_compresses(job) ? core->fleet.gpu_encoders : core->fleet.gpu_codecs;

    return codecs >> job->submission.codec & 1;
}
