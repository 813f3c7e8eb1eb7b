/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Daemons that do what no daemon must do.  Whatever it is, calls return, say what was wrong, and
 * touch nothing that they should not: the address sanitizer looks on.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_daemon.h"
#include "tests/lib/test_storm.h"
#include "tests/lib/test_wait.h"

enum { ANY = 1 };

static const struct {
    enum test_misdeed misdeed;
    int at_open;      /* what wharf_open returns */
    int at_storm;     /* what jobs end with; 0: all goes well; ANY: either */
    int at_ping;      /* likewise */
    const char *word; /* of the message of the first error */
} cases[] = {
    {TEST_MISDEED_HELLO_SILENT, -ETIMEDOUT, 0, 0, "does not answer"},
    {TEST_MISDEED_HELLO_HANG_UP, -ETIMEDOUT, 0, 0, "the daemon "},
    {TEST_MISDEED_HELLO_REFUSED, -EDQUOT, 0, 0, "too many?[2J connections??"},
    {TEST_MISDEED_HELLO_BAD_CODE, -EPROTO, 0, 0, ""},
    {TEST_MISDEED_HELLO_VERSION, -EPROTO, 0, 0, "version 2"},
    {TEST_MISDEED_HELLO_FEATURES, -EPROTO, 0, 0, "features"},
    {TEST_MISDEED_HELLO_NO_LIMITS, -EPROTO, 0, 0, "limits"},
    {TEST_MISDEED_HELLO_GARBAGE, -EPROTO, 0, 0, "no message"},
    {TEST_MISDEED_HELLO_TOO_LONG, -EPROTO, 0, 0, "too long"},
    {TEST_MISDEED_HELLO_WRONG_ID, -EPROTO, 0, 0, "reply 2"},
    {TEST_MISDEED_HELLO_WRONG_BODY, -EPROTO, 0, 0, "not to what was asked"},
    {TEST_MISDEED_HELLO_WITH_FD, -EPROTO, 0, 0, "descriptors"},
    {TEST_MISDEED_HELLO_WAKE_WITH_FD, -EPROTO, 0, 0, "descriptors"},
    {TEST_MISDEED_QUEUE_REFUSED, -ENOMEM, 0, 0, "no memory is left"},
    {TEST_MISDEED_QUEUE_ENTRIES, -EPROTO, 0, 0, "entries"},
    {TEST_MISDEED_QUEUE_SMALL_ARENA, -EPROTO, 0, 0, "arena"},
    {TEST_MISDEED_QUEUE_NO_FDS, -EPROTO, 0, 0, "0 descriptors instead of 3"},
    {TEST_MISDEED_QUEUE_FEW_FDS, -EPROTO, 0, 0, "2 descriptors"},
    {TEST_MISDEED_QUEUE_MANY_FDS, -EPROTO, 0, 0, "4 descriptors"},
    {TEST_MISDEED_QUEUE_UNSEALED_C, -EPROTO, 0, 0, "segment C is not sealed"},
    {TEST_MISDEED_QUEUE_UNSEALED_D, -EPROTO, 0, 0, "segment D is not sealed"},
    {TEST_MISDEED_QUEUE_UNSEALED_ARENA, -EPROTO, 0, 0, "arena is not sealed"},
    {TEST_MISDEED_QUEUE_SHORT_C, -EPROTO, 0, 0, "segment C is shorter"},
    {TEST_MISDEED_QUEUE_SHORT_D, -EPROTO, 0, 0, "segment D is shorter"},
    {TEST_MISDEED_QUEUE_SHORT_ARENA, -EPROTO, 0, 0, "arena is shorter"},
    {TEST_MISDEED_QUEUE_READ_ONLY_C, -EPROTO, 0, 0, "segment C"},
    {TEST_MISDEED_QUEUE_PIPES, -EPROTO, 0, 0, "not a memfd"},
    {TEST_MISDEED_QUEUE_FILES, -EPROTO, 0, 0, "not a memfd"},
    {TEST_MISDEED_TAIL_JUMPS, 0, -EPROTO, -EPROTO, "index"},
    {TEST_MISDEED_TAIL_GOES_BACK, 0, -EPROTO, -EPROTO, "index"},
    {TEST_MISDEED_UNKNOWN_JOB, 0, -EPROTO, -EPROTO, "does not have"},
    {TEST_MISDEED_SAME_JOB_TWICE, 0, -EPROTO, -EPROTO, ""},
    {TEST_MISDEED_CANCEL_WITHOUT_CANCEL, 0, -EPROTO, -EPROTO, "does not have"},
    {TEST_MISDEED_OUTPUT_TOO_LONG, 0, -EPROTO, -EPROTO, "sizes"},
    {TEST_MISDEED_INPUT_TOO_LONG, 0, -EPROTO, -EPROTO, "sizes"},
    {TEST_MISDEED_CHUNK_TOO_LONG, 0, -EPROTO, -EPROTO, "sizes"},
    {TEST_MISDEED_CHUNK_INDEX, 0, ANY, ANY, ""},
    {TEST_MISDEED_REPLY_NOBODY_WANTS, 0, ANY, -EPROTO, "reply 99"},
    {TEST_MISDEED_DONE_WITH_FD, 0, 0, -EPROTO, "descriptors"},
    {TEST_MISDEED_DONE_GARBAGE, 0, 0, -EPROTO, "no message"},
    {TEST_MISDEED_DONE_NEVER, 0, 0, -ETIMEDOUT, "does not answer"},
    {TEST_MISDEED_STATS_LOOP, 0, 0, 0, ""},
    {TEST_MISDEED_SCRIBBLE, 0, ANY, ANY, ""},
    {TEST_MISDEED_WAKE_FLOOD, 0, 0, 0, ""},
    {TEST_MISDEED_FAREWELL, 0, 0, 0, ""},
    {TEST_MISDEED_FORFEIT, 0, -EPROTO, -EPROTO, "this client did: go away"},
    {TEST_MISDEED_SILENT_FORFEIT, 0, -EPROTO, -EPROTO, "does not say how"},
};

/* Daemons of which something else than lateness is expected may take their time; where anything may
 * come of it nobody waits for what does not come. */
static uint32_t patience_ms(unsigned at)
{
    return cases[at].at_open == -ETIMEDOUT || cases[at].at_ping == -ETIMEDOUT ||
                   cases[at].at_ping == ANY
               ? 300
               : TEST_PATIENCE_MS;
}

static int matches(int r, int expected)
{
    return expected == ANY || r == expected;
}

static void ignore_metric(void *data, const struct wharf_metric *metric)
{
    (void)metric;
    ++*(unsigned *)data;
}

/* Everything that a program can call, whatever comes of it. */
static void call_everything(struct wharf *wharf)
{
    struct wharf_info info = {.struct_nbytes = sizeof(info)};
    struct wharf_completion completions[4];
    struct wharf_outcome outcome;
    struct wharf_job job = WHARF_JOB_INIT;
    uint8_t out[4];
    unsigned n_metrics = 0;
    void *memory;

    job.in = "abcd";
    job.out = out;
    job.in_nbytes = job.out_avail = sizeof(out);
    wharf_submit_noop(wharf, 1);
    wharf_cancel(wharf, 1);
    wharf_poll(wharf, completions, 4);
    wharf_wait(wharf, completions, 4, 4, 1000000);
    wharf_decompress(wharf, &job, &outcome);
    if (wharf_alloc(wharf, 100, &memory) == 0)
        wharf_free(wharf, memory);
    wharf_get_info(wharf, &info);
    cr_expect_leq(info.n_in_flight, info.max_jobs);
    wharf_stats(wharf, ignore_metric, &n_metrics);
    cr_expect_lt(n_metrics, 100);
    wharf_drain(wharf);
}

static void run_case(unsigned at, enum test_storm_way way, const struct test_chunks *chunks)
{
    const char *name = test_misdeed_name(cases[at].misdeed);
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct test_daemon *daemon = test_daemon_new();
    struct wharf *wharf;
    int r;

    daemon->misdeed = cases[at].misdeed;
    daemon->seed = at + 100 * way;
    test_daemon_start(daemon);
    options.socket_path = daemon->path;
    options.flags = WHARF_OPEN_DAEMON;
    options.patience_ms = patience_ms(at);
    options.max_jobs = 15;
    options.arena_nbytes = 1 << 20;
    /* One with little patience may find a good daemon late on a machine that does much else. */
    TEST_WAIT((r = wharf_open(&options, &wharf)) == cases[at].at_open);
    cr_expect_eq(r, cases[at].at_open, "%s: wharf_open: %d, %s", name, r, wharf_error_message());
    if (r < 0)
        cr_expect(strstr(wharf_error_message(), cases[at].word), "%s: %s", name,
                  wharf_error_message());
    if (r == 0) {
        struct test_storm storm = {.wharf = wharf,
                                   .chunks = chunks,
                                   .way = way,
                                   .seed = at,
                                   .n_jobs = 100,
                                   .n_in_flight = 10,
                                   .batch_one_in = 3,
                                   .limit_s = cases[at].at_storm == ANY ? 2 : 600};
        r = test_storm_run(&storm) ? storm.error_number : 0;
        cr_expect(matches(r, cases[at].at_storm), "%s: jobs: %d, %s", name, r, storm.error);
        if (r < 0 && cases[at].at_storm < 0)
            cr_expect(strstr(storm.error, cases[at].word), "%s: %s", name, storm.error);
        r = wharf_ping(wharf);
        cr_expect(matches(r, cases[at].at_ping), "%s: wharf_ping: %d, %s", name, r,
                  wharf_error_message());
        call_everything(wharf);
        wharf_close(wharf);
        free(storm.in_flight);
    }
    test_daemon_free(daemon);
}

Test(hostile_daemon, nothing_worse_than_an_error)
{
    struct test_chunks chunks;

    test_chunks_init(&chunks, 5, 30, 2000, 0);
    for (unsigned way = TEST_STORM_WAIT; way <= TEST_STORM_FD; way++)
        for (unsigned at = 0; at < sizeof(cases) / sizeof(cases[0]); at++)
            run_case(at, way, &chunks);
    test_chunks_deinit(&chunks);
}

/* A misdeed without a row above would go untested. */
Test(hostile_daemon, every_misdeed_is_tried)
{
    cr_assert_eq(sizeof(cases) / sizeof(cases[0]), TEST_N_MISDEEDS - 1);
    for (unsigned at = 0; at < TEST_N_MISDEEDS - 1; at++)
        cr_expect_eq(cases[at].misdeed, at + 1);
}

static unsigned count_descriptors(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

Test(hostile_daemon, refused_connections_leave_no_descriptor)
{
    unsigned n_before = count_descriptors();

    for (unsigned at = 0; at < sizeof(cases) / sizeof(cases[0]); at++) {
        struct wharf_options options = WHARF_OPTIONS_INIT;
        struct test_daemon *daemon = test_daemon_new();
        struct wharf *wharf;

        daemon->misdeed = cases[at].misdeed;
        test_daemon_start(daemon);
        options.socket_path = daemon->path;
        options.flags = WHARF_OPEN_DAEMON;
        options.patience_ms = 50;
        if (wharf_open(&options, &wharf) == 0)
            wharf_close(wharf);
        test_daemon_free(daemon);
        cr_assert_eq(count_descriptors(), n_before, "%s", test_misdeed_name(cases[at].misdeed));
    }
}
