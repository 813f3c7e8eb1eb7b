/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon with a worker process, whose engine is the GPU's own code on the CPU: jobs run there
 * with the same results, and nothing is lost when it dies at any moment.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "daemon/base/clock.h"
#include "encoders/codec.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_storm.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"

static struct test_wharfd wharfd;

/* The longest that no job comes back when a worker dies: far from what it takes, which benchmarks
 * measure, and from when its jobs would count as hung. */
#define GAP_NS 20000000000u

static void start(const char *more)
{
    test_wharfd_start_gpu(&wharfd, "simt", more);
}

static void finish(void)
{
    test_wharfd_finish(&wharfd);
}

static struct wharf *open_handle(uint32_t engine, uint32_t max_jobs)
{
    return test_wharfd_open(&wharfd, engine, max_jobs, 0);
}

/* Chunks that an engine decoded; -1: none. */
static double chunks_of(const char *engine)
{
    return test_wharfd_metric(&wharfd, "wharf_chunks_total", engine);
}

static double metric(const char *name, const char *label)
{
    return test_wharfd_metric(&wharfd, name, label);
}

static void expect_storm(struct test_storm *storm)
{
    cr_assert_eq(test_storm_run(storm), 0, "%s", storm->error);
    cr_assert_eq(storm->n_done, storm->n_jobs);
}

/* Every codec, good and bad, chunks and batches, cancelled or not: the engine that was asked for
 * gives what the CPU gives. */
Test(wharfd_gpu, storm_through_the_worker)
{
    struct test_chunks chunks;

    start("");
    test_chunks_init(&chunks, 1, 60, 1000, 8);
    struct wharf *wharf = open_handle(WHARF_ENGINE_SIMT, 64);
    struct test_storm storm = {
        .wharf = wharf,
        .chunks = &chunks,
        .seed = 1,
        .n_jobs = 600,
        .n_in_flight = 32,
        .batch_one_in = 8,
        .cancel_one_in = 10,
        .limit_s = 600,
    };
    expect_storm(&storm);
    cr_expect_gt(storm.n_bad, 10);
    wharf_close(wharf);
    cr_expect_gt(chunks_of("simt"), 500);
    cr_expect_eq(chunks_of("cpu"), -1);
    test_chunks_deinit(&chunks);
    finish();
}

/* Once a storm: however fast the worker is, what it has then takes it longer than 2 ms. */
static void hold_worker_up(const struct test_storm *storm)
{
    bool *was_held_up = storm->tick_data;
    pid_t worker = test_worker_pid(wharfd.pid);

    if (*was_held_up || storm->n_done < storm->n_jobs / 2)
        return;
    test_process_stop(worker);
    usleep(20000);
    kill(worker, SIGCONT);
    *was_held_up = true;
}

/* What the worker has for too long is taken back, and for who wants the GPU alone it is decoded
 * there where nobody waits for it, never by the CPU: with the same results, and no chunk of a batch
 * done twice or not at all. */
Test(wharfd_gpu, what_takes_too_long_is_not_the_cpus_for_who_wants_the_gpu, .timeout = 600)
{
    struct test_chunks chunks;
    bool was_held_up;

    start("longest = 2us\n");
    test_chunks_init(&chunks, 1, 60, 1000, 8);
    struct wharf *wharf = open_handle(WHARF_ENGINE_SIMT, 64);
    /* The daemon may have been late, too. */
    for (unsigned n = 0; n < 100 && metric("wharf_gpu_large_chunks_total", NULL) <= 0; n++) {
        struct test_storm storm = {
            .wharf = wharf,
            .chunks = &chunks,
            .seed = 3 + n,
            .n_jobs = 300,
            .n_in_flight = 16,
            .batch_one_in = 8,
            .cancel_one_in = 10,
            .limit_s = 600,
            .tick = hold_worker_up,
            .tick_data = &was_held_up,
        };
        was_held_up = false;
        expect_storm(&storm);
    }
    cr_expect_gt(metric("wharf_gpu_large_chunks_total", NULL), 0);
    cr_expect_eq(metric("wharf_gpu_given_up_chunks_total", NULL), 0);
    cr_expect_eq(chunks_of("cpu"), -1);
    cr_expect_eq(metric("wharf_gpu_lost_chunks_total", NULL), 0);
    wharf_close(wharf);
    test_chunks_deinit(&chunks);
    finish();
}

/* A kernel that leaves whenever there is nothing to do, or after a moment in any case: the next job
 * is never overlooked. */
Test(wharfd_gpu, storm_through_a_kernel_that_keeps_leaving)
{
    struct test_chunks chunks;

    start("idle = 0\nstay = 20us\n");
    test_chunks_init(&chunks, 4, 60, 500, 8);
    struct wharf *wharf = open_handle(WHARF_ENGINE_SIMT, 64);
    /* A job that is overlooked waits for the worker's next look by itself, a second later.  A
     * machine that is busy can do that too, but not five times running. */
    enum { MOST_SLOW = 5 };
    unsigned n_slow = 0;
    for (unsigned n_in_flight = 1; n_in_flight <= 16 && n_slow < MOST_SLOW;) {
        struct test_storm storm = {
            .wharf = wharf,
            .chunks = &chunks,
            .way = n_in_flight % 3,
            .seed = n_in_flight,
            .n_jobs = 150,
            .n_in_flight = n_in_flight,
            .batch_one_in = 8,
            .cancel_one_in = 3,
            .limit_s = 600,
        };
        expect_storm(&storm);
        n_slow = storm.longest_gap_ns < 900000000u ? 0 : n_slow + 1;
        if (n_slow == 0)
            n_in_flight *= 4;
    }
    cr_expect_lt(n_slow, (unsigned)MOST_SLOW);
    wharf_close(wharf);
    test_chunks_deinit(&chunks);
    finish();
}

/* A kernel for what is there, and the next one for what came meanwhile: jobs, batches and cancels
 * come to the same, and nothing is overlooked between two of them. */
Test(wharfd_gpu, storm_through_a_kernel_for_each_batch)
{
    struct test_chunks chunks;

    start("kernel = batch\n");
    test_chunks_init(&chunks, 9, 60, 1000, 8);
    struct wharf *wharf = open_handle(WHARF_ENGINE_SIMT, 64);
    for (unsigned n_in_flight = 1; n_in_flight <= 32; n_in_flight *= 32) {
        struct test_storm storm = {
            .wharf = wharf,
            .chunks = &chunks,
            .way = n_in_flight % 3,
            .seed = n_in_flight,
            .n_jobs = 300,
            .n_in_flight = n_in_flight,
            .batch_one_in = 8,
            .cancel_one_in = 5,
            .limit_s = 600,
        };
        expect_storm(&storm);
    }
    wharf_close(wharf);
    cr_expect_gt(chunks_of("simt"), 400);
    cr_expect_eq(chunks_of("cpu"), -1);
    test_chunks_deinit(&chunks);
    finish();
}

static uint8_t result_of(struct wharf *wharf, const struct test_chunk *chunk)
{
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_outcome outcome;
    uint8_t out[500];

    job.codec = chunk->codec;
    job.in = chunk->packed;
    job.in_nbytes = chunk->packed_nbytes;
    job.out = out;
    job.out_avail = chunk->out_avail;
    cr_assert_eq(wharf_decompress(wharf, &job, &outcome), 0, "%s", wharf_error_message());
    return outcome.result;
}

/* Memory is pinned up to the budget.  Who can do without does; who cannot is told. */
Test(wharfd_gpu, pinned_memory_has_a_budget)
{
    struct test_chunks chunks;

    start("memory = 4M\n");
    test_chunks_init(&chunks, 5, 20, 500, 0);
    struct wharf *handles[2];
    for (unsigned i = 0; i < 2; i++)
        handles[i] = test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, 0, 3 << 20);
    for (unsigned i = 0; i < 2; i++) {
        struct test_storm storm = {
            .wharf = handles[i],
            .chunks = &chunks,
            .seed = i,
            .n_jobs = 100,
            .n_in_flight = 8,
            .limit_s = 600,
        };
        expect_storm(&storm);
    }
    struct wharf *large = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 8 << 20);
    cr_assert_eq(result_of(large, &chunks.chunks[0]), WHARF_NO_MEMORY);
    wharf_close(large);
    for (unsigned i = 0; i < 2; i++)
        wharf_close(handles[i]);
    test_chunks_deinit(&chunks);
    finish();
}

/* It stayed refused until the next worker, whatever others had given up. */
Test(wharfd_gpu, memory_that_found_no_room_is_pinned_when_there_is_some, .timeout = 600)
{
    struct test_chunks chunks;

    start("memory = 4M\nspare = 0\n");
    test_chunks_init(&chunks, 5, 1, 500, 0);
    struct wharf *first = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 3 << 20);
    cr_assert_eq(result_of(first, &chunks.chunks[0]), WHARF_OK);
    struct wharf *second = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 3 << 20);
    cr_assert_eq(result_of(second, &chunks.chunks[0]), WHARF_NO_MEMORY);
    wharf_close(first);
    cr_assert(TEST_WAIT(result_of(second, &chunks.chunks[0]) == WHARF_OK));
    wharf_close(second);
    test_chunks_deinit(&chunks);
    finish();
}

/* Chunks for which either engine would have done. */
static double n_placed_by_cost(void)
{
    static const char *const reasons[] = {"cpu_sooner", "gpu_sooner", "cpu_more", "gpu_more",
                                          "to_learn"};
    double n = 0;

    for (unsigned i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        double placed = metric("wharf_placements_total", reasons[i]);
        n += placed > 0 ? placed : 0;
    }
    return n;
}

/* A session of a size that was asked for before gets memory that is pinned already: as soon as
 * there is some, which nothing tells but that. */
Test(wharfd_gpu, arena_of_a_known_size_is_pinned_when_it_is_given)
{
    enum { N_JOBS = 50, MOST_SESSIONS = 10000 };
    struct test_chunks chunks;

    start("");
    test_wharfd_stop(&wharfd);
    FILE *config = fopen(wharfd.config, "ae");
    fputs("[gpu]\npin_after = 1min\n", config);
    fclose(config);
    test_wharfd_restart(&wharfd);
    test_chunks_init(&chunks, 6, 20, 500, 0);
    for (unsigned i = 0; i < MOST_SESSIONS && n_placed_by_cost() == 0; i++) {
        struct wharf *wharf = open_handle(WHARF_ENGINE_AUTO, 16);
        struct test_storm storm = {
            .wharf = wharf,
            .chunks = &chunks,
            .seed = i,
            .n_jobs = N_JOBS,
            .n_in_flight = 4,
            .limit_s = 600,
        };
        expect_storm(&storm);
        wharf_close(wharf);
        /* All of a session's jobs, or none. */
        double n_not_pinned = metric("wharf_placements_total", "not_pinned");
        cr_assert_eq(n_not_pinned + n_placed_by_cost(), (i + 1) * N_JOBS);
        cr_assert_eq(fmod(n_not_pinned, N_JOBS), 0);
        cr_assert(i > 0 || n_not_pinned == N_JOBS, "it was pinned without being known");
    }
    cr_assert_eq(n_placed_by_cost(), N_JOBS);
    test_chunks_deinit(&chunks);
    finish();
}

/* Sizes that somebody asked for once kept the place of those that are asked for now, for good. */
Test(wharfd_gpu, arenas_of_forgotten_sizes_make_room, .timeout = 600)
{
    double wanted = 0;

    start("spare = 8M\n");
    for (size_t i = 0; i < 12; i++) {
        /* Of the last four sizes there is room for two arenas each, and for nothing else. */
        size_t nbytes = (i < 8 ? (size_t)2 << 20 : ((size_t)1 << 20) - 65536) + i * 4096;
        test_client_free(test_client_start(wharfd.socket, 2, nbytes));
        wanted += i < 8 ? 0 : 2 * (double)nbytes;
        usleep(20000);
    }
    for (unsigned n = 0; n < 6000 && metric("wharf_gpu_pinned_bytes", NULL) != wanted; n++)
        usleep(10000);
    cr_assert_eq(metric("wharf_gpu_pinned_bytes", NULL), wanted);
    finish();
}

/* Whether the daemon's thread of the GPU is seen asleep at most of a hundred looks. */
static bool gpu_thread_sleeps(void)
{
    char command[256], state[8] = "";
    unsigned n = 0;

    snprintf(command, sizeof(command),
             "for t in /proc/%d/task/*; do grep -q wharf-gpu $t/comm && break; done; "
             "for i in $(seq 100); do awk '{print $3}' $t/stat; sleep 0.002; done",
             (int)wharfd.pid);
    FILE *looks = popen(command, "re");
    cr_assert_not_null(looks);
    while (fgets(state, sizeof(state), looks))
        n += state[0] == 'S';
    cr_assert_eq(pclose(looks), 0);
    return n > 50;
}

/* With more memory registered than it looks at in one go it never slept any more. */
Test(wharfd_gpu, thread_of_the_gpu_sleeps_whatever_is_registered, .timeout = 600)
{
    enum { N = 1100 };
    bool sleeps = false;

    start("[quota]\nmax_regions = 2000\n");
    struct test_client *client = test_client_start(wharfd.socket, 2, 4096);
    int fd = test_memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW);
    for (unsigned i = 0; i < N; i++)
        cr_assert_eq(test_client_register(client, i + 1, fd, 4096, false), 0, "%u: %s", i,
                     client->error);
    while (metric("wharf_gpu_pinned_bytes", NULL) < (N + 1) * 4096)
        usleep(10000);
    for (unsigned i = 0; i < 20 && !sleeps; i++)
        sleeps = gpu_thread_sleeps();
    cr_assert(sleeps);
    close(fd);
    test_client_free(client);
    finish();
}

/* With enough waiting for the CPU, even this GPU is the sooner one for some of it: both work, and
 * what comes back is right whoever did it. */
Test(wharfd_gpu, flood_is_done_by_both)
{
    struct test_chunks chunks;

    start("[cpu]\nworkers = 1\n");
    test_chunks_init(&chunks, 7, 60, 1000, 8);
    struct wharf *wharf = open_handle(WHARF_ENGINE_AUTO, 4000);
    for (unsigned n = 0; n < 10 && chunks_of("simt") <= 0; n++) {
        struct test_storm storm = {
            .wharf = wharf,
            .chunks = &chunks,
            .seed = n,
            .n_jobs = 6000,
            .n_in_flight = 2000,
            .batch_one_in = 8,
            .cancel_one_in = 100,
            .limit_s = 600,
        };
        expect_storm(&storm);
    }
    wharf_close(wharf);
    cr_expect_gt(chunks_of("simt"), 0);
    cr_expect_gt(chunks_of("cpu"), 0);
    /* By its time, or by all going there for a moment. */
    cr_expect(metric("wharf_placements_total", "gpu_sooner") > 0 ||
              metric("wharf_placements_total", "gpu_more") > 0);
    test_chunks_deinit(&chunks);
    finish();
}

/* ---- deaths -------------------------------------------------------------------------------- */

static void check_kills(uint32_t engine, uint64_t seed, const char *kernel)
{
    char more[100];

    struct test_worker_killer killer = {
        .random = {seed}, .wharfd = &wharfd, .within_ns = 80 * WHARF_NS_PER_MS};
    struct test_chunks chunks;

    snprintf(more, sizeof(more), "hang_timeout = 10min\nkernel = %s\n", kernel);
    start(more);
    test_chunks_init(&chunks, seed, 60, 1000, 8);
    struct wharf *wharf = open_handle(engine, 64);
    /* While a worker restarts, the CPU does much: a storm may see no worker at all. */
    for (unsigned n = 0; n < (killer.n_kills < 3 ? 2000 : 20) && killer.n_kills < 6; n++) {
        struct test_storm storm = {
            .wharf = wharf,
            .chunks = &chunks,
            .seed = seed + n,
            .n_jobs = 5000,
            .n_in_flight = 48,
            .batch_one_in = 8,
            .cancel_one_in = 10,
            .limit_s = 600,
            .tick = test_worker_kill,
            .tick_data = &killer,
        };
        expect_storm(&storm);
        cr_expect_lt(storm.longest_gap_ns, GAP_NS, "%" PRIu64 " ms without a completion",
                     storm.longest_gap_ns / 1000000);
    }
    cr_expect_gt(killer.n_kills, 2);
    cr_assert_neq(test_worker_wait(wharfd.pid, 0), 0);
    wharf_close(wharf);
    test_chunks_deinit(&chunks);
    finish();
}

Test(wharfd_gpu, no_job_is_lost_when_workers_are_killed)
{
    check_kills(WHARF_ENGINE_SIMT, 2, "epoch");
}

Test(wharfd_gpu, no_job_is_lost_when_workers_of_any_engine_are_killed)
{
    check_kills(WHARF_ENGINE_AUTO, 3, "epoch");
}

Test(wharfd_gpu, no_job_is_lost_when_workers_with_a_kernel_for_each_batch_are_killed)
{
    check_kills(WHARF_ENGINE_SIMT, 4, "batch");
}
