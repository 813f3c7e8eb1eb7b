/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a worker's jobs between its end and when it is gone, and after that, where a
 * client's memory keeps waiting whoever touches it.
 *
 * The core's worker is a shell here that runs the real one and stays for as long as the test
 * wants when that one has ended: as a process does that is stuck in the driver.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/placement/gpu_memory.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_slow.h"
#include "tests/lib/test_small.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_worker.h"

#define MiB ((uint64_t)1 << 20)
enum { N_JOBS = 6 };

static char folder[] = "/tmp/wharf-rescue-XXXXXX";
static struct test_core_client slow, other;

/* ---- a worker that stays ------------------------------------------------------------------- */

static const char *path_of(const char *name)
{
    static char path[64];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

/* The shell closes the core's socket, so that this ends with the worker; it is the worker's parent
 * in the place of the core. */
static void write_script(const char *worker)
{
    FILE *file = fopen(path_of("worker"), "we");

    cr_assert_not_null(file);
    fprintf(file,
            "#!/bin/sh\n"
            "'%s' --worker $$ \"$3\" &\n"
            "echo $! > '%s/pid'\n"
            "exec 3>&- 4>&-\n"
            "wait\n"
            "while [ -e '%s/stay' ]; do sleep 0.01; done\n",
            worker, folder, folder);
    cr_assert_eq(fchmod(fileno(file), 0700), 0);
    cr_assert_eq(fclose(file), 0);
}

static void let_it_stay(void)
{
    fclose(fopen(path_of("stay"), "we"));
}

static void let_it_go(void)
{
    unlink(path_of("stay"));
}

static pid_t worker_pid(void)
{
    FILE *file = fopen(path_of("pid"), "re");
    int pid = 0;

    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%d", &pid), 1);
    fclose(file);
    return pid;
}

/* ---- a daemon ------------------------------------------------------------------------------ */

static void set_up(void)
{
    cr_assert_not_null(mkdtemp(folder));
    write_script(test_worker_program());
    test_core_config_simt();
    test_core_config.gpu_pin_after_ns = 0;
    test_core_config.gpu_longest_ns = 0;
    snprintf(test_core_config.gpu_worker, sizeof(test_core_config.gpu_worker), "%s",
             path_of("worker"));
    test_core_start(2);
    test_core_wait_until_up();
    test_core_client_init(&slow, 1, "uid:1", 16, MiB);
    test_core_client_init(&other, 2, "uid:2", 16, MiB);
    cr_assert_eq(test_small_run(&slow, 0).engine, WHARF_ENGINE_SIMT);
    cr_assert_eq(test_small_run(&other, 0).engine, WHARF_ENGINE_SIMT);
}

static void tear_down(void)
{
    test_core_client_deinit(&slow);
    test_core_client_deinit(&other);
    test_core_stop();
    unlink(path_of("worker"));
    unlink(path_of("pid"));
    rmdir(folder);
}

/* Jobs of both are with a worker that ends. */
static void lose_jobs(void)
{
    const pid_t worker = worker_pid();

    test_process_stop(worker);
    for (uint32_t i = 0; i < N_JOBS; i++)
        test_small_submit(&slow, i);
    for (uint32_t i = 0; i < N_JOBS; i++)
        test_small_submit(&other, i);
    while (TEST_CORE_LOCKED(test_core.fleet.gpus[0].n_in_flight) < 2 * N_JOBS)
        usleep(1000);
    test_slow_begin(&slow, 0, 4096);
    cr_assert_eq(kill(worker, SIGKILL), 0);
}

/* The thread of the GPU decoded what a worker left, until that was gone and some of it after that:
 * a client could keep it, and so everybody's GPU, for as long as its memory made it wait. */
Test(wharfd_recovery, memory_that_waits_does_not_keep_the_next_worker, .init = set_up,
     .fini = tear_down, .timeout = 600)
{
    unsigned n_again = 0;

    TEST_CORE_LOCKED(test_core.config.gpu_ahead_ns = 3600 * (uint64_t)WHARF_NS_PER_S);
    let_it_stay();
    lose_jobs();
    cr_assert(TEST_WAIT(TEST_CORE_LOCKED(test_core.fleet.gpus_up) == 0));
    /* Until it is gone nothing is published, nor anybody's memory touched. */
    usleep(100000);
    cr_assert_eq(TEST_CORE_LOCKED(test_core.fleet.gpus[0].n_ended), 0);
    cr_assert(!test_core_has_completion(&slow) && !test_core_has_completion(&other));
    cr_assert_eq(test_slow_n_reached(), 0);
    let_it_go();
    cr_assert(TEST_WAIT(test_slow_n_reached() > 0));
    test_core_wait_until_up();
    for (uint32_t i = 0; i < N_JOBS; i++)
        n_again += test_small_reap(&other).attempt > 0;
    cr_assert_eq(n_again, N_JOBS);
    cr_assert_eq(test_small_run(&other, 0).engine, WHARF_ENGINE_SIMT);
    cr_assert(!test_core_has_completion(&slow));
    /* Two were begun at most, before it was known that they wait: not one by each who stands in. */
    cr_assert_leq(test_slow_n_reached(), 2);
    test_slow_release();
    for (uint32_t i = 0; i < N_JOBS; i++)
        cr_assert_eq(test_small_reap(&slow).attempt, 1);
    cr_assert_eq(TEST_CORE_LOCKED(test_core.retries.n + test_core.retries.n_held), 0);
}
