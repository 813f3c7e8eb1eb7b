/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Daemons that die: at every step, at random steps, in the middle of a load, while a client is
 * away, again and again.  Every job must come back once and right.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_daemon.h"
#include "tests/lib/test_storm.h"

static struct wharf *open_handle(const struct test_daemon *daemon, uint32_t max_jobs)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf;

    options.flags = WHARF_OPEN_DAEMON;
    options.socket_path = daemon->path;
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
                                   .n_jobs = 5000,
                                   .n_in_flight = 500,
                                   .batch_one_in = 5,
                                   .cancel_one_in = 10,
                                   .limit_s = 60};
        expect_storm(&storm);
        cr_expect_gt(storm.n_bad, 100);
    }
    cr_assert_eq(n_reconnects(wharf), 0);
    wharf_close(wharf);
    test_daemon_free(daemon);
    test_chunks_deinit(&chunks);
}

/* From the first step after Hello on, each once. */
Test(replay, death_at_every_step)
{
    struct test_daemon *daemon = test_daemon_new();
    struct test_chunks chunks;

    test_chunks_init(&chunks, 2, 50, 500, 8);
    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon, 20);
    for (unsigned step = 1; step < 300; step++) {
        struct test_storm storm = {.wharf = wharf,
                                   .chunks = &chunks,
                                   .way = step % 3,
                                   .seed = step,
                                   .n_jobs = 40,
                                   .n_in_flight = 20,
                                   .batch_one_in = 6,
                                   .cancel_one_in = 8,
                                   .limit_s = 30};
        __atomic_store_n(&daemon->die_at_step, step, __ATOMIC_RELAXED);
        test_daemon_kill(daemon);
        expect_storm(&storm);
    }
    cr_assert_gt(n_reconnects(wharf), 300);
    wharf_close(wharf);
    test_daemon_free(daemon);
    test_chunks_deinit(&chunks);
}
