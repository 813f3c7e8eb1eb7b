/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon says, where standard error is a pipe. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"

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

/* The test would end no more. */
Test(wharfd_log, pipe_that_nobody_reads_is_not_waited_for, .init = set_up, .timeout = 100)
{
    enum { N = 100 };
    unsigned n_left_out = 0, n_read = 0;

    for (unsigned i = 0; i < N; i++)
        wharf_log(WHARF_LOG_INFO, NULL, "%0100u", i);
    for (const char *line = what_was_said(); (line = strchr(line, '\n')); line++)
        n_read++;
    cr_assert_lt(n_read, N);
    wharf_log(WHARF_LOG_INFO, NULL, "once more");
    cr_assert_eq(sscanf(what_was_said(),
                        "wharfd: warning: %u messages were left out: nobody read them\n"
                        "wharfd: once more",
                        &n_left_out),
                 1);
    cr_assert_eq(n_read + n_left_out, N);
}
