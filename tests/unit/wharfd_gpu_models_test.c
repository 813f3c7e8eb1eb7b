/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the models that a GPU has make room for others. */
#include <criterion/criterion.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/control/model.h"
#include "daemon/core/core.h"
#include "daemon/core/residency.h"
#include "daemon/core/session.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/gpu_models.h"
#include "tests/lib/test_bare.h"

enum { N_TENANTS = 3, N_MODELS = 16, PLACES = 12 };
#define S ((uint64_t)WHARF_NS_PER_S)

static struct wharf_core core;
static struct wharf_gpu_view *view;
static struct wharf_tenant tenants[N_TENANTS];
static struct wharf_session sessions[N_TENANTS];
static struct wharf_session_model models[N_TENANTS][N_MODELS];
static struct wharf_gpu_memory memories[N_TENANTS][N_MODELS];

static void set_up(void)
{
    test_bare_core_init(&core, 1);
    view = &core.fleet.gpus[0];
    view->most_models = PLACES;
    for (unsigned t = 0; t < N_TENANTS; t++) {
        tenants[t].quota.max_gpu_models = PLACES;
        sessions[t].tenant = &tenants[t];
        for (unsigned i = 0; i < N_MODELS; i++) {
            struct wharf_gpu_memory *memory = &memories[t][i];
            *memory = (struct wharf_gpu_memory){
                .session = &sessions[t],
                .tenant = &tenants[t],
                .is_model = true,
                .model = &models[t][i],
            };
            memory->on[0].memory = memory;
            memory->on[0].state = WHARF_GPU_MEMORY_ABSENT;
            wharf_list_init(&memory->pin_link);
            wharf_list_init(&memory->on[0].model_link);
            models[t][i] = (struct wharf_session_model){.is_there = true, .memory = memory};
        }
    }
}

static void tear_down(void)
{
    wharf_core_deinit(&core);
}

/* The GPU gets a model, which is used then. */
static void get(unsigned tenant, unsigned model, uint64_t used_ns)
{
    struct wharf_gpu_memory *memory = &memories[tenant][model];

    wharf_gpu_memory_set(&core, 0, memory, WHARF_GPU_MEMORY_ASKED);
    wharf_gpu_memory_set(&core, 0, memory, WHARF_GPU_MEMORY_READY);
    wharf_gpu_models_use(view, &memory->on[0], used_ns);
}

static bool has_place(unsigned tenant)
{
    return wharf_gpu_models_have_place(view, 0, &memories[tenant][N_MODELS - 1]);
}

static const struct wharf_gpu_memory *victim_for(unsigned tenant, uint64_t now_ns)
{
    struct wharf_gpu_hold *hold =
        wharf_gpu_models_victim(view, 0, &memories[tenant][N_MODELS - 1], now_ns);

    return hold ? hold->memory : NULL;
}

/* Its own, the one that was used longest ago and that nobody needs now. */
Test(wharfd_gpu_models, tenant_with_too_many_makes_room_itself, .init = set_up, .fini = tear_down)
{
    tenants[0].quota.max_gpu_models = 3;
    get(1, 0, 1 * S);
    for (unsigned i = 0; i < 3; i++)
        get(0, i, 10 * S);
    wharf_gpu_models_use(view, &memories[0][0].on[0], 10 * S);
    cr_assert_not(has_place(0));
    cr_assert(has_place(1));
    cr_assert_eq(victim_for(0, 10 * S), &memories[0][1]);
    models[0][1].n_users = 1;
    cr_assert_eq(victim_for(0, 10 * S), &memories[0][2]);
    models[0][0].n_users = models[0][2].n_users = 1;
    cr_assert_null(victim_for(0, 20 * S));
}

/* While there are free places nobody has to go; then who has more than an even share has. */
Test(wharfd_gpu_models, tenant_with_most_makes_room_for_others, .init = set_up, .fini = tear_down)
{
    for (unsigned i = 0; i < PLACES - 2; i++)
        get(0, i, 10 * S);
    get(1, 0, 10 * S);
    cr_assert(has_place(0) && has_place(1) && has_place(2));
    get(1, 1, 10 * S);
    cr_assert(!has_place(0) && !has_place(1) && !has_place(2));
    /* Of three tenants a third each: four. */
    cr_assert_eq(victim_for(2, 10 * S), &memories[0][0]);
    cr_assert_eq(victim_for(1, 10 * S), &memories[0][0]);
    /* Not of others who have less: its own. */
    wharf_gpu_models_use(view, &memories[0][0].on[0], 10 * S);
    cr_assert_eq(victim_for(0, 10 * S), &memories[0][1]);
}

/* With all shares even nobody loses what he uses; but for a second nobody has to have used it. */
Test(wharfd_gpu_models, what_is_in_use_stays, .init = set_up, .fini = tear_down)
{
    for (unsigned i = 0; i < PLACES / 2; i++) {
        get(0, i, 10 * S);
        get(1, i, 10 * S);
    }
    /* A third tenant's share is four, and both have six. */
    cr_assert_not_null(victim_for(2, 10 * S));
    tenants[2].n_gpu_models[0] = 0;
    for (unsigned i = 4; i < PLACES / 2; i++) {
        wharf_gpu_memory_set(&core, 0, &memories[0][i], WHARF_GPU_MEMORY_ABSENT);
        wharf_gpu_memory_set(&core, 0, &memories[1][i], WHARF_GPU_MEMORY_ABSENT);
        get(2, i - 4, 10 * S);
        get(2, i - 2, 10 * S);
    }
    cr_assert_eq(view->n_models, PLACES);
    cr_assert_eq(view->n_model_tenants, 3);
    memories[0][N_MODELS - 1].tenant = &tenants[1];
    cr_assert_eq(victim_for(0, 10 * S), &memories[1][0]);
    for (unsigned i = 0; i < 4; i++)
        models[1][i].n_users = 1;
    cr_assert_null(victim_for(0, 10 * S + S / 2));
    cr_assert_eq(victim_for(0, 11 * S), &memories[0][0]);
}

/* A place is taken until the worker has said that it has let go; and nothing is counted twice. */
Test(wharfd_gpu_models, place_is_free_when_the_worker_says_so, .init = set_up, .fini = tear_down)
{
    tenants[0].quota.max_gpu_models = 1;
    get(0, 0, S);
    wharf_gpu_memory_set(&core, 0, &memories[0][0], WHARF_GPU_MEMORY_LEAVING);
    cr_assert_not(has_place(0));
    cr_assert_eq(view->n_leaving_models, 1);
    cr_assert(wharf_list_is_empty(&view->models));
    wharf_gpu_memory_set(&core, 0, &memories[0][0], WHARF_GPU_MEMORY_ABSENT);
    cr_assert(has_place(0));
    cr_assert_eq(view->n_leaving_models + view->n_models + view->n_model_tenants, 0);
    cr_assert_eq(core.residency.pinned_nbytes, 0);
}

/* One that was let go comes back when a job names it; one that was refused, a second after that. */
Test(wharfd_gpu_models, what_is_wanted_again_comes_again, .init = set_up, .fini = tear_down)
{
    struct wharf_gpu_hold *hold = &memories[0][0].on[0];
    struct wharf_job job = {.session = &sessions[0], .model = &models[0][0], .taken_ns = 5 * S};

    hold->gone_ns = 4 * S;
    cr_assert_eq(wharf_gpu_models_due_ns(hold), WHARF_NEVER);
    sessions[0].engine = WHARF_ENGINE_CPU;
    wharf_gpu_models_want(&core, &job);
    cr_assert_eq(wharf_gpu_models_due_ns(hold), WHARF_NEVER);
    cr_assert_eq(core.fleet.gpus_wanted, 0);
    sessions[0].engine = WHARF_ENGINE_AUTO;
    wharf_gpu_models_want(&core, &job);
    cr_assert_eq(wharf_gpu_models_due_ns(hold), 0);
    cr_assert_eq(core.fleet.gpus_wanted, 1);
    hold->state = WHARF_GPU_MEMORY_REFUSED;
    cr_assert_eq(wharf_gpu_models_due_ns(hold), 5 * S);
    /* It is told once, and again after a while. */
    core.fleet.gpus_wanted = 0;
    job.taken_ns += 1000;
    wharf_gpu_models_want(&core, &job);
    cr_assert_eq(core.fleet.gpus_wanted, 0);
    job.taken_ns += S;
    wharf_gpu_models_want(&core, &job);
    cr_assert_eq(core.fleet.gpus_wanted, 1);
}
