/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which engine gets a job: by what is known of both, without any being there.  Jobs are queued
 * under the front's lock and picked by hand; no thread runs any.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/clock.h"
#include "daemon/front.h"
#include "daemon/front_place.h"
#include "daemon/gpu_memory.h"
#include "proto/wharf_job.h"

#define KiB ((uint64_t)1024)

static struct wharf_config config;
static struct wharf_front front;
static struct wharf_tenant tenant;
static struct wharf_session session;
static struct wharf_region region;
static struct wharf_gpu_memory memory;

/* A GPU with 100 warps that answers in 10 us; a warp takes 100 ns for a byte and a processor 1. */
static void set_up(void)
{
    uint32_t ns_per_kib[WHARF_N_CODECS];

    wharf_config_init(&config);
    cr_assert_eq(wharf_front_init(&front, &config, NULL), 0);
    front.n_workers = 4;
    front.gpu_view = (struct wharf_gpu_view){
        .engine = WHARF_ENGINE_GPU,
        .is_up = true,
        .codecs = UINT64_MAX,
        .n_warps = 100,
        .latency_ns = 10000,
    };
    for (unsigned i = 0; i < WHARF_N_CODECS; i++)
        ns_per_kib[i] = 102400;
    memset(&tenant, 0, sizeof(tenant));
    tenant.quota.weight = 100;
    wharf_estimates_init(&tenant.estimates);
    wharf_estimates_init_device(&tenant.device_estimates, ns_per_kib);
    memory = (struct wharf_gpu_memory){.state = WHARF_GPU_MEMORY_READY};
    region = (struct wharf_region){.is_there = true, .memory = &memory};
    memset(&session, 0, sizeof(session));
    session.tenant = &tenant;
    wharf_list_init(&session.waiting);
    for (unsigned i = 0; i < WHARF_N_POOLS; i++) {
        wharf_sched_tenant_init(&tenant.sched[i]);
        wharf_sched_session_init(&session.sched[i]);
    }
}

static void tear_down(void)
{
    wharf_front_deinit(&front);
}

static void push(struct wharf_job *job, uint64_t in_nbytes, uint64_t out_nbytes)
{
    *job = (struct wharf_job){
        .submission =
            {
                .opcode = WHARF_OP_DECODE,
                .codec = WHARF_CODEC_DEFLATE,
                .src_nbytes = in_nbytes,
                .dst_nbytes = out_nbytes,
            },
        .session = &session,
        .source = &region,
        .destination = &region,
        .lane = WHARF_LANE_NORMAL,
        .state = WHARF_JOB_QUEUED,
    };
    wharf_list_init(&job->link);
    job->estimate_ns =
        wharf_estimate_ns(&tenant.estimates, WHARF_CODEC_DEFLATE, in_nbytes, out_nbytes);
    wharf_place_push(&front, job, false);
}

/* Takes what each engine takes, as long as either takes any; returns how many the GPU got. */
static unsigned take_all(unsigned *ret_n_cpu)
{
    uint64_t cpu_at_ns[4] = {0};
    unsigned n_gpu = 0, n_cpu = 0;

    for (;;) {
        struct wharf_job *job =
            wharf_place_gpu_has_room(&front) ? wharf_place_first_for_gpu(&front) : NULL;
        if (job) {
            uint64_t warp_ns =
                wharf_place_warp_ns(job, job->submission.src_nbytes, job->submission.dst_nbytes);
            wharf_place_remove(&front, job);
            front.gpu_view.n_in_flight++;
            front.gpu_view.in_flight_ns += warp_ns;
            n_gpu++;
            continue;
        }
        job = wharf_place_first_for_cpu(&front, WHARF_NEVER);
        if (!job)
            break;
        wharf_place_remove(&front, job);
        cpu_at_ns[n_cpu++ % 4] += job->estimate_ns;
    }
    *ret_n_cpu = n_cpu;
    return n_gpu;
}

Test(wharfd_place, lone_small_chunk_goes_to_the_cpu, .init = set_up, .fini = tear_down)
{
    struct wharf_job job;
    unsigned n_cpu;

    front.n_sleeping = 4;
    push(&job, 20 * KiB, 64 * KiB);
    cr_assert_eq(job.pool, WHARF_POOL_ANY);
    cr_assert_not(front.gpu_view.is_wanted);
    cr_assert_null(wharf_place_first_for_gpu(&front));
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
    cr_assert(front.gpu_view.is_wanted);
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

    for (unsigned i = 0; i < WHARF_N_CODECS; i++)
        tenant.device_estimates.ns_per_kib[i] = 10240;
    for (unsigned i = 0; i < 20; i++)
        wharf_estimates_learn(&tenant.estimates, WHARF_CODEC_DEFLATE, 20 * KiB, 64 * KiB, 20000000);
    for (unsigned i = 0; i < N; i++)
        push(&jobs[i], 20 * KiB, 64 * KiB);
    unsigned n_gpu = take_all(&n_cpu);
    cr_assert_geq(n_gpu, 100);
    /* The CPU leaves them to the GPU, which will have room before the CPU would be done. */
    cr_assert_eq(n_cpu, 0, "%u", n_cpu);
    cr_assert(front.gpu_view.has_left && front.gpu_view.is_wanted);
    front.gpu_view.n_in_flight = 0;
    front.gpu_view.in_flight_ns = 0;
    cr_assert_not_null(wharf_place_first_for_gpu(&front));
}

Test(wharfd_place, cpu_alone_has_what_the_gpu_cannot_have, .init = set_up, .fini = tear_down)
{
    struct wharf_job job;

    push(&job, 20 * KiB, 64 * KiB);
    cr_assert_eq(job.pool, WHARF_POOL_ANY);
    wharf_place_remove(&front, &job);

    push(&job, 20 * KiB, config.gpu_chunk_nbytes + 1);
    cr_assert(job.pool == WHARF_POOL_CPU && job.why == WHARF_PLACED_TOO_LARGE);
    wharf_place_remove(&front, &job);

    memory.state = WHARF_GPU_MEMORY_ASKED;
    push(&job, 20 * KiB, 64 * KiB);
    cr_assert(job.pool == WHARF_POOL_CPU && job.why == WHARF_PLACED_NOT_PINNED);
    wharf_place_remove(&front, &job);
    memory.state = WHARF_GPU_MEMORY_READY;

    front.gpu_view.codecs = 0;
    push(&job, 20 * KiB, 64 * KiB);
    cr_assert(job.pool == WHARF_POOL_CPU && job.why == WHARF_PLACED_CODEC);
    wharf_place_remove(&front, &job);
    front.gpu_view.codecs = UINT64_MAX;

    tenant.gpu_trust.banned_until_ns = 1;
    push(&job, 20 * KiB, 64 * KiB);
    cr_assert(job.pool == WHARF_POOL_CPU && job.why == WHARF_PLACED_BANNED);
    wharf_place_remove(&front, &job);
    tenant.gpu_trust.banned_until_ns = 0;

    session.engine = WHARF_ENGINE_REFERENCE;
    push(&job, 20 * KiB, 64 * KiB);
    cr_assert(job.pool == WHARF_POOL_CPU && job.why == WHARF_PLACED_CPU_ASKED);
    wharf_place_remove(&front, &job);
    cr_assert_eq(wharf_place_n_queued(&front), 0);
}

/* Who wants the GPU alone waits for its memory, and is served by the CPU while there is no GPU. */
Test(wharfd_place, session_that_wants_the_gpu_waits_for_its_memory, .init = set_up,
     .fini = tear_down)
{
    struct wharf_job jobs[2];

    session.engine = WHARF_ENGINE_GPU;
    memory.state = WHARF_GPU_MEMORY_ASKED;
    push(&jobs[0], 20 * KiB, 64 * KiB);
    push(&jobs[1], 20 * KiB, 64 * KiB);
    cr_assert_eq(jobs[0].pool, WHARF_POOL_NONE);
    cr_assert_eq(wharf_place_n_queued(&front), 2);
    cr_assert_null(wharf_place_first_for_gpu(&front));
    cr_assert_null(wharf_place_first_for_cpu(&front, WHARF_NEVER));
    wharf_place_remove(&front, &jobs[1]);
    memory.state = WHARF_GPU_MEMORY_READY;
    wharf_place_waiting(&front, &session);
    cr_assert_eq(jobs[0].pool, WHARF_POOL_GPU);
    cr_assert_null(wharf_place_first_for_cpu(&front, WHARF_NEVER));
    cr_assert_eq(wharf_place_first_for_gpu(&front), &jobs[0]);
    front.gpu_view.is_up = false;
    cr_assert_eq(wharf_place_first_for_cpu(&front, WHARF_NEVER), &jobs[0]);
    wharf_place_drop(&front, &session);
    cr_assert_eq(wharf_place_n_queued(&front), 0);
    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        cr_assert_eq(front.sched[i].backlog_ns, 0);
}
