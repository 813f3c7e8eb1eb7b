/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owners_main.c: what a user has of the daemon beside another one who is many uids.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "encoders/wharf_codec.h"
#include "proto/wharf_result.h"
#include "tests/bench/bench_row.h"
#include "tests/hostile/crowd.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_help.h"
#include "tests/lib/test_wharfd.h"

static const char help[] =
    "usage: wharf_owners [--seconds S] [--repetitions N] [--check]\n"
    "\n"
    "Measures what a user has of the daemon beside another one who is hundreds of subordinate\n"
    "uids.\n"
    "\n"
    "The neighbour is one process that floods the daemon.  Beside it a crowd floods too: one\n"
    "process that wants as much, 20 processes of one uid, 20 of as many subordinate uids of\n"
    "one owner, or 300 of these.  For each crowd two rows are printed: how long the\n"
    "neighbour's chunks take in all, beside what they take in the case that it is compared\n"
    "with, and beside what the chunks of neighbour and crowd together take, which is all that\n"
    "the engine does.  Then a crowd of subordinate uids takes all connections, queues and\n"
    "memory that it is given and keeps them, and the neighbour connects again and again.\n"
    "\n"
    "With --check it fails where the neighbour has less than 90 % beside 20 subordinate uids\n"
    "of what it has beside 20 processes, less than 45 % of what the engine does beside 300,\n"
    "or cannot connect.\n"
    "\n"
    "The daemon has half of the processors, the crowd one, and the neighbour the rest, where\n"
    "there are enough.  It needs root, to be other users.\n";

enum { NEIGHBOUR = 65001, OWNER = 65002, FIRST_SUBORDINATE = 3000000 };
enum { CHUNK = 65536, N_CONNECTIONS = 100, MOST_REPETITIONS = 100 };
/* Chunks in flight: what keeps one processor busy, and all of them. */
enum { OF_ONE = 16, OF_NEIGHBOUR = 256 };
/* What rows count in: a row's times are those of so many chunks. */
enum { N_COUNTED = 16384 };

static struct {
    double seconds;
    unsigned n_repetitions;
    bool checks;
} options = {.seconds = 3, .n_repetitions = 5};

static struct test_wharfd wharfd;
static uint8_t packed[CHUNK];
static uint64_t packed_nbytes;

/* ---- floods -------------------------------------------------------------------------------- */

static struct test_client *flood_start(unsigned n_in_flight)
{
    struct test_client *client =
        test_client_start(wharfd.socket, n_in_flight, (1 + n_in_flight) * CHUNK);

    memset(client->arena, 0, client->arena_nbytes); /* the daemon is not to wait for pages */
    memcpy(client->arena, packed, packed_nbytes);
    return client;
}

static void flood_submit(struct test_client *client, uint64_t place)
{
    const struct wharf_submission job = {
        .opcode = WHARF_OP_DECODE,
        .codec = WHARF_CODEC_ZLIB,
        .src_nbytes = packed_nbytes,
        .dst_offset = (1 + place) * CHUNK,
        .dst_nbytes = CHUNK,
        .user_data = place,
    };

    wharf_ring_submit(&client->ring, &job);
}

static void flood_publish(struct test_client *client)
{
    if (test_client_publish(client) < 0)
        bench_die("the daemon");
}

/* Takes all completions that there are, at least one, and submits the same chunks again.  Returns
 * how many. */
static unsigned flood_go_on(struct test_client *client)
{
    struct wharf_completion completion;
    unsigned n = 0;
    int r = test_client_reap(client, &completion) < 0 ? -1 : 1;

    for (; r == 1; r = wharf_ring_reap(&client->ring, &completion)) {
        if (completion.result != WHARF_OK)
            bench_die("a job");
        flood_submit(client, completion.user_data);
        n++;
    }
    if (r < 0)
        bench_die("the daemon");
    flood_publish(client);
    return n;
}

static void flood_fill(struct test_client *client, unsigned n_in_flight)
{
    for (unsigned i = 0; i < n_in_flight; i++)
        flood_submit(client, i);
    flood_publish(client);
}

/* ---- the crowd ----------------------------------------------------------------------------- */

static uint64_t *n_crowd_chunks; /* that all of them have got, in memory that they share */

static void flood_with(int ready, unsigned n_in_flight)
{
    struct test_client *client = flood_start(n_in_flight);

    flood_fill(client, n_in_flight);
    flood_go_on(client);
    crowd_say_ready(ready);
    for (;;)
        __atomic_add_fetch(n_crowd_chunks, flood_go_on(client), __ATOMIC_RELAXED);
}

static void flood(int ready)
{
    flood_with(ready, OF_ONE);
}

static void flood_like_the_neighbour(int ready)
{
    flood_with(ready, OF_NEIGHBOUR);
}

/* Connections with queues and arenas, until it is given no more. */
static void take_all(int ready)
{
    for (;;) {
        struct test_client *client = test_client_new();
        if (test_client_connect(client, wharfd.socket) < 0 || test_client_hello(client) < 0)
            break;
        for (uint64_t nbytes = (uint64_t)1 << 30; nbytes >= 65536; nbytes /= 2)
            if (test_client_open_with(client, 256, nbytes, 0, 0) == 0)
                break;
    }
    crowd_say_ready(ready);
    for (;;)
        pause();
}

/* ---- the neighbour ------------------------------------------------------------------------- */

static void become(uid_t uid)
{
    if (seteuid(0) < 0 || seteuid(uid) < 0)
        bench_die("not root");
}

/* Chunks a second, in a time that begins when things have evened out; *ret_all: the crowd's too. */
static double measure_rate(struct test_client *client, double *ret_all)
{
    double begun_us = bench_now_us(), from_us = begun_us + 3e5 * options.seconds;
    double end_us = from_us + 1e6 * options.seconds, now_us;
    uint64_t n = 0, n_crowds_before = 0;

    while ((now_us = bench_now_us()) < end_us) {
        unsigned n_taken = flood_go_on(client);
        if (now_us < from_us)
            n_crowds_before = __atomic_load_n(n_crowd_chunks, __ATOMIC_RELAXED);
        else
            n += n_taken;
    }
    uint64_t n_crowds = __atomic_load_n(n_crowd_chunks, __ATOMIC_RELAXED) - n_crowds_before;
    *ret_all = (double)(n + n_crowds) / (end_us - from_us) * 1e6;
    return (double)n / (end_us - from_us) * 1e6;
}

static bool can_connect(struct bench_samples *samples)
{
    for (unsigned i = 0; i < N_CONNECTIONS; i++) {
        struct test_client *client = test_client_new();
        double begun_us = bench_now_us();
        become(NEIGHBOUR);
        int r = test_client_connect(client, wharfd.socket);
        become(0);
        if (r == 0)
            r = test_client_hello(client);
        if (r == 0)
            r = test_client_open_with(client, 64, 1 << 20, 0, 0);
        bench_samples_add(samples, bench_now_us() - begun_us);
        if (r < 0)
            fprintf(stderr, "# the neighbour cannot connect: %s; %s\n", strerror(-r),
                    client->error);
        test_client_free(client);
        if (r < 0)
            return false;
        usleep(1000);
    }
    return true;
}

/* ---- cases --------------------------------------------------------------------------------- */

enum { ALONE, PROCESS_1, PROCESSES_20, SUBORDINATE_20, SUBORDINATE_300, N_CASES };

static const struct {
    const char *name;
    unsigned n_processes;
    bool is_subordinate;
    void (*run)(int ready);
    int peer; /* which case it is compared with; -1: none */
    double least, least_of_engine;
} cases[N_CASES] = {
    [ALONE] = {"alone", 0, false, NULL, -1, 0, 0},
    [PROCESS_1] = {"1 process", 1, false, flood_like_the_neighbour, ALONE, 0, 0},
    [PROCESSES_20] = {"20 processes of one uid", 20, false, flood, ALONE, 0, 0},
    [SUBORDINATE_20] = {"20 subordinate uids", 20, true, flood, PROCESSES_20, 0.9, 0},
    [SUBORDINATE_300] = {"300 subordinate uids", 300, true, flood, ALONE, 0, 0.45},
};

static double rates[N_CASES][MOST_REPETITIONS], engine_rates[N_CASES][MOST_REPETITIONS];

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void sort_rates(unsigned which)
{
    qsort(rates[which], options.n_repetitions, sizeof(double), by_size);
    qsort(engine_rates[which], options.n_repetitions, sizeof(double), by_size);
}

/* Of rates in order. */
static struct bench_times times_of(const double *rate)
{
    unsigned n = options.n_repetitions;

    return (struct bench_times){
        .min_s = N_COUNTED / rate[n - 1],
        .median_s = N_COUNTED / rate[n / 2],
        .max_s = N_COUNTED / rate[0],
    };
}

/* What the neighbour has in a case as a share of something else, which was measured in as many
 * repetitions.  Returns whether that is enough. */
static bool report(unsigned which, const double *peer_rates, const char *peer, double least)
{
    struct bench_times times = times_of(rates[which]), peer_times = times_of(peer_rates);
    double share = peer_times.median_s / times.median_s;
    bool is_good = share >= least;
    const struct bench_row row = {
        .what = "owners: neighbour",
        .codec = "zlib",
        .data = cases[which].name,
        .level = 6,
        .threads = 1,
        .repetitions = options.n_repetitions,
        .chunk_nbytes = CHUNK,
        .in_nbytes = N_COUNTED * packed_nbytes,
        .out_nbytes = (uint64_t)N_COUNTED * CHUNK,
        .peer = peer,
        .times = times,
        .peer_times = peer_times,
    };

    bench_print_row(stdout, &row);
    fprintf(stderr, "# beside %-24s %8.0f chunks/s, %.2f of %s  %s\n", cases[which].name,
            N_COUNTED / times.median_s, share, peer, is_good ? "good" : "UNDER");
    return is_good;
}

static void report_connections(struct bench_samples *beside, struct bench_samples *quiet,
                               const char *what)
{
    const struct bench_latency_row row = {
        .what = "owners: connection",
        .data = what,
        .n_samples = beside->n,
        .times = bench_samples_spread(beside),
        .peer = "quiet",
        .peer_times = bench_samples_spread(quiet),
    };

    bench_print_latency_row(stdout, &row);
    fprintf(stderr, "# beside %-24s a connection with a queue takes %.0f us, alone %.0f us\n", what,
            row.times.p50_us, row.peer_times.p50_us);
}

/* ---- all together -------------------------------------------------------------------------- */

static void start_daemon(const char *more)
{
    char config[1024], subuid[128];

    crowd_take_processors(CROWD_DAEMON);
    snprintf(config, sizeof(config),
             "[daemon]\nlog_level = error\nsocket_mode = 0666\nsocket_group =\n"
             "[gpu]\nengine = cpu\n%s",
             more);
    test_wharfd_prepare(&wharfd, config);
    snprintf(subuid, sizeof(subuid), "%s/subuid", wharfd.folder);
    FILE *file = fopen(subuid, "we");
    if (!file || fprintf(file, "%d:%d:65536\n", OWNER, FIRST_SUBORDINATE) < 0 || fclose(file) < 0)
        bench_die(subuid);
    file = fopen(wharfd.config, "ae");
    if (!file || fprintf(file, "\n[owners]\nsubuid = %s\n", subuid) < 0 || fclose(file) < 0)
        bench_die(wharfd.config);
    test_wharfd_restart(&wharfd);
    crowd_take_processors(CROWD_NEIGHBOUR);
    if (chmod(wharfd.folder, 0711) < 0)
        bench_die(wharfd.folder);
}

static double run_case(unsigned which, double *ret_all)
{
    if (cases[which].n_processes)
        crowd_begin(cases[which].n_processes,
                    cases[which].is_subordinate ? FIRST_SUBORDINATE : OWNER,
                    cases[which].is_subordinate, cases[which].run);
    become(NEIGHBOUR);
    struct test_client *client = flood_start(OF_NEIGHBOUR);
    become(0);
    flood_fill(client, OF_NEIGHBOUR);
    double rate = measure_rate(client, ret_all);
    test_client_free(client);
    if (cases[which].n_processes)
        crowd_end();
    return rate;
}

static bool compare_floods(void)
{
    bool is_good = true;

    start_daemon("[tenant uid:65002]\nmax_connections = 1024\n");
    for (unsigned i = 0; i < options.n_repetitions; i++)
        for (unsigned which = 0; which < N_CASES; which++)
            rates[which][i] = run_case(which, &engine_rates[which][i]);
    test_wharfd_finish(&wharfd);
    for (unsigned which = 0; which < N_CASES; which++)
        sort_rates(which);
    for (unsigned which = 0; which < N_CASES; which++) {
        int peer = cases[which].peer;
        if (peer < 0)
            continue;
        is_good &= report(which, rates[peer], cases[peer].name, cases[which].least);
        is_good &= report(which, engine_rates[which], "the whole engine then",
                          cases[which].least_of_engine);
    }
    return is_good;
}

static bool compare_connections(void)
{
    struct bench_samples quiet = bench_samples_new(N_CONNECTIONS),
                         beside = bench_samples_new(N_CONNECTIONS);

    start_daemon("");
    bool is_good = can_connect(&quiet);
    crowd_begin(CROWD_MOST_PROCESSES, FIRST_SUBORDINATE, true, take_all);
    is_good &= can_connect(&beside);
    crowd_end();
    test_wharfd_finish(&wharfd);
    report_connections(&beside, &quiet, "300 subordinate uids that take all");
    bench_samples_free(&quiet);
    bench_samples_free(&beside);
    return is_good;
}

static void pack_chunk(void)
{
    uint8_t *plain = test_data_new(test_data_find("text"), 1, CHUNK);
    uLongf nbytes = sizeof(packed);

    if (compress2(packed, &nbytes, plain, CHUNK, 6) != Z_OK)
        bench_die("zlib");
    packed_nbytes = nbytes;
    free(plain);
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--check") == 0)
            options.checks = true;
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            options.seconds = atof(argv[++i]);
        else if (strcmp(argv[i], "--repetitions") == 0 && i + 1 < argc)
            options.n_repetitions = (unsigned)atoi(argv[++i]);
        else
            return test_usage(help);
    }
    if (options.n_repetitions < 1 || options.n_repetitions > MOST_REPETITIONS)
        return test_usage(help);
    crowd_init();
    bench_raise_open_files(); /* of the crowd, each has its own, for hundreds of connections */
    n_crowd_chunks = mmap(NULL, sizeof(*n_crowd_chunks), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (n_crowd_chunks == MAP_FAILED)
        bench_die("memory");
    pack_chunk();
    bool is_good = compare_floods();
    is_good &= compare_connections();
    return options.checks && !is_good;
}
