/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams with splits in a daemon: decoded by as many workers as are idle, and by one alone where
 * none is; counted, not timed.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "daemon/base/clock.h"
#include "encoders/rans/rans.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_rans.h"
#include "tests/lib/test_wharfd.h"

#define MiB ((size_t)1 << 20)

/* How long workers have to take part in something, on a machine that does much else. */
#define LIMIT_NS (60 * (uint64_t)WHARF_NS_PER_S)

static struct test_wharfd wharfd;

struct counts {
    double chunks, ranges, helped;
};

static struct counts counts_now(void)
{
    struct test_client *client = test_client_start(wharfd.socket, 2, 0);
    struct counts counts = {
        .chunks = test_client_metric(client, "wharf_shared_chunks_total", "", NULL),
        .ranges = test_client_metric(client, "wharf_shared_ranges_total", "", NULL),
        .helped = test_client_metric(client, "wharf_helped_ranges_total", "", NULL),
    };

    test_client_free(client);
    return counts;
}

static struct wharf *open_handle(unsigned max_jobs)
{
    return test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, max_jobs, 64 * MiB);
}

/* A stream of 2 MiB with 64 splits. */
static struct test_rans large_stream(uint64_t seed)
{
    return test_rans_new(&(struct test_rans_plan){11, 1, 1, 2 << 20, 64, 200, seed});
}

/* The stream and room for its output, in the arena. */
static struct wharf_job job_of(struct wharf *wharf, const struct test_rans *rans)
{
    struct wharf_job job = WHARF_JOB_INIT;
    void *in, *out;

    cr_assert_eq(wharf_alloc(wharf, rans->stream_nbytes, &in), 0);
    cr_assert_eq(wharf_alloc(wharf, rans->plain_nbytes, &out), 0);
    memcpy(in, rans->stream, rans->stream_nbytes);
    memset(out, 0, rans->plain_nbytes);
    job.codec = WHARF_CODEC_RANS;
    job.in = in;
    job.in_nbytes = rans->stream_nbytes;
    job.out = out;
    job.out_avail = rans->plain_nbytes;
    return job;
}

static void *new_output(struct wharf *wharf, const struct test_rans *rans)
{
    void *out;

    cr_assert_eq(wharf_alloc(wharf, rans->plain_nbytes, &out), 0);
    return out;
}

static struct wharf_completion run(struct wharf *wharf, const struct wharf_job *job)
{
    struct wharf_completion completion;

    cr_assert_eq(wharf_submit(wharf, job, 1), 1, "%s", wharf_error_message());
    cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1, "%s", wharf_error_message());
    return completion;
}

/* More parts than workers, and idle ones come to help. */
Test(wharfd_split_decode, idle_workers_help, .timeout = 600)
{
    test_wharfd_start(&wharfd, "[cpu]\nworkers = 4\n");
    struct wharf *wharf = open_handle(4);
    struct test_rans rans = large_stream(1);
    struct wharf_job job = job_of(wharf, &rans);
    uint64_t end_ns = wharf_now_ns() + LIMIT_NS;
    unsigned n = 0;

    do {
        memset(job.out, 0, job.out_avail);
        cr_assert_eq(run(wharf, &job).result, WHARF_OK);
        cr_assert(memcmp(job.out, rans.plain, rans.plain_nbytes) == 0);
        n++;
    } while (counts_now().helped < 3 && wharf_now_ns() < end_ns);
    struct counts counts = counts_now();
    cr_assert_geq(counts.helped, 3);
    cr_assert_eq(counts.chunks, n);
    cr_assert_gt(counts.ranges, counts.chunks);
    wharf_close(wharf);
    test_wharfd_finish(&wharfd);
    test_rans_free(&rans);
}

/* One worker alone goes through in one go, with no split used but by its own decoders. */
Test(wharfd_split_decode, one_worker_takes_all_parts_at_once)
{
    test_wharfd_start(&wharfd, "[cpu]\nworkers = 1\n");
    struct wharf *wharf = open_handle(4);
    struct test_rans rans = large_stream(2);
    struct wharf_job job = job_of(wharf, &rans);

    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(run(wharf, &job).result, WHARF_OK);
    struct counts counts = counts_now();
    cr_assert_eq(counts.chunks, 3);
    cr_assert_eq(counts.ranges, 3);
    cr_assert_eq(counts.helped, 0);
    wharf_close(wharf);
    test_wharfd_finish(&wharfd);
    test_rans_free(&rans);
}

/* A part of a stream with two splits is half of it: with the other worker at it, which nobody can
 * interrupt, short jobs of others waited for both. */
Test(wharfd_split_decode, one_worker_stays_free_of_long_parts, .timeout = 600)
{
    struct test_rans rans = test_rans_new(&(struct test_rans_plan){11, 1, 1, 8 << 20, 2, 200, 7});

    /* No processor decodes 4 MiB in that. */
    test_wharfd_start(&wharfd, "[cpu]\nworkers = 2\n[schedule]\nlong = 20us\n");
    struct wharf *wharf = open_handle(4);
    struct wharf_job job = job_of(wharf, &rans);

    for (unsigned i = 0; i < 5; i++)
        cr_assert_eq(run(wharf, &job).result, WHARF_OK);
    struct counts counts = counts_now();
    cr_assert_eq(counts.chunks, 5);
    cr_assert_eq(counts.helped, 0);
    wharf_close(wharf);
    test_wharfd_finish(&wharfd);
    test_rans_free(&rans);
}

/* Where there is other work for all workers parts are merged, and nobody leaves it to help. */
Test(wharfd_split_decode, busy_workers_merge_parts, .timeout = 600)
{
    enum { N_JOBS = 60 };
    test_wharfd_start(&wharfd, "[cpu]\nworkers = 3\n");
    struct wharf *wharf = open_handle(N_JOBS);
    struct test_rans rans = test_rans_new(&(struct test_rans_plan){11, 1, 1, 600000, 64, 200, 3});
    struct wharf_job jobs[N_JOBS];
    struct wharf_completion completion;

    jobs[0] = job_of(wharf, &rans);
    for (unsigned i = 1; i < N_JOBS; i++) {
        jobs[i] = jobs[0];
        jobs[i].out = new_output(wharf, &rans);
    }
    cr_assert_eq(wharf_submit(wharf, jobs, N_JOBS), N_JOBS);
    for (unsigned i = 0; i < N_JOBS; i++) {
        cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1);
        cr_assert_eq(completion.result, WHARF_OK);
    }
    struct counts counts = counts_now();
    cr_assert_eq(counts.chunks, N_JOBS);
    /* All but those at the beginning and at the end, which come in some ten ranges each. */
    cr_assert_lt(counts.ranges, 2 * N_JOBS);
    cr_assert_lt(counts.helped, N_JOBS);
    wharf_close(wharf);
    test_wharfd_finish(&wharfd);
    test_rans_free(&rans);
}

/* Whichever decoder finds damage, the outcome is that of one decoder. */
Test(wharfd_split_decode, damage_has_the_outcome_of_one_worker, .timeout = 600)
{
    struct test_random random = {4};

    test_wharfd_start(&wharfd, "[cpu]\nworkers = 4\n");
    struct wharf *wharf = open_handle(4);
    struct test_rans rans = large_stream(4);
    struct wharf_job job = job_of(wharf, &rans);
    uint8_t *out = malloc(rans.plain_nbytes);

    for (unsigned i = 0; i < 25; i++) {
        uint64_t limit = 8 * (i % 2 ? rans.stream_nbytes : rans.stream_nbytes / 100);
        uint64_t bit = test_random_below(&random, limit);
        struct wharf_outcome expected;
        ((uint8_t *)job.in)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        wharf_rans_decode(job.in, job.in_nbytes, out, job.out_avail, NULL, &expected);
        struct wharf_completion completion = run(wharf, &job);
        cr_assert(completion.result == expected.result && completion.reason == expected.reason,
                  "%s, not %s", wharf_reason_string(completion.reason),
                  wharf_reason_string(expected.reason));
        cr_assert_eq(completion.bit_offset, expected.bit_offset);
        ((uint8_t *)job.in)[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    cr_assert_eq(run(wharf, &job).result, WHARF_OK);
    free(out);
    wharf_close(wharf);
    test_wharfd_finish(&wharfd);
    test_rans_free(&rans);
}

/* Helpers are at memory of jobs that are not wanted any more: it is given back after the last. */
Test(wharfd_split_decode, jobs_that_are_given_up_leave_nothing, .timeout = 600)
{
    struct test_rans rans = large_stream(5);

    test_wharfd_start(&wharfd, "[cpu]\nworkers = 4\n");
    for (unsigned i = 0; i < 30; i++) {
        struct wharf *wharf = open_handle(8);
        struct wharf_job jobs[4];
        struct wharf_completion completions[4];
        for (unsigned k = 0; k < 4; k++) {
            jobs[k] = job_of(wharf, &rans);
            jobs[k].user_data = k;
        }
        cr_assert_eq(wharf_submit(wharf, jobs, 4), 4);
        usleep(i * 50);
        if (i % 2) {
            for (unsigned k = 0; k < 4; k++)
                wharf_cancel(wharf, k);
            cr_assert_eq(wharf_wait(wharf, completions, 4, 4, -1), 4);
            for (unsigned k = 0; k < 4; k++)
                cr_assert(completions[k].result == WHARF_OK ||
                          completions[k].result == WHARF_CANCELLED);
        }
        wharf_close(wharf);
    }
    struct wharf *wharf = open_handle(4);
    struct wharf_job job = job_of(wharf, &rans);
    cr_assert_eq(run(wharf, &job).result, WHARF_OK);
    cr_assert(memcmp(job.out, rans.plain, rans.plain_nbytes) == 0);
    wharf_close(wharf);
    test_wharfd_finish(&wharfd);
    test_rans_free(&rans);
}
