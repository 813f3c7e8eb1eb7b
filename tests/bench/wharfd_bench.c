/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wharfd_bench.c: what the daemon costs, and whether it is fair.
 *
 *     wharfd_bench [--samples N] [--clients N] [--seconds S] [WHAT...]
 *
 * It starts a daemon of its own, the wharfd beside it, and prints one JSON object a row:
 *   noop_spin     an operation that does nothing; client and daemon both spin
 *   noop_sleep    the same, with a client that sleeps until it is done, and a pause before each, so
 * that the daemon sleeps too lone_chunk    one chunk of 64 KiB at a time, beside the same decoder
 * in this process, turn by turn flood         as many clients as processors with 16 chunks each in
 * flight, beside as many threads in this process, turn by turn fair_share    two tenants that
 * flood, one of them with twice as many clients fair_latency  interactive chunks of one tenant
 * alone, and beside another one's flood Times are in microseconds: the least, the middle one and
 * the 99th of 100.
 */
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "encoders/decode_job.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_wharfd.h"

enum { CHUNK = 65536, DEPTH = 16, MOST_SAMPLES = 1000000, MOST_CLIENTS = 256 };

static unsigned n_samples = 5000;
static unsigned n_clients;
static double n_seconds = 2;

static struct test_wharfd wharfd;
static char second_socket[128];
static uint8_t *packed; /* one chunk */
static size_t packed_nbytes;

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "wharfd_bench: %s\n", what);
    exit(1);
}

/* ---- samples ------------------------------------------------------------------------------- */

struct samples {
    double us[MOST_SAMPLES];
    unsigned n;
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_samples(const char *what, struct samples *samples)
{
    if (samples->n == 0)
        die("no samples");
    qsort(samples->us, samples->n, sizeof(samples->us[0]), compare_doubles);
    printf("{\"what\": \"%s\", \"n\": %u, \"min_us\": %.2f, \"p50_us\": %.2f, \"p99_us\": %.2f}\n",
           what, samples->n, samples->us[0], samples->us[samples->n / 2],
           samples->us[samples->n * 99 / 100]);
    fflush(stdout);
    samples->n = 0;
}

static struct samples first, second;

/* ---- jobs ---------------------------------------------------------------------------------- */

static struct wharf_submission decode_of(unsigned slot, uint8_t class)
{
    return (struct wharf_submission){
        .opcode = WHARF_OP_DECODE,
        .job_class = class,
        .codec = WHARF_CODEC_ZLIB,
        .user_data = slot,
        .src_nbytes = packed_nbytes,
        .dst_offset = (1 + (uint64_t)slot) * CHUNK,
        .dst_nbytes = CHUNK,
    };
}

static struct test_client *start_client(const char *socket)
{
    struct test_client *client = test_client_start(socket, 2 * DEPTH, (DEPTH + 1) * CHUNK);

    memcpy(client->arena, packed, packed_nbytes);
    return client;
}

static void reap_spinning(struct test_client *client)
{
    struct wharf_completion completion;
    int r;

    while ((r = wharf_ring_reap(&client->ring, &completion)) == 0)
        ;
    if (r < 0 || completion.result != WHARF_OK)
        die("a job failed");
}

static void reap_sleeping(struct test_client *client)
{
    struct wharf_completion completion;

    if (test_client_reap(client, &completion) < 0 || completion.result != WHARF_OK)
        die("a job failed");
    wharf_ring_client_disarm(&client->ring);
}

static double time_one(struct test_client *client, const struct wharf_submission *submission,
                       bool sleeps)
{
    double start = now_us();

    if (test_client_submit(client, submission) < 0)
        die("cannot submit");
    if (sleeps)
        reap_sleeping(client);
    else
        reap_spinning(client);
    return now_us() - start;
}

/* ---- one at a time ------------------------------------------------------------------------- */

static void bench_noop_spin(void)
{
    struct test_client *client = start_client(wharfd.socket);
    struct wharf_submission noop = {.opcode = WHARF_OP_NOOP};

    for (unsigned i = 0; i < n_samples * 10 && i < MOST_SAMPLES; i++)
        first.us[first.n++] = time_one(client, &noop, false);
    print_samples("noop_spin", &first);
    test_client_free(client);
}

static void bench_noop_sleep(void)
{
    struct test_client *client = start_client(wharfd.socket);
    struct wharf_submission noop = {.opcode = WHARF_OP_NOOP};

    for (unsigned i = 0; i < n_samples; i++)
        first.us[first.n++] = time_one(client, &noop, true);
    print_samples("noop_sleep_daemon_awake", &first);
    for (unsigned i = 0; i < n_samples / 5; i++) {
        usleep(300);
        first.us[first.n++] = time_one(client, &noop, true);
    }
    print_samples("noop_sleep_daemon_asleep", &first);
    test_client_free(client);
}

static void decode_here(uint8_t *out)
{
    struct wharf_decode_job job = {
        .codec = WHARF_CODEC_ZLIB,
        .in = packed,
        .in_nbytes = packed_nbytes,
        .out = out,
        .out_avail = CHUNK,
    };
    struct wharf_outcome outcome;

    wharf_decode_job_run(&job, 0, &outcome);
    if (outcome.result != WHARF_OK)
        die("cannot decode");
}

static void bench_lone_chunk(void)
{
    struct test_client *client = start_client(wharfd.socket);
    struct wharf_submission chunk = decode_of(0, WHARF_CLASS_DEFAULT);
    uint8_t *out = malloc(CHUNK);

    for (unsigned sleeps = 0; sleeps < 2; sleeps++) {
        for (unsigned i = 0; i < n_samples; i++) {
            double start = now_us();
            decode_here(out);
            second.us[second.n++] = now_us() - start;
            first.us[first.n++] = time_one(client, &chunk, sleeps);
        }
        print_samples("lone_chunk_in_process", &second);
        print_samples(sleeps ? "lone_chunk_sleep" : "lone_chunk_spin", &first);
    }
    free(out);
    test_client_free(client);
}

/* ---- floods -------------------------------------------------------------------------------- */

/* Shared with the processes that flood. */
static struct shared {
    bool stop;
    uint64_t n_done[MOST_CLIENTS];
} * shared;

static void flood(const char *socket, uint64_t *n_done)
{
    struct test_client *client = start_client(socket);
    struct wharf_completion completion;

    for (unsigned i = 0; i < DEPTH; i++) {
        struct wharf_submission s = decode_of(i, WHARF_CLASS_DEFAULT);
        wharf_ring_submit(&client->ring, &s);
    }
    if (test_client_publish(client) < 0)
        die("cannot submit");
    while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
        if (test_client_sleep(client, DEPTH / 2) < 0)
            die("cannot wait");
        while (wharf_ring_reap(&client->ring, &completion) == 1) {
            if (completion.result != WHARF_OK)
                die("a job failed");
            struct wharf_submission s =
                decode_of((unsigned)completion.user_data, WHARF_CLASS_DEFAULT);
            wharf_ring_submit(&client->ring, &s);
            __atomic_fetch_add(n_done, 1, __ATOMIC_RELAXED);
        }
        if (test_client_publish(client) < 0)
            die("cannot submit");
    }
    test_client_free(client);
}

static pid_t fork_flood(const char *socket, unsigned at)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        flood(socket, &shared->n_done[at]);
        _exit(0);
    }
    return pid;
}

static void stop_floods(const pid_t *pids, unsigned n)
{
    int status;

    __atomic_store_n(&shared->stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < n; i++)
        if (waitpid(pids[i], &status, 0) < 0 || status != 0)
            die("a client failed");
    shared->stop = false;
}

static void *flood_here(void *data)
{
    uint8_t *out = malloc(CHUNK);

    while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
        decode_here(out);
        ++*(uint64_t *)data;
    }
    free(out);
    return NULL;
}

/* Chunks a second, in these many seconds. */
static double rate_here(double seconds)
{
    pthread_t threads[MOST_CLIENTS];
    static uint64_t n_done[MOST_CLIENTS * 16]; /* a cache line apart, twice */
    uint64_t total = 0;
    double start = now_us();

    for (unsigned i = 0; i < n_clients; i++) {
        n_done[16 * i] = 0;
        pthread_create(&threads[i], NULL, flood_here, &n_done[16 * i]);
    }
    usleep((useconds_t)(1e6 * seconds));
    __atomic_store_n(&shared->stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < n_clients; i++) {
        pthread_join(threads[i], NULL);
        total += n_done[16 * i];
    }
    shared->stop = false;
    return (double)total / (now_us() - start) * 1e6;
}

static uint64_t total_done(unsigned from, unsigned to)
{
    uint64_t total = 0;

    for (unsigned i = from; i < to; i++)
        total += __atomic_load_n(&shared->n_done[i], __ATOMIC_RELAXED);
    return total;
}

static double rate_of_daemon(double seconds)
{
    pid_t pids[MOST_CLIENTS];

    for (unsigned i = 0; i < n_clients; i++)
        pids[i] = fork_flood(wharfd.socket, i);
    usleep(100000);
    double start = now_us();
    uint64_t before = total_done(0, n_clients);
    usleep((useconds_t)(1e6 * seconds));
    double rate = (double)(total_done(0, n_clients) - before) / (now_us() - start) * 1e6;
    stop_floods(pids, n_clients);
    return rate;
}

/* The best of several turns of each: others load the machine too. */
static void bench_flood(void)
{
    enum { TURNS = 6 };
    double here = 0, daemon = 0;

    for (unsigned i = 0; i < TURNS; i++) {
        double rate = rate_here(n_seconds / TURNS);
        here = rate > here ? rate : here;
        rate = rate_of_daemon(n_seconds / TURNS);
        daemon = rate > daemon ? rate : daemon;
    }
    printf("{\"what\": \"flood\", \"clients\": %u, \"in_process_per_s\": %.0f, "
           "\"daemon_per_s\": %.0f, \"percent\": %.1f}\n",
           n_clients, here, daemon, 100 * daemon / here);
    fflush(stdout);
}

static void bench_fair_share(void)
{
    enum { N = 6 };
    pid_t pids[N];

    /* A third of the clients is one tenant's. */
    for (unsigned i = 0; i < N; i++)
        pids[i] = fork_flood(i < N / 3 ? second_socket : wharfd.socket, i);
    usleep(200000);
    uint64_t before[2] = {total_done(0, N / 3), total_done(N / 3, N)};
    usleep((useconds_t)(1e6 * n_seconds));
    double few = (double)(total_done(0, N / 3) - before[0]);
    double many = (double)(total_done(N / 3, N) - before[1]);
    stop_floods(pids, N);
    printf(
        "{\"what\": \"fair_share\", \"few_clients_chunks\": %.0f, \"many_clients_chunks\": %.0f, "
        "\"percent_apart\": %.1f}\n",
        few, many, 100 * (many > few ? many / few - 1 : few / many - 1));
    fflush(stdout);
}

static void sample_interactive(struct test_client *client, struct samples *samples)
{
    struct wharf_submission chunk = decode_of(0, WHARF_CLASS_INTERACTIVE);

    for (unsigned i = 0; i < n_samples / 5; i++) {
        usleep(500);
        samples->us[samples->n++] = time_one(client, &chunk, true);
    }
}

static void bench_fair_latency(void)
{
    struct test_client *client = start_client(second_socket);
    pid_t pids[MOST_CLIENTS];

    sample_interactive(client, &first);
    print_samples("interactive_alone", &first);
    for (unsigned i = 0; i < n_clients; i++)
        pids[i] = fork_flood(wharfd.socket, i);
    usleep(100000);
    sample_interactive(client, &second);
    print_samples("interactive_beside_a_flood", &second);
    stop_floods(pids, n_clients);
    test_client_free(client);
}

/* ---- main ---------------------------------------------------------------------------------- */

static const struct bench {
    const char *name;
    void (*run)(void);
} benches[] = {
    {"noop_spin", bench_noop_spin},   {"noop_sleep", bench_noop_sleep},
    {"lone_chunk", bench_lone_chunk}, {"flood", bench_flood},
    {"fair_share", bench_fair_share}, {"fair_latency", bench_fair_latency},
};

static void pack_chunk(void)
{
    uint8_t *plain = test_data_new(test_data_find("text"), 1, CHUNK);
    uLongf nbytes = compressBound(CHUNK);

    packed = malloc(nbytes);
    if (!packed || compress2(packed, &nbytes, plain, CHUNK, 6) != Z_OK)
        die("cannot pack");
    packed_nbytes = nbytes;
    free(plain);
}

static void start_daemon(void)
{
    char config[512];

    /* The folder's name is known only when the daemon has been started in it once. */
    test_wharfd_start(&wharfd, "");
    test_wharfd_stop(&wharfd);
    snprintf(second_socket, sizeof(second_socket), "%s/second", wharfd.folder);
    snprintf(config, sizeof(config), "[listen second]\npath = %s\ntenant = socket\n",
             second_socket);
    FILE *file = fopen(wharfd.config, "we");
    if (!file || fputs(config, file) < 0 || fclose(file) < 0)
        die("cannot write the configuration");
    test_wharfd_restart(&wharfd);
}

static bool is_wanted(const char *name, char **names, int n_names)
{
    for (int i = 0; i < n_names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return n_names == 0;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"samples", required_argument, NULL, 'n'},
        {"clients", required_argument, NULL, 'c'},
        {"seconds", required_argument, NULL, 's'},
        {NULL, 0, NULL, 0},
    };
    int option;

    n_clients = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    while ((option = getopt_long(argc, argv, "", known, NULL)) >= 0) {
        if (option == 'n')
            n_samples = (unsigned)atoi(optarg);
        else if (option == 'c')
            n_clients = (unsigned)atoi(optarg);
        else if (option == 's')
            n_seconds = atof(optarg);
        else
            return 2;
    }
    if (n_samples < 100 || n_samples > MOST_SAMPLES || n_clients < 1 || n_clients > MOST_CLIENTS)
        die("out of limits");
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die("out of memory");
    pack_chunk();
    start_daemon();
    for (unsigned i = 0; i < sizeof(benches) / sizeof(benches[0]); i++)
        if (is_wanted(benches[i].name, argv + optind, argc - optind))
            benches[i].run();
    test_wharfd_stop(&wharfd);
    test_wharfd_remove(&wharfd);
    return 0;
}
