/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_daemon_gpus.c: two GPUs of one daemon, 0 and 1: both work, and one goes on when the other
 * one's worker is killed. */
#include <stdio.h>

#include "clientlib/wharf.h"
#include "daemon/base/clock.h"
#include "tests/gpu/gpu_daemon.h"
#include "tests/lib/test_storm.h"
#include "tests/lib/test_tap.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"

/* Of all chunks, what each GPU has at least: a tenth. */
#define LEAST_PART 10

static double chunks_of(const char *gpu)
{
    return test_wharfd_metric(gpu_daemon_wharfd(), "wharf_gpu_chunks_total", gpu);
}

static int run_storm(uint32_t wanted, const struct test_chunks *chunks, uint64_t seed,
                     uint64_t n_jobs, struct test_worker_killer *killer)
{
    int is_simt = wanted == WHARF_ENGINE_SIMT;
    struct test_storm storm = {
        .wharf = gpu_daemon_open(wanted, is_simt ? 64 : 2000, is_simt ? 0 : (size_t)1 << 30),
        .chunks = chunks,
        .seed = seed,
        .n_jobs = n_jobs,
        .n_in_flight = is_simt ? 48 : 1200,
        .batch_one_in = 8,
        .cancel_one_in = 10,
        .limit_s = 300,
        .tick = killer ? test_worker_kill : NULL,
        .tick_data = killer,
    };
    int r = test_storm_run(&storm);

    if (r < 0)
        printf("# %s\n", storm.error);
    wharf_close(storm.wharf);
    return r == 0 && storm.n_done == n_jobs;
}

static void check_both(uint32_t engine, const struct test_chunks *chunks, uint64_t n_jobs)
{
    int good = run_storm(engine, chunks, 1, n_jobs, NULL);
    double n[2] = {chunks_of("0"), chunks_of("1")};
    double least = (n[0] + n[1]) / LEAST_PART;

    test_tap_report(good && n[0] >= least && n[1] >= least,
                    "a storm on two GPUs: %g chunks by GPU 0, %g by GPU 1", n[0], n[1]);
}

static void check_deaths(uint32_t engine, const struct test_chunks *chunks, uint64_t n_jobs)
{
    struct test_worker_killer killer = {
        .random = {1},
        .wharfd = gpu_daemon_wharfd(),
        .gpu = "1",
        .within_ns = (engine == WHARF_ENGINE_SIMT ? 80 : 1500) * (uint64_t)WHARF_NS_PER_MS,
    };
    pid_t other = test_worker_of_gpu(gpu_daemon_pid(), "0");
    double before = chunks_of("0");
    int good = 1;

    for (unsigned i = 0; good && i < 40 && killer.n_kills < 4; i++)
        good = run_storm(engine, chunks, 10 + i, n_jobs, &killer);
    test_tap_report(good && killer.n_kills >= 3,
                    "no job is lost when the worker of GPU 1 is killed %u times", killer.n_kills);
    test_tap_report(other && test_worker_of_gpu(gpu_daemon_pid(), "0") == other &&
                        chunks_of("0") > before,
                    "GPU 0 goes on meanwhile: %g chunks", chunks_of("0") - before);
}

void gpu_daemon_check_gpus(uint32_t engine, const struct test_chunks *chunks, uint64_t n_jobs)
{
    check_both(engine, chunks, n_jobs);
    check_deaths(engine, chunks, n_jobs);
}
