/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of several GPUs gets a job: by what is known of them, without any being there.  Jobs are
 * queued under the core's lock and picked by hand; no thread runs any.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/estimate.h"
#include "daemon/core/job.h"
#include "daemon/core/queues.h"
#include "daemon/core/residency.h"
#include "daemon/core/stats.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/place.h"
#include "daemon/placement/place_cost.h"
#include "daemon/placement/place_pick.h"
#include "tests/lib/test_bare.h"

#define KiB ((uint64_t)1024)
enum { N_GPUS = 3, N_JOBS = 600 };

static struct wharf_core core;
static struct wharf_tenant tenant;
static struct wharf_session session, other_session;
static struct wharf_region source, destination, gpu_region;
static struct wharf_gpu_memory memory, other_memory, gpu_memory;
static struct wharf_job jobs[N_JOBS];

/* Three GPUs with 100 warps each that answer in 10 us, of which a warp takes 100 ns for a byte, 1.7
 * ms for a job.  Their threads sleep, and the session wants no other engine. */
static void set_up(void)
{
    uint32_t ns_per_kib[WHARF_N_CODECS];

    test_bare_core_init(&core, N_GPUS);
    for (uint32_t i = 0; i < N_GPUS; i++) {
        core.fleet.gpus[i].may_come = true;
        core.fleet.gpus[i].n_warps = 100;
        core.fleet.gpus[i].latency_ns = 10000;
        memory.on[i].state = WHARF_GPU_MEMORY_READY;
    }
    core.fleet.gpus_asleep = core.fleet.gpus_up;
    for (unsigned i = 0; i < WHARF_N_CODECS; i++)
        ns_per_kib[i] = 102400;
    test_bare_tenant_init(&tenant);
    wharf_estimates_init(&tenant.estimates, NULL);
    for (unsigned i = 0; i < N_GPUS; i++)
        wharf_estimates_init_device(&tenant.gpu_costs[i].warps, ns_per_kib);
    gpu_memory.owner = 1;
    gpu_memory.on[1].state = WHARF_GPU_MEMORY_READY;
    source = (struct wharf_region){.is_there = true, .memory = &memory};
    destination = source;
    gpu_region = (struct wharf_region){.is_there = true, .is_device = true, .memory = &gpu_memory};
    other_memory = memory;
    test_bare_session_init(&session, &tenant, WHARF_ENGINE_GPU);
    test_bare_session_init(&other_session, &tenant, WHARF_ENGINE_GPU);
}

static void tear_down(void)
{
    wharf_core_deinit(&core);
}

static struct wharf_job *push_of(unsigned i, struct wharf_session *own, struct wharf_region *from,
                                 struct wharf_region *to)
{
    struct wharf_job *job = &jobs[i];

    test_bare_job_init(job, own, WHARF_CODEC_DEFLATE, 8 * KiB, 9 * KiB, from, to);
    wharf_place_push(&core, job, false);
    return job;
}

static struct wharf_job *push_to(unsigned i, struct wharf_region *to)
{
    return push_of(i, &session, &source, to);
}

/* Of the other session, in its own memory. */
static struct wharf_job *push_other(unsigned i)
{
    static struct wharf_region region;

    region = (struct wharf_region){.is_there = true, .memory = &other_memory};
    return push_of(i, &other_session, &region, &region);
}

static struct wharf_job *push(unsigned i)
{
    return push_to(i, &destination);
}

static void hand_over(uint32_t gpu, struct wharf_job *job)
{
    struct wharf_piece piece = {.kind = WHARF_PIECE_CHUNK, .job = job, .n_chunks = 1};

    piece.pool = job->pool;
    wharf_place_remove(&core, job);
    wharf_place_took_by_gpu(&core, &piece, gpu);
    core.fleet.gpus[gpu].n_in_flight++;
    core.fleet.gpus[gpu].in_flight_ns += wharf_place_warp_ns(gpu, job, 8 * KiB, 9 * KiB);
    core.fleet.gpus[gpu].in_flight_nbytes += 17 * KiB;
}

/* As its thread does: takes as much as there is room for. */
static unsigned take_all(uint32_t gpu)
{
    unsigned n = 0;

    for (;;) {
        struct wharf_job *job =
            wharf_place_gpu_has_room(&core, gpu) ? wharf_place_first_for_gpu(&core, gpu) : NULL;
        if (!job)
            return n;
        hand_over(gpu, job);
        n++;
    }
}

/* One thread is woken for one job, and no other one while that can take more. */
Test(wharfd_gpus_place, lone_job_wakes_one_thread, .init = set_up, .fini = tear_down)
{
    push(0);
    cr_assert_eq(wharf_place_gpus_to_wake(&core), 1);
    core.fleet.gpus_asleep = 6;
    cr_assert_eq(wharf_place_gpus_to_wake(&core), 0);
    push(1);
    cr_assert_eq(wharf_place_gpus_to_wake(&core), 0);
    cr_assert_eq(take_all(0), 2);
}

/* When it is full the next one is woken, until all are: then jobs wait. */
Test(wharfd_gpus_place, flood_goes_to_all, .init = set_up, .fini = tear_down)
{
    for (unsigned i = 0; i < N_JOBS; i++)
        push(i);
    for (uint32_t gpu = 0; gpu < N_GPUS; gpu++) {
        cr_assert_eq(wharf_place_gpus_to_wake(&core), 1u << gpu);
        core.fleet.gpus_asleep &= ~(1u << gpu);
        unsigned n = take_all(gpu);
        /* All warps, and what may wait behind them: 1 ms of all warps. */
        cr_assert(n >= 100 && n <= 180, "%u", n);
    }
    cr_assert_eq(wharf_place_gpus_to_wake(&core), 0);
    cr_assert_gt(wharf_place_n_queued(&core), 0);
}

/* A thread that is awake takes jobs that another GPU would end about as soon, and leaves those to
 * it that it would end much sooner. */
Test(wharfd_gpus_place, busy_gpu_leaves_a_job_to_an_idle_one, .init = set_up, .fini = tear_down)
{
    core.fleet.gpus_asleep = 6;
    for (unsigned i = 0; i < 110; i++)
        hand_over(0, push(i));
    struct wharf_job *job = push(110);
    cr_assert_eq(wharf_place_first_for_gpu(&core, 0), job, "a little later is soon enough");
    for (unsigned i = 111; i < 140; i++)
        hand_over(0, push(i));
    core.fleet.gpus_wanted = 0;
    cr_assert(wharf_place_gpu_has_room(&core, 0));
    cr_assert_null(wharf_place_first_for_gpu(&core, 0));
    cr_assert_eq(core.fleet.gpus_wanted, 2);
    cr_assert_eq(wharf_place_gpus_to_wake(&core), 2);
    cr_assert_eq(wharf_place_first_for_gpu(&core, 1), job);
    /* Unless that has a suspect's job, and takes nothing beside it. */
    core.fleet.gpus[1].is_alone = core.fleet.gpus[2].is_alone = true;
    cr_assert_eq(wharf_place_first_for_gpu(&core, 0), job);
}

/* A job whose memory only some have yet is for these. */
Test(wharfd_gpus_place, gpu_without_the_memory_takes_nothing, .init = set_up, .fini = tear_down)
{
    memory.on[0].state = WHARF_GPU_MEMORY_ASKED;
    memory.on[2].state = WHARF_GPU_MEMORY_REFUSED;
    struct wharf_job *job = push(0);
    cr_assert_eq(job->pool, WHARF_POOL_GPU);
    cr_assert_null(wharf_place_first_for_gpu(&core, 0));
    cr_assert_null(wharf_place_first_for_gpu(&core, 2));
    cr_assert_eq(wharf_place_gpus_to_wake(&core) & 2, 2);
    cr_assert_eq(wharf_place_first_for_gpu(&core, 1), job);
    /* When that one is gone, it waits for the first. */
    core.fleet.gpus_up = 5;
    cr_assert_null(wharf_place_first_for_gpu(&core, 0));
    cr_assert_eq(job->pool, WHARF_POOL_NONE);
    memory.on[0].state = WHARF_GPU_MEMORY_READY;
    wharf_place_look_again(&core, &session);
    wharf_place_due(&core);
    cr_assert_eq(wharf_place_first_for_gpu(&core, 0), job);
}

/* It kept that GPU from all that was queued behind it, until the other one had room. */
static void check_head(uint8_t engine, unsigned pool)
{
    session.engine = other_session.engine = engine;
    memory.on[0].state = memory.on[2].state = WHARF_GPU_MEMORY_ABSENT;
    struct wharf_job *first = push(0), *second = push_other(1);
    cr_assert_eq(first->pool, pool);
    cr_assert_eq(second->pool, pool);
    core.fleet.gpus_wanted = 0;
    cr_assert_eq(wharf_place_first_for_gpu(&core, 0), second);
    cr_assert_eq(core.fleet.gpus_wanted & 2, 2);
    cr_assert_eq(wharf_place_first_for_gpu(&core, 1), first);
    hand_over(0, second);
    cr_assert_null(wharf_place_first_for_gpu(&core, 0));
    cr_assert_eq(wharf_place_first_for_gpu(&core, 1), first);
}

Test(wharfd_gpus_place, job_for_another_gpu_holds_nobody_up, .init = set_up, .fini = tear_down)
{
    check_head(WHARF_ENGINE_GPU, WHARF_POOL_GPU);
}

Test(wharfd_gpus_place, job_for_another_gpu_or_the_cpu_holds_nobody_up, .init = set_up,
     .fini = tear_down)
{
    /* A processor takes longer than any GPU. */
    uint32_t ns_per_kib[WHARF_N_CODECS];
    for (unsigned i = 0; i < WHARF_N_CODECS; i++)
        ns_per_kib[i] = 10000000;
    wharf_estimates_init(&tenant.estimates, ns_per_kib);
    check_head(WHARF_ENGINE_AUTO, WHARF_POOL_ANY);
}

/* Nor does one whose memory no GPU has any more, which waited for a thread of the CPU. */
Test(wharfd_gpus_place, job_without_memory_makes_way, .init = set_up, .fini = tear_down)
{
    uint32_t ns_per_kib[WHARF_N_CODECS];

    for (unsigned i = 0; i < WHARF_N_CODECS; i++)
        ns_per_kib[i] = 10000000;
    wharf_estimates_init(&tenant.estimates, ns_per_kib);
    session.engine = other_session.engine = WHARF_ENGINE_AUTO;
    struct wharf_job *first = push(0), *second = push_other(1);
    for (unsigned i = 0; i < N_GPUS; i++)
        memory.on[i].state = WHARF_GPU_MEMORY_LEAVING;
    cr_assert_eq(wharf_place_first_for_gpu(&core, 0), second);
    cr_assert_eq(first->pool, WHARF_POOL_CPU);
    cr_assert_eq(first->why, WHARF_PLACED_NOT_PINNED);
    cr_assert_eq(wharf_place_first_for_cpu(&core, WHARF_NEVER), first);
}

/* Outputs in GPU memory are for the GPU that owns it, or for nobody. */
Test(wharfd_gpus_place, gpu_memory_is_its_owners, .init = set_up, .fini = tear_down)
{
    struct wharf_job *job = push_to(0, &gpu_region);
    cr_assert_eq(job->pool, WHARF_POOL_OWN + 1);
    cr_assert_eq(wharf_place_gpus_to_wake(&core), 2);
    cr_assert_null(wharf_place_first_for_gpu(&core, 0));
    cr_assert_eq(wharf_place_first_for_gpu(&core, 1), job);
    /* Its worker ends: others are there, and yet it waits. */
    core.fleet.gpus_up = 5;
    cr_assert_gt(wharf_place_n_for_cpu(&core), 0);
    cr_assert_null(wharf_place_first_for_cpu(&core, WHARF_NEVER));
    cr_assert_eq(job->pool, WHARF_POOL_NONE);
    cr_assert_eq(wharf_place_n_for_cpu(&core), 0);
    /* No worker of it gets ready any more: the CPU refuses it. */
    core.fleet.gpus[1].is_lost = true;
    wharf_place_look_again(&core, &session);
    wharf_place_due(&core);
    cr_assert_eq(job->pool, WHARF_POOL_CPU);
    cr_assert_eq(wharf_place_first_for_cpu(&core, WHARF_NEVER), job);
    cr_assert_eq(wharf_place_refusal(&core, job).result, WHARF_DEVICE_FAULT);
}

/* Jobs for one's own memory and jobs for any GPU take turns. */
Test(wharfd_gpus_place, both_kinds_of_jobs_take_turns, .init = set_up, .fini = tear_down)
{
    unsigned n_own = 0;

    for (unsigned i = 0; i < 80; i++)
        push_to(i, i < 40 ? &gpu_region : &destination);
    for (unsigned i = 0; i < 40; i++) {
        struct wharf_job *job = wharf_place_first_for_gpu(&core, 1);
        struct wharf_piece piece = {.kind = WHARF_PIECE_CHUNK, .job = job, .n_chunks = 1};
        cr_assert_not_null(job);
        n_own += job->pool == WHARF_POOL_OWN + 1;
        piece.pool = job->pool;
        piece.estimate_ns = 1000;
        wharf_place_remove(&core, job);
        wharf_place_took_by_gpu(&core, &piece, 1);
    }
    cr_assert(n_own >= 18 && n_own <= 22, "%u", n_own);
}

/* ---- unlike GPUs --------------------------------------------------------------------------- */

/* A job that a GPU has until then. */
struct flight {
    struct wharf_job *job;
    struct wharf_gpu_round round;
    uint64_t ends_ns, took_ns;
    uint32_t gpu;
};
static struct flight flights[N_JOBS];
static unsigned n_flights, n_done[N_GPUS];
static uint64_t played_ns, free_ns[2][100]; /* since when each warp has nothing to do */

/* The first warp that is free takes a job. */
static uint64_t end_of(uint32_t gpu, uint64_t warp_ns)
{
    uint64_t *first = &free_ns[gpu][0];

    for (unsigned i = 1; i < 100; i++)
        if (free_ns[gpu][i] < *first)
            first = &free_ns[gpu][i];
    *first = (*first > played_ns ? *first : played_ns) + warp_ns;
    return *first;
}

/* What the threads of two GPUs take now, of which a warp takes so long for a job. */
static void fly(const uint64_t *warp_ns)
{
    for (uint32_t gpu = 0; gpu < 2; gpu++) {
        struct wharf_gpu_view *view = &core.fleet.gpus[gpu];
        struct wharf_job *job;
        while (wharf_place_gpu_has_room(&core, gpu) &&
               (job = wharf_place_first_for_gpu(&core, gpu))) {
            hand_over(gpu, job);
            flights[n_flights++] = (struct flight){
                .job = job,
                .gpu = gpu,
                .took_ns = warp_ns[gpu],
                .ends_ns = end_of(gpu, warp_ns[gpu]),
                .round = {.elapsed_ns = played_ns,
                          .decode_ns = warp_ns[gpu],
                          .estimate_ns = wharf_place_warp_ns(gpu, job, 8 * KiB, 9 * KiB),
                          .nbytes = view->in_flight_nbytes,
                          .n_there = view->n_in_flight},
            };
        }
    }
}

/* The job that ends next is back: teaches what it took. */
static struct wharf_job *land(void)
{
    unsigned next = 0;

    cr_assert_gt(n_flights, 0);
    for (unsigned i = 1; i < n_flights; i++)
        if (flights[i].ends_ns < flights[next].ends_ns)
            next = i;
    struct flight flight = flights[next];
    struct wharf_gpu_view *view = &core.fleet.gpus[flight.gpu];
    struct wharf_piece piece = {.kind = WHARF_PIECE_CHUNK,
                                .job = flight.job,
                                .n_chunks = 1,
                                .pool = WHARF_POOL_GPU,
                                .source_nbytes = 8 * KiB,
                                .capacity_nbytes = 9 * KiB,
                                .warp_ns = flight.took_ns};
    flights[next] = flights[--n_flights];
    played_ns = flight.ends_ns;
    flight.round.elapsed_ns = played_ns - flight.round.elapsed_ns;
    view->in_flight_ns -= view->in_flight_ns / view->n_in_flight--;
    view->in_flight_nbytes -= 17 * KiB;
    wharf_place_learn_latency(view, &piece, &flight.round);
    wharf_place_learn(&core, &piece, flight.took_ns / view->n_warps);
    n_done[flight.gpu]++;
    return flight.job;
}

/* So many jobs, of which so many are there at a time; n_done is what each of the two has done. */
static void flood(const uint64_t *warp_ns, unsigned n_at_a_time, unsigned n_jobs)
{
    memset(n_done, 0, sizeof(n_done));
    n_flights = 0;
    for (unsigned i = 0; i < n_at_a_time; i++)
        push(i);
    fly(warp_ns);
    for (unsigned i = 0; i < n_jobs; i++) {
        push((unsigned)(land() - jobs));
        fly(warp_ns);
    }
    while (n_flights > 0 || wharf_place_n_queued(&core) > 0) {
        land();
        fly(warp_ns);
    }
}

static void set_up_unlike(void)
{
    set_up();
    core.fleet.gpus_up = 3;
    core.fleet.gpus_asleep = 0;
}

static const uint64_t second_is_slow[] = {500000, 2000000}, first_is_slow[] = {2000000, 500000};

/* Learnt as one, both seemed to take what they take in the mean, and each got half of the jobs:
 * most of the time one waited for the slow one. */
Test(wharfd_gpus_place, slow_gpu_gets_what_the_fast_one_has_no_room_for, .init = set_up_unlike,
     .fini = tear_down)
{
    flood(first_is_slow, 60, 4000);
    flood(first_is_slow, 60, 20000);
    cr_expect_gt(n_done[1], 19000, "%u and %u", n_done[0], n_done[1]);
    cr_expect_gt(n_done[0], 10, "what it takes is never learnt again: %u", n_done[0]);
    cr_expect_gt(tenant.stats.n_on_gpus[1], 4 * tenant.stats.n_on_gpus[0]);
    /* Where there are more than the fast one takes both work, each as fast as it can. */
    flood(first_is_slow, N_JOBS, 20000);
    cr_expect(n_done[1] > 3 * n_done[0] && n_done[1] < 5 * n_done[0], "%u and %u", n_done[0],
              n_done[1]);
}

/* One that others kept from working may be the faster one a moment later. */
Test(wharfd_gpus_place, gpu_that_becomes_fast_is_found_out, .init = set_up_unlike,
     .fini = tear_down)
{
    flood(first_is_slow, 60, 10000);
    cr_expect_gt(n_done[1], n_done[0]);
    flood(second_is_slow, 60, 10000);
    flood(second_is_slow, 60, 10000);
    cr_expect_gt(n_done[0], 9500, "%u and %u", n_done[0], n_done[1]);
}
