/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which engine gets a job: by what is known of both, without any being there.  Jobs are queued
 * under the core's lock and picked by hand; no thread runs any.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/estimate.h"
#include "daemon/core/gpu_latency.h"
#include "daemon/core/job.h"
#include "daemon/core/queues.h"
#include "daemon/core/rate_probe.h"
#include "daemon/core/residency.h"
#include "daemon/core/stats.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/job_pieces.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/place.h"
#include "daemon/placement/place_cost.h"
#include "daemon/placement/place_parts.h"
#include "daemon/placement/place_pick.h"
#include "tests/lib/test_bare.h"

#define KiB ((uint64_t)1024)

static struct wharf_core core;
static struct wharf_tenant tenant;
static struct wharf_session session;
static struct wharf_region region;
static struct wharf_gpu_memory memory;

/* What chunks take on a processor (0: as when nothing is known) and on a warp. */
static void set_prices(uint32_t cpu_ns_per_kib, uint32_t warp_ns_per_kib)
{
    uint32_t prices[WHARF_N_CODECS], warp_prices[WHARF_N_CODECS];

    for (unsigned i = 0; i < WHARF_N_CODECS; i++) {
        prices[i] = cpu_ns_per_kib;
        warp_prices[i] = warp_ns_per_kib;
    }
    wharf_estimates_init(&tenant.estimates, prices);
    wharf_gpu_costs_init(&tenant.gpu_costs[0], warp_prices, core.fleet.gpus[0].latency_ns);
}

/* A GPU with 100 warps that answers in 10 us; a warp takes 100 ns for a byte and a processor 1. */
static void set_up(void)
{
    test_bare_core_init(&core, 1);
    core.workers.n_workers = 4;
    core.fleet.gpus[0] = (struct wharf_gpu_view){
        .wake_fd = -1,
        .may_come = true,
        .n_warps = 100,
        .latency_ns = 10000,
    };
    test_bare_tenant_init(&tenant);
    set_prices(0, 102400);
    memset(&memory, 0, sizeof(memory));
    memory.on[0].state = WHARF_GPU_MEMORY_READY;
    region = (struct wharf_region){.is_there = true, .memory = &memory};
    test_bare_session_init(&session, &tenant, WHARF_ENGINE_AUTO);
}

static void tear_down(void)
{
    wharf_core_deinit(&core);
}

static void push(struct wharf_job *job, uint64_t in_nbytes, uint64_t out_nbytes)
{
    test_bare_job_init(job, &session, WHARF_CODEC_DEFLATE, in_nbytes, out_nbytes, &region, &region);
    job->estimate_ns =
        wharf_estimate_ns(&tenant.estimates, WHARF_CODEC_DEFLATE, in_nbytes, out_nbytes);
    wharf_place_push(&core, job, false);
}

/* Takes what each engine takes, as long as either takes any; returns how many the GPU got. */
static unsigned take_all(unsigned *ret_n_cpu)
{
    uint64_t cpu_at_ns[4] = {0};
    unsigned n_gpu = 0, n_cpu = 0;

    for (;;) {
        struct wharf_job *job =
            wharf_place_gpu_has_room(&core, 0) ? wharf_place_first_for_gpu(&core, 0) : NULL;
        if (job) {
            uint64_t warp_ns =
                wharf_place_warp_ns(0, job, job->submission.src_nbytes, job->submission.dst_nbytes);
            wharf_place_remove(&core, job);
            core.fleet.gpus[0].n_in_flight++;
            core.fleet.gpus[0].in_flight_ns += warp_ns;
            core.fleet.gpus[0].in_flight_nbytes +=
                job->submission.src_nbytes + job->submission.dst_nbytes;
            n_gpu++;
            continue;
        }
        job = wharf_place_first_for_cpu(&core, WHARF_NEVER);
        if (!job)
            break;
        wharf_place_remove(&core, job);
        cpu_at_ns[n_cpu++ % 4] += job->estimate_ns;
    }
    *ret_n_cpu = n_cpu;
    return n_gpu;
}

Test(wharfd_place, lone_small_chunk_goes_to_the_cpu, .init = set_up, .fini = tear_down)
{
    struct wharf_job job;
    unsigned n_cpu;

    core.workers.n_sleeping = 4;
    push(&job, 20 * KiB, 64 * KiB);
    cr_assert_eq(job.pool, WHARF_POOL_ANY);
    cr_assert_not(core.fleet.gpus_wanted);
    cr_assert_null(wharf_place_first_for_gpu(&core, 0));
    cr_assert_eq(take_all(&n_cpu), 0);
    cr_assert_eq(n_cpu, 1);
}

/* A warp takes 8.6 ms for such a chunk, a processor 86 us: from a hundred waiting ones for each
 * processor on the GPU is the sooner one. */
Test(wharfd_place, flood_goes_to_both, .init = set_up, .fini = tear_down)
{
    enum { N = 2000 };
    static struct wharf_job jobs[N];
    unsigned n_cpu;

    for (unsigned i = 0; i < N; i++)
        push(&jobs[i], 20 * KiB, 64 * KiB);
    cr_assert(core.fleet.gpus_wanted);
    unsigned n_gpu = take_all(&n_cpu);
    cr_assert_eq(n_gpu + n_cpu, N, "%u and %u", n_gpu, n_cpu);
    /* All warps, and what may wait behind them: 1 ms of all warps is a tenth of a round. */
    cr_assert(n_gpu >= 100 && n_gpu <= 115, "%u", n_gpu);
}

/* On a GPU that is faster in every way, nothing is left for the CPU but what it cannot keep up
 * with. */
Test(wharfd_place, slow_cpu_gets_what_the_gpu_has_no_room_for, .init = set_up, .fini = tear_down)
{
    enum { N = 1000 };
    static struct wharf_job jobs[N];
    unsigned n_cpu;

    set_prices(0, 10240);
    for (unsigned i = 0; i < 20; i++)
        wharf_estimates_learn(&tenant.estimates, WHARF_CODEC_DEFLATE, 20 * KiB, 64 * KiB, 20000000);
    for (unsigned i = 0; i < N; i++)
        push(&jobs[i], 20 * KiB, 64 * KiB);
    unsigned n_gpu = take_all(&n_cpu);
    cr_assert_geq(n_gpu, 100);
    /* The CPU leaves them to the GPU, which will have room before the CPU would be done. */
    cr_assert_eq(n_cpu, 0, "%u", n_cpu);
    cr_assert(core.fleet.gpus_left && core.fleet.gpus_wanted);
    core.fleet.gpus[0].n_in_flight = 0;
    core.fleet.gpus[0].in_flight_ns = core.fleet.gpus[0].in_flight_nbytes = 0;
    cr_assert_not_null(wharf_place_first_for_gpu(&core, 0));
}

static unsigned n_calls;

/* There is nobody to be called. */
static void *count_call(struct wharf_backend *backend)
{
    (void)backend;
    n_calls++;
    return NULL;
}

static unsigned calls_at_leaving(void)
{
    n_calls = 0;
    wharf_core_enter(&core);
    wharf_core_leave(&core);
    return n_calls;
}

/* Once two workers were called each time that a GPU had taken some of its jobs, to look at the next
 * one, which was the GPU's too: its thread waited for them for a sixth of a flood. */
Test(wharfd_place, nobody_is_called_for_what_is_the_gpus, .init = set_up, .fini = tear_down)
{
    static const struct wharf_backend_ops ops = {.call = count_call};
    struct wharf_backend backend = {.ops = &ops};
    struct wharf_job jobs[8];

    core.backend = &backend;
    core.workers.n_sleeping = 4;
    tenant.probes[WHARF_CODEC_DEFLATE].policy = WHARF_POLICY_GPU;
    for (unsigned i = 0; i < 8; i++)
        push(&jobs[i], 20 * KiB, 64 * KiB);
    cr_assert_eq(calls_at_leaving(), 0);
    struct wharf_job *job = wharf_place_first_for_gpu(&core, 0);
    cr_assert_not_null(job);
    wharf_core_unqueue(&core, job);
    cr_assert_eq(calls_at_leaving(), 0);
    /* Of what the GPU would rather not have any more it says so when it is asked. */
    tenant.probes[WHARF_CODEC_DEFLATE].policy = WHARF_POLICY_CPU;
    cr_assert_null(wharf_place_first_for_gpu(&core, 0));
    cr_assert_geq(calls_at_leaving(), 1);
}

/* Jobs of who wants the GPU alone come to it, and none of them ends while a batch lasts: whom the
 * GPU had been left a job by was not told that it did not want that any more. */
Test(wharfd_place, jobs_that_the_gpu_does_not_want_any_more_are_the_cpus_at_once, .init = set_up,
     .fini = tear_down)
{
    static const struct wharf_backend_ops ops = {.call = count_call};
    struct wharf_backend backend = {.ops = &ops};
    struct wharf_session forced;
    struct wharf_job job, of_forced;

    core.backend = &backend;
    core.workers.n_sleeping = 4;
    tenant.probes[WHARF_CODEC_DEFLATE].policy = WHARF_POLICY_GPU;
    push(&job, 20 * KiB, 64 * KiB);
    cr_assert_eq(calls_at_leaving(), 0);
    test_bare_session_init(&forced, &tenant, WHARF_ENGINE_GPU);
    test_bare_job_init(&of_forced, &forced, WHARF_CODEC_DEFLATE, 20 * KiB, 64 * KiB, &region,
                       &region);
    wharf_place_push(&core, &of_forced, false);
    tenant.probes[WHARF_CODEC_DEFLATE].policy = WHARF_POLICY_CPU;
    cr_assert_eq(wharf_place_first_for_gpu(&core, 0), &of_forced);
    cr_assert_geq(calls_at_leaving(), 1);
}

/* A tenant's lone chunk waited behind another one's flood until the GPU had had some of that, and
 * threads of the CPU slept. */
Test(wharfd_place, nobody_waits_behind_what_another_tenant_leaves_to_the_gpu, .init = set_up,
     .fini = tear_down)
{
    struct wharf_tenant other;
    struct wharf_session lone;
    struct wharf_job jobs[8], job;

    core.workers.n_sleeping = 4;
    tenant.probes[WHARF_CODEC_DEFLATE].policy = WHARF_POLICY_GPU;
    for (unsigned i = 0; i < 8; i++)
        push(&jobs[i], 20 * KiB, 64 * KiB);
    other = tenant;
    test_bare_tenant_init(&other);
    other.estimates = tenant.estimates;
    memcpy(other.gpu_costs, tenant.gpu_costs, sizeof(other.gpu_costs));
    test_bare_session_init(&lone, &other, WHARF_ENGINE_AUTO);
    test_bare_job_init(&job, &lone, WHARF_CODEC_DEFLATE, 20 * KiB, 64 * KiB, &region, &region);
    wharf_place_push(&core, &job, false);
    cr_assert_eq(job.pool, WHARF_POOL_ANY);
    cr_assert_eq(wharf_place_first_for_cpu(&core, WHARF_NEVER), &job);
    cr_assert(core.fleet.gpus_left);
}

/* Work in GPU memory never goes to the CPU: without a place on a GPU it is refused. */
Test(wharfd_place, large_chunk_in_gpu_memory_has_a_place_or_is_refused, .init = set_up,
     .fini = tear_down)
{
    struct wharf_gpu_view *gpu = &core.fleet.gpus[0];
    struct wharf_job job;

    region.is_device = true;
    push(&job, 20 * KiB, 64 * KiB);
    cr_assert_eq(job.pool, WHARF_POOL_OWN);
    wharf_place_remove(&core, &job);
    push(&job, 20 * KiB, core.config.gpu_chunk_nbytes + 1);
    cr_assert_eq(job.pool, WHARF_POOL_CPU);
    cr_expect_eq(wharf_place_refusal(&core, &job).result, WHARF_NO_MEMORY);
    wharf_place_remove(&core, &job);
    gpu->n_large = gpu->n_large_free = 2;
    push(&job, core.config.gpu_chunk_nbytes + 1, 64 * KiB);
    cr_assert_eq(job.pool, WHARF_POOL_LARGE);
    cr_expect_eq(wharf_place_first_large(&core, 0), &job);
    wharf_place_remove(&core, &job);
}

Test(wharfd_place, cpu_alone_has_what_the_gpu_cannot_have, .init = set_up, .fini = tear_down)
{
    struct wharf_job job;

    push(&job, 20 * KiB, 64 * KiB);
    cr_assert_eq(job.pool, WHARF_POOL_ANY);
    wharf_place_remove(&core, &job);

    push(&job, 20 * KiB, core.config.gpu_chunk_nbytes + 1);
    cr_assert(job.pool == WHARF_POOL_CPU && job.why == WHARF_PLACED_TOO_LARGE);
    wharf_place_remove(&core, &job);

    memory.on[0].state = WHARF_GPU_MEMORY_ASKED;
    push(&job, 20 * KiB, 64 * KiB);
    cr_assert(job.pool == WHARF_POOL_CPU && job.why == WHARF_PLACED_NOT_PINNED);
    wharf_place_remove(&core, &job);
    memory.on[0].state = WHARF_GPU_MEMORY_READY;

    core.fleet.gpu_codecs = ~(UINT64_C(1) << job.submission.codec);
    push(&job, 20 * KiB, 64 * KiB);
    cr_assert(job.pool == WHARF_POOL_CPU && job.why == WHARF_PLACED_CODEC);
    cr_assert_not(wharf_place_is_refused(&core, &job));
    wharf_place_remove(&core, &job);
    session.engine = core.fleet.gpu_engine;
    push(&job, 20 * KiB, 64 * KiB);
    cr_assert_eq(job.pool, WHARF_POOL_CPU);
    cr_assert(wharf_place_is_refused(&core, &job));
    cr_assert_eq(wharf_place_refusal(&core, &job).reason, WHARF_REASON_GPU_CODEC);
    wharf_place_remove(&core, &job);
    session.engine = WHARF_ENGINE_AUTO;
    core.fleet.gpu_codecs = UINT64_MAX;

    tenant.gpu_trust.banned_until_ns = 1;
    push(&job, 20 * KiB, 64 * KiB);
    cr_assert(job.pool == WHARF_POOL_CPU && job.why == WHARF_PLACED_BANNED);
    wharf_place_remove(&core, &job);
    tenant.gpu_trust.banned_until_ns = 0;

    session.engine = WHARF_ENGINE_REFERENCE;
    push(&job, 20 * KiB, 64 * KiB);
    cr_assert(job.pool == WHARF_POOL_CPU && job.why == WHARF_PLACED_CPU_ASKED);
    wharf_place_remove(&core, &job);
    cr_assert_eq(wharf_place_n_queued(&core), 0);
}

static void push_to_compress(struct wharf_job *job)
{
    test_bare_job_init(job, &session, WHARF_CODEC_BDI, 64 * KiB, 64 * KiB, &region, &region);
    job->submission.flags = WHARF_JOB_COMPRESS;
    job->pool = WHARF_POOL_NONE;
    wharf_place_push(&core, job, false);
}

/* As many wait for a GPU's warps as there are, and the CPU has the rest. */
Test(wharfd_place, chunks_to_compress_go_where_warps_are, .init = set_up, .fini = tear_down)
{
    struct wharf_job jobs[4], *first;

    push_to_compress(&jobs[0]);
    cr_assert(jobs[0].pool == WHARF_POOL_CPU && jobs[0].why == WHARF_PLACED_CODEC);
    wharf_place_remove(&core, &jobs[0]);

    core.fleet.gpu_encoders = UINT64_C(1) << WHARF_CODEC_BDI;
    core.fleet.gpus[0].n_encode = core.fleet.gpus[0].n_encode_free = 3;
    for (unsigned i = 0; i < 4; i++) {
        push_to_compress(&jobs[i]);
        cr_assert_eq(jobs[i].pool, i < 3 ? WHARF_POOL_ENCODE : WHARF_POOL_CPU, "%u", i);
    }
    cr_assert(wharf_place_wants_gpu(&core, 0));
    core.fleet.gpus[0].n_encode_free = 0;
    cr_assert_not(wharf_place_wants_gpu(&core, 0));
    /* Those that wait stay there. */
    cr_assert_eq(wharf_place_first_to_encode(&core, 0, true), &jobs[0]);
    cr_assert_null(wharf_place_first_for_gpu(&core, 0));
    /* Unless there is no GPU for them any more. */
    core.fleet.gpus[0].n_encode = 0;
    cr_assert_null(wharf_place_first_to_encode(&core, 0, true));
    while ((first = wharf_place_first_for_cpu(&core, UINT64_MAX)))
        wharf_place_remove(&core, first);
    cr_assert_eq(wharf_place_n_queued(&core), 0);
}

/* A chunk over [gpu] chunk too, unless somebody waits for it. */
Test(wharfd_place, large_chunks_to_compress_go_there_too, .init = set_up, .fini = tear_down)
{
    static const uint8_t lanes[] = {WHARF_LANE_INTERACTIVE, WHARF_LANE_NORMAL, WHARF_LANE_IDLE};

    core.fleet.gpu_encoders = UINT64_C(1) << WHARF_CODEC_BDI;
    core.fleet.gpus[0].n_encode = core.fleet.gpus[0].n_encode_free = 3;
    for (unsigned i = 0; i < 3; i++) {
        struct wharf_job job;
        uint64_t nbytes = core.config.gpu_chunk_nbytes + 1;
        test_bare_job_init(&job, &session, WHARF_CODEC_BDI, nbytes, nbytes, &region, &region);
        job.submission.flags = WHARF_JOB_COMPRESS;
        job.lane = lanes[i];
        job.pool = WHARF_POOL_NONE;
        wharf_place_push(&core, &job, false);
        cr_assert_eq(job.pool, i == 0 ? WHARF_POOL_CPU : WHARF_POOL_ENCODE, "%u", i);
        cr_assert_eq(job.why, i == 0 ? WHARF_PLACED_TOO_LARGE : WHARF_PLACED_GPU_SOONER);
        wharf_place_remove(&core, &job);
    }
}

/* Idle work is not for who asks for other lanes alone. */
Test(wharfd_place, idle_chunks_wait_for_an_idle_gpu, .init = set_up, .fini = tear_down)
{
    struct wharf_job job;

    core.fleet.gpu_encoders = UINT64_C(1) << WHARF_CODEC_BDI;
    core.fleet.gpus[0].n_encode = core.fleet.gpus[0].n_encode_free = 3;
    test_bare_job_init(&job, &session, WHARF_CODEC_BDI, 64 * KiB, 64 * KiB, &region, &region);
    job.submission.flags = WHARF_JOB_COMPRESS;
    job.lane = WHARF_LANE_IDLE;
    job.pool = WHARF_POOL_NONE;
    wharf_place_push(&core, &job, false);
    cr_assert_eq(job.pool, WHARF_POOL_ENCODE);
    cr_assert_null(wharf_place_first_to_encode(&core, 0, false));
    cr_assert_eq(wharf_place_first_to_encode(&core, 0, true), &job);
    wharf_place_remove(&core, &job);
}

/* Who wants the GPU alone waits for its memory, and is served by the CPU while there is no GPU. */
Test(wharfd_place, session_that_wants_the_gpu_waits_for_its_memory, .init = set_up,
     .fini = tear_down)
{
    struct wharf_job jobs[2];

    session.engine = WHARF_ENGINE_GPU;
    memory.on[0].state = WHARF_GPU_MEMORY_ASKED;
    push(&jobs[0], 20 * KiB, 64 * KiB);
    push(&jobs[1], 20 * KiB, 64 * KiB);
    cr_assert_eq(jobs[0].pool, WHARF_POOL_NONE);
    cr_assert_eq(wharf_place_n_queued(&core), 2);
    cr_assert_null(wharf_place_first_for_gpu(&core, 0));
    cr_assert_null(wharf_place_first_for_cpu(&core, WHARF_NEVER));
    wharf_place_remove(&core, &jobs[1]);
    memory.on[0].state = WHARF_GPU_MEMORY_READY;
    wharf_place_look_again(&core, &session);
    wharf_place_due(&core);
    cr_assert_eq(jobs[0].pool, WHARF_POOL_GPU);
    cr_assert_null(wharf_place_first_for_cpu(&core, WHARF_NEVER));
    cr_assert_eq(wharf_place_first_for_gpu(&core, 0), &jobs[0]);
    core.fleet.gpus_up = 0;
    cr_assert_eq(wharf_place_first_for_cpu(&core, WHARF_NEVER), &jobs[0]);
    wharf_place_drop(&core, &session);
    cr_assert_eq(wharf_place_n_queued(&core), 0);
    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        cr_assert_eq(core.sched[i].backlog_ns, 0);
}

/*
 * Stored chunks of 64 KiB on a GPU with 4224 warps, of which each takes 7 us, behind a link that
 * carries one in 1.8 us; and on 16 processors that take 5 us each.
 */
static void set_up_stored(void)
{
    set_up();
    core.workers.n_workers = 16;
    core.fleet.gpus[0].n_warps = 4224;
    core.fleet.gpus[0].latency_ns = 7000;
    core.fleet.gpus[0].flow_ps_per_kib = 14000;
    set_prices(32, 48);
}

/* The GPU would have all of a flood, as long as warps are all that counts; the link has to be
 * counted too. */
Test(wharfd_place, link_is_shared_by_all_warps, .init = set_up_stored, .fini = tear_down)
{
    enum { N = 1000 };
    static struct wharf_job jobs[N];
    unsigned n_cpu;

    push(&jobs[0], 64 * KiB, 64 * KiB);
    cr_assert_eq(take_all(&n_cpu), 0);
    cr_assert_eq(n_cpu, 1);
    for (unsigned i = 0; i < N; i++)
        push(&jobs[i], 64 * KiB, 64 * KiB);
    unsigned n_gpu = take_all(&n_cpu);
    cr_assert_eq(n_gpu + n_cpu, N);
    /* 1.8 us a chunk against 5 / 16: both are done at the same time with a seventh on the GPU. */
    cr_assert(n_gpu >= N / 10 && n_gpu <= N / 5, "%u", n_gpu);
}

/* What warps take is known from the beginning, what passes the link is not. */
static void learn_flow(uint64_t nbytes, uint64_t elapsed_ns, uint64_t decode_ns)
{
    struct wharf_job job = {.session = &session};
    struct wharf_piece piece = {.job = &job, .n_chunks = 1, .warp_ns = decode_ns};
    struct wharf_gpu_round round = {
        .elapsed_ns = elapsed_ns, .decode_ns = decode_ns, .nbytes = nbytes};

    wharf_place_learn_latency(&core.fleet.gpus[0], &piece, &round);
}

Test(wharfd_place, what_passes_the_link_is_learnt, .init = set_up_stored, .fini = tear_down)
{
    struct wharf_gpu_view *gpu = &core.fleet.gpus[0];
    const uint64_t nbytes = 128 * KiB;

    gpu->flow_ps_per_kib = 0;
    /* One chunk alone, that is decoded for 300 us and under way for 310, tells nothing. */
    for (unsigned i = 0; i < 100; i++)
        learn_flow(nbytes, 310000, 300000);
    uint64_t begun_ns = wharf_place_flow_ns(gpu, 1000 * nbytes);
    cr_assert(begun_ns > 1000000 && begun_ns < 3000000, "%lu", (unsigned long)begun_ns);
    /* A thousand that take 10 ms: 10 us each. */
    for (unsigned i = 0; i < 200; i++)
        learn_flow(1000 * nbytes, 10000000, 5000);
    uint64_t slow_ns = wharf_place_flow_ns(gpu, 1000 * nbytes);
    cr_assert(slow_ns > 9000000 && slow_ns < 11000000, "%lu", (unsigned long)slow_ns);
    /* A few that took long say nothing against it: somebody had the processor, perhaps. */
    for (unsigned i = 0; i < 200; i++)
        learn_flow(10 * nbytes, 10000000, 5000);
    cr_assert_eq(wharf_place_flow_ns(gpu, 1000 * nbytes), slow_ns);
    /* As many that are there after 3 ms, of which they were decoded for 1. */
    for (unsigned i = 0; i < 200; i++)
        learn_flow(1000 * nbytes, 3000000, 1000000);
    uint64_t fast_ns = wharf_place_flow_ns(gpu, 1000 * nbytes);
    cr_assert(fast_ns > 1900000 && fast_ns < 2100000, "%lu", (unsigned long)fast_ns);
}

static uint64_t placed(enum wharf_placement why)
{
    return tenant.stats.n_placed[why];
}

/* One engine takes one chunk, of the kind that is pushed. */
static bool is_taken_by_gpu(void)
{
    static struct wharf_job job;
    struct wharf_piece piece = {.kind = WHARF_PIECE_CHUNK, .job = &job, .n_chunks = 1};

    push(&job, 64 * KiB, 64 * KiB);
    bool is_gpu = wharf_place_first_for_cpu(&core, WHARF_NEVER) == NULL;
    if (is_gpu)
        cr_assert_eq(wharf_place_first_for_gpu(&core, 0), &job);
    piece.pool = job.pool;
    wharf_place_remove(&core, &job);
    if (is_gpu)
        wharf_place_took_by_gpu(&core, &piece, 0);
    else
        wharf_place_took_by_cpu(&core, &piece);
    return is_gpu;
}

/* Estimates of an engine that gets nothing would stay wrong for ever. */
Test(wharfd_place, engine_that_gets_nothing_is_tried_now_and_then, .init = set_up_stored,
     .fini = tear_down)
{
    unsigned n_gpu = 0, n_cpu = 0;

    for (unsigned i = 0; i < 2000; i++)
        n_gpu += is_taken_by_gpu();
    cr_assert(n_gpu >= 2 && n_gpu <= 4, "%u", n_gpu);
    cr_assert_eq(placed(WHARF_PLACED_TO_LEARN), n_gpu);
    cr_assert_eq(placed(WHARF_PLACED_CPU_SOONER), 2000 - n_gpu);
    cr_assert_eq(placed(WHARF_PLACED_GPU_SOONER), 0);
    /* It turns out to be slow: then the other one is tried. */
    tenant.estimates.mean_ns_per_kib[WHARF_CODEC_DEFLATE] = 512;
    for (unsigned i = 0; i < 2000; i++)
        n_cpu += !is_taken_by_gpu();
    cr_assert(n_cpu >= 2 && n_cpu <= 4, "%u", n_cpu);
    /* Nobody is tried who would take a hundred times as long. */
    tenant.estimates.mean_ns_per_kib[WHARF_CODEC_DEFLATE] = 102400;
    for (unsigned i = 0; i < 2000; i++)
        cr_assert(is_taken_by_gpu());
}

/* Once the rest of a batch that was cancelled was counted as run by the CPU for want of a GPU. */
Test(wharfd_place, what_was_stopped_is_not_counted, .init = set_up, .fini = tear_down)
{
    static struct wharf_job job;
    struct wharf_piece piece = {.kind = WHARF_PIECE_SLICE, .job = &job, .n_chunks = 100};

    core.fleet.gpus_up = 0;
    for (unsigned i = 0; i < 2; i++) {
        push(&job, 64 * KiB, 64 * KiB);
        piece.pool = job.pool;
        wharf_place_remove(&core, &job);
        job.stopped = i ? WHARF_CANCELLED : 0;
        wharf_place_took_by_cpu(&core, &piece);
        cr_assert_eq(placed(WHARF_PLACED_NO_GPU), 100);
    }
}

/* A batch is one job in the queue, and work for both engines. */
Test(wharfd_place, batch_waits_for_its_own_chunks, .init = set_up_stored, .fini = tear_down)
{
    enum { N = 1000 };
    struct wharf_batch *batch = calloc(1, sizeof(*batch) + sizeof(batch->entries[0]));
    struct wharf_job job = {.submission = {.opcode = WHARF_OP_BATCH, .codec = WHARF_CODEC_DEFLATE},
                            .session = &session,
                            .source = &region,
                            .lane = WHARF_LANE_NORMAL,
                            .state = WHARF_JOB_RUNNING,
                            .batch = batch};

    wharf_list_init(&job.link);
    batch->n_chunks = N;
    batch->max_chunk_nbytes = 64 * KiB;
    batch->total_nbytes = N * 128 * KiB;
    batch->entries[0].chunk.src_nbytes = batch->entries[0].chunk.dst_nbytes = 64 * KiB;
    job.estimate_ns = 5000;
    wharf_place_push(&core, &job, false);
    cr_assert(core.fleet.gpus_wanted);
    cr_assert_eq(wharf_place_first_for_gpu(&core, 0), &job);
    cr_assert_eq(wharf_place_first_for_cpu(&core, WHARF_NEVER), &job);
    wharf_place_remove(&core, &job);
    free(batch);
}

/* A warp takes half as long as a processor alone, and three others sleep. */
Test(wharfd_place, idle_processors_together_are_sooner, .init = set_up, .fini = tear_down)
{
    struct wharf_job job;

    core.fleet.gpus[0].latency_ns = 0;
    set_prices(1024, 512);
    core.config.gpu_chunk_nbytes = 1024 * KiB;
    /* One warp alone takes it. */
    struct wharf_gpu_latencies *latencies = &tenant.gpu_costs[0].latencies;
    memcpy(latencies->ns_per_kib[WHARF_CODEC_RANS], latencies->ns_per_kib[WHARF_CODEC_DEFLATE],
           sizeof(latencies->ns_per_kib[0]));
    push(&job, 500 * KiB, 600 * KiB);
    job.submission.codec = WHARF_CODEC_RANS;
    core.workers.n_sleeping = 0;
    cr_assert_eq(wharf_place_first_for_gpu(&core, 0), &job);
    core.workers.n_sleeping = 3;
    cr_assert_null(wharf_place_first_for_gpu(&core, 0));
    cr_assert_eq(wharf_place_first_for_cpu(&core, WHARF_NEVER), &job);
    /* Nobody helps with less. */
    job.submission.dst_nbytes = 500 * KiB;
    cr_assert_eq(wharf_place_first_for_gpu(&core, 0), &job);
}

/* A job of rans that is queued, as it would be decoded by a GPU where nothing else is. */
static void push_rans(struct wharf_job *job, uint64_t in_nbytes, uint64_t out_nbytes)
{
    tenant.gpu_costs[0].warps.ns_per_kib[WHARF_CODEC_RANS] = 100000;
    push(job, in_nbytes, out_nbytes);
    job->submission.codec = WHARF_CODEC_RANS;
}

Test(wharfd_place, idle_warps_share_a_chunk, .init = set_up, .fini = tear_down)
{
    struct wharf_gpu_view *gpu = &core.fleet.gpus[0];
    struct wharf_job job, other;

    push_rans(&job, 100 * KiB, 160 * KiB);
    cr_expect_eq(wharf_parts_now(&core, &job, gpu), 10);
    gpu->n_in_flight = 96;
    cr_expect_eq(wharf_parts_now(&core, &job, gpu), 4);
    /* Half of them are for the one that waits behind it. */
    push(&other, KiB, KiB);
    cr_expect_eq(wharf_parts_now(&core, &job, gpu), 2);
    gpu->n_in_flight = 100;
    cr_expect_eq(wharf_parts_now(&core, &job, gpu), 1);
    /* Another codec's chunks are whole. */
    gpu->n_in_flight = 0;
    cr_expect_eq(wharf_parts_now(&core, &other, gpu), 1);
}

Test(wharfd_place, a_tenant_has_its_share_of_warps_for_parts, .init = set_up, .fini = tear_down)
{
    struct wharf_gpu_view *gpu = &core.fleet.gpus[0];
    struct wharf_job job;

    push_rans(&job, 100 * KiB, 256 * KiB);
    core.fleet.n_gpu_tenants = 9;
    cr_expect_eq(wharf_parts_now(&core, &job, gpu), 10);
    core.fleet.n_gpu_tenants = 10;
    tenant.n_gpu_items = 7;
    cr_expect_eq(wharf_parts_now(&core, &job, gpu), 3);
    tenant.n_gpu_items = 30;
    cr_expect_eq(wharf_parts_now(&core, &job, gpu), 1);
}

/* Where bytes on their way take as long as a warp decodes, more warps would only wait. */
Test(wharfd_place, a_full_link_leaves_chunks_whole, .init = set_up, .fini = tear_down)
{
    struct wharf_gpu_view *gpu = &core.fleet.gpus[0];
    struct wharf_job job;

    push_rans(&job, 100 * KiB, 160 * KiB);
    uint64_t warp_ns = wharf_place_warp_ns(0, &job, 100 * KiB, 160 * KiB);
    gpu->flow_ps_per_kib = 16000;
    gpu->in_flight_nbytes = warp_ns / 16 * 1024;
    cr_expect_eq(wharf_parts_now(&core, &job, gpu), 1);
    gpu->in_flight_nbytes /= 4;
    cr_expect_eq(wharf_parts_now(&core, &job, gpu), 4);
}

/* One that is larger than an item's room needs parts that fill half of it, whatever else there is;
 * and is not the GPU's if it needs too many, is for GPU memory, or if one was refused of late. */
Test(wharfd_place, large_chunks_have_the_parts_that_they_need, .init = set_up, .fini = tear_down)
{
    struct wharf_gpu_view *gpu = &core.fleet.gpus[0];
    struct wharf_job job;

    core.config.gpu_chunk_nbytes = 256 * KiB;
    push_rans(&job, 300 * KiB, 1024 * KiB);
    gpu->n_in_flight = 100;
    cr_expect_eq(wharf_parts_now(&core, &job, gpu), 8);
    cr_expect(wharf_parts_can_do(&core, &job));
    session.placing.whole_until_ns = 1;
    cr_expect_not(wharf_parts_can_do(&core, &job));
    session.placing.whole_until_ns = 0;
    region.is_device = true;
    cr_expect_not(wharf_parts_can_do(&core, &job));
    region.is_device = false;
    struct wharf_region source = {.is_there = true, .is_device = true};
    job.source = &source;
    cr_expect_not(wharf_parts_can_do(&core, &job));
    job.source = &region;
    job.submission.dst_nbytes = 16 * 1024 * KiB + 1;
    cr_expect_not(wharf_parts_can_do(&core, &job));
    job.submission.dst_nbytes = 16 * 1024 * KiB;
    cr_expect(wharf_parts_can_do(&core, &job));
    job.submission.codec = WHARF_CODEC_DEFLATE;
    cr_expect_not(wharf_parts_can_do(&core, &job));
}

static void expect_cpu(const struct wharf_job *job)
{
    cr_expect_eq(wharf_place_pool_of(&core, job), WHARF_POOL_CPU);
}

static void set_streams(void)
{
    struct wharf_gpu_view *gpu = &core.fleet.gpus[0];

    core.fleet.gpu_engine = WHARF_ENGINE_GPU;
    core.config.gpu_chunk_nbytes = 256 * KiB;
    core.config.gpu_large_nbytes = 64 * 1024 * KiB;
    gpu->n_large = gpu->n_large_free = 2;
    gpu->has_streams = true;
    gpu->n_stream_free = 1;
}

/* A whole GPU decodes large streams for who leaves the choice, one after the other, beside the
 * processors; all others are a processor's. */
Test(wharfd_place, large_streams_are_the_gpus_and_the_processors, .init = set_up, .fini = tear_down)
{
    struct wharf_gpu_view *gpu = &core.fleet.gpus[0];
    struct wharf_job jobs[3];

    set_streams();
    for (unsigned i = 0; i < 3; i++) {
        push(&jobs[i], 4096 * KiB, 16 * 1024 * KiB);
        cr_expect(jobs[i].pool == WHARF_POOL_STREAM && jobs[i].why == WHARF_PLACED_GPU_SOONER);
        cr_expect_eq(wharf_place_n_for_cpu(&core), i);
    }
    cr_expect_eq(wharf_place_first_large(&core, 0), &jobs[0]);
    struct wharf_submission *wanted = &jobs[0].submission;
    cr_expect_eq(wharf_place_pool_of(&core, &jobs[0]), WHARF_POOL_STREAM);
    wanted->flags = WHARF_JOB_CHECKSUM;
    cr_expect_eq(wharf_place_pool_of(&core, &jobs[0]), WHARF_POOL_STREAM);
    wanted->flags = 0;
    wanted->src_nbytes--;
    expect_cpu(&jobs[0]);
    wanted->src_nbytes++;
    wanted->dst_nbytes = 60 * 1024 * KiB + 1;
    expect_cpu(&jobs[0]);
    wanted->dst_nbytes--;
    wanted->codec = WHARF_CODEC_LZ4;
    expect_cpu(&jobs[0]);
    wanted->codec = WHARF_CODEC_GZIP;
    memory.on[0].state = WHARF_GPU_MEMORY_ASKED;
    expect_cpu(&jobs[0]);
    memory.on[0].state = WHARF_GPU_MEMORY_READY;
    tenant.gpu_trust.n_alone = 1;
    expect_cpu(&jobs[0]);
    tenant.gpu_trust.n_alone = 0;
    gpu->has_streams = false;
    expect_cpu(&jobs[0]);
    gpu->has_streams = true;
    cr_expect_eq(wharf_place_pool_of(&core, &jobs[0]), WHARF_POOL_STREAM);
    /* The device's code on the CPU is slower than a processor. */
    core.fleet.gpu_engine = WHARF_ENGINE_SIMT;
    expect_cpu(&jobs[0]);
}

/* All jobs that processors may take now. */
static unsigned n_taken_by_cpu(void)
{
    uint32_t n_told = wharf_place_n_for_cpu(&core);
    struct wharf_job *job;
    unsigned n = 0;

    while ((job = wharf_place_first_for_cpu(&core, WHARF_NEVER))) {
        cr_expect(job->pool == WHARF_POOL_CPU || job->pool == WHARF_POOL_STREAM);
        wharf_place_remove(&core, job);
        n++;
    }
    cr_expect_eq(n, n_told);
    return n;
}

/* Streams and other jobs have the processors in turns, by their time. */
Test(wharfd_place, streams_take_turns_with_other_jobs, .init = set_up, .fini = tear_down)
{
    enum { N = 16 };
    struct wharf_job streams[N], others[N];
    unsigned n_streams = 0;

    set_streams();
    core.fleet.gpus[0].n_stream_free = 0;
    core.config.gpu_large_nbytes = 19 * 1024 * KiB;
    for (unsigned i = 0; i < N; i++) {
        push(&streams[i], 4096 * KiB, 15 * 1024 * KiB);
        push(&others[i], 4096 * KiB, 16 * 1024 * KiB);
        cr_assert(streams[i].pool == WHARF_POOL_STREAM && others[i].pool == WHARF_POOL_CPU);
    }
    for (unsigned i = 0; i < N; i++) {
        struct wharf_piece piece;
        wharf_core_take(&core, wharf_place_first_for_cpu(&core, WHARF_NEVER), &piece);
        n_streams += piece.pool == WHARF_POOL_STREAM;
    }
    cr_expect(n_streams >= N / 2 - 1 && n_streams <= N / 2 + 1, "%u", n_streams);
}

/* A job that could be a processor's waits for no GPU: neither while that has another stream, though
 * one that needs it be before the job, nor when nothing may begin there. */
Test(wharfd_place, streams_by_choice_wait_for_no_gpu, .init = set_up, .fini = tear_down)
{
    struct wharf_gpu_view *gpu = &core.fleet.gpus[0];
    struct wharf_session other;
    struct wharf_job jobs[4], forced[3];

    set_streams();
    test_bare_session_init(&other, &tenant, WHARF_ENGINE_GPU);
    for (unsigned i = 0; i < 4; i++)
        push(&jobs[i], 4096 * KiB, 16 * 1024 * KiB);
    /* One is left for the GPU, where those that need it come first. */
    cr_expect_eq(n_taken_by_cpu(), 3);
    for (unsigned i = 0; i < 3; i++) {
        test_bare_job_init(&forced[i], &other, WHARF_CODEC_GZIP, 4096 * KiB, 16 * 1024 * KiB,
                           &region, &region);
        wharf_place_push(&core, &forced[i], false);
        cr_assert_eq(forced[i].pool, WHARF_POOL_LARGE);
    }
    cr_expect_eq(wharf_place_first_large(&core, 0), &forced[0]);
    cr_expect_eq(n_taken_by_cpu(), 0);
    /* One of them, or memory that has to leave, keeps the GPU. */
    gpu->n_stream_free = 0;
    push(&jobs[0], 4096 * KiB, 16 * 1024 * KiB);
    cr_expect_eq(n_taken_by_cpu(), 2);
    cr_expect_eq(core.sched[WHARF_POOL_LARGE].n_queued, 3);
    /* However often processors look, those that none has begun are the GPU's again. */
    for (unsigned i = 0; i < 3; i++)
        wharf_place_remove(&core, &forced[i]);
    for (unsigned i = 0; i < 4; i++) {
        push(&jobs[i], 4096 * KiB, 16 * 1024 * KiB);
        cr_assert(wharf_place_first_for_cpu(&core, WHARF_NEVER));
        cr_assert_null(wharf_place_first_for_cpu(&core, 1));
    }
    gpu->n_stream_free = 1;
    cr_assert(wharf_place_first_large(&core, 0));
    wharf_place_remove(&core, wharf_place_first_large(&core, 0));
    /* The GPU is gone. */
    core.fleet.gpus_up = 0;
    cr_expect_eq(n_taken_by_cpu(), 3);
}
