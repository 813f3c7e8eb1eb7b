/* SPDX-License-Identifier: Apache-2.0 */
/* GPU memory of clients whose workers, sessions or jobs end: no job is lost, and all of the memory
 * is given back. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "daemon/base/clock.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_gpu_memory.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_storm.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"

static struct test_wharfd wharfd;

static void start(const char *more)
{
    test_wharfd_start_gpu(&wharfd, "simt", more);
}

static double metric(const char *name, const char *label)
{
    return test_wharfd_metric(&wharfd, name, label);
}

static void wait_for_metric(const char *name, double value)
{
    cr_assert(TEST_WAIT(metric(name, NULL) == value));
}

/* What is given back twice is less than nothing, once both are. */
static void expect_metric_to_stay(const char *name, double value)
{
    for (unsigned n = 0; n < 60; n++) {
        cr_assert_eq(metric(name, NULL), value);
        usleep(10000);
    }
}

/* Each new worker is started twice as long after the last one's end. */
#define MOST_KILLS 6

/* Without workers that get ready jobs end with DEVICE_FAULT, which is for another test. */
static struct test_worker_killer new_killer(uint64_t seed)
{
    return (struct test_worker_killer){
        .random = {seed},
        .wharfd = &wharfd,
        .within_ns = 40 * WHARF_NS_PER_MS,
        .most_kills = MOST_KILLS,
    };
}

static void check_kills(uint32_t engine, uint64_t seed, size_t max_nbytes, const char *more)
{
    struct test_worker_killer killer = new_killer(seed);
    struct test_chunks chunks;
    char config[128];

    snprintf(config, sizeof(config), "hang_timeout = 10min\n%s", more);
    start(config);
    test_chunks_init(&chunks, seed, 60, max_nbytes, 8);
    struct wharf *wharf = test_wharfd_open(&wharfd, engine, 0, 0);
    struct test_storm storm = {
        .wharf = wharf,
        .chunks = &chunks,
        .n_jobs = max_nbytes > 1000 ? 200 : 1000,
        .n_in_flight = 48,
        .batch_one_in = 4,
        .cancel_one_in = 10,
        .limit_s = 600,
        .tick = test_worker_kill_ready,
        .tick_data = &killer,
    };
    struct test_gpu_memory out = test_gpu_memory_new(NULL, test_storm_out_nbytes(&storm)),
                           in = test_gpu_memory_new(NULL, test_storm_in_nbytes(&storm));
    storm.out_memory = out.at;
    storm.in_memory = in.at;
    cr_assert_eq(test_gpu_memory_register(wharf, &out), 0, "%s", wharf_error_message());
    cr_assert_eq(test_gpu_memory_register(wharf, &in), 0, "%s", wharf_error_message());
    for (unsigned n = 0; n < (killer.n_kills < 3 ? 2000 : 20) && killer.n_kills < MOST_KILLS; n++) {
        storm.seed = seed + n;
        storm.n_done = storm.n_submitted = 0;
        cr_assert_eq(test_storm_run(&storm), 0, "%s", storm.error);
        cr_assert_eq(storm.n_done, storm.n_jobs);
    }
    cr_expect_gt(killer.n_kills, 2);
    cr_assert_neq(test_worker_wait(wharfd.pid, 0), 0);
    wharf_close(wharf);
    wait_for_metric("wharf_gpu_memory_bytes", 0);
    test_gpu_memory_free(&out);
    test_gpu_memory_free(&in);
    test_chunks_deinit(&chunks);
    test_wharfd_finish(&wharfd);
}

Test(wharfd_gpu_memory_death, no_job_is_lost_when_workers_are_killed, .timeout = 600)
{
    check_kills(WHARF_ENGINE_SIMT, 2, 1000, "");
}

Test(wharfd_gpu_memory_death, no_job_of_any_engine_is_lost_when_workers_are_killed, .timeout = 600)
{
    check_kills(WHARF_ENGINE_AUTO, 3, 1000, "");
}

/* Most chunks are too large for a warp, and so have places of their own or wait for one. */
Test(wharfd_gpu_memory_death, no_large_job_is_lost_when_workers_are_killed, .timeout = 600)
{
    check_kills(WHARF_ENGINE_AUTO, 4, 12000, "chunk = 4K\n");
}

/* The same, of which those of Deflate, zlib and gzip are streams for the whole GPU. */
Test(wharfd_gpu_memory_death, no_stream_is_lost_when_workers_are_killed, .timeout = 600)
{
    setenv("WHARF_SIMT_STREAMS", "512", 1);
    check_kills(WHARF_ENGINE_AUTO, 6, 12000, "chunk = 4K\n");
}

/* Jobs of a round: as many as a suspect has to run alone.  And jobs, one after the other, after
 * which all cancels are with the worker: before the daemon hands one over it looks at 1024 of its
 * 16384 pieces for cancelled ones. */
#define N_ROUND 8
#define N_LOOKS 20

static struct wharf_submission copy_of(uint64_t user_data)
{
    return (struct wharf_submission){
        .opcode = WHARF_OP_DECODE,
        .user_data = user_data,
        .src_nbytes = 100,
        .dst_nbytes = 100,
        .dst_region = 1,
    };
}

static void submit_copies(struct test_client *client, uint64_t user_data, unsigned n)
{
    double before = metric("wharf_placements_total", "gpu_memory");

    for (unsigned i = 0; i < n; i++) {
        struct wharf_submission s = copy_of(user_data + i);
        cr_assert_eq(test_client_submit(client, &s), 0);
    }
    /* Until the worker has them. */
    cr_assert(TEST_WAIT(metric("wharf_placements_total", "gpu_memory") == before + n),
              "the GPU does not get its jobs");
}

static void expect_all_good(struct test_client *client, unsigned n)
{
    struct wharf_completion completion;

    while (n-- > 0) {
        cr_assert_eq(test_client_reap(client, &completion), 0);
        cr_expect_eq(completion.result, WHARF_OK, "result %u", completion.result);
    }
}

static void run_good(struct test_client *client, const struct wharf_submission *s)
{
    cr_assert_eq(test_client_submit(client, s), 0);
    expect_all_good(client, 1);
}

static void cancel(struct test_client *client, uint64_t user_data)
{
    const struct wharf_submission s = {
        .opcode = WHARF_OP_CANCEL, .user_data = UINT64_MAX, .src_offset = user_data};

    run_good(client, &s);
}

/* A piece that was lost with a worker kept its places and its job, whoever had those by then: when
 * the job that came after it was cancelled, so was what came to the places. */
Test(wharfd_gpu_memory_death, cancel_after_a_death_is_not_another_jobs, .timeout = 600)
{
    const struct wharf_submission first = copy_of(0);
    struct wharf_completion completion;

    start("hang_timeout = 10min\nahead = 1s\n");
    struct test_client *client = test_gpu_memory_client(wharfd.socket, 4096);
    run_good(client, &first);
    /* Lost, and done by the next one, alone; then nobody is a suspect any more. */
    pid_t worker = test_worker_pid(wharfd.pid);
    test_process_stop(worker);
    submit_copies(client, 0, N_ROUND);
    kill(worker, SIGKILL);
    expect_all_good(client, N_ROUND);
    submit_copies(client, 0, N_ROUND);
    expect_all_good(client, N_ROUND);
    /* One that begins with the same places as the first, as soon as it has the memory. */
    worker = test_worker_pid(wharfd.pid);
    kill(worker, SIGKILL);
    worker = test_worker_wait(wharfd.pid, worker);
    run_good(client, &first);
    test_process_stop(worker);
    submit_copies(client, 0, N_ROUND);
    /* The client's places for jobs are given out again last first: those of the others. */
    for (unsigned i = 1; i < N_ROUND; i += 2)
        cancel(client, i);
    for (unsigned i = 0; i < N_LOOKS; i++)
        submit_copies(client, N_ROUND, 1);
    kill(worker, SIGCONT);
    for (unsigned i = 0; i < N_ROUND + N_LOOKS; i++) {
        cr_assert_eq(test_client_reap(client, &completion), 0);
        bool may_be_cancelled = completion.user_data < N_ROUND && completion.user_data % 2 == 1;
        cr_expect(completion.result == WHARF_OK ||
                      (may_be_cancelled && completion.result == WHARF_CANCELLED),
                  "job %" PRIu64 ": %u", completion.user_data, completion.result);
    }
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}

/* Sessions that come and go while workers die: what they registered is given back in every case. */
Test(wharfd_gpu_memory_death, memory_is_given_back_while_workers_die, .timeout = 600)
{
    struct test_worker_killer killer = new_killer(5);
    struct test_storm storm = {.tick_data = &killer};

    start("");
    struct test_gpu_memory device = test_gpu_memory_new(NULL, 65536);
    for (unsigned i = 0; i < (killer.n_kills ? 400 : 100000) && killer.n_kills < MOST_KILLS; i++) {
        struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, 0, 0);
        cr_assert_eq(test_gpu_memory_register(wharf, &device), 0, "%u: %s", i,
                     wharf_error_message());
        test_worker_kill_ready(&storm);
        wharf_close(wharf);
    }
    cr_expect_gt(killer.n_kills, 0);
    wait_for_metric("wharf_gpu_memory_bytes", 0);
    test_gpu_memory_free(&device);
    test_wharfd_finish(&wharfd);
}

/* Its kernel still has items that read and write it: the memory is the worker's until that has
 * left. */
Test(wharfd_gpu_memory_death, client_that_goes_with_jobs_under_way_harms_nobody, .timeout = 600)
{
    enum { N = 16, NBYTES = 20000 };

    start("");
    pid_t worker = test_worker_wait(wharfd.pid, 0);
    for (unsigned round = 0; round < 10; round++) {
        struct test_client *client = test_gpu_memory_client(wharfd.socket, N * 20480);
        for (unsigned i = 0; i < N; i++) {
            struct wharf_submission s = {
                .opcode = WHARF_OP_DECODE,
                .src_nbytes = NBYTES,
                .src_region = i % 2 ? 1 : 0,
                .src_offset = i % 2 ? (i - 1) * 20480 : 0,
                .dst_nbytes = NBYTES,
                .dst_region = 1,
                .dst_offset = i * 20480,
            };
            cr_assert_eq(test_client_submit(client, &s), 0);
        }
        usleep(round * 100);
        test_client_free(client);
    }
    wait_for_metric("wharf_gpu_memory_bytes", 0);
    expect_metric_to_stay("wharf_gpu_memory_bytes", 0);
    cr_expect_eq(test_worker_pid(wharfd.pid), worker);
    test_wharfd_finish(&wharfd);
}

/* Writes all over a source while it is decoded. */
struct rewriter {
    struct test_gpu_memory memory;
    struct test_random random;
    int is_over;
};

static void *rewrite(void *context)
{
    struct rewriter *rewriter = context;

    while (!__atomic_load_n(&rewriter->is_over, __ATOMIC_RELAXED)) {
        size_t at = test_random_below(&rewriter->random, rewriter->memory.nbytes);
        __atomic_store_n(&rewriter->memory.at[at], (uint8_t)test_random_next(&rewriter->random),
                         __ATOMIC_RELAXED);
    }
    return NULL;
}

/* Whatever is read, a job ends with some result, and nothing beyond its output is touched: not of
 * its own client's memory, nor of another one's, nor of the worker's. */
Test(wharfd_gpu_memory_death, source_that_changes_harms_its_owner_alone, .timeout = 600)
{
    enum { SOURCE = 4096, OUT = 8192, BEYOND = 64, N_JOBS = 40 };
    struct rewriter rewriter = {.memory = test_gpu_memory_new(NULL, SOURCE), .random = {7}};
    struct test_gpu_memory out = test_gpu_memory_new(NULL, OUT + BEYOND);
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_outcome outcome;
    struct test_chunks chunks;
    pthread_t thread;

    start("");
    pid_t worker = test_worker_wait(wharfd.pid, 0);
    test_chunks_init(&chunks, 11, 40, OUT, 0);
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, 0, 0);
    cr_assert_eq(test_gpu_memory_register(wharf, &rewriter.memory), 0);
    cr_assert_eq(test_gpu_memory_register(wharf, &out), 0);
    memset(out.at, 0xa5, out.nbytes);
    cr_assert_eq(pthread_create(&thread, NULL, rewrite, &rewriter), 0);
    for (unsigned i = 0; i < N_JOBS; i++) {
        const struct test_chunk *chunk = &chunks.chunks[i % chunks.n];
        size_t nbytes = chunk->packed_nbytes < SOURCE ? chunk->packed_nbytes : SOURCE;
        for (size_t k = 0; k < nbytes; k++)
            __atomic_store_n(&rewriter.memory.at[k], chunk->packed[k], __ATOMIC_RELAXED);
        job.codec = chunk->codec;
        job.in = rewriter.memory.at;
        job.in_nbytes = nbytes;
        job.out = out.at;
        job.out_avail = OUT;
        cr_assert_eq(wharf_decompress(wharf, &job, &outcome), 0, "%s", wharf_error_message());
        cr_assert_leq(outcome.result, WHARF_UNSUPPORTED, "%u: %u", i, outcome.result);
    }
    __atomic_store_n(&rewriter.is_over, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    for (size_t k = OUT; k < out.nbytes; k++)
        cr_assert_eq(out.at[k], 0xa5);
    cr_expect_eq(test_worker_pid(wharfd.pid), worker);
    wharf_close(wharf);
    test_chunks_deinit(&chunks);
    test_gpu_memory_free(&rewriter.memory);
    test_gpu_memory_free(&out);
    test_wharfd_finish(&wharfd);
}

/* No worker gets ready any more: who waits for one is told, and so is who comes. */
Test(wharfd_gpu_memory_death, jobs_end_when_there_are_no_workers_any_more, .timeout = 600)
{
    char link[128], config[256];
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_completion completion;
    void *in;

    snprintf(link, sizeof(link), "/tmp/wharf-gpu-memory-death-test.%d", (int)getpid());
    unlink(link);
    cr_assert_eq(symlink(test_worker_program(), link), 0);
    snprintf(config, sizeof(config), "worker = %s\n", link);
    start(config);
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, 0, 0);
    struct test_gpu_memory device = test_gpu_memory_new(NULL, 4096),
                           other = test_gpu_memory_new(NULL, 4096);
    cr_assert_eq(test_gpu_memory_register(wharf, &device), 0, "%s", wharf_error_message());
    cr_assert_eq(wharf_alloc(wharf, 100, &in), 0);
    job.in = in;
    job.in_nbytes = job.out_avail = 100;
    job.out = device.at;
    unlink(link);
    kill(test_worker_pid(wharfd.pid), SIGKILL);
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(wharf_submit(wharf, &job, 1), 1);
        cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1, "%s", wharf_error_message());
        cr_expect_eq(completion.result, WHARF_DEVICE_FAULT, "%u", completion.result);
        job.in = device.at;
        job.out = in;
    }
    job.in = in;
    cr_expect_eq(test_gpu_memory_register(wharf, &other), -ENODEV, "%s", wharf_error_message());
    /* Other jobs do not mind, and there may be one again. */
    job.out = (uint8_t *)in;
    job.in_nbytes = job.out_avail = 0;
    cr_assert_eq(wharf_submit(wharf, &job, 1), 1);
    cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1);
    cr_expect_eq(completion.result, WHARF_OK);
    cr_assert_eq(symlink(test_worker_program(), link), 0);
    cr_assert_neq(test_worker_wait(wharfd.pid, 0), 0);
    job.in_nbytes = job.out_avail = 100;
    job.out = device.at;
    do {
        usleep(10000);
        cr_assert_eq(wharf_submit(wharf, &job, 1), 1);
        cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1);
    } while (completion.result == WHARF_DEVICE_FAULT);
    cr_expect_eq(completion.result, WHARF_OK);
    unlink(link);
    wharf_close(wharf);
    test_gpu_memory_free(&device);
    test_gpu_memory_free(&other);
    test_wharfd_finish(&wharfd);
}
