/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_models.c: least recently used replacement of models on a GPU.
 *
 * Jobs in flight protect their models.  A tenant replaces its own models first, then those of a
 * tenant with more than an even share, so that one tenant cannot push out all others.
 */
#include "daemon/placement/gpu_models.h"

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/residency.h"

/* A model that was unused for this long makes room for any tenant's. */
#define UNUSED_NS ((uint64_t)WHARF_NS_PER_S)
/* A refused model is tried again after this time. */
#define RETRY_NS ((uint64_t)WHARF_NS_PER_S)
/* The least time between two notices to GPUs that a model is wanted. */
#define TELL_NS (100 * (uint64_t)WHARF_NS_PER_MS)
/* How many least recently used models are checked for a victim. */
#define MOST_LOOKS 1024

void wharf_gpu_models_want(struct wharf_core *core, const struct wharf_job *job)
{
    struct wharf_gpu_memory *memory = job->model ? job->model->memory : NULL;

    if (!memory || (job->session->engine != WHARF_ENGINE_AUTO &&
                    job->session->engine != core->fleet.gpu_engine))
        return;
    for (uint32_t bits = core->fleet.gpus_up; bits; bits &= bits - 1) {
        const struct wharf_gpu_hold *hold = &memory->on[__builtin_ctz(bits)];
        bool is_there =
            hold->state == WHARF_GPU_MEMORY_READY || hold->state == WHARF_GPU_MEMORY_ASKED;
        bool is_told =
            memory->wanted_ns > hold->gone_ns && job->taken_ns - memory->wanted_ns < TELL_NS;
        if (!is_there && !is_told)
            core->fleet.gpus_wanted |= bits & -bits;
    }
    if (job->taken_ns > memory->wanted_ns)
        memory->wanted_ns = job->taken_ns;
}

void wharf_gpu_models_use(struct wharf_gpu_view *view, struct wharf_gpu_hold *hold, uint64_t now_ns)
{
    hold->used_ns = now_ns;
    wharf_list_remove(&hold->model_link);
    wharf_list_append(&view->models, &hold->model_link);
}

void wharf_gpu_models_count(struct wharf_gpu_view *view, uint32_t gpu, struct wharf_gpu_hold *hold,
                            enum wharf_gpu_memory_state before)
{
    uint32_t *n_own = &hold->memory->tenant->n_gpu_models[gpu];
    bool is_held = wharf_gpu_memory_is_held(hold->state),
         was_held = wharf_gpu_memory_is_held(before);

    wharf_list_remove(&hold->model_link);
    if (hold->state == WHARF_GPU_MEMORY_READY)
        wharf_list_append(&view->models, &hold->model_link);
    view->n_leaving_models += hold->state == WHARF_GPU_MEMORY_LEAVING;
    view->n_leaving_models -= before == WHARF_GPU_MEMORY_LEAVING;
    if (is_held && !was_held) {
        view->n_models++;
        view->n_model_tenants += (*n_own)++ == 0;
    } else if (!is_held && was_held) {
        view->n_models--;
        view->n_model_tenants -= --(*n_own) == 0;
    }
}

uint64_t wharf_gpu_models_due_ns(const struct wharf_gpu_hold *hold)
{
    if (hold->memory->wanted_ns <= hold->gone_ns)
        return WHARF_NEVER;
    if (hold->state == WHARF_GPU_MEMORY_REFUSED)
        return hold->gone_ns + RETRY_NS;
    return hold->state == WHARF_GPU_MEMORY_ABSENT ? 0 : WHARF_NEVER;
}

bool wharf_gpu_models_have_place(const struct wharf_gpu_view *view, uint32_t gpu,
                                 const struct wharf_gpu_memory *memory)
{
    const struct wharf_tenant *tenant = memory->tenant;

    return view->n_models < view->most_models &&
           tenant->n_gpu_models[gpu] < tenant->quota.max_gpu_models;
}

/* Jobs in a lease are not counted under the lock. */
static bool is_in_use(const struct wharf_gpu_memory *memory)
{
    return memory->session && (memory->session->lease || memory->model->n_users > 0);
}

struct wharf_gpu_hold *wharf_gpu_models_victim(const struct wharf_gpu_view *view, uint32_t gpu,
                                               const struct wharf_gpu_memory *memory,
                                               uint64_t now_ns)
{
    const struct wharf_tenant *tenant = memory->tenant;
    bool is_own = tenant->n_gpu_models[gpu] >= tenant->quota.max_gpu_models;
    uint32_t n_tenants = view->n_model_tenants + (tenant->n_gpu_models[gpu] == 0);
    unsigned n = 0;

    WHARF_LIST_FOR(link, &view->models)
    {
        struct wharf_gpu_hold *hold = WHARF_LIST_ENTRY(link, struct wharf_gpu_hold, model_link);
        const struct wharf_tenant *other = hold->memory->tenant;
        if (n++ == MOST_LOOKS)
            break;
        if (is_in_use(hold->memory) || (is_own && other != tenant))
            continue;
        if (other == tenant || other->n_gpu_models[gpu] > view->most_models / n_tenants ||
            now_ns - hold->used_ns >= UNUSED_NS)
            return hold;
    }
    return NULL;
}
