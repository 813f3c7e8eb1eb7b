/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused for a limit: at once, counted once, said once; and what is not refused, since
 * room for it is on its way. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"

#define MiB ((uint64_t)1 << 20)

static struct test_wharfd wharfd;

static double n_refused(struct test_client *client, const char *limit)
{
    return test_client_metric(client, "wharf_refused_total", "", limit);
}

static int open_handle(uint32_t max_jobs, uint64_t arena_nbytes, struct wharf **ret_wharf)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;

    options.flags = WHARF_OPEN_DAEMON;
    options.socket_path = wharfd.socket;
    options.patience_ms = TEST_PATIENCE_MS;
    options.max_jobs = max_jobs;
    options.arena_nbytes = arena_nbytes;
    return wharf_open(&options, ret_wharf);
}

static unsigned n_lines(const char *text)
{
    size_t nbytes;
    char *log = (char *)test_file_read(wharfd.log, &nbytes);
    unsigned n = 0;

    cr_assert_not_null(log);
    for (const char *at = log; (at = strstr(at, text)); at++)
        n++;
    free(log);
    return n;
}

/* It was tried again and again until patience was over, and each time counted. */
Test(wharfd_refused, one_connection_too_many_is_refused_at_once_and_counted_once)
{
    char line[160];
    struct wharf *wharf;

    test_wharfd_start_by(&wharfd, "auto", "[quota]\nmax_connections = 1\n");
    struct test_client *client = test_client_greeted(wharfd.socket);
    cr_assert_eq(n_refused(client, "max_connections"), 0);
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(open_handle(0, 0, &wharf), -EDQUOT);
        cr_assert(strstr(wharf_error_message(), "max_connections"), "%s", wharf_error_message());
    }
    cr_assert_eq(n_refused(client, "max_connections"), 2);
    snprintf(
        line, sizeof(line),
        "over max_connections = 1, of which 1 are in use; [quota], or [tenant uid:%u], sets it",
        (unsigned)getuid());
    cr_assert(test_wharfd_says(&wharfd, line));
    snprintf(line, sizeof(line), "refused tenant uid:%u, ", (unsigned)getuid());
    cr_assert(test_wharfd_says(&wharfd, line));
    test_client_free(client);
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    cr_assert_eq(n_lines("refused tenant"), 1);
    test_wharfd_remove(&wharfd);
}

/* Each has its line and its count. */
Test(wharfd_refused, every_limit_is_counted_and_said_by_its_name)
{
    test_wharfd_start_by(&wharfd, "auto",
                         "[quota]\nmax_jobs = 128\nmax_memory = 8M\nmax_arena = 16M\n"
                         "max_entries = 256\n[total]\nmax_memory = 1G\n");
    struct test_client *client = test_client_greeted(wharfd.socket);
    cr_assert_eq(test_client_open_with(client, 256, 0, 0, 0), -EDQUOT);
    cr_assert_eq(test_client_open_with(client, 512, 0, 0, 0), -EDQUOT);
    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(test_client_open_with(client, 16, 12 * MiB, 0, 0), -EDQUOT);
    cr_assert_eq(test_client_open_with(client, 16, 17 * MiB, 0, 0), -EDQUOT);
    cr_assert_eq(n_refused(client, "max_jobs"), 1);
    cr_assert_eq(n_refused(client, "max_entries"), 1);
    cr_assert_eq(n_refused(client, "max_memory"), 3);
    cr_assert_eq(n_refused(client, "max_arena"), 1);
    cr_assert_eq(n_refused(client, "max_regions"), 0);
    cr_assert_eq(n_refused(client, "total_max_memory"), 0);
    cr_assert(test_wharfd_says(&wharfd, "over max_jobs = 128, of which 0 are in use; [quota]"));
    cr_assert(test_wharfd_says(&wharfd, "over max_entries = 256; [quota]"));
    cr_assert(test_wharfd_says(&wharfd, "over max_memory = 8388608, of which"));
    cr_assert(test_wharfd_says(&wharfd, "over max_arena = 16777216; [quota]"));
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}

/* Each handle takes all that the user may have; the one before is given back by and by. */
Test(wharfd_refused, opening_and_closing_in_a_loop_is_never_refused)
{
    struct wharf *wharf;

    test_wharfd_start_by(
        &wharfd, "auto",
        "[quota]\nmax_connections = 1\nmax_descriptors = 8\nmax_jobs = 64\nmax_memory = 5M\n");
    struct test_client *client = test_client_greeted(wharfd.socket);
    double before = test_client_metric(client, "wharf_connections_total", "", NULL);
    test_client_free(client);
    for (unsigned i = 0; i < 200; i++) {
        cr_assert_eq(open_handle(63, 4 * MiB, &wharf), 0, "%u: %s", i, wharf_error_message());
        wharf_close(wharf);
    }
    client = test_client_greeted(wharfd.socket);
    cr_assert_eq(n_refused(client, "max_connections"), 0);
    cr_assert_eq(n_refused(client, "max_memory"), 0);
    double n = test_client_metric(client, "wharf_connections_total", "", NULL) - before;
    cr_assert_eq(n, 201, "%g", n);
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}

/* Whether it has a place that is not one of an operator's few and small ones. */
static bool gets_in(struct test_client *client)
{
    return test_client_hello(client) == 0 && test_client_open_with(client, 64, 0, 0, 0) == 0;
}

/* Of those that wait for one place one gets it, and the others hear that there is none. */
Test(wharfd_refused, a_place_that_comes_back_is_given_once)
{
    struct test_client *first, *others[3];
    unsigned n_in = 0;

    test_wharfd_start_by(&wharfd, "auto", "[quota]\nmax_connections = 2\n");
    struct test_client *stays = test_client_greeted(wharfd.socket);
    for (unsigned round = 0; round < 20; round++) {
        first = test_client_greeted_in_time(wharfd.socket);
        test_client_free(first);
        n_in = 0;
        for (unsigned i = 0; i < 3; i++)
            others[i] = test_client_connected(wharfd.socket);
        for (unsigned i = 0; i < 3; i++)
            n_in += gets_in(others[i]);
        cr_assert_eq(n_in, 1);
        cr_assert_leq(test_client_metric(stays, "wharf_connections", "", NULL), 4);
        for (unsigned i = 0; i < 3; i++)
            test_client_free(others[i]);
    }
    test_client_free(stays);
    test_wharfd_finish(&wharfd);
}

/* What one handle uses of each limit, and what there may be. */
struct use {
    double used[16], allowed[16];
    char *limits[16];
    unsigned n;
};

static unsigned place_of(struct use *use, const char *limit)
{
    for (unsigned i = 0; i < use->n; i++)
        if (strcmp(use->limits[i], limit) == 0)
            return i;
    use->limits[use->n] = strdup(limit);
    return use->n++;
}

static void note(void *data, const struct wharf_metric *metric)
{
    bool is_used = strcmp(metric->family, "wharf_limit_used") == 0;

    if (!is_used && strcmp(metric->family, "wharf_limit") != 0)
        return;
    for (uint32_t i = 0; i < metric->n_labels; i++) {
        if (strcmp(metric->labels[i].name, "limit") != 0)
            continue;
        struct use *use = data;
        unsigned place = place_of(use, metric->labels[i].value);
        (is_used ? use->used : use->allowed)[place] = metric->value;
    }
}

/* 127 handles reached max_memory while 256 were allowed. */
Test(wharfd_refused, defaults_allow_as_many_handles_of_defaults_as_connections)
{
    struct use use = {.n = 0};
    struct wharf *wharf;

    test_wharfd_start_by(&wharfd, "auto", "");
    cr_assert_eq(open_handle(0, 0, &wharf), 0);
    cr_assert_eq(wharf_stats(wharf, note, &use), 0);
    wharf_close(wharf);
    double n = use.allowed[place_of(&use, "max_connections")];
    cr_assert_eq(n, 256);
    cr_assert_eq(use.n, 6);
    cr_assert_eq(use.used[place_of(&use, "max_connections")], 1);
    cr_assert_eq(use.used[place_of(&use, "max_jobs")], 256);
    for (unsigned i = 0; i < use.n; i++)
        cr_assert_leq(n * use.used[i], use.allowed[i], "%s: %g of %g each", use.limits[i],
                      use.used[i], use.allowed[i]);
    for (unsigned i = 0; i < use.n; i++)
        free(use.limits[i]);
    test_wharfd_finish(&wharfd);
}

static void expect_no_more_in_use_than(unsigned most)
{
    static const char before[] = "of which ";
    size_t nbytes;
    char *log = (char *)test_file_read(wharfd.log, &nbytes);
    unsigned n_lines = 0;

    cr_assert_not_null(log);
    for (const char *at = log; (at = strstr(at, before)); n_lines++) {
        at += strlen(before);
        cr_assert_leq(strtoul(at, NULL, 10), most, "%.60s", at);
    }
    cr_assert_gt(n_lines, 0);
    free(log);
}

/* Whoever waits for a place has none: the line said that 71 of 8 were in use. */
Test(wharfd_refused, who_waits_for_a_place_is_not_counted_as_having_one)
{
    enum { MOST = 8, N_WAITING = 60 };
    struct test_client *clients[MOST], *waiting[N_WAITING];

    test_wharfd_start_by(&wharfd, "auto", "[quota]\nmax_connections = 8\n");
    for (unsigned i = 0; i < MOST; i++)
        clients[i] = test_client_greeted(wharfd.socket);
    test_process_stop(wharfd.pid);
    for (unsigned i = 0; i < MOST; i++)
        test_client_free(clients[i]);
    for (unsigned i = 0; i < N_WAITING; i++)
        waiting[i] = test_client_connected(wharfd.socket);
    cr_assert_eq(kill(wharfd.pid, SIGCONT), 0);
    cr_assert(test_wharfd_says(&wharfd, "over max_connections = 8, of which "));
    expect_no_more_in_use_than(MOST);
    for (unsigned i = 0; i < N_WAITING; i++)
        test_client_free(waiting[i]);
    test_wharfd_finish(&wharfd);
}
