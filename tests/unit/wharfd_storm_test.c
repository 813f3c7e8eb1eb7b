/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sixteen client processes under load, while clients and the daemon are killed at random moments:
 * every job that a living client has submitted comes back once, with the right outcome and bytes.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_storm.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"

/* A job that eight daemons had in their hands when they died is given up: fewer are killed. */
enum { N_CLIENTS = 16, N_DAEMON_KILLS = 6, N_CLIENT_KILLS = 10 };

/* What all processes share. */
static struct {
    uint32_t stop;
    uint64_t n_done;
    uint64_t n_reconnects; /* of all who have lived */
} * shared;

static struct test_wharfd wharfd;
static struct test_chunks chunks;

/* ---- clients ------------------------------------------------------------------------------- */

static int complain(const char *what, const char *error)
{
    fprintf(stderr, "client %d: %s: %s\n", (int)getpid(), what, error);
    return 1;
}

/* Adds what the handle has had since `*seen`. */
static void count_reconnects(struct wharf *wharf, uint64_t *seen)
{
    struct wharf_info info = {.struct_nbytes = sizeof(info)};

    if (wharf_get_info(wharf, &info) < 0)
        return;
    __atomic_fetch_add(&shared->n_reconnects, info.n_reconnects - *seen, __ATOMIC_RELAXED);
    *seen = info.n_reconnects;
}

static int run_storms(struct wharf *wharf, uint64_t seed)
{
    uint64_t n_reconnects = 0;

    while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
        struct test_storm storm = {
            .wharf = wharf,
            .chunks = &chunks,
            .way = (enum test_storm_way)(seed % 3),
            .seed = seed++,
            .n_jobs = 60,
            .n_in_flight = 40,
            .batch_one_in = 6,
            .cancel_one_in = 20,
            .limit_s = 600,
        };
        if (test_storm_run(&storm) < 0)
            return complain("a storm", storm.error);
        if (storm.n_done != storm.n_jobs)
            return complain("a storm", "jobs were lost");
        __atomic_fetch_add(&shared->n_done, storm.n_done, __ATOMIC_RELAXED);
        count_reconnects(wharf, &n_reconnects);
    }
    return 0;
}

static int be_client(uint64_t seed)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    options.flags = WHARF_OPEN_DAEMON;
    options.socket_path = wharfd.socket;
    options.patience_ms = TEST_PATIENCE_MS;
    options.max_jobs = 64;
    /* Opening does not wait for a daemon that is away, as calls on an open handle do. */
    if (!TEST_WAIT(wharf_open(&options, &wharf) == 0))
        return complain("wharf_open", wharf_error_message());
    int status = run_storms(wharf, seed);
    wharf_close(wharf);
    return status;
}

static pid_t fork_client(uint64_t seed)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(be_client(seed));
    cr_assert_gt(pid, 0);
    return pid;
}

static uint64_t count(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* ---- who kills them ------------------------------------------------------------------------ */

static void expect_alive(const pid_t *pids)
{
    for (unsigned i = 0; i < N_CLIENTS; i++)
        cr_assert_eq(waitpid(pids[i], NULL, WNOHANG), 0, "client %u has ended", i);
}

static void expect_good_end(pid_t pid)
{
    int status;

    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a client failed: %x",
              (unsigned)status);
}

static void kill_client(pid_t *pid, uint64_t seed)
{
    kill(*pid, SIGKILL);
    waitpid(*pid, NULL, 0);
    *pid = fork_client(seed);
}

/* The daemon's count comes down to that, once it has cleared away what clients left behind. */
static void expect_metric(struct test_client *client, const char *name, double expected)
{
    double value;
    char tenant[32];

    snprintf(tenant, sizeof(tenant), "uid:%u", (unsigned)geteuid());
    TEST_WAIT((value = test_client_metric(client, name, "", tenant)) == expected);
    cr_assert_eq(value, expected, "%s is %g", name, value);
}

static void expect_nothing_left(void)
{
    struct test_client *client = test_client_greeted(wharfd.socket);

    expect_metric(client, "wharf_connections", 1);
    expect_metric(client, "wharf_queue_entries", 0);
    expect_metric(client, "wharf_memory_bytes", 0);
    test_client_free(client);
}

Test(wharfd_storm, nothing_is_lost_when_clients_and_daemons_are_killed)
{
    struct test_random random = {(uint64_t)time(NULL)};
    pid_t pids[N_CLIENTS];
    unsigned n_daemon_kills = 0, n_client_kills = 0;
    uint64_t seed = 1000, n_done = 0;

    fprintf(stderr, "# seed %llu\n", (unsigned long long)random.state);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    test_chunks_init(&chunks, 7, 60, 20000, 8);
    test_wharfd_start(&wharfd, "[quota]\nmax_connections = 64\n");
    for (unsigned i = 0; i < N_CLIENTS; i++)
        pids[i] = fork_client(seed += 100000);
    while (n_daemon_kills < N_DAEMON_KILLS || n_client_kills < N_CLIENT_KILLS) {
        usleep((useconds_t)test_random_below(&random, 150000));
        if (n_daemon_kills < N_DAEMON_KILLS && test_random_one_in(&random, 2)) {
            /* Clients that have been served since the last one: they will have to come back. */
            cr_assert(TEST_WAIT(count(&shared->n_done) > n_done));
            test_wharfd_kill(&wharfd);
            n_done = count(&shared->n_done);
            usleep((useconds_t)test_random_below(&random, 20000));
            test_wharfd_restart(&wharfd);
            n_daemon_kills++;
        } else if (n_client_kills < N_CLIENT_KILLS) {
            kill_client(&pids[test_random_below(&random, N_CLIENTS)], seed += 100000);
            n_client_kills++;
        }
        expect_alive(pids);
    }
    cr_assert(TEST_WAIT(count(&shared->n_reconnects) >= N_DAEMON_KILLS));
    cr_assert(TEST_WAIT(count(&shared->n_done) > 1000));
    __atomic_store_n(&shared->stop, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < N_CLIENTS; i++)
        expect_good_end(pids[i]);
    expect_nothing_left();
    test_wharfd_finish(&wharfd);
    test_chunks_deinit(&chunks);
}
