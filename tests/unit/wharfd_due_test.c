/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that waited for memory, and may have to wait no longer: some are placed in each hold of the
 * core lock.  No thread runs any. */
#include <criterion/criterion.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/queues.h"
#include "daemon/core/residency.h"
#include "daemon/dispatch/intake.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/gpu_room.h"
#include "daemon/placement/place.h"
#include "daemon/placement/place_pick.h"
#include "tests/lib/test_bare.h"

#define KiB ((uint64_t)1024)
#define N_MANY 200

static struct wharf_core core;
static struct wharf_tenant tenant;
static struct wharf_session session, other;
static struct wharf_region region;
static struct wharf_gpu_memory memory;
static struct wharf_job many[N_MANY], others[2], later;

static void push_waiting(struct wharf_job *job, struct wharf_session *of)
{
    test_bare_job_init(job, of, WHARF_CODEC_DEFLATE, 20 * KiB, 64 * KiB, &region, &region);
    wharf_place_push(&core, job, false);
    cr_assert_eq(job->pool, WHARF_POOL_NONE);
}

static void set_up(void)
{
    test_bare_core_init(&core, 1);
    core.fleet.gpus[0] = (struct wharf_gpu_view){.wake_fd = -1, .may_come = true, .n_warps = 100};
    test_bare_tenant_init(&tenant);
    region = (struct wharf_region){.is_there = true, .memory = &memory};
    test_bare_session_init(&session, &tenant, WHARF_ENGINE_GPU);
    test_bare_session_init(&other, &tenant, WHARF_ENGINE_GPU);
    memory.on[0].state = WHARF_GPU_MEMORY_ASKED;
    for (unsigned i = 0; i < N_MANY; i++)
        push_waiting(&many[i], &session);
    for (unsigned i = 0; i < 2; i++)
        push_waiting(&others[i], &other);
    memory.on[0].state = WHARF_GPU_MEMORY_READY;
}

static void tear_down(void)
{
    wharf_core_deinit(&core);
}

static unsigned n_placed(void)
{
    return core.sched[WHARF_POOL_GPU].n_queued;
}

/* All of them were placed under one hold of the lock: 20 ms for 61,000. */
Test(wharfd_due, many_that_waited_are_placed_by_and_by, .init = set_up, .fini = tear_down)
{
    unsigned n_before = 0, n_holds = 0;

    wharf_place_look_again(&core, &session);
    wharf_place_look_again(&core, &other);
    cr_assert_eq(n_placed(), 0);
    while (!wharf_list_is_empty(&core.due)) {
        core.wake_loop = false;
        wharf_core_before_unlock(&core);
        /* Somebody comes again for the rest, whoever else sleeps. */
        cr_assert_eq(core.wake_loop, !wharf_list_is_empty(&core.due));
        cr_assert_leq(n_placed() - n_before, 64);
        n_before = n_placed();
        /* The other one's turn comes before all of the first one's. */
        cr_assert(++n_holds < 2 || others[1].pool == WHARF_POOL_GPU);
    }
    cr_assert_eq(n_placed(), N_MANY + 2);
    cr_assert_eq(wharf_place_n_queued(&core), N_MANY + 2);
    wharf_place_drop(&core, &other);
    for (unsigned i = 0; i < N_MANY; i++) {
        cr_assert_eq(wharf_place_first_for_gpu(&core, 0), &many[i]);
        wharf_place_remove(&core, &many[i]);
    }
}

/* Between two holds memory goes and comes back, one is cancelled, and another one comes. */
Test(wharfd_due, many_that_waited_stay_in_order, .init = set_up, .fini = tear_down)
{
    wharf_place_look_again(&core, &session);
    wharf_place_due(&core);
    unsigned n_first = n_placed();
    memory.on[0].state = WHARF_GPU_MEMORY_ASKED;
    wharf_place_due(&core);
    cr_assert_eq(n_placed(), n_first);
    wharf_place_remove(&core, &many[N_MANY - 1]);
    memory.on[0].state = WHARF_GPU_MEMORY_READY;
    push_waiting(&later, &session);
    wharf_place_look_again(&core, &session);
    while (!wharf_list_is_empty(&core.due))
        wharf_place_due(&core);
    for (unsigned i = 0; i < N_MANY - 1; i++) {
        cr_assert_eq(wharf_place_first_for_gpu(&core, 0), &many[i]);
        wharf_place_remove(&core, &many[i]);
    }
    cr_assert_eq(wharf_place_first_for_gpu(&core, 0), &later);
    wharf_place_remove(&core, &later);
    cr_assert_eq(wharf_place_n_queued(&core), 2);
}

Test(wharfd_due, session_ends_while_its_jobs_are_due, .init = set_up, .fini = tear_down)
{
    wharf_place_look_again(&core, &session);
    wharf_place_due(&core);
    cr_assert(wharf_list_is_linked(&session.placing.due_link));
    wharf_place_drop(&core, &session);
    cr_assert(wharf_list_is_empty(&core.due));
    wharf_place_due(&core);
    cr_assert_eq(wharf_place_n_queued(&core), 2);
}

/* A job that waited for long did not count as waiting until it was placed again: who looked for
 * room meanwhile gave it up, and nobody looked again. */
Test(wharfd_due, memory_is_wanted_while_jobs_are_due, .init = set_up, .fini = tear_down)
{
    const uint64_t later_ns = 100 * (uint64_t)WHARF_NS_PER_S;

    memory.session = &session;
    memory.wanted_ns = 1;
    cr_assert(wharf_gpu_room_is_wanted(&memory, later_ns));
    wharf_place_look_again(&core, &session);
    cr_assert(wharf_gpu_room_is_wanted(&memory, later_ns));
    while (!wharf_list_is_empty(&core.due))
        wharf_place_due(&core);
    cr_assert_not(wharf_gpu_room_is_wanted(&memory, later_ns));
}
