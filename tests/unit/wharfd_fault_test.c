/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that do to the GPU's worker what must never happen: a fault of the device, a warp that does
 * not come back.  Nobody's job is lost, and who does it again and again does it to the CPU alone.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/core/residency.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/gpu/worker_link.h"
#include "daemon/gpu/worker_message.h"
#include "daemon/placement/gpu_memory.h"
#include "tests/lib/test_poison.h"
#include "tests/lib/test_small.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_worker.h"

#define MiB ((uint64_t)1 << 20)
/* For tests in which a worker hangs: others may be late by as much, and are not looked at then. And
 * longer than any test takes. */
#define HANG_NS (1 * (uint64_t)WHARF_NS_PER_S)
#define NEVER_NS (3600 * (uint64_t)WHARF_NS_PER_S)

TEST_POISON_TAKEN

static uint64_t kernel = WHARF_GPU_KERNEL_EPOCH;
static const char *devices = "0";

static void set_up_with(uint64_t hang_timeout_ns)
{
    test_core_config_simt();
    test_core_config.gpu_kernel = kernel;
    strcpy(test_core_config.gpu_device, devices);
    test_core_config.gpu_pin_after_ns = 0;
    test_core_config.gpu_hang_timeout_ns = hang_timeout_ns;
    test_core_start(1);
}

static void set_up(void)
{
    set_up_with(NEVER_NS);
}

/* From now on. */
static void set_hang_timeout(uint64_t hang_timeout_ns)
{
    TEST_CORE_LOCKED(test_core.config.gpu_hang_timeout_ns = hang_timeout_ns);
}

static uint32_t n_workers_ended(void)
{
    return TEST_CORE_LOCKED((uint32_t)test_core.fleet.gpus[0].n_ended);
}

/* ---- tests --------------------------------------------------------------------------------- */

/* All jobs that a worker has when a poisoned one ends it come back from the CPU; of a fault without
 * anybody waiting for the hang that it is not. */
static void check_poison(uint64_t poison, uint64_t hang_timeout_ns)
{
    enum { N = 40 };
    struct test_core_client client;
    unsigned n_again = 0;

    set_up();
    test_core_client_init(&client, 1, "uid:1", 64, MiB);
    test_core_wait_until_up();
    cr_assert_eq(test_small_run(&client, 1 << 16).engine, WHARF_ENGINE_SIMT);
    set_hang_timeout(hang_timeout_ns);
    for (uint32_t i = 0; i < N; i++)
        test_small_submit(&client, i == N / 2 ? poison | i : i);
    for (uint32_t i = 0; i < N; i++) {
        struct wharf_completion completion = test_small_reap(&client);
        if (completion.user_data >> 48)
            cr_assert_eq(completion.engine, WHARF_ENGINE_CPU);
        cr_assert_eq(completion.attempt > 0,
                     completion.engine == WHARF_ENGINE_CPU && completion.attempt == 1);
        n_again += completion.attempt;
    }
    cr_assert_geq(n_again, 1);
    cr_assert_geq(n_workers_ended(), 1);
    test_core_wait_until_up();
    test_core_client_deinit(&client);
    test_core_stop();
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
Test(wharfd_fault, faulting_job_is_found_and_others_keep_the_gpu, .timeout = 600)
{
    struct test_core_client faulting, innocent;

    set_up();
    test_core_client_init(&faulting, 1, "uid:1", 16, MiB);
    test_core_client_init(&innocent, 2, "uid:2", 16, MiB);
    for (unsigned round = 0; round < 30; round++) {
        if (TEST_CORE_LOCKED(faulting.session->tenant->gpu_trust.banned_until_ns) > 0)
            break;
        test_core_wait_until_up();
        for (uint32_t i = 0; i < 4; i++)
            test_small_submit(&innocent, i);
        test_small_submit(&faulting, TEST_POISON(WHARF_WORK_FAULT));
        for (uint32_t i = 0; i < 4; i++)
            test_small_reap(&innocent);
        test_small_reap(&faulting);
    }
    cr_assert_gt(TEST_CORE_LOCKED(faulting.session->tenant->gpu_trust.banned_until_ns), 0);
    cr_assert_eq(TEST_CORE_LOCKED(innocent.session->tenant->gpu_trust.banned_until_ns), 0);
    uint32_t n_ended = n_workers_ended();
    cr_assert_leq(n_ended, 8);
    test_core_wait_until_up();
    for (unsigned n = 0; n < 50; n++) {
        cr_assert_eq(test_small_run(&faulting, TEST_POISON(WHARF_WORK_FAULT)).engine,
                     WHARF_ENGINE_CPU);
        test_small_submit(&innocent, 0);
        test_small_reap(&innocent);
    }
    cr_assert_eq(n_workers_ended(), n_ended);
    cr_assert_eq(test_small_run(&innocent, 1 << 16).engine, WHARF_ENGINE_SIMT);
    test_core_client_deinit(&faulting);
    test_core_client_deinit(&innocent);
    test_core_stop();
}

/* Of two GPUs the one whose worker meets the fault loses that, and the other one goes on; its jobs
 * are done, and the faulting job's next ones run alone on whichever takes them. */
Test(wharfd_fault, fault_of_one_gpu_leaves_the_other_alone)
{
    enum { N = 40 };
    struct test_core_client client;

    devices = "0,1";
    set_up();
    test_core_client_init(&client, 1, "uid:1", 64, MiB);
    while (TEST_CORE_LOCKED(test_core.fleet.gpus_up) != 3)
        usleep(1000);
    const pid_t workers[2] = {test_worker_of_gpu(getpid(), "0"), test_worker_of_gpu(getpid(), "1")};
    cr_assert_eq(test_small_run(&client, 1 << 16).engine, WHARF_ENGINE_SIMT);
    for (uint32_t i = 0; i < N; i++)
        test_small_submit(&client, i == N / 2 ? TEST_POISON(WHARF_WORK_FAULT) | i : i);
    for (uint32_t i = 0; i < N; i++)
        test_small_reap(&client);
    cr_assert_eq(
        TEST_CORE_LOCKED(test_core.fleet.gpus[0].n_ended + test_core.fleet.gpus[1].n_ended), 1);
    unsigned other = TEST_CORE_LOCKED(test_core.fleet.gpus[0].n_ended) ? 1 : 0;
    cr_assert_eq(test_worker_of_gpu(getpid(), other ? "1" : "0"), workers[other]);
    for (uint32_t i = 0; i < N; i++)
        test_small_submit(&client, i);
    for (uint32_t i = 0; i < N; i++)
        test_small_reap(&client);
    cr_assert_eq(TEST_CORE_LOCKED(client.session->tenant->gpu_trust.n_alone), 0);
    cr_assert_eq(test_worker_of_gpu(getpid(), other ? "1" : "0"), workers[other]);
    test_core_client_deinit(&client);
    test_core_stop();
}

/* ---- memory that cannot be registered -------------------------------------------------------- */

/* The worker was at it for ever, and had no ears for anything else.  Two workers end for it; then
 * that tenant's jobs are the CPU's, and the others have the GPU again. */
Test(wharfd_fault, memory_that_keeps_the_worker_is_refused, .timeout = 600)
{
    struct test_core_client faulting, innocent;

    setenv("WHARF_SIMT_STALLS", "3145728", 1);
    set_up_with(2 * HANG_NS);
    test_core_wait_until_up();
    test_core_client_init(&faulting, 1, "uid:1", 16, 3 * MiB);
    /* Behind it: registered by the next worker, if not by this one. */
    test_core_client_init(&innocent, 2, "uid:2", 16, MiB);
    const struct wharf_gpu_memory *memory = faulting.session->regions[0].memory;
    const struct wharf_gpu_trust *trust = &faulting.session->tenant->gpu_trust;
    while (TEST_CORE_LOCKED(memory->on[0].state) != WHARF_GPU_MEMORY_REFUSED) {
        test_small_submit(&faulting, 0);
        cr_assert_eq(test_small_reap(&faulting).engine, WHARF_ENGINE_CPU);
        test_small_submit(&innocent, 0);
        test_small_reap(&innocent);
    }
    cr_assert_gt(TEST_CORE_LOCKED(trust->banned_until_ns), 0);
    cr_assert_eq(TEST_CORE_LOCKED(memory->n_stalls), WHARF_GPU_MOST_STALLS);
    cr_assert_eq(TEST_CORE_LOCKED(innocent.session->tenant->gpu_trust.banned_until_ns), 0);
    set_hang_timeout(NEVER_NS);
    cr_assert(TEST_WAIT(test_small_run(&innocent, 1 << 16).engine == WHARF_ENGINE_SIMT));
    test_small_submit(&faulting, 0);
    cr_assert_eq(test_small_reap(&faulting).engine, WHARF_ENGINE_CPU);
    test_core_client_deinit(&faulting);
    test_core_client_deinit(&innocent);
    test_core_stop();
}

/* ---- memory of the core's own --------------------------------------------------------------- */

static bool has_all_pages(const struct wharf_segment *segment)
{
    struct stat status;

    cr_assert_eq(fstat(segment->fd, &status), 0);
    return (uint64_t)status.st_blocks * 512 >= segment->nbytes;
}

/* A page that the system does not have when the core touches it would be the core's end. */
Test(wharfd_fault, memory_shared_with_the_worker_has_its_pages)
{
    set_up();
    test_core_wait_until_up();
    const struct wharf_gpu_backend *backend = TEST_CORE_LOCKED(test_core.fleet.gpus[0].backend);
    cr_assert(has_all_pages(&backend->queue));
    cr_assert(has_all_pages(&backend->proof.memory));
    test_core_stop();
}

/* What a worker says went wrong is never what a function of the core's own would return. */
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
    struct test_core_client client;

    set_up();
    test_core_client_init(&client, 1, "uid:1", 16, MiB);
    test_core_wait_until_up();
    for (uint32_t i = 0; i < 10; i++)
        test_small_submit(&client, i);
    kill(test_worker_pid(getpid()), SIGKILL);
    for (uint32_t i = 0; i < 10; i++)
        test_small_reap(&client);
    cr_assert(TEST_WAIT(n_workers_ended() > 0));
    cr_assert_eq(n_workers_ended(), 1);
    cr_assert_eq(TEST_CORE_LOCKED(client.session->tenant->gpu_trust.n_alone), 0);
    test_core_client_deinit(&client);
    test_core_stop();
}

/* Kills a worker that holds jobs, and the ones after it. */
static void kill_one_after_the_other(unsigned n_rounds)
{
    enum { N = 40 };
    struct test_core_client client;

    set_up();
    test_core_client_init(&client, 1, "uid:1", 64, MiB);
    for (uint32_t round = 0; round < n_rounds; round++) {
        unsigned n_again = 0;
        test_core_wait_until_up();
        /* It has the client's memory now. */
        cr_assert_eq(test_small_run(&client, 1 << 16).engine, WHARF_ENGINE_SIMT);
        pid_t worker = test_worker_pid(getpid());
        test_process_stop(worker);
        for (uint32_t i = 0; i < N; i++)
            test_small_submit(&client, i);
        /* Until the worker has some: then it is not the CPU's to begin with. */
        while (TEST_CORE_LOCKED(test_core.fleet.gpus[0].n_in_flight) == 0)
            usleep(100);
        kill(worker, SIGKILL);
        for (uint32_t i = 0; i < N; i++)
            n_again += test_small_reap(&client).attempt > 0;
        cr_assert_geq(n_again, 1);
    }
    cr_assert_eq(TEST_CORE_LOCKED(test_core.retries.n), 0);
    test_core_client_deinit(&client);
    test_core_stop();
}

/* What a stopped worker leaves goes to the CPU's threads; none of it is overlooked.  In several
 * fronts: each waits twice as long for every further worker. */
Test(wharfd_fault, workers_killed_one_after_the_other_leave_nothing_undone, .timeout = 600)
{
    for (unsigned i = 0; i < 3; i++)
        kill_one_after_the_other(4);
}
