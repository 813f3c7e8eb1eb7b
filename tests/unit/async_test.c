/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that submit jobs and take completions: the same for embedded handles and for handles
 * that work through a daemon.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "tests/lib/test_storm.h"
#include "tests/lib/test_wait.h"
#include "tests/unit/async_jobs.h"

/* Longer than any test takes. */
#define FOREVER_US 1000000000u

Test(async, job_comes_back_with_all_that_is_known_of_it)
{
    FOR_EACH_KIND(handle, NULL)
    {
        struct wharf_job job = job_of(handle.wharf, 0x0123456789abcdef);
        struct wharf_completion completion = run_one(handle.wharf, &job);

        cr_expect_eq(completion.user_data, 0x0123456789abcdef);
        cr_expect_eq(completion.result, WHARF_OK);
        cr_expect_eq(completion.reason, WHARF_REASON_NONE);
        cr_expect_eq(completion.engine, WHARF_ENGINE_CPU);
        cr_expect_eq(completion.in_nbytes, IN_NBYTES);
        cr_expect_eq(completion.out_nbytes, OUT_NBYTES);
        cr_expect_eq(completion.bit_offset, 0);
        cr_expect_eq(completion.flags, 0);
        cr_expect_eq(completion.reserved, 0);
        cr_expect_lt(completion.run_ns, 10 * SECOND_NS);
        cr_expect_arr_eq(job.out, "wharf", OUT_NBYTES);
    }
}

Test(async, nothing_in_flight_is_nothing_to_wait_for)
{
    FOR_EACH_KIND(handle, NULL)
    {
        struct wharf_completion completion;

        cr_expect_eq(wharf_poll(handle.wharf, &completion, 1), 0);
        cr_expect_eq(wharf_wait(handle.wharf, &completion, 1, 1, -1), 0);
        cr_expect_eq(wharf_wait(handle.wharf, &completion, 1, 1, INT64_MAX), 0);
    }
}

Test(async, wrong_arguments_are_refused)
{
    FOR_EACH_KIND(handle, NULL)
    {
        struct wharf_job job = job_of(handle.wharf, 1);
        struct wharf_completion completion;

        cr_expect_eq(wharf_poll(handle.wharf, NULL, 1), -EINVAL);
        cr_expect_eq(wharf_poll(handle.wharf, &completion, 0), -EINVAL);
        cr_expect_eq(wharf_wait(handle.wharf, &completion, 1, 2, 0), -EINVAL);
        cr_expect_eq(wharf_submit(handle.wharf, NULL, 1), -EINVAL);
        cr_expect_eq(wharf_submit(handle.wharf, NULL, 0), 0);
        cr_expect_eq(wharf_submit(NULL, &job, 1), -EINVAL);
        job.reserved = 1;
        cr_expect_eq(wharf_submit(handle.wharf, &job, 1), -EINVAL);
        job.reserved = 0;
        job.struct_nbytes = offsetof(struct wharf_job, encoder) - 1; /* of the first version */
        cr_expect_eq(wharf_submit(handle.wharf, &job, 1), -EINVAL);
        cr_expect_eq(wharf_alloc(handle.wharf, 1, NULL), -EINVAL);
        cr_expect_eq(wharf_submit_batch(handle.wharf, NULL), -EINVAL);
        cr_expect_eq(wharf_get_info(handle.wharf, NULL), -EINVAL);
    }
}

/* ---- what can be wrong with a job ---------------------------------------------------------- */

static void expect_same_as_one_call(struct test_handle *handle, const struct wharf_job *job,
                                    uint32_t result, uint32_t reason)
{
    struct wharf_completion completion = run_one(handle->wharf, job);
    struct wharf_outcome outcome;

    cr_assert_eq(wharf_decompress(handle->wharf, job, &outcome), 0);
    cr_expect_eq(outcome.result, result, "%s: %s", handle->name, wharf_result_name(outcome.result));
    cr_expect_eq(outcome.reason, reason, "%s: %s", handle->name, wharf_reason_name(outcome.reason));
    cr_expect_eq(completion.result, result, "%s: %s", handle->name,
                 wharf_result_name(completion.result));
    cr_expect_eq(completion.reason, reason, "%s: %s", handle->name,
                 wharf_reason_name(completion.reason));
    cr_expect_eq(completion.bit_offset, outcome.bit_offset);
    cr_expect_eq(completion.in_nbytes, 0);
    cr_expect_eq(completion.out_nbytes, 0);
}

/* Each job has all mistakes that come after the one that is told. */
Test(async, bad_requests_are_told_in_their_order)
{
    FOR_EACH_KIND(handle, NULL)
    {
        struct wharf_job job = job_of(handle.wharf, 1);

        job.out = (void *)job.in;
        job.parameter = UINT32_MAX;
        job.job_class = UINT32_MAX;
        job.flags = UINT32_MAX;
        job.codec = UINT32_MAX;
        expect_same_as_one_call(&handle, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_CODEC);
        job.codec = 0x10000 + WHARF_CODEC_ZLIB;
        expect_same_as_one_call(&handle, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_CODEC);
        job.codec = WHARF_CODEC_ZLIB;
        expect_same_as_one_call(&handle, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_FLAGS);
        job.flags = 0x10000;
        expect_same_as_one_call(&handle, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_FLAGS);
        job.flags = 1 << 5;
        expect_same_as_one_call(&handle, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_FLAGS);
        job.flags = 0;
        expect_same_as_one_call(&handle, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_CLASS);
        job.job_class = 0x100 + WHARF_CLASS_NORMAL;
        expect_same_as_one_call(&handle, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_CLASS);
        job.job_class = 0;
        expect_same_as_one_call(&handle, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_PARAMETER);
        job.parameter = 0x10000;
        expect_same_as_one_call(&handle, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_PARAMETER);
        job.parameter = 0;
        expect_same_as_one_call(&handle, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_OVERLAP);
    }
}

Test(async, bad_data_is_told_with_its_place)
{
    FOR_EACH_KIND(handle, NULL)
    {
        struct wharf_job job = job_of(handle.wharf, 1);

        job.in_nbytes--;
        expect_same_as_one_call(&handle, &job, WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED);
        job.in_nbytes++;
        job.checksum++;
        expect_same_as_one_call(&handle, &job, WHARF_BAD_CHECKSUM, WHARF_REASON_JOB_CHECKSUM);
        job.out_avail--;
        expect_same_as_one_call(&handle, &job, WHARF_OUTPUT_TOO_SMALL, WHARF_REASON_OUTPUT_FULL);
        job.in_nbytes = job.out_avail = 0;
        job.in = job.out = NULL;
        expect_same_as_one_call(&handle, &job, WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED);
    }
}

Test(async, memory_that_the_ring_cannot_name_is_refused)
{
    FOR_EACH_KIND(handle, NULL)
    {
        struct wharf_job good = job_of(handle.wharf, 1), job = good;
        struct wharf_info info = {.struct_nbytes = sizeof(info)};
        static uint8_t elsewhere[64];

        cr_assert_eq(wharf_get_info(handle.wharf, &info), 0);
        job.in = elsewhere;
        cr_expect_eq(wharf_submit(handle.wharf, &job, 1), -EFAULT);
        cr_expect(strstr(wharf_error_message(), "source"), "%s", wharf_error_message());
        job = good;
        job.out = elsewhere;
        cr_expect_eq(wharf_submit(handle.wharf, &job, 1), -EFAULT);
        cr_expect(strstr(wharf_error_message(), "destination"), "%s", wharf_error_message());
        job = good;
        job.out_avail = info.arena_nbytes;
        cr_expect_eq(wharf_submit(handle.wharf, &job, 1), -EFAULT);
        job.out_avail = SIZE_MAX;
        cr_expect_eq(wharf_submit(handle.wharf, &job, 1), -EFAULT);
        job = good;
        job.in = NULL;
        cr_expect_eq(wharf_submit(handle.wharf, &job, 1), -EFAULT);
        job.in = (const void *)(UINTPTR_MAX - 3);
        cr_expect_eq(wharf_submit(handle.wharf, &job, 1), -EFAULT);
        cr_expect_eq(run_one(handle.wharf, &good).result, WHARF_OK);
    }
}

/* ---- many jobs ----------------------------------------------------------------------------- */

/* What was taken before the first that cannot be is taken for good. */
Test(async, jobs_are_taken_up_to_the_first_that_cannot_be)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;

    options.max_jobs = 5;
    FOR_EACH_KIND(handle, &options)
    {
        struct wharf_completion completions[8];
        struct wharf_job jobs[8];

        for (unsigned i = 0; i < 8; i++)
            jobs[i] = job_of(handle.wharf, i);
        jobs[2].in = zlib_wharf;
        cr_expect_eq(wharf_submit(handle.wharf, jobs, 8), 2);
        cr_expect_eq(wharf_submit(handle.wharf, jobs + 2, 6), -EFAULT);
        cr_expect_eq(wharf_submit(handle.wharf, jobs + 3, 5), 3, "more than max_jobs");
        cr_expect_eq(wharf_submit(handle.wharf, jobs + 6, 1), -EAGAIN);
        cr_expect_eq(wharf_submit_noop(handle.wharf, 9), -EAGAIN);
        cr_expect_eq(wharf_wait(handle.wharf, completions, 8, 5, LONG_NS), 5);
        unsigned seen = 0;
        for (unsigned i = 0; i < 5; i++)
            seen |= 1u << completions[i].user_data;
        cr_expect_eq(seen, 0x3b);
        cr_expect_eq(wharf_submit(handle.wharf, jobs + 6, 1), 1, "there is room again");
    }
}

/* A program compiled with a later header gives an array of longer structs. */
Test(async, longer_jobs_follow_each_other_at_their_own_size)
{
    FOR_EACH_KIND(handle, NULL)
    {
        struct {
            struct wharf_job job;
            uint8_t later[24];
        } jobs[3];
        struct wharf_completion completions[3];

        memset(jobs, 0, sizeof(jobs));
        for (unsigned i = 0; i < 3; i++) {
            jobs[i].job = job_of(handle.wharf, i);
            jobs[i].job.struct_nbytes = sizeof(jobs[i]);
        }
        cr_expect_eq(wharf_submit(handle.wharf, &jobs[0].job, 3), 3);
        cr_expect_eq(wharf_wait(handle.wharf, completions, 3, 3, LONG_NS), 3);
        for (unsigned i = 0; i < 3; i++)
            cr_expect_eq(completions[i].result, WHARF_OK);
    }
}

Test(async, storm_of_jobs_in_every_way_of_taking_them)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct test_chunks chunks;

    test_chunks_init(&chunks, 3, 100, 20000, 8);
    options.max_jobs = 64;
    options.arena_nbytes = 16 << 20;
    FOR_EACH_KIND(handle, &options)
    {
        for (unsigned way = TEST_STORM_WAIT; way <= TEST_STORM_FD; way++) {
            struct test_storm storm = {.wharf = handle.wharf,
                                       .chunks = &chunks,
                                       .way = way,
                                       .seed = way,
                                       .n_jobs = 1000,
                                       .n_in_flight = 64,
                                       .batch_one_in = 4,
                                       .cancel_one_in = 10,
                                       .limit_s = 600};
            cr_assert_eq(test_storm_run(&storm), 0, "%s: %s", handle.name, storm.error);
            cr_expect_gt(storm.n_cancelled, 0);
            cr_expect_gt(storm.n_bad, 0);
        }
    }
    test_chunks_deinit(&chunks);
}

/* ---- cancel, deadlines, no-operations ------------------------------------------------------ */

Test(async, cancelled_jobs_come_back_once)
{
    FOR_EACH_KIND(handle, NULL)
    {
        enum { N = 50 };
        struct wharf_completion completions[N];
        unsigned n_cancelled = 0;

        /* None is run before the first cancel was taken. */
        if (handle.daemon) {
            handle.daemon->cancels_first = 1;
            handle.daemon->takes_at_once = N;
        }
        for (unsigned i = 0; i < N; i++) {
            struct wharf_job job = job_of(handle.wharf, i % 2);
            cr_assert_eq(wharf_submit(handle.wharf, &job, 1), 1);
        }
        cr_expect_eq(wharf_cancel(handle.wharf, 77), 0);
        int n = wharf_cancel(handle.wharf, 1);
        cr_expect(n > 0 && n <= N / 2, "%s: %d", handle.name, n);
        cr_expect_eq(wharf_wait(handle.wharf, completions, N, N, LONG_NS), N);
        for (unsigned i = 0; i < N; i++) {
            n_cancelled += completions[i].result == WHARF_CANCELLED;
            cr_expect(completions[i].result == WHARF_OK || completions[i].user_data == 1);
        }
        cr_expect(n_cancelled > 0 && n_cancelled <= (unsigned)n);
        cr_expect_eq(wharf_cancel(handle.wharf, 1), 0);
        cr_expect_eq(wharf_poll(handle.wharf, completions, N), 0);
    }
}

Test(async, late_jobs_are_not_begun)
{
    FOR_EACH_KIND(handle, NULL)
    {
        struct wharf_job slow = job_of(handle.wharf, 1), late = job_of(handle.wharf, 2);
        struct wharf_completion completions[2];

        if (handle.daemon)
            handle.daemon->job_us = 3000;
        late.timeout_us = 1000;
        slow.timeout_us = UINT32_MAX;
        for (unsigned i = 0; i < 20; i++)
            cr_assert_eq(wharf_submit(handle.wharf, i < 10 ? &slow : &late, 1), 1);
        poll(NULL, 0, 5);
        unsigned n_late = 0;
        for (unsigned i = 0; i < 20; i++) {
            cr_assert_eq(wharf_wait(handle.wharf, completions, 1, 1, LONG_NS), 1);
            n_late += completions[0].result == WHARF_DEADLINE;
            cr_expect(completions[0].result == WHARF_OK || completions[0].user_data == 2);
        }
        cr_expect_gt(n_late, 0, "%s", handle.name);
    }
}

Test(async, noop_does_nothing_but_complete)
{
    FOR_EACH_KIND(handle, NULL)
    {
        cr_assert_eq(wharf_submit_noop(handle.wharf, 7), 0);
        struct wharf_completion completion = wait_one(handle.wharf);
        cr_expect_eq(completion.user_data, 7);
        cr_expect_eq(completion.result, WHARF_OK);
        cr_expect_eq(completion.out_nbytes, 0);
    }
}

/* ---- waiting ------------------------------------------------------------------------------- */

static int is_readable(int fd, int timeout_ms)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, timeout_ms);
}

/* Polls until it is silent.  Returns how often it was not, with nothing there. */
static unsigned silence(const struct test_handle *handle, int fd)
{
    struct wharf_completion completion;
    unsigned n = 0;

    while (is_readable(fd, 0)) {
        cr_assert_eq(wharf_poll(handle->wharf, &completion, 1), 0);
        cr_assert_leq(++n, 1000, "%s: nothing is left", handle->name);
    }
    return n;
}

/* But for packets: a completion can be taken before the packet that tells of it has been sent. */
Test(async, descriptor_is_readable_exactly_while_there_is_something)
{
    FOR_EACH_KIND(handle, NULL)
    {
        struct wharf_completion completions[4];
        int fd = wharf_fd(handle.wharf);
        unsigned n_late = 0;

        cr_assert_geq(fd, 0);
        cr_expect_eq(wharf_fd(handle.wharf), fd);
        cr_expect_eq(is_readable(fd, 0), 0);
        for (unsigned round = 0; round < 20; round++) {
            for (unsigned i = 0; i < 3; i++) {
                struct wharf_job job = job_of(handle.wharf, i);
                cr_assert_eq(wharf_submit(handle.wharf, &job, 1), 1);
            }
            for (unsigned n = 0; n < 3;) {
                cr_assert_eq(is_readable(fd, TEST_PATIENCE_MS), 1, "%s", handle.name);
                int r = wharf_poll(handle.wharf, completions, round % 2 ? 1 : 4);
                cr_assert_geq(r, 0);
                n += (unsigned)r;
            }
            cr_assert_eq(wharf_poll(handle.wharf, completions, 4), 0);
            n_late += silence(&handle, fd);
            cr_expect_leq(n_late, handle.daemon ? 3 * (round + 1) : 0, "%s: one for a job at most",
                          handle.name);
        }
    }
}

Test(async, wait_ends_when_its_time_is_over)
{
    struct test_handle handle = test_handle_open(TEST_HANDLE_DAEMON, NULL);
    struct wharf_job job = job_of(handle.wharf, 1);
    struct wharf_completion completions[2];

    handle.daemon->job_us = FOREVER_US;
    cr_assert_eq(wharf_submit(handle.wharf, &job, 1), 1);
    cr_expect_eq(wharf_wait(handle.wharf, completions, 1, 1, 1000000), 0);
    __atomic_store_n(&handle.daemon->job_us, 0, __ATOMIC_RELAXED);
    cr_expect_eq(wharf_wait(handle.wharf, completions, 2, 2, LONG_NS), 1, "no second one comes");
    test_handle_close(&handle);
}
