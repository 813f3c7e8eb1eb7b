/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs for clients' own GPU memory whose worker ends: the CPU cannot take them over, so the next
 * worker has them.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/core/residency.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/placement/gpu_memory.h"
#include "tests/lib/test_gpu_memory.h"
#include "tests/lib/test_poison.h"
#include "tests/lib/test_small.h"
#include "tests/lib/test_worker.h"

#define MiB ((uint64_t)1 << 20)
/* Longer than any test takes. */
#define NEVER_NS (3600 * (uint64_t)WHARF_NS_PER_S)

TEST_POISON_TAKEN

/* ---- a daemon ------------------------------------------------------------------------------ */

static void set_up(void)
{
    test_core_config_simt();
    test_core_config.gpu_pin_after_ns = 0;
    test_core_start(1);
    test_core_wait_until_up();
}

struct gpu_client {
    struct test_core_client client;
    struct test_gpu_memory memory;
};

static void gpu_client_init(struct gpu_client *own, uint64_t id, const char *tenant_name)
{
    test_core_client_init(&own->client, id, tenant_name, 64, MiB);
    own->memory = test_gpu_memory_new(NULL, 65536);
    test_core_add_gpu_memory(&own->client, own->memory.fd, own->memory.nbytes);
    /* The arena too: some stop the worker now. */
    test_core_wait_until_registered(&own->client);
}

static void gpu_client_deinit(struct gpu_client *own)
{
    test_core_client_deinit(&own->client);
    test_gpu_memory_free(&own->memory);
}

static void submit(struct gpu_client *own, uint64_t user_data)
{
    test_small_submit_to(&own->client, own->memory.at, user_data);
}

static struct wharf_completion reap(struct gpu_client *own)
{
    struct wharf_completion completion = test_small_reap_from(&own->client, own->memory.at);

    cr_assert_eq(completion.engine, WHARF_ENGINE_SIMT);
    return completion;
}

/* The CPU cannot take those over: they are tried again, alone, and only the one with which the
 * worker ended while it ran alone is given up. */
Test(wharfd_fault_memory, job_for_gpu_memory_that_ends_the_worker_is_found, .timeout = 600)
{
    enum { N = 4 };
    struct gpu_client faulting, innocent;
    struct wharf_completion completion;
    unsigned n_again = 0;

    set_up();
    TEST_CORE_LOCKED(test_core.config.gpu_ahead_ns = NEVER_NS);
    gpu_client_init(&faulting, 1, "uid:1");
    gpu_client_init(&innocent, 2, "uid:2");
    for (unsigned round = 0; round < 3; round++) {
        pid_t worker = test_worker_pid(getpid());
        if (round == 0)
            test_process_stop(worker);
        for (uint32_t i = 0; i < N; i++)
            submit(&innocent, i);
        /* At first the worker has all of them when it ends, and both warps are kept busy by that:
         * it takes long where sanitizers have much to say. */
        uint32_t n_poisoned = round == 0 ? 2 : 1;
        for (uint32_t i = 0; i < n_poisoned; i++)
            submit(&faulting, TEST_POISON(WHARF_WORK_FAULT) | i);
        for (uint32_t i = N; i < 2 * N; i++)
            submit(&innocent, i);
        while (round == 0 && TEST_CORE_LOCKED(test_core.fleet.gpus[0].n_in_flight) < 2 * N + 2)
            usleep(1000);
        if (round == 0)
            kill(worker, SIGCONT);
        for (uint32_t i = 0; i < 2 * N; i++)
            n_again += reap(&innocent).attempt > 0;
        for (uint32_t i = 0; i < n_poisoned; i++) {
            completion = test_core_reap(&faulting.client);
            cr_assert_eq(completion.result, WHARF_DEVICE_FAULT, "result %u", completion.result);
        }
    }
    cr_assert_geq(n_again, 1);
    cr_assert_gt(TEST_CORE_LOCKED(faulting.client.session->tenant->gpu_trust.banned_until_ns), 0);
    cr_assert_eq(TEST_CORE_LOCKED(innocent.client.session->tenant->gpu_trust.banned_until_ns), 0);
    /* From now on it is told at once, whatever its job would do. */
    test_core_wait_until_up();
    uint64_t n_ended = TEST_CORE_LOCKED(test_core.fleet.gpus[0].n_ended);
    submit(&faulting, 0);
    completion = test_core_reap(&faulting.client);
    cr_assert_eq(completion.result, WHARF_DEVICE_FAULT);
    cr_assert_eq(completion.engine, WHARF_ENGINE_AUTO);
    submit(&innocent, 0);
    reap(&innocent);
    cr_assert_eq(TEST_CORE_LOCKED(test_core.fleet.gpus[0].n_ended), n_ended);
    gpu_client_deinit(&faulting);
    gpu_client_deinit(&innocent);
    test_core_stop();
}

/* A batch is cut into its chunks when its worker ends: each is tried again. */
Test(wharfd_fault_memory, batch_for_gpu_memory_is_finished_by_the_next_worker, .timeout = 600)
{
    enum { N = 40 };
    struct gpu_client own;

    set_up();
    gpu_client_init(&own, 1, "uid:1");
    size_t nbytes = test_core_put_chunk(&own.client, 0, test_small_plain(), TEST_SMALL_NBYTES);
    struct wharf_chunk *table = (struct wharf_chunk *)(own.client.arena + 4096);
    struct wharf_chunk_result *results = (struct wharf_chunk_result *)(table + N);
    for (uint32_t i = 0; i < N; i++)
        table[i] = (struct wharf_chunk){
            .src_nbytes = (uint32_t)nbytes,
            .dst_offset = i % 2 ? i * 1024 : 65536 + i * 1024,
            .dst_nbytes = TEST_SMALL_NBYTES,
            .dst_region = i % 2,
        };
    const struct wharf_submission s = {
        .opcode = WHARF_OP_BATCH,
        .codec = WHARF_CODEC_ZLIB,
        .src_offset = 4096,
        .src_nbytes = N * sizeof(*table),
        .dst_offset = 4096 + N * sizeof(*table),
        .dst_nbytes = N * sizeof(*results),
    };
    unsigned n_again = 0;
    for (unsigned round = 0; round < 5; round++) {
        test_core_wait_until_up();
        memset(own.memory.at, 0, 65536);
        memset(own.client.arena + 65536, 0, 65536);
        pid_t worker = test_worker_pid(getpid());
        test_process_stop(worker);
        test_core_submit(&own.client, &s);
        while (TEST_CORE_LOCKED(test_core.fleet.gpus[0].n_in_flight) == 0)
            usleep(100);
        kill(worker, SIGKILL);
        struct wharf_completion completion = test_core_reap(&own.client);
        cr_assert_eq(completion.result, WHARF_OK, "result %u", completion.result);
        cr_assert_eq(completion.out_nbytes, N * TEST_SMALL_NBYTES);
        for (uint32_t i = 0; i < N; i++) {
            const uint8_t *out = i % 2 ? own.memory.at : own.client.arena + 65536;
            cr_assert_eq(results[i].result, WHARF_OK);
            cr_assert_arr_eq(out + i * 1024, test_small_plain(), TEST_SMALL_NBYTES);
            n_again += results[i].attempt > 0;
            cr_assert(i % 2 == 0 || results[i].engine == WHARF_ENGINE_SIMT);
        }
    }
    cr_assert_geq(n_again, 5);
    gpu_client_deinit(&own);
    test_core_stop();
}

/* Batches of one chunk again and again, as many chunks as the worker has places for, and more. */
enum { N_LARGE = 1000, N_BATCHES = 30 };

static void submit_large_batch(struct gpu_client *own, uint64_t user_data)
{
    struct wharf_chunk *table = (struct wharf_chunk *)(own->client.arena + 4096);
    const struct wharf_submission s = {
        .opcode = WHARF_OP_BATCH,
        .user_data = user_data,
        .src_offset = 4096,
        .src_nbytes = N_LARGE * sizeof(*table),
    };

    for (uint32_t i = 0; i < N_LARGE && user_data == 0; i++)
        table[i] = (struct wharf_chunk){.src_nbytes = 16, .dst_nbytes = 16, .dst_region = 1};
    test_core_submit(&own->client, &s);
}

static uint64_t n_chunks_done(const struct gpu_client *own)
{
    const struct wharf_tenant *tenant = own->client.session->tenant;

    return TEST_CORE_LOCKED(tenant->stats.engines[WHARF_ENGINE_SIMT].n_chunks);
}

/* Chunks that a dead worker left wait one by one, while the next worker gets whole batches; when
 * that one ended too there was no room for the chunks of those. */
Test(wharfd_fault_memory, chunks_that_wait_leave_room_for_those_of_the_next_worker, .timeout = 600)
{
    struct gpu_client own;

    set_up();
    TEST_CORE_LOCKED(test_core.config.gpu_ahead_ns = NEVER_NS);
    gpu_client_init(&own, 1, "uid:1");
    pid_t worker = test_worker_pid(getpid());
    test_process_stop(worker);
    for (uint64_t i = 0; i < N_BATCHES; i++)
        submit_large_batch(&own, i);
    while (TEST_CORE_LOCKED(test_core.fleet.gpus[0].n_in_flight) < WHARF_GPU_N_ENTRIES)
        usleep(1000);
    for (unsigned i = 0; i < 3; i++) {
        /* Nothing is done meanwhile; and by the next one perhaps all, where this thread is late. */
        uint64_t n_done = n_chunks_done(&own) + 200;
        n_done = n_done < N_BATCHES * N_LARGE ? n_done : N_BATCHES * N_LARGE;
        kill(worker, SIGKILL);
        worker = test_worker_wait(getpid(), worker);
        test_core_wait_until_up();
        while (n_chunks_done(&own) < n_done)
            usleep(1000);
        test_process_stop(worker);
    }
    kill(worker, SIGKILL);
    gpu_client_deinit(&own);
    test_core_stop();
}

/* As if the worker were still at importing a client's GPU memory, and not the one that is about to
 * be gone; or takes it up again. */
static void hold_up(const struct gpu_client *own, bool is_held_up)
{
    struct wharf_gpu_memory *memory = own->client.session->regions[1].memory;
    const enum wharf_gpu_memory_state *state = &memory->on[0].state;
    bool is_done = false;

    while (!is_done) {
        wharf_core_enter(&test_core);
        is_done = is_held_up ? *state == WHARF_GPU_MEMORY_ABSENT ||
                                   (*state == WHARF_GPU_MEMORY_READY && test_core.fleet.gpus_up)
                             : *state == WHARF_GPU_MEMORY_ASKED;
        if (is_done)
            wharf_gpu_memory_set(&test_core, 0, memory,
                                 is_held_up ? WHARF_GPU_MEMORY_ASKED : WHARF_GPU_MEMORY_ABSENT);
        test_core.fleet.gpus_wanted |= 1;
        wharf_core_leave(&test_core);
        usleep(100);
    }
}

/* Of chunks that a worker left only the first few were looked at: if the next worker did not get
 * the memory of those, others waited too. */
Test(wharfd_fault_memory, chunks_whose_memory_is_not_there_keep_no_others_waiting, .timeout = 600)
{
    struct gpu_client first, second;

    set_up();
    TEST_CORE_LOCKED(test_core.config.gpu_ahead_ns = NEVER_NS);
    gpu_client_init(&first, 1, "uid:1");
    gpu_client_init(&second, 2, "uid:2");
    pid_t worker = test_worker_pid(getpid());
    test_process_stop(worker);
    submit_large_batch(&first, 0);
    while (TEST_CORE_LOCKED(test_core.fleet.gpus[0].n_in_flight) < N_LARGE)
        usleep(1000);
    submit(&second, 0);
    while (TEST_CORE_LOCKED(test_core.fleet.gpus[0].n_in_flight) < N_LARGE + 1)
        usleep(1000);
    kill(worker, SIGKILL);
    while (TEST_CORE_LOCKED(test_core.fleet.gpus[0].n_ended) == 0)
        usleep(100);
    hold_up(&first, true);
    reap(&second);
    hold_up(&first, false);
    cr_assert_eq(test_core_reap(&first.client).result, WHARF_OK);
    gpu_client_deinit(&first);
    gpu_client_deinit(&second);
    test_core_stop();
}
