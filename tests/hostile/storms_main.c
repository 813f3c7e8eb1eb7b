/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storms_main.c: what a tenant's clients wait while another tenant storms the daemon.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "encoders/wharf_codec.h"
#include "proto/wharf_result.h"
#include "tests/bench/bench_row.h"
#include "tests/hostile/storm_kinds.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_help.h"
#include "tests/lib/test_wharfd.h"

static const char help[] =
    "usage: wharf_storms [--seconds S] [--check] [KIND...]\n"
    "\n"
    "Measures what clients wait while another user's clients storm the daemon.  The kinds of "
    "storms,\n"
    "all of which are tried without a KIND: doorbells, noops, pings, stats, registrations,\n"
    "models, hellos, connects, sessions, files.\n"
    "\n"
    "For each kind it starts a daemon, measures a lone job, a no-op and a Hello on an open\n"
    "connection first quiet and then beside three storming processes of another user, and\n"
    "prints a row for each, whose peer is the quiet daemon.  Of storms of connections it also\n"
    "measures a connection with its Hello, whose peer is a bare loop that accepts and closes,\n"
    "with the same backlog and storm.  With --check it fails where a row is over its limit:\n"
    "three times the quiet 99th percentile and 1 ms, or twice the bare loop's.\n"
    "\n"
    "The daemon, who measures and the storm have processors of their own where there are\n"
    "enough.  It needs root, to be two users.\n";

/* A job of some 250 us of a processor; pauses between two samples; how long a storm takes to be
 * there. */
enum { PLAIN_NBYTES = 100000, PAUSE_US = 1000, STORM_BEGINS_US = 500000 };
enum { N_STORMERS = 3, STORM_UID = 12345, MAX_SAMPLES = 20000, N_OPEN = 1500, BARE_BACKLOG = 64 };

static struct {
    double seconds;
    bool checks;
} options = {.seconds = 5};

static struct test_wharfd wharfd;
static bool has_failed;

/* ---- processors ---------------------------------------------------------------------------- */

enum role { DAEMON, MEASURER, STORM };

static cpu_set_t all_processors;

/* The first half the daemon's but for one, which is the measurer's; the other half the storm's. */
static void take_processors(enum role role)
{
    int n = CPU_COUNT(&all_processors), number = 0;
    cpu_set_t set;

    CPU_ZERO(&set);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &all_processors))
            continue;
        enum role owner = number >= n / 2                 ? STORM
                          : n >= 4 && number == n / 2 - 1 ? MEASURER
                                                          : DAEMON;
        if (owner == role || (n < 4 && owner == DAEMON && role == MEASURER))
            CPU_SET(i, &set);
        number++;
    }
    if (CPU_COUNT(&set))
        sched_setaffinity(0, sizeof(set), &set);
}

/* ---- the storm ----------------------------------------------------------------------------- */

static pid_t stormers[N_STORMERS];

static void storm_begin(const struct storm_kind *kind, const char *path)
{
    for (unsigned i = 0; i < N_STORMERS; i++) {
        stormers[i] = fork();
        if (stormers[i] < 0)
            bench_die("fork");
        if (stormers[i])
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        take_processors(STORM);
        if (setgid(STORM_UID) < 0 || setuid(STORM_UID) < 0)
            bench_die("not root");
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        kind->run(path);
    }
    usleep(STORM_BEGINS_US);
}

static void storm_end(void)
{
    for (unsigned i = 0; i < N_STORMERS; i++) {
        if (waitpid(stormers[i], NULL, WNOHANG) != 0)
            bench_die("the storm has ended by itself");
        kill(stormers[i], SIGKILL);
        waitpid(stormers[i], NULL, 0);
    }
}

/* ---- what is measured ---------------------------------------------------------------------- */

static struct test_client *client; /* with a queue */
static uint64_t packed_nbytes;

static void prepare_client(void)
{
    uint8_t *plain = test_data_new(test_data_find("text"), 1, PLAIN_NBYTES);
    uLongf nbytes = 1 << 20;

    client = test_client_start(wharfd.socket, 16, 4 << 20);
    if (compress(client->arena, &nbytes, plain, PLAIN_NBYTES) != Z_OK)
        bench_die("zlib");
    packed_nbytes = nbytes;
    free(plain);
}

static void run(const struct wharf_submission *submission)
{
    struct wharf_completion completion;

    if (test_client_submit(client, submission) < 0 || test_client_reap(client, &completion) < 0 ||
        completion.result != WHARF_OK)
        bench_die("a job");
}

static void run_job(void)
{
    const struct wharf_submission job = {
        .opcode = WHARF_OP_DECODE,
        .codec = WHARF_CODEC_ZLIB,
        .src_nbytes = packed_nbytes,
        .dst_offset = 2 << 20,
        .dst_nbytes = PLAIN_NBYTES,
    };

    run(&job);
}

static void run_noop(void)
{
    run(&(struct wharf_submission){.opcode = WHARF_OP_NOOP});
}

/* Connections that have not said Hello: the next one is used by each sample. */
static struct test_client *open_clients[N_OPEN];
static unsigned n_open;

static void open_connections(void)
{
    while (n_open < N_OPEN)
        open_clients[n_open++] = test_client_connected(wharfd.socket);
}

static void close_connections(void)
{
    while (n_open > 0)
        test_client_free(open_clients[--n_open]);
}

static void say_hello(void)
{
    int r = test_client_hello(open_clients[--n_open]);

    if (r < 0)
        bench_die(strerror(-r));
    test_client_free(open_clients[n_open]);
}

static void connect_and_greet(void)
{
    test_client_free(test_client_greeted(wharfd.socket));
}

static char bare_path[100];

/* Until the other side has closed. */
static void connect_to_bare(void)
{
    struct test_client *one = test_client_connected(bare_path);
    char byte;

    while (recv(one->fd, &byte, 1, 0) > 0) {
    }
    test_client_free(one);
}

static void measure_into(struct bench_samples *samples, void (*sample)(void), bool ends_with_open)
{
    double end_us = bench_now_us() + 1e6 * options.seconds;

    while (bench_now_us() < end_us && !(ends_with_open && n_open == 0)) {
        double begun_us = bench_now_us();
        sample();
        bench_samples_add(samples, bench_now_us() - begun_us);
        usleep(PAUSE_US);
    }
}

static struct bench_spread measure(void (*sample)(void), bool ends_with_open, size_t *ret_n)
{
    struct bench_samples samples = bench_samples_new(MAX_SAMPLES);

    measure_into(&samples, sample, ends_with_open);
    *ret_n = samples.n;
    struct bench_spread spread = bench_samples_spread(&samples);
    bench_samples_free(&samples);
    return spread;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static void report(const char *what, const struct storm_kind *kind, size_t n,
                   struct bench_spread times, const char *peer, struct bench_spread peer_times,
                   double limit_us)
{
    const struct bench_latency_row row = {
        .what = what,
        .data = kind->name,
        .n_samples = n,
        .times = times,
        .peer = peer,
        .peer_times = peer_times,
        .limited = "p99_us",
        .limit_us = limit_us,
    };

    bench_print_latency_row(stdout, &row);
    fprintf(stderr, "# %-14s %-20s p50 %8.1f us  p99 %9.1f us  %s: p50 %8.1f  p99 %9.1f  %s\n",
            kind->name, what, times.p50_us, times.p99_us, peer, peer_times.p50_us,
            peer_times.p99_us, times.p99_us <= limit_us ? "good" : "OVER");
    has_failed |= times.p99_us > limit_us;
}

enum { JOB, NOOP, HELLO, N_MEASURED };
static const char *const names[N_MEASURED] = {"storm: job", "storm: no-op", "storm: hello"};
static void (*const samples_of[N_MEASURED])(void) = {run_job, run_noop, say_hello};

static void measure_all(struct bench_spread spreads[N_MEASURED], size_t n[N_MEASURED])
{
    for (unsigned i = 0; i < N_MEASURED; i++)
        spreads[i] = measure(samples_of[i], i == HELLO, &n[i]);
}

static void start_daemon(void)
{
    char config[512];

    snprintf(config, sizeof(config),
             "[daemon]\nlog_level = error\nsocket_mode = 0666\nsocket_group =\n"
             "[tenant uid:%u]\nmax_connections = 4096\nmax_descriptors = 65536\n",
             (unsigned)geteuid());
    take_processors(DAEMON);
    test_wharfd_start(&wharfd, config);
    take_processors(MEASURER);
    chmod(wharfd.folder, 0711);
    prepare_client();
}

static bool is_of_connections(const struct storm_kind *kind)
{
    return strcmp(kind->name, "connects") == 0 || strcmp(kind->name, "hellos") == 0;
}

/* ---- a bare loop --------------------------------------------------------------------------- */

static pid_t start_bare(int backlog)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    snprintf(bare_path, sizeof(bare_path), "%s/bare", wharfd.folder);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", bare_path);
    unlink(bare_path);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || chmod(bare_path, 0666) < 0 ||
        listen(fd, backlog) < 0)
        bench_die("a socket of its own");
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        take_processors(DAEMON);
        for (;;)
            close(accept(fd, NULL, NULL));
    }
    close(fd);
    return pid;
}

static struct bench_spread measure_bare(int backlog)
{
    static const struct storm_kind *connects = NULL;
    size_t n;

    for (connects = storm_kinds; strcmp(connects->name, "connects") != 0; connects++) {
    }
    pid_t pid = start_bare(backlog);
    storm_begin(connects, bare_path);
    struct bench_spread spread = measure(connect_to_bare, false, &n);
    storm_end();
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return spread;
}

/* ---- all together -------------------------------------------------------------------------- */

static void measure_kind(const struct storm_kind *kind)
{
    struct bench_spread quiet[N_MEASURED], stormed[N_MEASURED], connection, bare;
    size_t n[N_MEASURED], n_connections;

    start_daemon();
    open_connections();
    measure_all(quiet, n);
    open_connections();
    storm_begin(kind, wharfd.socket);
    measure_all(stormed, n);
    if (is_of_connections(kind))
        connection = measure(connect_and_greet, false, &n_connections);
    storm_end();
    close_connections();
    for (unsigned i = 0; i < N_MEASURED; i++)
        report(names[i], kind, n[i], stormed[i], "quiet", quiet[i], 3 * quiet[i].p99_us + 1000);
    if (is_of_connections(kind)) {
        bare = measure_bare(BARE_BACKLOG);
        report("storm: connection", kind, n_connections, connection, "bare loop", bare,
               2 * bare.p99_us);
    }
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}

static bool is_asked_for(const struct storm_kind *kind, int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], kind->name) == 0)
            return true;
    return argc == 0;
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    int at = 1;

    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        if (strcmp(argv[at], "--check") == 0) {
            options.checks = true;
        } else if (strcmp(argv[at], "--seconds") == 0 && at + 1 < argc) {
            options.seconds = atof(argv[++at]);
        } else {
            return test_usage(help);
        }
    }
    if (geteuid() != 0)
        bench_die("it takes root to be two users");
    sched_getaffinity(0, sizeof(all_processors), &all_processors);
    bench_raise_open_files();
    for (const struct storm_kind *kind = storm_kinds; kind->name; kind++)
        if (is_asked_for(kind, argc - at, argv + at))
            measure_kind(kind);
    return options.checks && has_failed;
}
