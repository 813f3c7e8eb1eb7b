/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon_recovery.c: kill -9 of the daemon under a client that has a thousand jobs in flight.
 *
 * The client keeps DEPTH jobs in flight until it hears of the kill, and does nothing else, so that
 * it is not slower than the daemon, however many processors that has.  Then it takes what is left,
 * and compares every job's output with what it must be.  The daemon that comes next says READY to
 * the socket that NOTIFY_SOCKET names, as it does to systemd.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/bench/daemon_parts.h"

/* Some more than the 1000 that must be in flight: a client takes completions meanwhile. */
enum { DEPTH = 1200, AT_ONCE = 64, REPETITIONS = 10, RUN_US = 100000 };
#define FIRST_LIMIT_US 100000

struct client {
    pthread_t thread;
    const struct bench_source *source;
    const char *socket;
    bool is_busy; /* all DEPTH jobs were submitted */
    bool killed;  /* told by the one who kills */
    unsigned chunk_of[DEPTH];
    unsigned n_left;        /* in flight when it heard of the kill */
    unsigned n_resubmitted; /* of these, not completed by the daemon that died */
    double first_us;        /* when it took the first result of the next daemon */
    double last_us;
};

static void submit(struct wharf *wharf, struct client *client, const struct bench_loaded *loaded,
                   uint8_t *out, const struct wharf_completion *done, int n)
{
    struct wharf_job jobs[AT_ONCE];

    for (int i = 0; i < n; i++) {
        uint64_t slot = done[i].user_data;
        /* Another chunk than the slot had before, so that its old output is not right by chance. */
        unsigned chunk = client->chunk_of[slot] =
            (client->chunk_of[slot] + 1) % client->source->n_chunks;
        jobs[i] = bench_job(client->source, chunk, loaded->in[chunk], out + slot * BENCH_CHUNK);
        jobs[i].user_data = slot;
    }
    if (wharf_submit(wharf, jobs, (unsigned)n) != n)
        bench_die("cannot submit");
}

static int take(struct wharf *wharf, struct wharf_completion *done)
{
    int n = wharf_wait(wharf, done, AT_ONCE, 1, -1);

    if (n < 0)
        bench_die("cannot wait");
    for (int i = 0; i < n; i++)
        if (done[i].result != WHARF_OK || done[i].out_nbytes != BENCH_CHUNK)
            bench_die("a job failed");
    return n;
}

static void compare(const struct client *client, const uint8_t *out,
                    const struct wharf_completion *done, int n)
{
    for (int i = 0; i < n; i++) {
        uint64_t slot = done[i].user_data;
        const uint8_t *plain = client->source->plain[client->chunk_of[slot]];
        if (memcmp(out + slot * BENCH_CHUNK, plain, BENCH_CHUNK) != 0)
            bench_die("a job has a wrong result");
    }
}

static struct wharf_info info_of(struct wharf *wharf)
{
    struct wharf_info info = {.struct_nbytes = sizeof(info)};

    if (wharf_get_info(wharf, &info) < 0)
        bench_die("no information");
    return info;
}

/* After the kill: takes everything, and notes when the next daemon's first result came. */
static void take_rest(struct wharf *wharf, struct client *client, const uint8_t *out)
{
    struct wharf_completion done[AT_ONCE];
    unsigned n_left = client->n_left;

    while (n_left > 0) {
        int n = take(wharf, done);
        if (client->first_us == 0 && info_of(wharf).n_reconnects > 0)
            client->first_us = bench_now_us();
        compare(client, out, done, n);
        n_left -= (unsigned)n;
    }
    client->last_us = bench_now_us();
    client->n_resubmitted = (unsigned)info_of(wharf).n_resubmitted;
}

static void *run_client(void *data)
{
    struct client *client = data;
    struct wharf *wharf = bench_open(client->socket, 0, DEPTH);
    struct bench_loaded loaded = bench_load(wharf, client->source);
    uint8_t *out = bench_alloc(wharf, (size_t)DEPTH * BENCH_CHUNK);
    struct wharf_completion done[AT_ONCE];
    int n = 0;

    for (unsigned i = 0; i < DEPTH; i++) {
        done[0].user_data = i;
        submit(wharf, client, &loaded, out, done, 1);
    }
    client->n_left = DEPTH;
    __atomic_store_n(&client->is_busy, true, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&client->killed, __ATOMIC_ACQUIRE)) {
        n = take(wharf, done);
        if (__atomic_load_n(&client->killed, __ATOMIC_ACQUIRE))
            client->n_left -= (unsigned)n;
        else
            submit(wharf, client, &loaded, out, done, n);
    }
    take_rest(wharf, client, out);
    free(loaded.in);
    wharf_close(wharf);
    return NULL;
}

/* ---- READY --------------------------------------------------------------------------------- */

static int listen_for_ready(const struct daemon_bench *bench)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", bench->wharfd.folder);
    unlink(address.sun_path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        bench_die("no socket for READY");
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    return fd;
}

struct ready {
    pthread_t thread;
    int fd;
    double us;
};

static void *hear_ready(void *data)
{
    struct ready *ready = data;
    char text[1024];

    for (;;) {
        ssize_t n = recv(ready->fd, text, sizeof(text) - 1, 0);
        if (n < 0)
            bench_die("cannot hear the daemon");
        text[n] = 0;
        if (strstr(text, "READY=1")) {
            ready->us = bench_now_us();
            return NULL;
        }
    }
}

/* ---- one time ------------------------------------------------------------------------------ */

struct recovery {
    struct bench_samples first; /* from READY to the first result */
    struct bench_samples all;   /* from the kill to the last one */
    unsigned n_least_left;
    unsigned n_resubmitted;
};

static void kill_once(struct daemon_bench *bench, struct ready *ready, struct recovery *recovery)
{
    static struct client client;

    client = (struct client){.source = &bench->sources[0], .socket = bench->wharfd.socket};
    if (pthread_create(&client.thread, NULL, run_client, &client) != 0 ||
        pthread_create(&ready->thread, NULL, hear_ready, ready) != 0)
        bench_die("cannot make a thread");
    /* On a busy machine that takes long, and opening a handle does not outlive a daemon. */
    while (!__atomic_load_n(&client.is_busy, __ATOMIC_ACQUIRE))
        usleep(1000);
    usleep(RUN_US);
    double killed_us = bench_now_us();
    kill(bench->wharfd.pid, SIGKILL);
    __atomic_store_n(&client.killed, true, __ATOMIC_RELEASE);
    test_wharfd_wait(&bench->wharfd);
    /* It accepts until the kernel has put everything away: test_wharfd.c removes the other one. */
    unlink(bench->second_socket);
    test_wharfd_restart(&bench->wharfd);
    pthread_join(ready->thread, NULL);
    pthread_join(client.thread, NULL);
    if (client.first_us == 0)
        bench_die("nothing was left to be done again");
    double first_us = client.first_us - ready->us;
    bench_samples_add(&recovery->first, first_us > 0 ? first_us : 0);
    bench_samples_add(&recovery->all, client.last_us - killed_us);
    recovery->n_resubmitted += client.n_resubmitted;
    if (client.n_left < recovery->n_least_left)
        recovery->n_least_left = client.n_left;
}

void bench_recovery(struct daemon_bench *bench)
{
    struct recovery recovery = {
        .first = bench_samples_new(REPETITIONS),
        .all = bench_samples_new(REPETITIONS),
        .n_least_left = DEPTH,
    };
    struct ready ready = {.fd = listen_for_ready(bench)};
    char more[128];

    /* The one that runs knows nothing of the socket. */
    for (unsigned i = 0; i < REPETITIONS; i++)
        kill_once(bench, &ready, &recovery);
    unsetenv("NOTIFY_SOCKET");
    close(ready.fd);
    snprintf(more, sizeof(more), ", \"in_flight_least\": %u, \"resubmitted\": %u, \"wrong\": 0",
             recovery.n_least_left, recovery.n_resubmitted / REPETITIONS);
    struct bench_latency_row row = {
        .what = "kill -9 of the daemon, from READY to the first result",
        .data = bench->sources[0].name,
        .n_samples = REPETITIONS,
        .times = bench_samples_spread(&recovery.first),
        .limited = "max_us",
        .limit_us = FIRST_LIMIT_US,
        .more = more,
    };
    bench_print_latency_row(stdout, &row);
    row.what = "kill -9 of the daemon, from it to the last result";
    row.times = bench_samples_spread(&recovery.all);
    row.limited = NULL;
    bench_print_latency_row(stdout, &row);
    bench_samples_free(&recovery.first);
    bench_samples_free(&recovery.all);
}
