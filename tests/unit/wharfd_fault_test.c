/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that do to the GPU's worker what must never happen: a fault of the device, a warp that does
 * not come back.  Nobody's job is lost, and who does it again and again does it to the CPU alone.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/gpu/gpu_memory.h"
#include "daemon/gpu/gpu_state.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_front.h"
#include "tests/lib/test_poison.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_worker.h"

#define MiB ((uint64_t)1 << 20)
#define SMALL 500
/* For tests in which a worker hangs: others may be late by as much, and are not looked at then. And
 * longer than any test takes. */
#define HANG_NS (1 * (uint64_t)WHARF_NS_PER_S)
#define NEVER_NS (3600 * (uint64_t)WHARF_NS_PER_S)

/* ---- faults -------------------------------------------------------------------------------- */

/* In place of daemon/gpu/gpu_faults.c. */
const bool wharf_gpu_has_faults = true;

uint32_t wharf_gpu_opcode(const struct wharf_submission *submission)
{
    return test_poison_opcode(submission);
}

/* ---- a daemon ------------------------------------------------------------------------------ */

static uint8_t *plain;
static uint64_t kernel = WHARF_GPU_KERNEL_EPOCH;
static const char *devices = "0";

static void set_up_with(uint64_t hang_timeout_ns)
{
    test_front_config_simt();
    test_front_config.gpu_kernel = kernel;
    strcpy(test_front_config.gpu_device, devices);
    test_front_config.gpu_pin_after_ns = 0;
    test_front_config.gpu_hang_timeout_ns = hang_timeout_ns;
    test_front_start(1);
    plain = test_data_new(test_data_find("text"), 1, SMALL);
}

static void set_up(void)
{
    set_up_with(NEVER_NS);
}

/* From now on. */
static void set_hang_timeout(uint64_t hang_timeout_ns)
{
    TEST_FRONT_LOCKED(test_front.config.gpu_hang_timeout_ns = hang_timeout_ns);
}

static void tear_down(void)
{
    test_front_stop();
    free(plain);
}

static void wait_until_up(void)
{
    cr_assert(TEST_WAIT(TEST_FRONT_LOCKED(test_front.gpus_up)), "the worker does not come back");
}

/* Every KiB of the arena from 4096 on is the output of another job.  The source of all of them is
 * written once: an encoder that wrote it again would disturb those that read it. */
static void submit(struct test_front_client *client, uint32_t i, uint64_t user_data)
{
    static size_t nbytes;

    if (client->arena[0] == 0)
        nbytes = test_front_put_chunk(client, 0, plain, SMALL);
    struct wharf_submission s = test_front_decode_of(user_data, 0, nbytes, 4096 + i * 1024, SMALL);

    memset(client->arena + 4096 + i * 1024, 0, SMALL);
    test_front_submit(client, &s);
}

static struct wharf_completion reap_good(struct test_front_client *client)
{
    struct wharf_completion completion = test_front_reap(client);
    uint32_t i = (uint32_t)(completion.user_data & 0xff);

    cr_assert_eq(completion.result, WHARF_OK, "job %llx: result %u",
                 (unsigned long long)completion.user_data, completion.result);
    cr_assert_arr_eq(client->arena + 4096 + i * 1024, plain, SMALL);
    return completion;
}

static struct wharf_completion run_one(struct test_front_client *client, uint64_t user_data)
{
    submit(client, 0, user_data);
    return reap_good(client);
}

static uint32_t n_workers_ended(void)
{
    return TEST_FRONT_LOCKED((uint32_t)test_front.gpus[0].n_ended);
}

/* ---- tests --------------------------------------------------------------------------------- */

/* All jobs that a worker has when a poisoned one ends it come back from the CPU; of a fault without
 * anybody waiting for the hang that it is not. */
static void check_poison(uint64_t poison, uint64_t hang_timeout_ns)
{
    enum { N = 40 };
    struct test_front_client client;
    unsigned n_again = 0;

    set_up();
    test_front_client_init(&client, 1, "uid:1", 64, MiB);
    wait_until_up();
    cr_assert_eq(run_one(&client, 1 << 16).engine, WHARF_ENGINE_SIMT);
    set_hang_timeout(hang_timeout_ns);
    for (uint32_t i = 0; i < N; i++)
        submit(&client, i, i == N / 2 ? poison | i : i);
    for (uint32_t i = 0; i < N; i++) {
        struct wharf_completion completion = reap_good(&client);
        if (completion.user_data >> 48)
            cr_assert_eq(completion.engine, WHARF_ENGINE_CPU);
        cr_assert_eq(completion.attempt > 0,
                     completion.engine == WHARF_ENGINE_CPU && completion.attempt == 1);
        n_again += completion.attempt;
    }
    cr_assert_geq(n_again, 1);
    cr_assert_geq(n_workers_ended(), 1);
    wait_until_up();
    test_front_client_deinit(&client);
    tear_down();
}

Test(wharfd_fault, fault_of_the_device_loses_no_job)
{
    check_poison(TEST_POISON(WHARF_WORK_FAULT), NEVER_NS);
}

Test(wharfd_fault, fault_in_a_kernel_for_a_batch_loses_no_job)
{
    kernel = WHARF_GPU_KERNEL_BATCH;
    check_poison(TEST_POISON(WHARF_WORK_FAULT), NEVER_NS);
}

Test(wharfd_fault, warp_that_hangs_loses_no_job)
{
    check_poison(TEST_POISON(WHARF_WORK_HANG), HANG_NS);
}

/* One tenant does it whenever it can.  It runs alone while it is a suspect, and is banned after
 * three more; the other one is not, and has the GPU again. */
Test(wharfd_fault, culprit_is_found_and_others_keep_the_gpu, .timeout = 300)
{
    struct test_front_client culprit, innocent;

    set_up();
    test_front_client_init(&culprit, 1, "uid:1", 16, MiB);
    test_front_client_init(&innocent, 2, "uid:2", 16, MiB);
    for (unsigned round = 0; round < 30; round++) {
        if (TEST_FRONT_LOCKED(culprit.session->tenant->gpu_trust.banned_until_ns) > 0)
            break;
        wait_until_up();
        for (uint32_t i = 0; i < 4; i++)
            submit(&innocent, i, i);
        submit(&culprit, 0, TEST_POISON(WHARF_WORK_FAULT));
        for (uint32_t i = 0; i < 4; i++)
            reap_good(&innocent);
        reap_good(&culprit);
    }
    cr_assert_gt(TEST_FRONT_LOCKED(culprit.session->tenant->gpu_trust.banned_until_ns), 0);
    cr_assert_eq(TEST_FRONT_LOCKED(innocent.session->tenant->gpu_trust.banned_until_ns), 0);
    uint32_t n_ended = n_workers_ended();
    cr_assert_leq(n_ended, 8);
    wait_until_up();
    for (unsigned n = 0; n < 50; n++) {
        cr_assert_eq(run_one(&culprit, TEST_POISON(WHARF_WORK_FAULT)).engine, WHARF_ENGINE_CPU);
        submit(&innocent, 0, 0);
        reap_good(&innocent);
    }
    cr_assert_eq(n_workers_ended(), n_ended);
    cr_assert_eq(run_one(&innocent, 1 << 16).engine, WHARF_ENGINE_SIMT);
    test_front_client_deinit(&culprit);
    test_front_client_deinit(&innocent);
    tear_down();
}

/* Of two GPUs the one whose worker meets the fault loses that, and the other one goes on; its jobs
 * are done, and the culprit's next ones run alone on whichever takes them. */
Test(wharfd_fault, fault_of_one_gpu_leaves_the_other_alone)
{
    enum { N = 40 };
    struct test_front_client client;

    devices = "0,1";
    set_up();
    test_front_client_init(&client, 1, "uid:1", 64, MiB);
    while (TEST_FRONT_LOCKED(test_front.gpus_up) != 3)
        usleep(1000);
    const pid_t workers[2] = {test_worker_of_gpu(getpid(), "0"), test_worker_of_gpu(getpid(), "1")};
    cr_assert_eq(run_one(&client, 1 << 16).engine, WHARF_ENGINE_SIMT);
    for (uint32_t i = 0; i < N; i++)
        submit(&client, i, i == N / 2 ? TEST_POISON(WHARF_WORK_FAULT) | i : i);
    for (uint32_t i = 0; i < N; i++)
        reap_good(&client);
    cr_assert_eq(TEST_FRONT_LOCKED(test_front.gpus[0].n_ended + test_front.gpus[1].n_ended), 1);
    unsigned other = TEST_FRONT_LOCKED(test_front.gpus[0].n_ended) ? 1 : 0;
    cr_assert_eq(test_worker_of_gpu(getpid(), other ? "1" : "0"), workers[other]);
    for (uint32_t i = 0; i < N; i++)
        submit(&client, i, i);
    for (uint32_t i = 0; i < N; i++)
        reap_good(&client);
    cr_assert_eq(TEST_FRONT_LOCKED(client.session->tenant->gpu_trust.n_alone), 0);
    cr_assert_eq(test_worker_of_gpu(getpid(), other ? "1" : "0"), workers[other]);
    test_front_client_deinit(&client);
    tear_down();
}

/* ---- GPU memory ---------------------------------------------------------------------------- */

struct gpu_client {
    struct test_front_client client;
    uint8_t *memory;
    int fd;
};

static void gpu_client_init(struct gpu_client *own, uint64_t id, const char *tenant_name)
{
    test_front_client_init(&own->client, id, tenant_name, 64, MiB);
    own->fd = test_memfd(65536, F_SEAL_SHRINK | F_SEAL_GROW);
    own->memory = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, own->fd, 0);
    cr_assert_neq(own->memory, MAP_FAILED);
    test_front_add_gpu_memory(&own->client, own->fd, 65536);
    /* The arena too: some stop the worker now. */
    const struct wharf_gpu_hold *hold = &own->client.session->regions[0].memory->on[0];
    while (TEST_FRONT_LOCKED(hold->state) != WHARF_GPU_MEMORY_READY)
        usleep(1000);
}

static void gpu_client_deinit(struct gpu_client *own)
{
    test_front_client_deinit(&own->client);
    munmap(own->memory, 65536);
    close(own->fd);
}

static void submit_to_gpu_memory(struct gpu_client *own, uint32_t i, uint64_t user_data)
{
    static size_t nbytes;

    if (own->client.arena[0] == 0)
        nbytes = test_front_put_chunk(&own->client, 0, plain, SMALL);
    struct wharf_submission s = test_front_decode_of(user_data | i, 0, nbytes, i * 1024, SMALL);

    s.dst_region = 1;
    memset(own->memory + i * 1024, 0, SMALL);
    test_front_submit(&own->client, &s);
}

static struct wharf_completion reap_from_gpu_memory(struct gpu_client *own)
{
    struct wharf_completion completion = test_front_reap(&own->client);

    cr_assert_eq(completion.result, WHARF_OK, "result %u", completion.result);
    cr_assert_eq(completion.engine, WHARF_ENGINE_SIMT);
    cr_assert_arr_eq(own->memory + (completion.user_data & 0xff) * 1024, plain, SMALL);
    return completion;
}

/* The CPU cannot take those over: they are tried again, alone, and only the one with which the
 * worker ended while it ran alone is given up. */
Test(wharfd_fault, job_for_gpu_memory_that_ends_the_worker_is_found, .timeout = 300)
{
    enum { N = 4 };
    struct gpu_client culprit, innocent;
    struct wharf_completion completion;
    unsigned n_again = 0;

    set_up();
    TEST_FRONT_LOCKED(test_front.config.gpu_ahead_ns = NEVER_NS);
    wait_until_up();
    gpu_client_init(&culprit, 1, "uid:1");
    gpu_client_init(&innocent, 2, "uid:2");
    for (unsigned round = 0; round < 3; round++) {
        pid_t worker = test_worker_pid(getpid());
        if (round == 0)
            test_process_stop(worker);
        for (uint32_t i = 0; i < N; i++)
            submit_to_gpu_memory(&innocent, i, 0);
        /* At first the worker has all of them when it ends, and both warps are kept busy by that:
         * it takes long where sanitizers have much to say. */
        uint32_t n_poisoned = round == 0 ? 2 : 1;
        for (uint32_t i = 0; i < n_poisoned; i++)
            submit_to_gpu_memory(&culprit, i, TEST_POISON(WHARF_WORK_FAULT));
        for (uint32_t i = N; i < 2 * N; i++)
            submit_to_gpu_memory(&innocent, i, 0);
        while (round == 0 && TEST_FRONT_LOCKED(test_front.gpus[0].n_in_flight) < 2 * N + 2)
            usleep(1000);
        if (round == 0)
            kill(worker, SIGCONT);
        for (uint32_t i = 0; i < 2 * N; i++)
            n_again += reap_from_gpu_memory(&innocent).attempt > 0;
        for (uint32_t i = 0; i < n_poisoned; i++) {
            completion = test_front_reap(&culprit.client);
            cr_assert_eq(completion.result, WHARF_DEVICE_FAULT, "result %u", completion.result);
        }
    }
    cr_assert_geq(n_again, 1);
    cr_assert_gt(TEST_FRONT_LOCKED(culprit.client.session->tenant->gpu_trust.banned_until_ns), 0);
    cr_assert_eq(TEST_FRONT_LOCKED(innocent.client.session->tenant->gpu_trust.banned_until_ns), 0);
    /* From now on it is told at once, whatever its job would do. */
    wait_until_up();
    uint32_t n_ended = n_workers_ended();
    submit_to_gpu_memory(&culprit, 0, 0);
    completion = test_front_reap(&culprit.client);
    cr_assert_eq(completion.result, WHARF_DEVICE_FAULT);
    cr_assert_eq(completion.engine, WHARF_ENGINE_AUTO);
    submit_to_gpu_memory(&innocent, 0, 0);
    reap_from_gpu_memory(&innocent);
    cr_assert_eq(n_workers_ended(), n_ended);
    gpu_client_deinit(&culprit);
    gpu_client_deinit(&innocent);
    tear_down();
}

/* A batch is cut into its chunks when its worker ends: each is tried again. */
Test(wharfd_fault, batch_for_gpu_memory_is_finished_by_the_next_worker, .timeout = 300)
{
    enum { N = 40 };
    struct gpu_client own;

    set_up();
    wait_until_up();
    gpu_client_init(&own, 1, "uid:1");
    size_t nbytes = test_front_put_chunk(&own.client, 0, plain, SMALL);
    struct wharf_chunk *table = (struct wharf_chunk *)(own.client.arena + 4096);
    struct wharf_chunk_result *results = (struct wharf_chunk_result *)(table + N);
    for (uint32_t i = 0; i < N; i++)
        table[i] = (struct wharf_chunk){
            .src_nbytes = (uint32_t)nbytes,
            .dst_offset = i % 2 ? i * 1024 : 65536 + i * 1024,
            .dst_nbytes = SMALL,
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
        wait_until_up();
        memset(own.memory, 0, 65536);
        memset(own.client.arena + 65536, 0, 65536);
        pid_t worker = test_worker_pid(getpid());
        test_process_stop(worker);
        test_front_submit(&own.client, &s);
        while (TEST_FRONT_LOCKED(test_front.gpus[0].n_in_flight) == 0)
            usleep(100);
        kill(worker, SIGKILL);
        struct wharf_completion completion = test_front_reap(&own.client);
        cr_assert_eq(completion.result, WHARF_OK, "result %u", completion.result);
        cr_assert_eq(completion.out_nbytes, N * SMALL);
        for (uint32_t i = 0; i < N; i++) {
            const uint8_t *out = i % 2 ? own.memory : own.client.arena + 65536;
            cr_assert_eq(results[i].result, WHARF_OK);
            cr_assert_arr_eq(out + i * 1024, plain, SMALL);
            n_again += results[i].attempt > 0;
            cr_assert(i % 2 == 0 || results[i].engine == WHARF_ENGINE_SIMT);
        }
    }
    cr_assert_geq(n_again, 5);
    gpu_client_deinit(&own);
    tear_down();
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
    test_front_submit(&own->client, &s);
}

static uint64_t n_chunks_done(const struct gpu_client *own)
{
    const struct wharf_tenant *tenant = own->client.session->tenant;

    return TEST_FRONT_LOCKED(tenant->stats.engines[WHARF_ENGINE_SIMT].n_chunks);
}

/* Chunks that a dead worker left wait one by one, while the next worker gets whole batches; when
 * that one ended too there was no room for the chunks of those. */
Test(wharfd_fault, chunks_that_wait_leave_room_for_those_of_the_next_worker, .timeout = 300)
{
    struct gpu_client own;

    set_up();
    TEST_FRONT_LOCKED(test_front.config.gpu_ahead_ns = NEVER_NS);
    wait_until_up();
    gpu_client_init(&own, 1, "uid:1");
    pid_t worker = test_worker_pid(getpid());
    test_process_stop(worker);
    for (uint64_t i = 0; i < N_BATCHES; i++)
        submit_large_batch(&own, i);
    while (TEST_FRONT_LOCKED(test_front.gpus[0].n_in_flight) < WHARF_GPU_N_ENTRIES)
        usleep(1000);
    for (unsigned i = 0; i < 3; i++) {
        /* Nothing is done meanwhile; and by the next one perhaps all, where this thread is late. */
        uint64_t n_done = n_chunks_done(&own) + 200;
        n_done = n_done < N_BATCHES * N_LARGE ? n_done : N_BATCHES * N_LARGE;
        kill(worker, SIGKILL);
        worker = test_worker_wait(getpid(), worker);
        wait_until_up();
        while (n_chunks_done(&own) < n_done)
            usleep(1000);
        test_process_stop(worker);
    }
    kill(worker, SIGKILL);
    gpu_client_deinit(&own);
    tear_down();
}

/* As if the worker were still at importing a client's GPU memory, and not the one that is about to
 * be gone; or takes it up again. */
static void hold_up(const struct gpu_client *own, bool is_held_up)
{
    struct wharf_gpu_memory *memory = own->client.session->regions[1].memory;
    const enum wharf_gpu_memory_state *state = &memory->on[0].state;
    bool is_done = false;

    while (!is_done) {
        wharf_front_enter(&test_front);
        is_done = is_held_up ? *state == WHARF_GPU_MEMORY_ABSENT ||
                                   (*state == WHARF_GPU_MEMORY_READY && test_front.gpus_up)
                             : *state == WHARF_GPU_MEMORY_ASKED;
        if (is_done)
            wharf_gpu_memory_set(&test_front, 0, memory,
                                 is_held_up ? WHARF_GPU_MEMORY_ASKED : WHARF_GPU_MEMORY_ABSENT);
        test_front.gpus_wanted |= 1;
        wharf_front_leave(&test_front);
        usleep(100);
    }
}

/* Of chunks that a worker left only the first few were looked at: if the next worker did not get
 * the memory of those, others waited too. */
Test(wharfd_fault, chunks_whose_memory_is_not_there_keep_no_others_waiting, .timeout = 120)
{
    struct gpu_client first, second;

    set_up();
    TEST_FRONT_LOCKED(test_front.config.gpu_ahead_ns = NEVER_NS);
    wait_until_up();
    gpu_client_init(&first, 1, "uid:1");
    gpu_client_init(&second, 2, "uid:2");
    pid_t worker = test_worker_pid(getpid());
    test_process_stop(worker);
    submit_large_batch(&first, 0);
    while (TEST_FRONT_LOCKED(test_front.gpus[0].n_in_flight) < N_LARGE)
        usleep(1000);
    submit_to_gpu_memory(&second, 0, 0);
    while (TEST_FRONT_LOCKED(test_front.gpus[0].n_in_flight) < N_LARGE + 1)
        usleep(1000);
    kill(worker, SIGKILL);
    while (n_workers_ended() == 0)
        usleep(100);
    hold_up(&first, true);
    reap_from_gpu_memory(&second);
    hold_up(&first, false);
    cr_assert_eq(test_front_reap(&first.client).result, WHARF_OK);
    gpu_client_deinit(&first);
    gpu_client_deinit(&second);
    tear_down();
}

/* ---- memory that keeps the daemon waiting --------------------------------------------------- */

static uint8_t *slow_page; /* of the daemon's own mapping of a client's arena */
static uint32_t is_reached, is_released;

/* Where the kernel would wait for a hole that the client punches, this waits for the test. */
static void on_fault(int number)
{
    (void)number;
    __atomic_store_n(&is_reached, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&is_released, __ATOMIC_SEQ_CST))
        usleep(1000);
    if (mprotect(slow_page, 4096, PROT_READ | PROT_WRITE) < 0)
        abort();
}

static void wait_until_reached(void)
{
    while (!__atomic_load_n(&is_reached, __ATOMIC_SEQ_CST))
        usleep(1000);
}

/* A batch whose results are to be on the slow page. */
static struct wharf_submission put_small_batch(const struct test_front_client *client)
{
    struct wharf_chunk *table = (struct wharf_chunk *)(client->arena + 4096);

    for (uint32_t i = 0; i < 4; i++)
        table[i] = (struct wharf_chunk){.src_nbytes = 16, .dst_offset = 8192, .dst_nbytes = 16};
    slow_page = (uint8_t *)client->session->regions[0].segment.address + 12288;
    return (struct wharf_submission){
        .opcode = WHARF_OP_BATCH,
        .src_offset = 4096,
        .src_nbytes = 4 * sizeof(*table),
        .dst_offset = 12288,
        .dst_nbytes = 4 * sizeof(struct wharf_chunk_result),
    };
}

/* The thread of the GPU wrote the results of batches with the front lock held: whoever can make a
 * store to its arena wait kept everybody waiting. */
static void check_slow_results(uint64_t gpu_memory_nbytes, uint32_t result)
{
    struct sigaction action = {.sa_handler = on_fault};
    struct test_front_client slow, other;

    sigaction(SIGSEGV, &action, NULL);
    set_up();
    TEST_FRONT_LOCKED(test_front.config.gpu_memory_nbytes = gpu_memory_nbytes);
    wait_until_up();
    test_front_client_init(&slow, 1, "uid:1", 16, MiB);
    test_front_engine = WHARF_ENGINE_CPU;
    test_front_client_init(&other, 2, "uid:2", 16, MiB);
    const struct wharf_submission s = put_small_batch(&slow);
    cr_assert_eq(mprotect(slow_page, 4096, PROT_NONE), 0);
    test_front_submit(&slow, &s);
    wait_until_reached();
    for (uint32_t i = 0; i < 20; i++)
        cr_assert_eq(run_one(&other, 0).engine, WHARF_ENGINE_CPU);
    __atomic_store_n(&is_released, 1, __ATOMIC_SEQ_CST);
    cr_assert_eq(test_front_reap(&slow).result, result);
    const struct wharf_chunk_result *results = (struct wharf_chunk_result *)(slow.arena + 12288);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_eq(results[i].result, result);
    test_front_client_deinit(&slow);
    test_front_client_deinit(&other);
    tear_down();
}

Test(wharfd_fault, results_that_cannot_be_written_now_keep_nobody_else_waiting, .timeout = 60)
{
    check_slow_results(64 * MiB, WHARF_OK);
}

/* The same for jobs whose memory the worker does not get. */
Test(wharfd_fault, refusals_that_cannot_be_written_now_keep_nobody_else_waiting, .timeout = 60)
{
    check_slow_results(0, WHARF_NO_MEMORY);
}

/* Whose results can often not be written keeps the thread of the GPU from others' jobs: threads of
 * the CPU, of which there are more, have its jobs for a while. */
Test(wharfd_fault, who_keeps_the_thread_of_the_gpu_waiting_has_the_cpu, .timeout = 60)
{
    struct sigaction action = {.sa_handler = on_fault};
    struct test_front_client slow;

    sigaction(SIGSEGV, &action, NULL);
    set_up();
    wait_until_up();
    test_front_client_init(&slow, 1, "uid:1", 16, MiB);
    const struct wharf_submission s = put_small_batch(&slow);
    const struct wharf_chunk_result *results = (struct wharf_chunk_result *)(slow.arena + 12288);
    for (unsigned i = 0; i < 3; i++) {
        cr_assert_eq(TEST_FRONT_LOCKED(slow.session->tenant->gpu_trust.banned_until_ns), 0);
        is_reached = is_released = 0;
        cr_assert_eq(mprotect(slow_page, 4096, PROT_NONE), 0);
        test_front_submit(&slow, &s);
        wait_until_reached();
        usleep(100000);
        __atomic_store_n(&is_released, 1, __ATOMIC_SEQ_CST);
        cr_assert_eq(test_front_reap(&slow).result, WHARF_OK);
        cr_assert_eq(results[3].engine, WHARF_ENGINE_SIMT);
    }
    cr_assert_gt(TEST_FRONT_LOCKED(slow.session->tenant->gpu_trust.banned_until_ns), 0);
    test_front_submit(&slow, &s);
    cr_assert_eq(test_front_reap(&slow).result, WHARF_OK);
    cr_assert_eq(results[3].engine, WHARF_ENGINE_CPU);
    test_front_client_deinit(&slow);
    tear_down();
}

/* ---- memory that cannot be registered -------------------------------------------------------- */

/* The worker was at it for ever, and had no ears for anything else.  Two workers end for it; then
 * that tenant's jobs are the CPU's, and the others have the GPU again. */
Test(wharfd_fault, memory_that_keeps_the_worker_is_refused, .timeout = 120)
{
    struct test_front_client culprit, innocent;

    setenv("WHARF_SIMT_STALLS", "3145728", 1);
    set_up_with(2 * HANG_NS);
    wait_until_up();
    test_front_client_init(&culprit, 1, "uid:1", 16, 3 * MiB);
    /* Behind it: registered by the next worker, if not by this one. */
    test_front_client_init(&innocent, 2, "uid:2", 16, MiB);
    const struct wharf_gpu_memory *memory = culprit.session->regions[0].memory;
    const struct wharf_gpu_trust *trust = &culprit.session->tenant->gpu_trust;
    while (TEST_FRONT_LOCKED(memory->on[0].state) != WHARF_GPU_MEMORY_REFUSED) {
        submit(&culprit, 0, 0);
        cr_assert_eq(reap_good(&culprit).engine, WHARF_ENGINE_CPU);
        submit(&innocent, 0, 0);
        reap_good(&innocent);
    }
    cr_assert_gt(TEST_FRONT_LOCKED(trust->banned_until_ns), 0);
    cr_assert_eq(TEST_FRONT_LOCKED(memory->n_stalls), WHARF_GPU_MOST_STALLS);
    cr_assert_eq(TEST_FRONT_LOCKED(innocent.session->tenant->gpu_trust.banned_until_ns), 0);
    set_hang_timeout(NEVER_NS);
    cr_assert(TEST_WAIT(run_one(&innocent, 1 << 16).engine == WHARF_ENGINE_SIMT));
    submit(&culprit, 0, 0);
    cr_assert_eq(reap_good(&culprit).engine, WHARF_ENGINE_CPU);
    test_front_client_deinit(&culprit);
    test_front_client_deinit(&innocent);
    tear_down();
}

/* ---- memory of the front's own --------------------------------------------------------------- */

static bool has_all_pages(const struct wharf_segment *segment)
{
    struct stat status;

    cr_assert_eq(fstat(segment->fd, &status), 0);
    return (uint64_t)status.st_blocks * 512 >= segment->nbytes;
}

/* A page that the system does not have when the front touches it would be the front's end. */
Test(wharfd_fault, memory_shared_with_the_worker_has_its_pages)
{
    set_up();
    wait_until_up();
    const struct wharf_gpu_backend *backend = TEST_FRONT_LOCKED(test_front.gpus[0].backend);
    cr_assert(has_all_pages(&backend->queue));
    cr_assert(has_all_pages(&backend->proof.memory));
    tear_down();
}

/* What a worker says went wrong is never what a function of the front's own would return. */
Test(wharfd_fault, errors_of_a_worker_are_positive)
{
    struct wharf_worker_message message = {.kind = WHARF_WORKER_REGISTERED, .error = -EAGAIN};
    struct wharf_worker_link link = WHARF_WORKER_LINK_NONE;
    int pair[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    link.socket = pair[0];
    for (int error = -EAGAIN; error <= EAGAIN; error += EAGAIN) {
        message.error = error;
        cr_assert_eq(send(pair[1], &message, sizeof(message), 0), sizeof(message));
        cr_assert_eq(wharf_worker_link_receive(&link, &message), 1);
        cr_assert_eq(message.error, error < 0 ? EPROTO : error);
    }
    close(pair[0]);
    close(pair[1]);
}

/* ---- killed from outside -------------------------------------------------------------------- */

/* Who kills the worker from outside makes nobody a suspect. */
Test(wharfd_fault, sigkill_from_outside_makes_no_suspects)
{
    struct test_front_client client;

    set_up();
    test_front_client_init(&client, 1, "uid:1", 16, MiB);
    wait_until_up();
    for (uint32_t i = 0; i < 10; i++)
        submit(&client, i, i);
    kill(test_worker_pid(getpid()), SIGKILL);
    for (uint32_t i = 0; i < 10; i++)
        reap_good(&client);
    cr_assert(TEST_WAIT(n_workers_ended() > 0));
    cr_assert_eq(n_workers_ended(), 1);
    cr_assert_eq(TEST_FRONT_LOCKED(client.session->tenant->gpu_trust.n_alone), 0);
    test_front_client_deinit(&client);
    tear_down();
}

/* Kills a worker that holds jobs, and the ones after it. */
static void kill_one_after_the_other(unsigned n_rounds)
{
    enum { N = 40 };
    struct test_front_client client;

    set_up();
    test_front_client_init(&client, 1, "uid:1", 64, MiB);
    for (uint32_t round = 0; round < n_rounds; round++) {
        unsigned n_again = 0;
        wait_until_up();
        /* It has the client's memory now. */
        cr_assert_eq(run_one(&client, 1 << 16).engine, WHARF_ENGINE_SIMT);
        pid_t worker = test_worker_pid(getpid());
        test_process_stop(worker);
        for (uint32_t i = 0; i < N; i++)
            submit(&client, i, i);
        /* Until the worker has some: then it is not the CPU's to begin with. */
        while (TEST_FRONT_LOCKED(test_front.gpus[0].n_in_flight) == 0)
            usleep(100);
        kill(worker, SIGKILL);
        for (uint32_t i = 0; i < N; i++)
            n_again += reap_good(&client).attempt > 0;
        cr_assert_geq(n_again, 1);
    }
    cr_assert_eq(TEST_FRONT_LOCKED(test_front.n_orphans), 0);
    test_front_client_deinit(&client);
    tear_down();
}

/* What a stopped worker leaves goes to the CPU's threads; none of it is overlooked.  In several
 * fronts: each waits twice as long for every further worker. */
Test(wharfd_fault, workers_killed_one_after_the_other_leave_nothing_undone, .timeout = 300)
{
    for (unsigned i = 0; i < 3; i++)
        kill_one_after_the_other(4);
}
