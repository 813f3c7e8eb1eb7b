/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding a daemon, or not: which handle a program gets, and what it is told.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_daemon.h"
#include "tests/lib/test_wait.h"

static struct wharf *open_at(const char *path, uint32_t flags, int expected)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf = NULL;

    options.socket_path = path;
    options.flags = flags;
    options.patience_ms = TEST_PATIENCE_MS;
    int r = wharf_open(&options, &wharf);
    cr_assert_eq(r, expected, "%d: %s", r, wharf_error_message());
    return wharf;
}

static struct wharf_info info_of(struct wharf *wharf)
{
    struct wharf_info info = {.struct_nbytes = sizeof(info)};

    cr_assert_eq(wharf_get_info(wharf, &info), 0);
    return info;
}

static void expect_message(const char *word)
{
    cr_expect(strstr(wharf_error_message(), word), "`%s` is not in: %s", word,
              wharf_error_message());
}

Test(connect, absent_daemon_is_said_with_how_to_start_it)
{
    open_at("/nonexistent/socket", WHARF_OPEN_DAEMON, -ENOENT);
    expect_message("/nonexistent/socket");
    expect_message("wharfd --socket /nonexistent/socket");
}

/* A /run of our own, on which nobody has started anything. */
static void need_own_run(void)
{
    if (getuid() != 0)
        cr_skip_test("only root may mount");
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", "/run", "tmpfs", 0, NULL) < 0)
        cr_skip_test("this machine does not let root mount");
    unsetenv("WHARF_SOCKET");
}

/* The message named a unit that nobody had installed. */
Test(connect, without_a_service_the_message_says_how_to_do_without)
{
    need_own_run();
    open_at(NULL, WHARF_OPEN_DAEMON, -ENOENT);
    expect_message("no service wharfd.socket is installed here");
    expect_message("wharfd --socket PATH");
    expect_message("WHARF_SOCKET=PATH");
}

Test(connect, absent_system_daemon_is_started_by_systemctl)
{
    need_own_run();
    cr_assert_eq(mkdir("/run/systemd", 0755), 0);
    cr_assert_eq(mkdir("/run/systemd/system", 0755), 0);
    int unit = open("/run/systemd/system/wharfd.socket", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    cr_assert_geq(unit, 0);
    close(unit);
    open_at(NULL, WHARF_OPEN_DAEMON, -ENOENT);
    expect_message("`sudo systemctl start wharfd.socket`");
}

Test(connect, without_a_daemon_jobs_run_here)
{
    struct wharf *wharf = open_at("/nonexistent/socket", 0, 0);

    expect_message("/nonexistent/socket");
    cr_expect_eq(info_of(wharf).is_daemon, 0);
    cr_expect_eq(info_of(wharf).engines, 1u << WHARF_ENGINE_CPU);
    cr_expect_eq(wharf_engine(wharf), WHARF_ENGINE_CPU);
    cr_expect_eq(wharf_ping(wharf), -ENOTCONN);
    cr_expect_eq(wharf_drain(wharf), -ENOTCONN);
    cr_expect_eq(wharf_stats(wharf, NULL, NULL), -EINVAL);
    wharf_close(wharf);
}

Test(connect, daemons_engine_is_never_replaced)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct test_daemon *daemon = test_daemon_new();
    struct wharf *wharf;

    options.socket_path = daemon->path;
    options.engine = WHARF_ENGINE_GPU;
    cr_expect_eq(wharf_open(&options, &wharf), -ENOENT);
    test_daemon_start(daemon);
    cr_expect_eq(wharf_open(&options, &wharf), -EOPNOTSUPP);
    expect_message("that engine is not there");
    test_daemon_free(daemon);
}

Test(connect, socket_without_listener_is_told_from_none)
{
    struct test_daemon *daemon = test_daemon_new();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

    strcpy(address.sun_path, daemon->path);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    open_at(daemon->path, WHARF_OPEN_DAEMON, -ECONNREFUSED);
    expect_message("nobody listens");
    close(fd);
    unlink(daemon->path);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    cr_assert_eq(listen(fd, 1), 0);
    open_at(daemon->path, WHARF_OPEN_DAEMON, -EPROTOTYPE);
    close(fd);
    unlink(daemon->path);
    test_daemon_free(daemon);
}

/* It was taken for a socket without a listener, beside which a daemon should be started. */
Test(connect, file_at_the_sockets_path_is_said_to_be_one)
{
    char folder[] = "/tmp/wharf-connect-XXXXXX";
    char path[sizeof(folder) + 16];

    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/precious", folder);
    open_at(folder, WHARF_OPEN_DAEMON, -ECONNREFUSED);
    expect_message("is a folder, not a daemon's socket");
    fclose(fopen(path, "w"));
    open_at(path, WHARF_OPEN_DAEMON, -ECONNREFUSED);
    expect_message("is a regular file, not a daemon's socket");
    cr_expect_null(strstr(wharf_error_message(), "start"));
    unlink(path);
    rmdir(folder);
}

/* As a user who is in no group that may use it. */
static int denied_status(const char *path, const char *advice)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf;

    if (setgid(65534) < 0 || setuid(65534) < 0)
        return 1;
    options.socket_path = path;
    options.flags = WHARF_OPEN_DAEMON;
    if (wharf_open(&options, &wharf) != -EACCES)
        return 2;
    if (!strstr(wharf_error_message(), advice))
        return 3;
    options.flags = 0;
    return wharf_open(&options, &wharf) == 0 ? 0 : 4;
}

/* Root's own group is not one to join. */
Test(connect, outsider_is_told_which_group_to_join)
{
    enum { USERS = 100 };
    struct test_daemon *daemon = test_daemon_new();
    int status;

    if (getuid() != 0)
        cr_skip_test("only root can become somebody else");
    test_daemon_start(daemon);
    cr_assert_eq(chmod(daemon->folder, 0755), 0);
    cr_assert_eq(chmod(daemon->path, 0660), 0);
    for (gid_t group = 0; group <= USERS; group += USERS) {
        cr_assert_eq(chown(daemon->path, 0, group), 0);
        pid_t child = fork();
        if (child == 0)
            _exit(denied_status(daemon->path, group ? "usermod -aG" : "another one with"));
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_expect_eq(status, 0, "group %u: %x", (unsigned)group, status);
    }
    test_daemon_free(daemon);
}

Test(connect, environment_names_the_socket)
{
    struct test_daemon *daemon = test_daemon_new();

    test_daemon_start(daemon);
    setenv("WHARF_SOCKET", daemon->path, 1);
    struct wharf *wharf = open_at(NULL, 0, 0);
    cr_expect_eq(info_of(wharf).is_daemon, 1);
    cr_expect_eq(wharf_engine(wharf), WHARF_ENGINE_AUTO);
    wharf_close(wharf);
    setenv("WHARF_SOCKET", "", 1);
    wharf = open_at(daemon->path, 0, 0);
    cr_expect_eq(info_of(wharf).is_daemon, 1, "the option goes before");
    wharf_close(wharf);
    wharf = open_at(daemon->path, WHARF_OPEN_EMBEDDED, 0);
    cr_expect_eq(info_of(wharf).is_daemon, 0);
    wharf_close(wharf);
    test_daemon_free(daemon);
}

Test(connect, path_that_no_socket_can_have_is_refused)
{
    char path[200];

    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    open_at(path, 0, -EINVAL);
    path[107] = '\0';
    open_at(path, WHARF_OPEN_DAEMON, -ENOENT);
}

Test(connect, sizes_follow_the_daemons_limits)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct test_daemon *daemon = test_daemon_new();
    struct wharf *wharf;

    daemon->max_entries = 64;
    daemon->max_arena_nbytes = 1 << 20;
    test_daemon_start(daemon);
    wharf = open_at(daemon->path, WHARF_OPEN_DAEMON, 0);
    cr_expect_eq(info_of(wharf).max_jobs, 63);
    cr_expect_eq(info_of(wharf).arena_nbytes, 1 << 20);
    wharf_close(wharf);

    options.socket_path = daemon->path;
    options.flags = WHARF_OPEN_DAEMON;
    options.max_jobs = 64;
    cr_expect_eq(wharf_open(&options, &wharf), -EDQUOT);
    expect_message("63");
    options.max_jobs = 33;
    options.arena_nbytes = (1 << 20) + 1;
    cr_expect_eq(wharf_open(&options, &wharf), -EDQUOT);
    options.arena_nbytes = (1 << 20) - 1;
    cr_assert_eq(wharf_open(&options, &wharf), 0);
    cr_expect_eq(info_of(wharf).max_jobs, 33);
    wharf_close(wharf);
    daemon->max_arena_nbytes = 100;
    open_at(daemon->path, WHARF_OPEN_DAEMON, -EDQUOT);
    test_daemon_free(daemon);
}

Test(connect, daemon_that_is_slow_to_start_is_waited_for)
{
    struct test_daemon *daemon = test_daemon_new();

    daemon->keeps_socket = 1;
    daemon->start_us = 100000;
    test_daemon_start(daemon);
    test_daemon_kill(daemon);
    struct wharf *wharf = open_at(daemon->path, WHARF_OPEN_DAEMON, 0);
    cr_expect_geq(daemon->n_lives, 2);
    wharf_close(wharf);
    test_daemon_free(daemon);
}

Test(connect, info_tells_of_the_daemon)
{
    struct test_daemon *daemon = test_daemon_new();

    daemon->max_job_nbytes = 12345;
    test_daemon_start(daemon);
    struct wharf *wharf = open_at(daemon->path, 0, 0);
    struct wharf_info info = info_of(wharf);
    cr_expect_eq(info.is_daemon, 1);
    cr_expect_eq(info.is_connected, 1);
    cr_expect_eq(info.max_jobs, WHARF_DEFAULT_MAX_JOBS);
    cr_expect_eq(info.arena_nbytes, WHARF_DEFAULT_ARENA_NBYTES);
    cr_expect_eq(info.engines, 1u << WHARF_ENGINE_CPU);
    cr_expect_eq(info.codecs, 15);
    cr_expect_eq(info.max_job_nbytes, 12345);
    cr_expect_neq(info.generation, 0);
    cr_expect_str_eq(info.daemon_version, "test");
    wharf_submit_noop(wharf, 1);
    cr_expect_eq(info_of(wharf).n_in_flight, 1);
    wharf_close(wharf);
    test_daemon_free(daemon);
}

/* ---- the daemon itself --------------------------------------------------------------------- */

struct stats {
    unsigned n;
    char text[200];
};

static void note_metric(void *data, const struct wharf_metric *metric)
{
    struct stats *stats = data;
    size_t n = strlen(stats->text);

    stats->n++;
    snprintf(stats->text + n, sizeof(stats->text) - n, "%s%s{%s=%s} %u %.1f %s\n", metric->family,
             metric->suffix, metric->labels[0].name, metric->labels[0].value, metric->type,
             metric->value, metric->help);
}

Test(connect, statistics_come_from_all_pages)
{
    struct test_daemon *daemon = test_daemon_new();
    struct stats stats = {0, ""};

    test_daemon_start(daemon);
    struct wharf *wharf = open_at(daemon->path, 0, 0);
    cr_expect_eq(wharf_stats(wharf, NULL, NULL), -EINVAL);
    cr_assert_eq(wharf_stats(wharf, note_metric, &stats), 0, "%s", wharf_error_message());
    cr_expect_eq(stats.n, 2);
    cr_expect_str_eq(stats.text, "test_total{page=first} 1 1.5 A number.\n"
                                 "test_total{page=second} 1 2.5 A number.\n");
    wharf_close(wharf);
    test_daemon_free(daemon);
}

Test(connect, ping_waits_for_the_next_daemon)
{
    struct test_daemon *daemon = test_daemon_new();

    daemon->restart_us = 50000;
    test_daemon_start(daemon);
    struct wharf *wharf = open_at(daemon->path, 0, 0);
    for (unsigned i = 0; i < 5; i++) {
        cr_expect_eq(wharf_ping(wharf), 0, "%s", wharf_error_message());
        test_daemon_kill(daemon);
    }
    cr_expect_eq(wharf_ping(wharf), 0);
    cr_expect_geq(info_of(wharf).n_reconnects, 4);
    wharf_close(wharf);
    test_daemon_free(daemon);
}

/* A drained daemon ends one life, and the jobs that it did not take go to the next one. */
Test(connect, drained_daemon_loses_no_job)
{
    struct test_daemon *daemon = test_daemon_new();
    struct wharf_completion completions[200];

    daemon->takes_at_once = 3;
    test_daemon_start(daemon);
    struct wharf *wharf = open_at(daemon->path, 0, 0);
    for (unsigned i = 0; i < 200; i++)
        cr_assert_eq(wharf_submit_noop(wharf, i), 0);
    cr_expect_eq(wharf_drain(wharf), 0, "%s", wharf_error_message());
    for (unsigned i = 0; i < 200; i++)
        cr_assert_eq(wharf_wait(wharf, completions, 1, 1, -1), 1, "%s", wharf_error_message());
    cr_expect_eq(wharf_ping(wharf), 0);
    cr_expect_eq(info_of(wharf).n_reconnects, 1);
    wharf_close(wharf);
    test_daemon_free(daemon);
}
