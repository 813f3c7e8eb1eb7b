/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holds_main.c: what a hostile user's clients keep, how soon the daemon has it back, and whether
 * others can connect meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "encoders/wharf_codec.h"
#include "proto/wharf_result.h"
#include "tests/bench/bench_row.h"
#include "tests/hostile/crowd.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_help.h"
#include "tests/lib/test_rans.h"
#include "tests/lib/test_unread.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"

static const char help[] =
    "usage: wharf_holds [--check] [CASE...]\n"
    "\n"
    "Measures how soon the daemon has back what a hostile user's clients keep.  The cases, all\n"
    "of which are tried without a CASE:\n"
    "\n"
    "  dead         a client dies with replies unread, and its socket is kept open by itself:\n"
    "               until its memory is not charged any more, beside one that just closes\n"
    "  descriptors  four processes of one user take all descriptors that they are given, from a\n"
    "               daemon with a (simulated) GPU and 1024 of them: a neighbour's connection\n"
    "               with queue and no-op, beside what it takes without them; then how long the\n"
    "               daemon has the dead processes' descriptors\n"
    "  cancel       a chunk of 65,535 splits is cancelled on the CPU: until it is completed,\n"
    "               beside a no-op at such a moment, which only has to be seen\n"
    "\n"
    "With --check it fails where a row's 99th percentile is over its limit: twice\n"
    "unread_timeout; three times the quiet one and 1 ms; 1 s; the no-op's and 1 ms.\n"
    "\n"
    "It needs root, to be other users.\n";

enum { HOSTILE = 65003, MiB = 1 << 20 };

static struct test_wharfd wharfd;
static bool has_failed;

static void start_daemon(const char *more)
{
    char config[512];

    snprintf(config, sizeof(config),
             "[daemon]\nlog_level = error\nsocket_mode = 0666\nsocket_group =\n%s", more);
    crowd_take_processors(CROWD_DAEMON);
    test_wharfd_start(&wharfd, config);
    crowd_take_processors(CROWD_NEIGHBOUR);
    if (chmod(wharfd.folder, 0711) < 0)
        bench_die(wharfd.folder);
}

/* The limit is so many times the peer's 99th percentile, and more_us. */
static void report(const char *what, const char *data, struct bench_samples *samples,
                   const char *peer, struct bench_samples *peer_samples, double n_times,
                   double more_us, const char *more)
{
    struct bench_latency_row row = {
        .what = what,
        .data = data,
        .n_samples = samples->n,
        .times = bench_samples_spread(samples),
        .peer = peer,
        .peer_times = bench_samples_spread(peer_samples),
        .limited = "p99_us",
        .more = more,
    };

    row.limit_us = n_times * row.peer_times.p99_us + more_us;
    bool is_good = row.times.p99_us <= row.limit_us;
    bench_print_latency_row(stdout, &row);
    fprintf(stderr, "# %-20s %-34s p50 %9.1f us  p99 %9.1f us  %s: p99 %9.1f  %s\n", what, data,
            row.times.p50_us, row.times.p99_us, peer, row.peer_times.p99_us,
            is_good ? "good" : "OVER");
    has_failed |= !is_good;
}

/* ---- dead clients -------------------------------------------------------------------------- */

enum { N_DEATHS = 20, UNREAD_TIMEOUT_MS = 200, KEPT_NBYTES = 64 * MiB };

static void close_at_once(const char *path, uint64_t arena_nbytes)
{
    test_client_free(test_client_start(path, 16, arena_nbytes));
}

static const struct death {
    const char *name;
    void (*run)(const char *path, uint64_t arena_nbytes);
} plain_death = {"a client that closes", close_at_once},
  deaths[] = {
      {"kept by its own socket", test_unread_keep_itself},
      {"two, kept by each other's sockets", test_unread_keep_each_other},
      {"kept by a socket in its queue", test_unread_keep_in_another},
};

static void let_die(const struct death *death)
{
    int status;
    pid_t pid = fork();

    if (pid < 0)
        bench_die("fork");
    if (pid == 0) {
        crowd_take_processors(CROWD_ITSELF);
        if (setgid(HOSTILE) < 0 || setuid(HOSTILE) < 0)
            _exit(1);
        death->run(wharfd.socket, KEPT_NBYTES);
        _exit(0);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0)
        bench_die(death->name);
}

static struct bench_samples measure_deaths(struct test_client *witness, const struct death *death)
{
    struct bench_samples samples = bench_samples_new(N_DEATHS);
    char tenant[32];

    snprintf(tenant, sizeof(tenant), "uid:%d", HOSTILE);
    for (unsigned i = 0; i < N_DEATHS; i++) {
        let_die(death);
        double begun_us = bench_now_us();
        if (!TEST_WAIT(test_client_metric(witness, "wharf_memory_bytes", "", tenant) <= 0))
            bench_die("a dead client is kept");
        bench_samples_add(&samples, bench_now_us() - begun_us);
    }
    return samples;
}

static void measure_dead(void)
{
    char more[64];

    snprintf(more, sizeof(more), "unread_timeout = %dms\n", UNREAD_TIMEOUT_MS);
    start_daemon(more);
    struct test_client *witness = test_client_greeted(wharfd.socket);
    struct bench_samples plain = measure_deaths(witness, &plain_death);
    for (unsigned i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++) {
        struct bench_samples kept = measure_deaths(witness, &deaths[i]);
        report("hold: dead client", deaths[i].name, &kept, plain_death.name, &plain, 0,
               2000.0 * UNREAD_TIMEOUT_MS, NULL);
        bench_samples_free(&kept);
    }
    bench_samples_free(&plain);
    test_client_free(witness);
    test_wharfd_finish(&wharfd);
}

/* ---- descriptors --------------------------------------------------------------------------- */

enum { N_TAKERS = 4, DESCRIPTOR_LIMIT = 1024, N_NEIGHBOURS = 500, N_CROWDS = 5 };

static int connect_and_open(struct test_client *client)
{
    int r = test_client_connect(client, wharfd.socket);

    r = r < 0 ? r : test_client_hello(client);
    return r < 0 ? r : test_client_open_with(client, 16, 65536, 0, 0);
}

/* Whatever holds one, until nothing is given any more. */
static void take_descriptors(int ready)
{
    int fd = test_memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW);

    for (;;) {
        struct test_client *client = test_client_new();
        int r = connect_and_open(client);
        for (uint32_t region = 1; r == 0; region++)
            r = test_client_register(client, region, fd, 4096, false);
        if (client->generation == 0) /* not even a Hello */
            break;
    }
    crowd_say_ready(ready);
    for (;;)
        pause();
}

static struct bench_samples measure_connections(void)
{
    static const struct wharf_submission noop = {.opcode = WHARF_OP_NOOP};
    struct bench_samples samples = bench_samples_new(N_NEIGHBOURS);
    struct wharf_completion completion;

    for (unsigned i = 0; i < N_NEIGHBOURS; i++) {
        struct test_client *client = test_client_new();
        double begun_us = bench_now_us();
        int r = connect_and_open(client);
        r = r < 0 ? r : test_client_submit(client, &noop);
        r = r < 0 ? r : test_client_reap(client, &completion);
        bench_samples_add(&samples, bench_now_us() - begun_us);
        if (r < 0) {
            fprintf(stderr, "# the neighbour cannot connect: %s\n", client->error);
            bench_die(strerror(-r));
        }
        test_client_free(client);
    }
    return samples;
}

/* Until the daemon has as few descriptors as before the crowd. */
static double time_return(int n_at_first)
{
    double begun_us = bench_now_us();

    if (!TEST_WAIT(test_wharfd_n_fds(&wharfd) <= n_at_first))
        bench_die("dead processes' descriptors are kept");
    return bench_now_us() - begun_us;
}

static int n_fds_at_rest(void)
{
    int n = test_wharfd_n_fds(&wharfd), before;

    do {
        before = n;
        usleep(20000);
        n = test_wharfd_n_fds(&wharfd);
    } while (n != before);
    return n;
}

static void measure_descriptors(void)
{
    struct rlimit limit, small = {DESCRIPTOR_LIMIT, DESCRIPTOR_LIMIT};
    char more[96];
    int n_most = 0;

    getrlimit(RLIMIT_NOFILE, &limit);
    setrlimit(RLIMIT_NOFILE, &small);
    start_daemon("[gpu]\nengine = simt\ndevice = 0\nhang_timeout = 10min\n");
    setrlimit(RLIMIT_NOFILE, &limit);
    struct bench_samples quiet = measure_connections();
    int n_at_first = n_fds_at_rest();
    struct bench_samples beside = bench_samples_new((size_t)N_CROWDS * N_NEIGHBOURS);
    struct bench_samples back = bench_samples_new(N_CROWDS), one_back = bench_samples_new(1);
    close_at_once(wharfd.socket, 65536);
    bench_samples_add(&one_back, time_return(n_at_first));
    for (unsigned i = 0; i < N_CROWDS; i++) {
        crowd_begin(N_TAKERS, HOSTILE, false, take_descriptors);
        struct bench_samples some = measure_connections();
        for (size_t k = 0; k < some.n; k++)
            bench_samples_add(&beside, some.us[k]);
        bench_samples_free(&some);
        int n = test_wharfd_n_fds(&wharfd);
        n_most = n > n_most ? n : n_most;
        crowd_end();
        bench_samples_add(&back, time_return(n_at_first));
    }
    snprintf(more, sizeof(more), ", \"descriptors\": %d, \"descriptor_limit\": %d", n_most,
             DESCRIPTOR_LIMIT);
    report("hold: connection", "all descriptors of one user", &beside, "quiet", &quiet, 3, 1000,
           more);
    report("hold: descriptors", "processes that took all", &back, "one connection", &one_back, 0,
           1e6, more);
    bench_samples_free(&quiet);
    bench_samples_free(&beside);
    bench_samples_free(&back);
    bench_samples_free(&one_back);
    test_wharfd_finish(&wharfd);
}

/* ---- cancelled chunks ---------------------------------------------------------------------- */

enum { N_WHOLE = 20, N_CANCELS = 400, OF_JOB = 1, OF_OTHER = 2 };

static const struct test_rans_plan many_splits = {11, 1, 1, 32 * MiB, 65535, 200, 1};

static void submit(struct test_client *client, const struct wharf_submission *submission)
{
    if (test_client_submit(client, submission) < 0)
        bench_die("the daemon");
}

static struct wharf_completion reap(struct test_client *client)
{
    struct wharf_completion completion;

    if (test_client_reap(client, &completion) < 0)
        bench_die("the daemon");
    return completion;
}

/*
 * The job, and after so long another submission: a cancel of it, or a no-op, which waits as long
 * until it is seen.  Returns the time until the job has been cancelled, or the no-op is done; 0 if
 * the job was done before.
 */
static double time_beside(struct test_client *client, const struct wharf_submission *job,
                          uint8_t opcode, double after_us)
{
    const struct wharf_submission other = {.opcode = opcode,
                                           .user_data = OF_OTHER,
                                           .src_offset = opcode == WHARF_OP_CANCEL ? OF_JOB : 0};
    double took_us = 0;

    submit(client, job);
    usleep((useconds_t)after_us);
    double begun_us = bench_now_us();
    submit(client, &other);
    for (unsigned i = 0; i < 2; i++) {
        struct wharf_completion completion = reap(client);
        bool is_job = completion.user_data == OF_JOB;
        if (is_job && completion.result != WHARF_OK && completion.result != WHARF_CANCELLED)
            bench_die("a job");
        if (opcode == WHARF_OP_CANCEL ? is_job && completion.result == WHARF_CANCELLED
                                      : !is_job && i == 0)
            took_us = bench_now_us() - begun_us;
    }
    return took_us;
}

static double time_whole(struct test_client *client, const struct wharf_submission *job)
{
    double least_us = 0;

    for (unsigned i = 0; i < N_WHOLE; i++) {
        double begun_us = bench_now_us();
        submit(client, job);
        if (reap(client).result != WHARF_OK)
            bench_die("a job");
        double took_us = bench_now_us() - begun_us;
        least_us = i == 0 || took_us < least_us ? took_us : least_us;
    }
    return least_us;
}

/* At moments that are spread over all of the job, the reading of splits first. */
static void measure_cancel(void)
{
    struct test_rans rans = test_rans_new(&many_splits);
    uint64_t out_at = (rans.stream_nbytes + MiB) / MiB * MiB;
    const struct wharf_submission job = {
        .opcode = WHARF_OP_DECODE,
        .codec = WHARF_CODEC_RANS,
        .user_data = OF_JOB,
        .src_nbytes = rans.stream_nbytes,
        .dst_offset = out_at,
        .dst_nbytes = rans.plain_nbytes,
    };
    struct bench_samples cancels = bench_samples_new(N_CANCELS),
                         noops = bench_samples_new(N_CANCELS);

    start_daemon("[gpu]\nengine = cpu\n");
    struct test_client *client =
        test_client_start(wharfd.socket, 16, out_at + rans.plain_nbytes + MiB);
    memset(client->arena, 0, client->arena_nbytes);
    memcpy(client->arena, rans.stream, rans.stream_nbytes);
    double whole_us = time_whole(client, &job);
    for (unsigned i = 0; i < N_CANCELS; i++) {
        double after_us = whole_us * i / N_CANCELS;
        double cancel_us = time_beside(client, &job, WHARF_OP_CANCEL, after_us);
        double noop_us = time_beside(client, &job, WHARF_OP_NOOP, after_us);
        if (cancel_us > 0)
            bench_samples_add(&cancels, cancel_us);
        if (noop_us > 0)
            bench_samples_add(&noops, noop_us);
    }
    if (cancels.n < N_CANCELS / 2 || noops.n < N_CANCELS / 2)
        bench_die("jobs end before they are cancelled");
    report("hold: cancelled chunk", "65535 splits", &cancels, "a no-op then", &noops, 1, 1000,
           NULL);
    bench_samples_free(&cancels);
    bench_samples_free(&noops);
    test_client_free(client);
    test_rans_free(&rans);
    test_wharfd_finish(&wharfd);
}

/* ---- all together -------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"dead", measure_dead}, {"descriptors", measure_descriptors}, {"cancel", measure_cancel}};

enum { N_CASES = sizeof(cases) / sizeof(cases[0]) };

static bool is_case(const char *word)
{
    for (unsigned i = 0; i < N_CASES; i++)
        if (strcmp(word, cases[i].name) == 0)
            return true;
    return false;
}

static bool is_asked_for(const char *name, int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc == 0;
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    bool checks = argc > 1 && strcmp(argv[1], "--check") == 0;
    int at = checks ? 2 : 1;

    for (int i = at; i < argc; i++)
        if (!is_case(argv[i]))
            return test_usage(help);
    crowd_init();
    for (unsigned i = 0; i < N_CASES; i++)
        if (is_asked_for(cases[i].name, argc - at, argv + at))
            cases[i].run();
    return checks && has_failed;
}
