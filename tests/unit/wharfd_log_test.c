/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon says, where standard error is a pipe. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/log_level.h"

static int reader;
static char text[8192];

static void set_up(void)
{
    int fds[2];

    unsetenv("JOURNAL_STREAM");
    cr_assert_eq(pipe(fds), 0);
    cr_assert_eq(fcntl(fds[1], F_SETPIPE_SZ, 4096), 4096);
    cr_assert_eq(dup2(fds[1], 2), 2);
    close(fds[1]);
    reader = fds[0];
    wharf_log_init();
}

/* What there is to be read, which is not nothing. */
static const char *what_was_said(void)
{
    ssize_t n = read(reader, text, sizeof(text) - 1);

    cr_assert_gt(n, 0);
    text[n] = '\0';
    return text;
}

Test(wharfd_log, names_are_characters_that_steer_nothing, .init = set_up)
{
    wharf_log(WHARF_LOG_INFO, NULL, "%s",
              "a\nb\x1b[2J\x7f, \xc3\xa4 \xe2\x82\xac \xf0\x9f\x9a\xa2, \xff\xfe \xc2\x9b \xc0\x80 "
              "\xed\xa0\x80 \xe2\x82");
    cr_assert_str_eq(what_was_said(),
                     "wharfd: a?b?[2J?, \xc3\xa4 \xe2\x82\xac \xf0\x9f\x9a\xa2, ?? ?? ?? "
                     "??? ??\n");
}

Test(wharfd_log, fields_stand_behind_the_message, .init = set_up)
{
    struct wharf_log_fields fields = {.tenant = "uid:7", .session = 9, .error = ENOENT};

    wharf_log(WHARF_LOG_WARNING, &fields, "what");
    cr_assert_str_eq(what_was_said(),
                     "wharfd: warning: what: No such file or directory (tenant=uid:7 session=9)\n");
}

/* ---- by the thread ------------------------------------------------------------------------- */

enum { N = 1000 };

static char said[64 * 4096];
static size_t said_nbytes;

static void read_more(void)
{
    ssize_t n = read(reader, said + said_nbytes, sizeof(said) - 1 - said_nbytes);

    cr_assert_gt(n, 0);
    said_nbytes += (size_t)n;
    said[said_nbytes] = '\0';
}

static void wait_for(const char *wanted)
{
    while (!strstr(said, wanted))
        read_more();
}

static unsigned count(const char *wanted)
{
    unsigned n = 0;

    for (const char *at = said; (at = strstr(at, wanted)); at++)
        n++;
    return n;
}

/* The sum of all numbers before those words. */
static unsigned count_left_out(const char *words, unsigned *ret_n_lines)
{
    static const char begin[] = "wharfd: warning: ";
    unsigned sum = 0;

    *ret_n_lines = 0;
    for (const char *at = said; (at = strstr(at, begin)); at++) {
        char *end;
        unsigned n = (unsigned)strtoul(at + strlen(begin), &end, 10);
        if (strncmp(end, words, strlen(words)) != 0)
            continue;
        sum += n;
        ++*ret_n_lines;
    }
    return sum;
}

/* More than pipe and queue take: the test would not end. */
Test(wharfd_log, pipe_that_nobody_reads_is_not_waited_for, .init = set_up, .timeout = 600)
{
    static const char words[] = " messages were left out: nobody read them\n";
    struct wharf_log_counts counts;
    unsigned n_left_out, n_confessions;

    cr_assert_eq(wharf_log_start(), 0);
    for (unsigned i = 0; i < N; i++)
        wharf_log(WHARF_LOG_INFO, NULL, "number %0100u", i);
    do {
        read_more();
        n_left_out = count_left_out(words, &n_confessions);
    } while (count("wharfd: number ") + n_left_out < N);
    cr_assert_gt(n_left_out, 0);
    cr_assert_eq(count("wharfd: number ") + n_left_out, N);
    wharf_log_stop();
    wharf_log_read_counts(&counts);
    cr_assert_eq(counts.n_not_taken, n_left_out);
    cr_assert_eq(counts.n_written, N - n_left_out + n_confessions);
}

/* The end waits for a second, and not for ever. */
Test(wharfd_log, end_does_not_wait_for_a_pipe_that_nobody_reads, .init = set_up, .timeout = 600)
{
    cr_assert_eq(wharf_log_start(), 0);
    for (unsigned i = 0; i < N; i++)
        wharf_log(WHARF_LOG_INFO, NULL, "%0100u", i);
    wharf_log_stop();
    wharf_log(WHARF_LOG_INFO, NULL, "too late");
}

Test(wharfd_log, end_waits_for_what_is_read, .init = set_up)
{
    cr_assert_eq(wharf_log_start(), 0);
    for (unsigned i = 0; i < 10; i++)
        wharf_log(WHARF_LOG_INFO, NULL, "number %u", i);
    wharf_log_stop();
    read_more();
    cr_assert_eq(count("wharfd: number "), 10);
}

/* A lock is held meanwhile that clients wait for. */
Test(wharfd_log, writer_is_woken_when_the_lock_was_given_back, .init = set_up)
{
    struct pollfd readable = {.fd = reader, .events = POLLIN};

    cr_assert_eq(wharf_log_start(), 0);
    wharf_log_hold();
    wharf_log_hold();
    wharf_log(WHARF_LOG_INFO, NULL, "under locks");
    wharf_log_let_go();
    cr_assert_eq(poll(&readable, 1, 50), 0);
    wharf_log_let_go();
    wait_for("under locks\n");
    wharf_log_stop();
}

Test(wharfd_log, what_clients_caused_beyond_the_limit_is_counted_at_the_end_too, .init = set_up)
{
    struct wharf_log_counts counts;

    cr_assert_eq(wharf_log_start(), 0);
    for (unsigned i = 0; i < 30; i++)
        wharf_log_client(WHARF_LOG_WARNING, NULL, "client %u", i);
    wharf_log_stop();
    wait_for("wharfd: 10 messages about clients were left out\n");
    cr_assert_eq(count("wharfd: warning: client "), 20);
    wharf_log_read_counts(&counts);
    cr_assert_eq(counts.n_over_limit, 10);
    cr_assert_eq(counts.n_written, 21);
}

/* All tenants had one limit, and what one of them caused kept the others' messages out. */
Test(wharfd_log, one_tenant_leaves_room_for_messages_about_others, .init = set_up)
{
    const struct wharf_log_fields loud = {.tenant = "uid:1000"}, quiet = {.tenant = "uid:1001"};

    cr_assert_eq(wharf_log_start(), 0);
    for (unsigned i = 0; i < 1000; i++)
        wharf_log_client(WHARF_LOG_WARNING, &loud, "loud %u", i);
    wharf_log_client(WHARF_LOG_WARNING, &quiet, "quiet");
    wharf_log_client(WHARF_LOG_WARNING, NULL, "nobody");
    wharf_log_stop();
    wait_for("wharfd: 980 messages about clients were left out\n");
    cr_assert_eq(count("wharfd: warning: loud "), 20);
    cr_assert_eq(count("wharfd: warning: quiet (tenant=uid:1001)\n"), 1);
    cr_assert_eq(count("wharfd: warning: nobody\n"), 1);
}

Test(wharfd_log, all_tenants_together_are_limited_too, .init = set_up)
{
    char name[16];

    cr_assert_eq(wharf_log_start(), 0);
    for (unsigned i = 0; i < 200; i++) {
        const struct wharf_log_fields fields = {.tenant = name};
        snprintf(name, sizeof(name), "uid:%u", i);
        wharf_log_client(WHARF_LOG_WARNING, &fields, "client");
    }
    wharf_log_stop();
    wait_for("wharfd: 100 messages about clients were left out\n");
    cr_assert_eq(count("wharfd: warning: client "), 100);
}
