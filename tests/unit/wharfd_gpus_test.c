/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon with several GPUs, each of which has a worker of its own; here the GPU's own code on the
 * CPU.  All of them work, what is one's goes to that one, and when one ends the others go on.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "daemon/base/clock.h"
#include "tests/lib/test_gpu_memory.h"
#include "tests/lib/test_rans.h"
#include "tests/lib/test_storm.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"

#define TWO_GPUS "device = 0,1\nspare = 0\n"

static struct test_wharfd wharfd;

static struct wharf *open_handle(uint32_t engine)
{
    return test_wharfd_open(&wharfd, engine, 0, 0);
}

static double metric(const char *name, const char *label)
{
    return test_wharfd_metric(&wharfd, name, label);
}

static void wait_for_metric(const char *name, const char *label, double value)
{
    cr_assert(TEST_WAIT(metric(name, label) == value), "%s is %g", name, metric(name, label));
}

static double chunks_of(const char *gpu)
{
    return metric("wharf_gpu_chunks_total", gpu);
}

static double ended_of(const char *gpu)
{
    return metric("wharf_gpu_workers_ended_total", gpu);
}

static void run(struct test_storm *storm)
{
    cr_assert_eq(test_storm_run(storm), 0, "%s", storm->error);
    cr_assert_eq(storm->n_done, storm->n_jobs);
}

/* ---- both ---------------------------------------------------------------------------------- */

/* Batches with a registered model, until each GPU has decoded some. */
static void flood_with_model(struct wharf *wharf)
{
    static const struct test_rans_plan plan = {11, 1, 1, 2000, 4, 250, 2};
    enum { N_CHUNKS = 16, N_BATCHES = 4 };
    struct test_rans rans = test_rans_new_registered(&plan);
    struct wharf_model model = WHARF_MODEL_INIT;
    struct wharf_batch batch = WHARF_BATCH_INIT;
    struct wharf_batch_chunk chunks[N_CHUNKS] = {0};
    struct wharf_completion completions[N_BATCHES];
    double before[2] = {chunks_of("0"), chunks_of("1")};
    void *in, *out;

    model.data = rans.model;
    model.nbytes = rans.model_nbytes;
    cr_assert_eq(wharf_register_model(wharf, &model, &batch.parameter), 0, "%s",
                 wharf_error_message());
    cr_assert_eq(wharf_alloc(wharf, rans.stream_nbytes, &in), 0);
    cr_assert_eq(wharf_alloc(wharf, N_CHUNKS * rans.plain_nbytes, &out), 0);
    memcpy(in, rans.stream, rans.stream_nbytes);
    for (unsigned i = 0; i < N_CHUNKS; i++) {
        chunks[i].in = in;
        chunks[i].in_nbytes = (uint32_t)rans.stream_nbytes;
        chunks[i].out = (char *)out + i * rans.plain_nbytes;
        chunks[i].out_avail = (uint32_t)rans.plain_nbytes;
    }
    batch.codec = WHARF_CODEC_RANS;
    batch.chunks = chunks;
    batch.n_chunks = N_CHUNKS;
    for (unsigned n = 0; n < 1000; n++) {
        if (chunks_of("0") > before[0] && chunks_of("1") > before[1])
            break;
        memset(out, 0, N_CHUNKS * rans.plain_nbytes);
        for (unsigned i = 0; i < N_BATCHES; i++)
            cr_assert_eq(wharf_submit_batch(wharf, &batch), 0, "%s", wharf_error_message());
        cr_assert_eq(wharf_wait(wharf, completions, N_BATCHES, N_BATCHES, -1), N_BATCHES);
        for (unsigned i = 0; i < N_BATCHES; i++)
            cr_assert_eq(completions[i].result, WHARF_OK, "%u", completions[i].result);
        for (unsigned i = 0; i < N_CHUNKS; i++)
            cr_assert(memcmp(chunks[i].out, rans.plain, rans.plain_nbytes) == 0);
    }
    cr_expect_gt(chunks_of("0"), before[0]);
    cr_expect_gt(chunks_of("1"), before[1]);
    cr_assert_eq(wharf_unregister_model(wharf, batch.parameter), 0, "%s", wharf_error_message());
    wharf_free(wharf, in);
    wharf_free(wharf, out);
    test_rans_free(&rans);
}

/* What a session leaves is given back by every worker that had it. */
static void expect_nothing_left(int n_fds)
{
    wait_for_metric("wharf_gpu_pinned_bytes", NULL, 0);
    wait_for_metric("wharf_gpu_memory_bytes", NULL, 0);
    cr_expect(TEST_WAIT(test_wharfd_n_fds(&wharfd) <= n_fds));
}

/* What each was given, and what chunks take there, is to be seen. */
static void expect_told_apart(const char *gpu)
{
    cr_expect_eq(metric("wharf_gpu_placements_total", gpu), chunks_of(gpu));
    cr_expect_gt(metric("wharf_gpu_busy_seconds_total", gpu), 0);
    cr_expect_gt(metric("wharf_gpu_away_seconds_total", gpu), 0);
}

/* Jobs and models go to both, and each job to one of them; then everything is given back. */
Test(wharfd_gpus, flood_is_done_by_both, .timeout = 600)
{
    struct test_chunks chunks;

    test_wharfd_start_gpu(&wharfd, "simt", TWO_GPUS);
    wharf_close(open_handle(WHARF_ENGINE_SIMT));
    wait_for_metric("wharf_gpu_pinned_bytes", NULL, 0);
    int n_fds = test_wharfd_n_fds(&wharfd);
    test_chunks_init(&chunks, 1, 60, 1000, 8);
    struct wharf *wharf = open_handle(WHARF_ENGINE_SIMT);
    double n[2] = {0, 0};
    /* One of the workers may be kept from the processor for all of a storm. */
    for (unsigned i = 0; i < 20 && !(n[0] > 50 && n[1] > 50); i++) {
        struct test_storm storm = {
            .wharf = wharf,
            .chunks = &chunks,
            .seed = 1 + i,
            .n_jobs = 1000,
            .n_in_flight = 64,
            .batch_one_in = 8,
            .limit_s = 600,
        };
        run(&storm);
        n[0] = chunks_of("0");
        n[1] = chunks_of("1");
    }
    cr_expect_gt(n[0], 50, "%g and %g", n[0], n[1]);
    cr_expect_gt(n[1], 50, "%g and %g", n[0], n[1]);
    cr_expect_eq(n[0] + n[1], metric("wharf_chunks_total", "simt"));
    cr_expect_eq(metric("wharf_chunks_total", "cpu"), -1);
    expect_told_apart("0");
    expect_told_apart("1");
    flood_with_model(wharf);
    wharf_close(wharf);
    expect_nothing_left(n_fds);
    test_chunks_deinit(&chunks);
    test_wharfd_finish(&wharfd);
}

enum { N_KILLS = 2 };

/* Kills workers of one GPU.  If none gets ready three times running, what can only be done there is
 * not waited for: that is for another test. */
static struct test_worker_killer killer_of(const char *gpu, uint64_t seed)
{
    return (struct test_worker_killer){
        .random = {seed},
        .wharfd = &wharfd,
        .gpu = gpu,
        .within_ns = 40 * WHARF_NS_PER_MS,
        .most_kills = N_KILLS,
    };
}

/* ---- one of them --------------------------------------------------------------------------- */

/* Jobs of the one that is killed come from the CPU, and all others from the other GPU, whose worker
 * stays. */
Test(wharfd_gpus, one_is_killed_and_the_other_goes_on, .timeout = 600)
{
    struct test_worker_killer killer = killer_of("1", 2);
    struct test_chunks chunks;

    test_wharfd_start_gpu(&wharfd, "simt", TWO_GPUS);
    test_chunks_init(&chunks, 2, 60, 1000, 8);
    struct wharf *wharf = open_handle(WHARF_ENGINE_SIMT);
    pid_t other = test_worker_of_gpu(wharfd.pid, "0");
    /* A thousand jobs and more; half of them on average, when the other one is soon there again. On
     * a fast machine many are over before a worker is ready to be killed. */
    for (unsigned n = 0;
         n < (killer.n_kills ? 20 : 2000) && (killer.n_kills < N_KILLS || chunks_of("0") <= 250);
         n++) {
        struct test_storm storm = {
            .wharf = wharf,
            .chunks = &chunks,
            .seed = n,
            .n_jobs = 1000,
            .n_in_flight = 48,
            .batch_one_in = 8,
            .cancel_one_in = 10,
            .limit_s = 600,
            .tick = test_worker_kill_ready,
            .tick_data = &killer,
        };
        run(&storm);
    }
    cr_expect_gt(killer.n_kills, 0);
    cr_expect_gt(chunks_of("0"), 250);
    cr_expect_eq(ended_of("0"), 0);
    cr_expect(TEST_WAIT(ended_of("1") > 0));
    cr_expect_eq(test_worker_of_gpu(wharfd.pid, "0"), other);
    wharf_close(wharf);
    test_chunks_deinit(&chunks);
    test_wharfd_finish(&wharfd);
}

/* ---- memory of one of them ----------------------------------------------------------------- */

/* Every second output goes to memory of GPU 1, while workers of `victim` are killed. */
static void storm_into(struct wharf *wharf, const struct test_gpu_memory *device,
                       const struct test_chunks *chunks, const char *victim)
{
    struct test_worker_killer killer = killer_of(victim, 3);

    for (unsigned n = 0; n < (killer.n_kills ? 20 : 2000) && killer.n_kills < N_KILLS; n++) {
        struct test_storm storm = {
            .wharf = wharf,
            .chunks = chunks,
            .seed = n,
            .n_jobs = 400,
            .n_in_flight = 32,
            .batch_one_in = 4,
            .cancel_one_in = 10,
            .limit_s = 600,
            .tick = test_worker_kill_ready,
            .tick_data = &killer,
            .out_memory = device->at,
        };
        storm.in_memory = device->at + test_storm_out_nbytes(&storm);
        cr_assert_leq(test_storm_out_nbytes(&storm) + test_storm_in_nbytes(&storm), device->nbytes);
        run(&storm);
    }
    cr_expect_gt(killer.n_kills, 0);
}

/* A job between the memory of both GPUs is nobody's, either way round. */
static void refuse_from_one_to_the_other(struct wharf *wharf,
                                         const struct test_gpu_memory devices[2])
{
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_completion completion;

    for (unsigned i = 0; i < 2; i++) {
        job.in = devices[i].at;
        job.out = devices[!i].at;
        job.in_nbytes = job.out_avail = 100;
        cr_assert_eq(wharf_submit(wharf, &job, 1), 1, "%s", wharf_error_message());
        cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1);
        cr_expect_eq(completion.result, WHARF_BAD_REQUEST, "%u", completion.result);
        cr_expect_eq(completion.reason, WHARF_REASON_REQUEST_REGION);
    }
}

/* A batch with outputs in memory of both GPUs is nobody's. */
static void refuse_outputs_on_both(struct wharf *wharf, const struct test_gpu_memory devices[2])
{
    struct wharf_batch batch = WHARF_BATCH_INIT;
    struct wharf_batch_chunk chunks[2] = {0};
    struct wharf_completion completion;
    void *in;

    cr_assert_eq(wharf_alloc(wharf, 100, &in), 0);
    for (unsigned i = 0; i < 2; i++) {
        chunks[i].in = in;
        chunks[i].in_nbytes = chunks[i].out_avail = 100;
        chunks[i].out = devices[i].at;
    }
    batch.codec = WHARF_CODEC_STORED;
    batch.chunks = chunks;
    batch.n_chunks = 2;
    cr_assert_eq(wharf_submit_batch(wharf, &batch), 0, "%s", wharf_error_message());
    cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1);
    cr_expect_eq(completion.result, WHARF_BAD_REQUEST, "%u", completion.result);
    cr_expect_eq(completion.reason, WHARF_REASON_REQUEST_REGION);
    cr_expect_eq(metric("wharf_placements_total", "several_gpus"), 2);
    wharf_free(wharf, in);
}

/* Nobody says whose it is: its worker takes it, and has all jobs for it, also after its end. */
Test(wharfd_gpus, outputs_go_to_the_gpu_that_has_the_memory, .timeout = 600)
{
    enum { N = 20 };
    struct test_chunks chunks;
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_completion completion;
    void *in;

    test_wharfd_start_gpu(&wharfd, "simt", TWO_GPUS);
    test_chunks_init(&chunks, 3, 60, 1000, 8);
    struct wharf *wharf = open_handle(WHARF_ENGINE_AUTO);
    struct test_gpu_memory devices[2] = {test_gpu_memory_new("gpu:0", 4096),
                                         test_gpu_memory_new("gpu:1", (size_t)1 << 20)};
    struct test_gpu_memory unknown = test_gpu_memory_new("gpu:7", 4096);
    for (unsigned i = 0; i < 2; i++)
        cr_assert_eq(test_gpu_memory_register(wharf, &devices[i]), 0, "%s", wharf_error_message());
    cr_expect_eq(test_gpu_memory_register(wharf, &unknown), -EINVAL, "%s", wharf_error_message());
    cr_assert_eq(wharf_alloc(wharf, 100, &in), 0);
    memset(in, 5, 100);
    job.codec = WHARF_CODEC_STORED;
    job.in = in;
    job.in_nbytes = job.out_avail = 100;
    for (unsigned i = 0; i < 2; i++) {
        double before[2] = {chunks_of("0"), chunks_of("1")};
        job.out = devices[i].at;
        for (unsigned n = 0; n < N; n++) {
            cr_assert_eq(wharf_submit(wharf, &job, 1), 1);
            cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1);
            cr_assert_eq(completion.result, WHARF_OK, "%u", completion.result);
        }
        cr_expect_arr_eq(devices[i].at, in, 100);
        cr_expect_eq(chunks_of("0"), before[0] + (i == 0 ? N : 0));
        cr_expect_eq(chunks_of("1"), before[1] + (i == 1 ? N : 0));
    }
    refuse_outputs_on_both(wharf, devices);
    refuse_from_one_to_the_other(wharf, devices);
    storm_into(wharf, &devices[1], &chunks, "0");
    storm_into(wharf, &devices[1], &chunks, "1");
    for (unsigned i = 0; i < 2; i++)
        cr_assert_eq(wharf_unregister(wharf, devices[i].at), 0);
    wait_for_metric("wharf_gpu_memory_bytes", NULL, 0);
    wharf_close(wharf);
    for (unsigned i = 0; i < 2; i++)
        test_gpu_memory_free(&devices[i]);
    test_gpu_memory_free(&unknown);
    test_chunks_deinit(&chunks);
    test_wharfd_finish(&wharfd);
}

/* ---- which there are ----------------------------------------------------------------------- */

static void wait_until_all_have_some(struct wharf *wharf, const struct test_chunks *chunks)
{
    for (unsigned n = 0; n < 100; n++) {
        if (chunks_of("0") > 0 && chunks_of("1") > 0 && chunks_of("2") > 0)
            return;
        struct test_storm storm = {
            .wharf = wharf,
            .chunks = chunks,
            .seed = n,
            .n_jobs = 200,
            .n_in_flight = 64,
            .limit_s = 600,
        };
        run(&storm);
    }
    cr_assert_fail("%g, %g and %g chunks", chunks_of("0"), chunks_of("1"), chunks_of("2"));
}

/* The first one's worker tells how many there are, and so does the next worker of it: but then they
 * are there.  Memory of sessions that were there before is the later ones' too. */
Test(wharfd_gpus, all_that_there_are_are_found, .timeout = 600)
{
    struct test_chunks chunks;

    setenv("WHARF_SIMT_DEVICES", "3", 1);
    test_wharfd_start_gpu(&wharfd, "simt", "device = all\n");
    test_chunks_init(&chunks, 4, 60, 1000, 8);
    struct wharf *wharf = open_handle(WHARF_ENGINE_SIMT);
    wait_until_all_have_some(wharf, &chunks);
    pid_t first = test_worker_of_gpu(wharfd.pid, "0");
    kill(first, SIGKILL);
    wait_for_metric("wharf_gpu_workers_ended_total", "0", 1);
    wait_for_metric("wharf_gpu_up", "0", 1);
    cr_expect_eq(metric("wharf_gpu_up", "1"), 1);
    cr_expect_eq(metric("wharf_gpu_up", "2"), 1);
    cr_expect_eq(metric("wharf_gpu_up", "3"), -1);
    cr_expect_neq(test_worker_of_gpu(wharfd.pid, "0"), first);
    wharf_close(wharf);
    test_chunks_deinit(&chunks);
    test_wharfd_finish(&wharfd);
}

/* Who names GPUs wants all of them: one that is not there is an error, and said so. */
Test(wharfd_gpus, daemon_does_not_start_without_one_that_is_named)
{
    test_wharfd_prepare(&wharfd, "[gpu]\nengine = simt\ndevice = 0, 16\n");
    test_wharfd_spawn(&wharfd);
    cr_expect_eq(test_wharfd_wait(&wharfd), 1);
    cr_expect(test_wharfd_says(&wharfd, "GPU 16: the worker has ended"));
    test_wharfd_remove(&wharfd);
}

/* It had two workers, and was taken for two GPUs. */
Test(wharfd_gpus, gpu_with_two_names_is_one)
{
    test_wharfd_prepare(&wharfd, "[gpu]\nengine = simt\ndevice = 0, 1, GPU-1\n");
    test_wharfd_spawn(&wharfd);
    cr_expect_eq(test_wharfd_wait(&wharfd), 1);
    cr_expect(test_wharfd_says(&wharfd, "by another name: take one of both out of device"));
    test_wharfd_remove(&wharfd);
}
