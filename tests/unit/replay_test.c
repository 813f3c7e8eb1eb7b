/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Daemons that die: at every step, at random steps, in the middle of a load, while a client is
 * away, again and again.  Every job must come back once and right.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "clientlib/handle.h"
#include "clientlib/wharf.h"
#include "daemon/base/clock.h"
#include "tests/lib/test_daemon.h"
#include "tests/lib/test_rounds.h"
#include "tests/lib/test_storm.h"
#include "tests/lib/test_wait.h"

static struct wharf *open_handle(const struct test_daemon *daemon, uint32_t max_jobs)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf;

    options.flags = WHARF_OPEN_DAEMON;
    options.socket_path = daemon->path;
    options.patience_ms = TEST_PATIENCE_MS;
    options.max_jobs = max_jobs;
    cr_assert_eq(wharf_open(&options, &wharf), 0, "%s", wharf_error_message());
    return wharf;
}

static void expect_storm(struct test_storm *storm)
{
    cr_assert_eq(test_storm_run(storm), 0, "%s", storm->error);
    cr_assert_eq(storm->n_done, storm->n_jobs);
}

static uint64_t n_reconnects(struct wharf *wharf)
{
    struct wharf_info info = {.struct_nbytes = sizeof(info)};

    cr_assert_eq(wharf_get_info(wharf, &info), 0);
    return info.n_reconnects;
}

Test(replay, calm_weather)
{
    struct test_daemon *daemon = test_daemon_new();
    struct test_chunks chunks;

    test_chunks_init(&chunks, 1, 200, 3000, 8);
    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon, 1000);
    for (unsigned way = TEST_STORM_WAIT; way <= TEST_STORM_FD; way++) {
        struct test_storm storm = {.wharf = wharf,
                                   .chunks = &chunks,
                                   .way = way,
                                   .seed = way,
                                   .n_jobs = TEST_ROUNDS(5000),
                                   .n_in_flight = 500,
                                   .batch_one_in = 5,
                                   .cancel_one_in = 10,
                                   .limit_s = 600};
        expect_storm(&storm);
        cr_expect_gt(storm.n_bad, 100);
    }
    cr_assert_eq(n_reconnects(wharf), 0);
    wharf_close(wharf);
    test_daemon_free(daemon);
    test_chunks_deinit(&chunks);
}

/* From the first step after Hello on: each of those up to a queue and the first jobs, then some. */
Test(replay, death_at_every_step)
{
    struct test_daemon *daemon = test_daemon_new();
    struct test_chunks chunks;

    test_chunks_init(&chunks, 2, 50, 500, 8);
    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon, 20);
    for (unsigned step = 1; step < 300; step += step < 60 ? 1 : 5) {
        struct test_storm storm = {.wharf = wharf,
                                   .chunks = &chunks,
                                   .way = step % 3,
                                   .seed = step,
                                   .n_jobs = 40,
                                   .n_in_flight = 20,
                                   .batch_one_in = 6,
                                   .cancel_one_in = 8,
                                   .limit_s = 600};
        __atomic_store_n(&daemon->die_at_step, step, __ATOMIC_RELAXED);
        test_daemon_kill(daemon);
        expect_storm(&storm);
    }
    cr_assert_gt(n_reconnects(wharf), 105);
    wharf_close(wharf);
    test_daemon_free(daemon);
    test_chunks_deinit(&chunks);
}

/* At random steps of every life, with a thousand jobs in flight. */
Test(replay, thousand_jobs_in_flight_and_deaths_at_random)
{
    struct test_daemon *daemon = test_daemon_new();
    struct test_chunks chunks;

    test_chunks_init(&chunks, 3, 200, 3000, 8);
    daemon->takes_at_once = 300;
    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon, 1000);
    daemon->die_one_in = 2000;
    for (unsigned i = 0; i < 6; i++) {
        struct test_storm storm = {.wharf = wharf,
                                   .chunks = &chunks,
                                   .way = i % 3,
                                   .seed = i,
                                   .n_jobs = 2500,
                                   .n_in_flight = 1000,
                                   .batch_one_in = 20,
                                   .cancel_one_in = 50,
                                   .limit_s = 600};
        daemon->keeps_socket = i % 2;
        expect_storm(&storm);
    }
    cr_assert_gt(n_reconnects(wharf), 10);
    wharf_close(wharf);
    test_daemon_free(daemon);
    test_chunks_deinit(&chunks);
}

/*
 * A daemon that is killed from outside while it works.  Each does as many jobs as are in flight at
 * once, however slow the machine is: so no job outlives so many that it has to go alone.
 */
static void kill_now_and_then(const struct test_storm *storm)
{
    struct test_daemon *daemon = storm->tick_data;
    static uint64_t next_ns, n_done;

    if (storm->n_done < n_done)
        n_done = 0;
    if (wharf_now_ns() < next_ns || storm->n_done < n_done + storm->n_in_flight)
        return;
    test_daemon_kill(daemon);
    n_done = storm->n_done;
    next_ns = wharf_now_ns() + 20000000 + n_done % 97 * 300000;
}

Test(replay, killed_again_and_again_under_load)
{
    struct test_daemon *daemon = test_daemon_new();
    struct test_chunks chunks;

    test_chunks_init(&chunks, 4, 100, 20000, 0);
    daemon->restart_us = 5000;
    daemon->start_us = 3000;
    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon, 500);
    for (unsigned way = TEST_STORM_WAIT; way <= TEST_STORM_FD; way++) {
        struct test_storm storm = {.wharf = wharf,
                                   .chunks = &chunks,
                                   .way = way,
                                   .seed = way,
                                   .n_jobs = 4000,
                                   .n_in_flight = 500,
                                   .limit_s = 600,
                                   .tick = kill_now_and_then,
                                   .tick_data = daemon};
        expect_storm(&storm);
    }
    cr_assert_gt(n_reconnects(wharf), 3);
    wharf_close(wharf);
    test_daemon_free(daemon);
    test_chunks_deinit(&chunks);
}

static void wait_until_dead(struct test_daemon *daemon)
{
    daemon->stays_dead = 1;
    test_daemon_kill(daemon);
    while (__atomic_load_n(&daemon->daemon, __ATOMIC_ACQUIRE))
        poll(NULL, 0, 1);
}

/* However long the daemon is away: the next try to connect is at most 50 ms and a quarter away. */
static void expect_tries_soon(struct wharf *wharf)
{
    struct wharf_completion completion;
    uint64_t last_ns = 0;

    for (unsigned n_tries = 0; n_tries < 12; poll(NULL, 0, 1)) {
        cr_assert_eq(wharf_poll(wharf, &completion, 1), 0);
        uint64_t next_ns = wharf->link.next_try_ns;
        cr_assert_leq(next_ns, wharf_now_ns() + 63 * WHARF_NS_PER_MS);
        n_tries += next_ns != last_ns;
        last_ns = next_ns;
    }
}

Test(replay, first_result_comes_soon_after_the_next_daemon_is_ready)
{
    struct test_daemon *daemon = test_daemon_new();
    struct wharf_completion completion;

    daemon->restart_us = 30000;
    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon, 100);
    for (unsigned round = 0; round < 10; round++) {
        uint32_t n_lives = daemon->n_lives;
        wait_until_dead(daemon);
        for (unsigned i = 0; i < 100; i++)
            cr_assert_eq(wharf_submit_noop(wharf, i), 0, "%s", wharf_error_message());
        expect_tries_soon(wharf);
        __atomic_store_n(&daemon->stays_dead, 0, __ATOMIC_RELEASE);
        for (unsigned i = 0; i < 100; i++)
            cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1);
        cr_assert_eq(daemon->n_lives, n_lives + 1);
    }
    wharf_close(wharf);
    test_daemon_free(daemon);
}

/* ---- jobs that are not to be run again ----------------------------------------------------- */

static struct wharf_job stored_job(struct wharf *wharf, const char *text, uint64_t user_data)
{
    struct wharf_job job = WHARF_JOB_INIT;
    void *in, *out;
    size_t nbytes = strlen(text);

    cr_assert_eq(wharf_alloc(wharf, nbytes, &in), 0);
    cr_assert_eq(wharf_alloc(wharf, nbytes, &out), 0);
    memcpy(in, text, nbytes);
    job.in = in;
    job.out = out;
    job.in_nbytes = job.out_avail = nbytes;
    job.user_data = user_data;
    return job;
}

/* The one job is given up; all others, before and behind it, are right. */
Test(replay, job_that_kills_every_daemon_is_given_up_alone)
{
    struct test_daemon *daemon = test_daemon_new();
    struct wharf_completion completions[64];

    daemon->takes_at_once = 1;
    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon, 64);
    daemon->dies_of_job = 'X';
    for (unsigned i = 0; i < 64; i++) {
        struct wharf_job job = stored_job(wharf, i == 20 ? "X rays" : "harmless", i);
        cr_assert_eq(wharf_submit(wharf, &job, 1), 1);
    }
    cr_assert_eq(wharf_wait(wharf, completions, 64, 64, -1), 64, "%s", wharf_error_message());
    for (unsigned i = 0; i < 64; i++) {
        int is_killer = completions[i].user_data == 20;
        cr_expect_eq(completions[i].result, is_killer ? WHARF_INTERNAL : WHARF_OK, "job %u: %s",
                     (unsigned)completions[i].user_data, wharf_result_name(completions[i].result));
    }
    cr_expect_eq(n_reconnects(wharf), 8);
    cr_expect_eq(wharf_submit_noop(wharf, 1), 0);
    cr_expect_eq(wharf_wait(wharf, completions, 1, 1, -1), 1);
    wharf_close(wharf);
    test_daemon_free(daemon);
}

/* Submits one chunk each for these texts, their numbers as user_data. */
static void submit_texts(struct wharf *wharf, const char *const *texts, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct wharf_job job = stored_job(wharf, texts[i], i);
        cr_assert_eq(wharf_submit(wharf, &job, 1), 1);
    }
}

/* However often: what is in the ring was nobody's, and what was taken was not begun. */
Test(replay, jobs_that_no_daemon_has_begun_are_never_given_up)
{
    static const char *const texts[] = {"one", "two", "three", "four"};
    struct test_daemon *daemon = test_daemon_new();
    struct wharf_completion completions[4];

    for (unsigned is_taken = 0; is_taken < 2; is_taken++) {
        daemon->blind_deaths = is_taken ? 0 : 20;
        daemon->idle_deaths = is_taken ? 20 : 0;
        test_daemon_start(daemon);
        struct wharf *wharf = open_handle(daemon, 4);
        submit_texts(wharf, texts, 4);
        cr_assert_eq(wharf_wait(wharf, completions, 4, 4, -1), 4, "%s", wharf_error_message());
        for (unsigned i = 0; i < 4; i++)
            cr_expect_eq(completions[i].result, WHARF_OK, "job %u: %s",
                         (unsigned)completions[i].user_data,
                         wharf_result_name(completions[i].result));
        cr_expect_eq(n_reconnects(wharf), 20);
        wharf_close(wharf);
        test_daemon_stop(daemon);
    }
    test_daemon_free(daemon);
}

/* Among innocents that are in flight at every death, and whether the daemon tells of it or not. */
static void kill_by_looks(int has_no_marks, unsigned n_killers)
{
    enum { N = 64 };
    struct test_daemon *daemon = test_daemon_new();
    struct wharf_completion completions[N];
    const char *texts[N];

    daemon->dies_at_look = 'X';
    daemon->has_no_marks = (uint32_t)has_no_marks;
    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon, N);
    for (unsigned i = 0; i < N; i++)
        texts[i] = i % 8 == 5 && i / 8 < n_killers ? "X rays" : "harmless";
    submit_texts(wharf, texts, N);
    cr_assert_eq(wharf_wait(wharf, completions, N, N, -1), N, "%s", wharf_error_message());
    for (unsigned i = 0; i < N; i++) {
        int is_killer = texts[completions[i].user_data][0] == 'X';
        cr_expect_eq(completions[i].result, is_killer ? WHARF_INTERNAL : WHARF_OK, "job %u: %s",
                     (unsigned)completions[i].user_data, wharf_result_name(completions[i].result));
    }
    cr_expect_leq(n_reconnects(wharf), 8 * n_killers);
    wharf_close(wharf);
    test_daemon_free(daemon);
}

Test(replay, jobs_that_kill_as_they_are_looked_at_are_given_up_alone)
{
    kill_by_looks(0, 1);
    kill_by_looks(0, 8);
}

Test(replay, job_that_kills_daemons_without_marks_is_given_up_alone)
{
    kill_by_looks(1, 1);
}

/* Daemons that end in good order are nobody's fault. */
Test(replay, jobs_outlive_any_number_of_drained_daemons)
{
    struct test_daemon *daemon = test_daemon_new();
    struct wharf_completion completions[50];
    unsigned n = 0;

    daemon->takes_at_once = 1;
    daemon->job_us = 300;
    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon, 50);
    /* Where this thread is late one life does many of the jobs. */
    for (unsigned round = 0; round < 100 && n_reconnects(wharf) <= 8; round++) {
        for (unsigned i = 0; i < 50; i++)
            cr_assert_eq(wharf_submit_noop(wharf, i), 0);
        for (n = 0; n < 50;) {
            __atomic_store_n(&daemon->drain, 1, __ATOMIC_RELAXED);
            int r = wharf_wait(wharf, completions, 50, 1, -1);
            cr_assert_gt(r, 0);
            n += (unsigned)r;
            for (int i = 0; i < r; i++)
                cr_assert_eq(completions[i].result, WHARF_OK);
        }
    }
    cr_expect_gt(n_reconnects(wharf), 8);
    wharf_close(wharf);
    test_daemon_free(daemon);
}

/*
 * Nothing is known of the memory of jobs that a dead daemon had before the next one has answered:
 * they end then, and not before.
 */
Test(replay, cancelled_and_late_jobs_end_with_the_next_daemon)
{
    struct test_daemon *daemon = test_daemon_new();
    struct wharf_completion completions[4];

    daemon->job_us = 60000000;
    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon, 4);
    struct wharf_job unwanted = stored_job(wharf, "unwanted", 1);
    struct wharf_job late = stored_job(wharf, "late", 2);
    struct wharf_job wanted = stored_job(wharf, "wanted", 3);
    struct wharf_job never_sent = stored_job(wharf, "never sent", 4);
    late.timeout_us = 1000;
    cr_assert_eq(wharf_submit(wharf, &unwanted, 1), 1);
    cr_assert_eq(wharf_submit(wharf, &late, 1), 1);
    cr_assert_eq(wharf_submit(wharf, &wanted, 1), 1);
    wait_until_dead(daemon);
    cr_expect_eq(wharf_poll(wharf, completions, 4), 0);
    poll(NULL, 0, 5);
    cr_expect_eq(wharf_poll(wharf, completions, 4), 0);
    cr_assert_eq(wharf_submit(wharf, &never_sent, 1), 1);
    cr_expect_eq(wharf_cancel(wharf, 1), 1);
    cr_expect_eq(wharf_cancel(wharf, 4), 1);
    cr_expect_eq(wharf_wait(wharf, completions, 4, 4, 20000000), 1, "no daemon ever saw that one");
    cr_expect_eq(completions[0].user_data, 4);
    cr_expect_eq(completions[0].result, WHARF_CANCELLED);
    daemon->job_us = 0;
    __atomic_store_n(&daemon->stays_dead, 0, __ATOMIC_RELEASE);
    cr_expect_eq(wharf_wait(wharf, completions, 4, 3, -1), 3);
    for (unsigned i = 0; i < 3; i++) {
        static const uint32_t expected[] = {0, WHARF_CANCELLED, WHARF_DEADLINE, WHARF_OK};
        cr_expect_eq(completions[i].result, expected[completions[i].user_data], "job %u: %s",
                     (unsigned)completions[i].user_data, wharf_result_name(completions[i].result));
    }
    wharf_close(wharf);
    test_daemon_free(daemon);
}

/* ---- daemons that stay away ---------------------------------------------------------------- */

Test(replay, daemon_that_stays_away_is_an_error_until_it_is_back)
{
    struct test_daemon *daemon = test_daemon_new();
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf_completion completion;
    struct wharf_outcome outcome;
    uint8_t out[4];
    struct wharf_job own = WHARF_JOB_INIT;
    struct wharf *wharf;

    options.flags = WHARF_OPEN_DAEMON;
    options.socket_path = daemon->path;
    options.patience_ms = 1000;
    own.in = "abcd";
    own.out = out;
    own.in_nbytes = own.out_avail = sizeof(out);
    test_daemon_start(daemon);
    cr_assert(TEST_WAIT(wharf_open(&options, &wharf) == 0), "%s", wharf_error_message());
    daemon->job_us = 60000000;
    struct wharf_job job = stored_job(wharf, "patience", 1);
    cr_assert_eq(wharf_submit(wharf, &job, 1), 1);
    wait_until_dead(daemon);
    daemon->job_us = 0;
    cr_expect_eq(wharf_wait(wharf, &completion, 1, 1, -1), -ENOTCONN);
    cr_expect(strstr(wharf_error_message(), "nobody listens"), "%s", wharf_error_message());
    /* These wait no more; on a loaded machine some rounds of them take as long all the same. */
    uint64_t least_ns = UINT64_MAX;
    for (unsigned i = 0; i < 100 && least_ns >= 900000000; i++) {
        uint64_t before_ns = wharf_now_ns();
        cr_expect_eq(wharf_poll(wharf, &completion, 1), -ENOTCONN);
        cr_expect_eq(wharf_submit(wharf, &job, 1), -ENOTCONN);
        cr_expect_eq(wharf_decompress(wharf, &own, &outcome), -ENOTCONN);
        cr_expect_eq(wharf_ping(wharf), -ENOTCONN);
        uint64_t took_ns = wharf_now_ns() - before_ns;
        least_ns = took_ns < least_ns ? took_ns : least_ns;
    }
    cr_expect_lt(least_ns, 900000000);
    cr_expect_eq(wharf_cancel(wharf, 77), -ENOTCONN);
    __atomic_store_n(&daemon->stays_dead, 0, __ATOMIC_RELEASE);
    /* Its patience may be over once more where a machine does much else. */
    cr_assert(TEST_WAIT(wharf_ping(wharf) == 0));
    cr_assert(TEST_WAIT(wharf_wait(wharf, &completion, 1, 1, -1) == 1));
    cr_expect_eq(completion.result, WHARF_OK);
    cr_expect_arr_eq(job.out, "patience", 8);
    cr_expect(TEST_WAIT(wharf_decompress(wharf, &own, &outcome) == 0));
    wharf_close(wharf);
    test_daemon_free(daemon);
}

/* Programs that can do without the daemon get a handle without one where it does not answer in
 * time. */
static struct wharf *open_while_there(const struct wharf_options *options)
{
    struct wharf_info info = {.struct_nbytes = sizeof(info)};
    struct wharf *wharf = NULL;

    for (unsigned i = 0; i < 100 && !info.is_daemon; i++) {
        wharf_close(wharf);
        cr_assert_eq(wharf_open(options, &wharf), 0);
        cr_assert_eq(wharf_get_info(wharf, &info), 0);
    }
    cr_assert_eq(info.is_daemon, 1);
    return wharf;
}

/* The call gave up; its copies come back when nobody can write to them any more. */
Test(replay, one_call_without_a_daemon_runs_here_and_loses_no_memory)
{
    struct test_daemon *daemon = test_daemon_new();
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf_info info = {.struct_nbytes = sizeof(info)};
    struct wharf_outcome outcome;
    uint8_t out[4];
    struct wharf_job own = WHARF_JOB_INIT;
    struct wharf *wharf;

    options.socket_path = daemon->path;
    options.patience_ms = 1000;
    options.engine = WHARF_ENGINE_CPU; /* the daemon is asked first */
    own.in = "Xbcd";
    own.out = out;
    own.in_nbytes = own.out_avail = sizeof(out);
    daemon->dies_of_job = 'X';
    daemon->restart_us = 10000000;
    test_daemon_start(daemon);
    wharf = open_while_there(&options);
    cr_assert_eq(wharf_decompress(wharf, &own, &outcome), 0, "%s", wharf_error_message());
    cr_expect_eq(outcome.result, WHARF_OK);
    cr_expect_arr_eq(out, "Xbcd", 4);
    cr_assert_eq(wharf_get_info(wharf, &info), 0);
    cr_expect_gt(info.arena_taken_nbytes, 0, "what the dead daemon may still write");
    test_daemon_stop(daemon);
    test_daemon_start(daemon);
    cr_assert(TEST_WAIT(wharf_ping(wharf) == 0));
    cr_assert_eq(wharf_get_info(wharf, &info), 0);
    cr_expect_eq(info.arena_taken_nbytes, 0);
    wharf_close(wharf);
    test_daemon_free(daemon);
}

/* A session that was closed by a client would find its arena empty. */
Test(replay, arena_keeps_its_contents)
{
    struct test_daemon *daemon = test_daemon_new();
    char *memory;

    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon, 4);
    cr_assert_eq(wharf_alloc(wharf, 1 << 20, (void **)&memory), 0);
    memset(memory, 'm', 1 << 20);
    for (unsigned i = 0; i < 4; i++) {
        __atomic_store_n(&daemon->drain, i % 2, __ATOMIC_RELAXED);
        if (i % 2 == 0)
            test_daemon_kill(daemon);
        cr_assert_eq(wharf_ping(wharf), 0, "%s", wharf_error_message());
        for (unsigned at = 0; at < 1 << 20; at++)
            cr_assert_eq(memory[at], 'm');
    }
    wharf_close(wharf);
    test_daemon_free(daemon);
}

/* A descriptor that does not become readable again would leave an event loop asleep for ever. */
Test(replay, event_loop_is_woken_through_death_and_return)
{
    struct test_daemon *daemon = test_daemon_new();
    struct wharf_completion completion;

    daemon->restart_us = 30000;
    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon, 4);
    int fd = wharf_fd(wharf);
    for (unsigned i = 0; i < 10; i++) {
        uint64_t begun_ns = wharf_now_ns(), n_polls = 0;
        int r = 0;
        if (i % 2)
            test_daemon_kill(daemon);
        cr_assert_eq(wharf_submit_noop(wharf, i), 0);
        if (i % 2 == 0)
            test_daemon_kill(daemon);
        while (r == 0) {
            cr_assert_eq(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, TEST_PATIENCE_MS), 1,
                         "asleep for ever");
            r = wharf_poll(wharf, &completion, 1);
            n_polls++;
        }
        cr_assert_eq(r, 1, "%s", wharf_error_message());
        cr_expect_eq(completion.user_data, i);
        /* It tries every 50 ms, and at the beginning more often. */
        cr_expect_lt(n_polls, 100 + (wharf_now_ns() - begun_ns) / (10 * WHARF_NS_PER_MS),
                     "a busy loop");
    }
    cr_expect_eq(wharf_fd(wharf), fd);
    wharf_close(wharf);
    test_daemon_free(daemon);
}
