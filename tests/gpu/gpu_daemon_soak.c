/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_daemon_soak.c: runs clients of all kinds together for long, and checks for leaks. */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "daemon/base/clock.h"
#include "tests/gpu/gpu_daemon.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_storm.h"
#include "tests/lib/test_tap.h"
#include "tests/lib/test_worker.h"

enum { N_CLIENTS = 16, N_IN_FLIGHT = 48, RING_ENTRIES = 16, N_KILLS = 4 };

/* What all clients are told, and what they tell. */
struct board {
    bool stop;
    uint64_t n_jobs[N_CLIENTS];
    uint64_t n_rounds[N_CLIENTS];
};

struct soak {
    struct board *board;
    const struct test_chunks *chunks;
    uint32_t engine;
    pid_t pids[N_CLIENTS];
    uint64_t seed;
    unsigned n_failed;
};

/* One client, in its process. */
struct client {
    struct soak *soak;
    unsigned number;
    struct test_random random;
};

static bool is_stopped(const struct client *client)
{
    return __atomic_load_n(&client->soak->board->stop, __ATOMIC_RELAXED);
}

_Noreturn static void give_up(const struct client *client, const char *what)
{
    printf("# client %u: %s\n", client->number, what);
    fflush(stdout);
    _exit(1);
}

static void must(const struct client *client, int r)
{
    if (r < 0)
        give_up(client, wharf_error_message());
}

/* ---- kinds of clients: one round of each ----------------------------------------------------- */

static void blow(struct client *client, struct wharf *wharf, uint64_t n_jobs)
{
    struct test_storm storm = {
        .wharf = wharf,
        .chunks = client->soak->chunks,
        .way = (enum test_storm_way)test_random_below(&client->random, 3),
        .seed = test_random_next(&client->random),
        .n_jobs = n_jobs,
        .n_in_flight = n_jobs < N_IN_FLIGHT ? (unsigned)n_jobs : N_IN_FLIGHT,
        .batch_one_in = 8,
        .cancel_one_in = 10,
        .limit_s = 300,
    };

    if (test_storm_run(&storm) < 0)
        give_up(client, storm.error);
    client->soak->board->n_jobs[client->number] += storm.n_done;
}

/* Long-lived handles. */
static void storm_on(struct client *client, uint32_t engine)
{
    struct wharf *wharf = gpu_daemon_open(engine, 2 * N_IN_FLIGHT, 64 << 20);

    for (unsigned i = 0; i < 8 && !is_stopped(client); i++)
        blow(client, wharf, 200);
    wharf_close(wharf);
}

static void storm_on_gpu(struct client *client)
{
    storm_on(client, client->soak->engine);
}

static void storm_on_any(struct client *client)
{
    storm_on(client, WHARF_ENGINE_AUTO);
}

static void storm_on_cpu(struct client *client)
{
    storm_on(client, WHARF_ENGINE_CPU);
}

static void come_and_go(struct client *client)
{
    struct wharf *wharf = gpu_daemon_open(
        test_random_one_in(&client->random, 2) ? client->soak->engine : WHARF_ENGINE_AUTO,
        2 * N_IN_FLIGHT, 0);

    blow(client, wharf, 20);
    wharf_close(wharf);
}

static bool is_right(const struct test_chunk *chunk, uint32_t result, const void *out)
{
    return result == chunk->outcome.result &&
           (result != WHARF_OK || memcmp(out, chunk->plain, chunk->outcome.out_nbytes) == 0);
}

static const struct test_chunk *any_chunk(struct client *client)
{
    const struct test_chunks *chunks = client->soak->chunks;

    return &chunks->chunks[test_random_below(&client->random, chunks->n)];
}

static struct wharf_job job_of(const struct test_chunk *chunk, const void *in, void *out)
{
    struct wharf_job job = WHARF_JOB_INIT;

    job.codec = chunk->codec;
    job.in = in;
    job.in_nbytes = chunk->packed_nbytes;
    job.out = out;
    job.out_avail = chunk->out_avail;
    return job;
}

/* Memory that the library has to copy. */
static void decompress_here(struct client *client)
{
    struct wharf *wharf = gpu_daemon_open(WHARF_ENGINE_AUTO, 4, 8 << 20);
    uint8_t *out = malloc(client->soak->chunks->max_out_avail + 1);

    for (unsigned i = 0; i < 200 && !is_stopped(client); i++) {
        const struct test_chunk *chunk = any_chunk(client);
        struct wharf_job job = job_of(chunk, chunk->packed, out);
        struct wharf_outcome outcome;
        must(client, wharf_decompress(wharf, &job, &outcome));
        if (!is_right(chunk, outcome.result, out))
            give_up(client, "wrong bytes of wharf_decompress");
        client->soak->board->n_jobs[client->number]++;
    }
    free(out);
    wharf_close(wharf);
}

/* One interactive job now and then. */
static void ask_seldom(struct client *client)
{
    struct wharf *wharf = gpu_daemon_open(WHARF_ENGINE_AUTO, 4, 8 << 20);
    void *in, *out;

    must(client, wharf_alloc(wharf, client->soak->chunks->max_packed_nbytes, &in));
    must(client, wharf_alloc(wharf, client->soak->chunks->max_out_avail, &out));
    for (unsigned i = 0; i < 50 && !is_stopped(client); i++) {
        const struct test_chunk *chunk = any_chunk(client);
        struct wharf_job job = job_of(chunk, in, out);
        struct wharf_completion done;
        memcpy(in, chunk->packed, chunk->packed_nbytes);
        job.job_class = WHARF_CLASS_INTERACTIVE;
        must(client, wharf_submit(wharf, &job, 1));
        must(client, wharf_wait(wharf, &done, 1, 1, -1));
        if (!is_right(chunk, done.result, out))
            give_up(client, "wrong bytes of a lone job");
        client->soak->board->n_jobs[client->number]++;
        usleep(20000);
    }
    wharf_close(wharf);
}

static void run_registered(struct client *client, struct wharf *wharf, uint8_t *memory)
{
    const struct test_chunk *chunk = any_chunk(client);
    struct wharf_job job = job_of(chunk, memory, memory + client->soak->chunks->max_packed_nbytes);
    struct wharf_completion done;

    memcpy(memory, chunk->packed, chunk->packed_nbytes);
    must(client, wharf_submit(wharf, &job, 1));
    must(client, wharf_wait(wharf, &done, 1, 1, -1));
    if (!is_right(chunk, done.result, job.out))
        give_up(client, "wrong bytes in registered memory");
    client->soak->board->n_jobs[client->number]++;
}

/* Memory of the client's own, which comes and goes. */
static void register_memory(struct client *client)
{
    const struct test_chunks *chunks = client->soak->chunks;
    struct wharf_memory region = WHARF_MEMORY_INIT;
    struct wharf *wharf = gpu_daemon_open(client->soak->engine, 4, 1 << 20);

    for (unsigned i = 0; i < 10 && !is_stopped(client); i++) {
        region.nbytes = chunks->max_packed_nbytes + chunks->max_out_avail + 1;
        region.fd = test_memfd(region.nbytes, F_SEAL_SHRINK | F_SEAL_GROW);
        region.address =
            mmap(NULL, region.nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, region.fd, 0);
        if (region.fd < 0 || region.address == MAP_FAILED)
            give_up(client, "no memory to register");
        must(client, wharf_register(wharf, &region));
        for (unsigned k = 0; k < 20; k++)
            run_registered(client, wharf, region.address);
        must(client, wharf_unregister(wharf, region.address));
        munmap(region.address, region.nbytes);
        close(region.fd);
    }
    wharf_close(wharf);
}

/* Hands in what it never takes back, some of it too late. */
static void leave_in_flight(struct client *client)
{
    const struct test_chunks *chunks = client->soak->chunks;
    struct wharf *wharf = gpu_daemon_open(client->soak->engine, 2 * N_IN_FLIGHT, 64 << 20);

    for (unsigned i = 0; i < N_IN_FLIGHT; i++) {
        const struct test_chunk *chunk = any_chunk(client);
        void *in, *out;
        must(client, wharf_alloc(wharf, chunks->max_packed_nbytes, &in));
        must(client, wharf_alloc(wharf, chunks->max_out_avail, &out));
        memcpy(in, chunk->packed, chunk->packed_nbytes);
        struct wharf_job job = job_of(chunk, in, out);
        job.timeout_us = test_random_one_in(&client->random, 2) ? 100 : 0;
        must(client, wharf_submit(wharf, &job, 1));
    }
    wharf_close(wharf);
}

/* Whatever it is that stands in the rings. */
static void scribble(struct client *client)
{
    size_t nbytes = wharf_ring_segment_nbytes(RING_ENTRIES);
    struct test_client *bad = test_client_start(gpu_daemon_wharfd()->socket, RING_ENTRIES, 1 << 20);

    test_random_fill(&client->random, bad->arena, 65536);
    for (unsigned i = 0; i < 20; i++) {
        test_random_fill(&client->random, (uint8_t *)bad->c + 1024, nbytes - 1024);
        uint32_t head = wharf_ring_load_cq_tail(&bad->d->cq_tail);
        wharf_ring_store_cq_head(&bad->c->cq_head, head);
        wharf_ring_store_sq_tail(&bad->c->sq_tail,
                                 head + (uint32_t)test_random_below(&client->random, 17));
        wharf_control_wake(bad->fd);
        usleep(200);
    }
    test_random_fill(&client->random, (uint8_t *)bad->c, nbytes);
    wharf_control_wake(bad->fd);
    test_client_free(bad);
}

/* Packets that are none, and answers that nobody reads. */
static void talk_nonsense(struct client *client)
{
    struct test_client *bad = test_client_connected(gpu_daemon_wharfd()->socket);
    uint8_t packet[256];

    for (unsigned i = 0; i < 20; i++) {
        size_t nbytes = 1 + test_random_below(&client->random, sizeof(packet));
        test_random_fill(&client->random, packet, nbytes);
        if (send(bad->fd, packet, nbytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            break;
    }
    test_client_free(bad);
    usleep(1000);
}

/* Reads what the daemon counts. */
static void read_metrics(struct client *client)
{
    struct test_client *reader = test_client_start(gpu_daemon_wharfd()->socket, 2, 0);

    if (test_client_metric(reader, "wharf_uptime_seconds", "", NULL) < 0)
        give_up(client, "no metrics");
    test_client_free(reader);
    usleep(20000);
}

static const struct {
    void (*round)(struct client *client);
    bool is_killed; /* and another one takes its place */
} kinds[N_CLIENTS] = {
    {storm_on_gpu, false},    {storm_on_gpu, false},    {storm_on_any, false},
    {storm_on_any, false},    {storm_on_cpu, false},    {come_and_go, false},
    {come_and_go, false},     {storm_on_gpu, true},     {storm_on_any, true},
    {come_and_go, true},      {ask_seldom, false},      {decompress_here, false},
    {register_memory, false}, {leave_in_flight, false}, {scribble, false},
    {talk_nonsense, true},
};

/* ---- all of them ---------------------------------------------------------------------------- */

static void start_client(struct soak *soak, unsigned number)
{
    fflush(stdout);
    soak->seed++;
    soak->pids[number] = fork();
    if (soak->pids[number] != 0)
        return;
    struct client client = {soak, number, {soak->seed}};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (!is_stopped(&client)) {
        kinds[number].round(&client);
        __atomic_fetch_add(&soak->board->n_rounds[number], 1, __ATOMIC_RELAXED);
        if (test_random_one_in(&client.random, 8))
            read_metrics(&client);
    }
    _exit(0);
}

/* Waits for a client; it must have ended well, unless it was to be killed. */
static void take_client(struct soak *soak, unsigned number, bool is_killed)
{
    int status = 0;

    if (waitpid(soak->pids[number], &status, 0) != soak->pids[number] ||
        !(status == 0 || (is_killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))) {
        printf("# client %u ended with status %d\n", number, status);
        soak->n_failed++;
    }
    soak->pids[number] = 0;
}

/* Kills a client, if the one that chance picks is to be killed. */
static void kill_client(struct soak *soak, struct test_random *random)
{
    unsigned number = (unsigned)test_random_below(random, N_CLIENTS);

    if (!kinds[number].is_killed)
        return;
    kill(soak->pids[number], SIGKILL);
    take_client(soak, number, true);
    start_client(soak, number);
}

#define LIMIT_NS (100 * (uint64_t)WHARF_NS_PER_S)

/* Whether each that is not killed has come round since it was started. */
static bool have_come_round(const struct soak *soak, const uint64_t before[N_CLIENTS])
{
    for (unsigned i = 0; i < N_CLIENTS; i++)
        if (!kinds[i].is_killed &&
            __atomic_load_n(&soak->board->n_rounds[i], __ATOMIC_RELAXED) == before[i])
            return false;
    return true;
}

/* Workers die n_kills times, each when it was ready: the daemon does without a GPU when three in a
 * row were not. */
static void run_clients(struct soak *soak, double seconds, unsigned n_kills)
{
    struct test_random random = {soak->seed};
    uint64_t begun_ns = wharf_now_ns(), span_ns = (uint64_t)(seconds * 1e9), past_ns;
    uint64_t n_rounds[N_CLIENTS];
    unsigned n_killed = 0;

    memcpy(n_rounds, soak->board->n_rounds, sizeof(n_rounds));
    soak->board->stop = false;
    for (unsigned i = 0; i < N_CLIENTS; i++)
        start_client(soak, i);
    while ((past_ns = wharf_now_ns() - begun_ns) < span_ns ||
           (!have_come_round(soak, n_rounds) && past_ns < span_ns + LIMIT_NS)) {
        usleep(50000);
        kill_client(soak, &random);
        pid_t worker = test_worker_pid(gpu_daemon_pid());
        if (worker && n_killed < n_kills && past_ns * (n_kills + 1) > span_ns * (n_killed + 1) &&
            test_wharfd_metric(gpu_daemon_wharfd(), "wharf_gpu_up", NULL) > 0) {
            kill(worker, SIGKILL);
            n_killed++;
        }
    }
    __atomic_store_n(&soak->board->stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < N_CLIENTS; i++)
        take_client(soak, i, false);
}

/* ---- what is left --------------------------------------------------------------------------- */

struct rest {
    double memory_nbytes, pinned_nbytes, connections, n_workers;
    int n_fds, n_worker_fds;
    long kib;
};

static struct rest rest_now(void)
{
    const struct test_wharfd *wharfd = gpu_daemon_wharfd();
    struct test_client *client = test_client_greeted(wharfd->socket);
    struct test_wharfd worker = *wharfd;
    struct rest rest = {
        .memory_nbytes = test_client_metric(client, "wharf_memory_bytes", "", NULL),
        .pinned_nbytes = test_client_metric(client, "wharf_gpu_pinned_bytes", "", NULL),
        .connections = test_client_metric(client, "wharf_connections", "", NULL),
        .n_workers = test_client_metric(client, "wharf_gpu_workers_ended_total", "", NULL),
        .n_fds = test_wharfd_n_fds(wharfd),
        .kib = test_wharfd_own_kib(wharfd),
    };

    worker.pid = test_worker_wait(wharfd->pid, 0);
    rest.n_worker_fds = test_wharfd_n_fds(&worker);
    test_client_free(client);
    return rest;
}

/* What the allocator of some twenty threads keeps differs by so much; a byte that is lost with each
 * job is more in ten minutes. */
#define MORE_KIB (16 << 10)

/* What is pinned ahead for sessions to come stays: `spare` in wharfd.conf, of which each piece has
 * two descriptors; and some entries more, what comes for a moment among them. */
#define SPARE_NBYTES (256 << 20)
#define SPARE_FDS 32

/* What clients had is given back within a while, but for the client that asks.  Their sockets wait
 * for a process that closes many at once. */
static bool is_at_rest(const struct rest *rest, const struct rest *at_first)
{
    return rest->memory_nbytes == 0 && rest->connections <= 1 &&
           rest->pinned_nbytes <= SPARE_NBYTES && rest->n_fds <= at_first->n_fds + SPARE_FDS &&
           rest->n_worker_fds <= at_first->n_worker_fds + SPARE_FDS;
}

static struct rest rest_in_time(const struct rest *at_first)
{
    uint64_t begun_ns = wharf_now_ns();
    struct rest rest = rest_now();

    while (!is_at_rest(&rest, at_first) && wharf_now_ns() - begun_ns < LIMIT_NS) {
        usleep(20000);
        rest = rest_now();
    }
    return rest;
}

static void report_work(const struct soak *soak, double n_workers)
{
    uint64_t n_jobs = 0, least = UINT64_MAX;

    for (unsigned i = 0; i < N_CLIENTS; i++) {
        n_jobs += soak->board->n_jobs[i];
        if (!kinds[i].is_killed && soak->board->n_rounds[i] < least)
            least = soak->board->n_rounds[i];
    }
    test_tap_report(soak->n_failed == 0 && least > 0,
                    "%d clients at once: %llu jobs looked at, %u clients failed, each came round "
                    "%llu times or more; %g workers were killed",
                    N_CLIENTS, (unsigned long long)n_jobs, soak->n_failed,
                    (unsigned long long)least, n_workers);
}

void gpu_daemon_soak(uint32_t engine, const struct test_chunks *chunks, double seconds)
{
    struct soak soak = {.chunks = chunks, .engine = engine, .seed = 1};

    soak.board =
        mmap(NULL, sizeof(*soak.board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (soak.board == MAP_FAILED)
        abort();
    /* A daemon whose first worker is killed before it serves anybody does not start. */
    wharf_close(gpu_daemon_open(engine, 2, 1 << 20));
    struct rest at_first = rest_now();
    /* What a daemon takes once and keeps is there after a part of it. */
    run_clients(&soak, 0.2 * seconds, 1);
    struct rest before = rest_in_time(&at_first);
    run_clients(&soak, 0.8 * seconds, N_KILLS);
    struct rest after = rest_in_time(&at_first);
    report_work(&soak, after.n_workers);
    test_tap_report(after.memory_nbytes == 0 && after.connections == 1,
                    "no memory is charged and nobody connected: %g bytes, %g clients",
                    after.memory_nbytes, after.connections - 1);
    test_tap_report(after.pinned_nbytes <= SPARE_NBYTES,
                    "only spare memory is pinned: %g bytes, then %g", before.pinned_nbytes,
                    after.pinned_nbytes);
    test_tap_report(after.n_fds <= at_first.n_fds + SPARE_FDS &&
                        after.n_worker_fds <= at_first.n_worker_fds + SPARE_FDS,
                    "no descriptor is left: %d and %d of the worker, then %d and %d",
                    at_first.n_fds, at_first.n_worker_fds, after.n_fds, after.n_worker_fds);
    test_tap_report(after.kib < before.kib + MORE_KIB,
                    "no memory of its own is left: %ld KiB, then %ld", before.kib, after.kib);
    munmap(soak.board, sizeof(*soak.board));
}
