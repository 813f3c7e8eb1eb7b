/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon_flood.c: many clients at once.
 *
 * Forked processes that all count into one page, each with 16 chunks in flight: throughput and
 * fairness on the CPU, beside threads of this process, where the load has to cost next to nothing.
 * share_client.c times calls and has peers; gpu_daemon_flood.c asks where chunks wait.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "encoders/rans/rans.h"
#include "tests/bench/daemon_parts.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_rans.h"

/* Chunks that one client has in flight, and measurements of each side. */
enum { DEPTH = 16, TURNS = 7, CACHE_LINE = 64 };

/* Longer than clients take to connect and to fill their queues. */
#define WARM_UP_US 50000

/* ---- client processes ---------------------------------------------------------------------- */

struct counter {
    _Alignas(2 * CACHE_LINE) uint64_t n_done;
};

/* Shared with the processes that flood. */
struct flood {
    bool stop;
    struct counter counters[BENCH_MOST_CLIENTS];
};

struct crew {
    struct flood *flood;
    pid_t pids[BENCH_MOST_CLIENTS];
    unsigned n;
};

/* Slot i of a client decodes into its own output, one chunk of the source after another. */
static void flood_until_told(struct wharf *wharf, const struct bench_source *source,
                             struct flood *flood, struct counter *counter)
{
    struct bench_loaded loaded = bench_load(wharf, source);
    uint8_t *out = bench_alloc(wharf, (size_t)DEPTH * BENCH_CHUNK);
    struct wharf_completion done[DEPTH];
    struct wharf_job jobs[DEPTH];
    int n = DEPTH;

    for (unsigned i = 0; i < DEPTH; i++)
        done[i].user_data = i;
    while (n > 0 && !__atomic_load_n(&flood->stop, __ATOMIC_RELAXED)) {
        for (int i = 0; i < n; i++) {
            uint64_t slot = done[i].user_data;
            unsigned chunk = (unsigned)(counter->n_done + (unsigned)i) % source->n_chunks;
            jobs[i] = bench_job(source, chunk, loaded.in[chunk], out + slot * BENCH_CHUNK);
            jobs[i].user_data = slot;
        }
        if (wharf_submit(wharf, jobs, (unsigned)n) != n)
            bench_die("cannot submit");
        n = wharf_wait(wharf, done, DEPTH, DEPTH / 2, -1);
        for (int i = 0; i < n; i++)
            if (done[i].result != WHARF_OK || done[i].out_nbytes != BENCH_CHUNK)
                bench_die("a job failed");
        __atomic_fetch_add(&counter->n_done, (uint64_t)n, __ATOMIC_RELAXED);
    }
    if (n <= 0)
        bench_die("cannot wait");
}

static void add_client(struct crew *crew, const char *socket, const struct bench_source *source)
{
    struct counter *counter = &crew->flood->counters[crew->n];
    pid_t pid = fork();

    if (pid < 0)
        bench_die("cannot fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct wharf *wharf = bench_open(socket, 0, DEPTH);
        flood_until_told(wharf, source, crew->flood, counter);
        wharf_close(wharf);
        _exit(0);
    }
    crew->pids[crew->n++] = pid;
}

static void crew_init(struct crew *crew)
{
    *crew = (struct crew){0};
    crew->flood =
        mmap(NULL, sizeof(*crew->flood), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (crew->flood == MAP_FAILED)
        bench_die("out of memory");
}

static void crew_deinit(struct crew *crew)
{
    int status;

    __atomic_store_n(&crew->flood->stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < crew->n; i++)
        if (waitpid(crew->pids[i], &status, 0) < 0 || status != 0)
            bench_die("a client failed");
    munmap(crew->flood, sizeof(*crew->flood));
}

/* Chunks that clients from..to have done. */
static uint64_t crew_done(const struct crew *crew, unsigned from, unsigned to)
{
    uint64_t total = 0;

    for (unsigned i = from; i < to; i++)
        total += __atomic_load_n(&crew->flood->counters[i].n_done, __ATOMIC_RELAXED);
    return total;
}

/* ---- throughput ---------------------------------------------------------------------------- */

struct decoder_thread {
    pthread_t thread;
    const struct bench_source *source;
    const bool *stop;
    struct counter counter;
};

static void *decode_until_told(void *data)
{
    struct decoder_thread *thread = data;
    uint8_t *out = malloc((size_t)DEPTH * BENCH_CHUNK);

    while (!__atomic_load_n(thread->stop, __ATOMIC_RELAXED)) {
        uint64_t at = thread->counter.n_done;
        bench_decode_here(thread->source, (unsigned)(at % thread->source->n_chunks),
                          out + at % DEPTH * BENCH_CHUNK);
        __atomic_store_n(&thread->counter.n_done, at + 1, __ATOMIC_RELAXED);
    }
    free(out);
    return NULL;
}

static uint64_t threads_done(const struct decoder_thread *threads, unsigned n)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < n; i++)
        total += __atomic_load_n(&threads[i].counter.n_done, __ATOMIC_RELAXED);
    return total;
}

/* Seconds that a chunk takes when all threads decode. */
static double time_threads(const struct bench_source *source, unsigned n, double seconds)
{
    static struct decoder_thread threads[BENCH_MOST_CLIENTS];
    bool stop = false;

    for (unsigned i = 0; i < n; i++) {
        threads[i] = (struct decoder_thread){.source = source, .stop = &stop};
        if (pthread_create(&threads[i].thread, NULL, decode_until_told, &threads[i]) != 0)
            bench_die("cannot make a thread");
    }
    usleep(WARM_UP_US);
    uint64_t before = threads_done(threads, n);
    double start = bench_now_us(), n_done;
    do {
        usleep((useconds_t)(1e6 * seconds));
        n_done = (double)(threads_done(threads, n) - before);
    } while (n_done == 0);
    double took = 1e-6 * (bench_now_us() - start);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i].thread, NULL);
    return took / n_done;
}

/* The same of as many client processes. */
static double time_clients(const struct daemon_bench *bench, const struct bench_source *source,
                           double seconds)
{
    struct crew crew;

    crew_init(&crew);
    for (unsigned i = 0; i < bench->n_clients; i++)
        add_client(&crew, bench->wharfd.socket, source);
    usleep(WARM_UP_US);
    uint64_t before = crew_done(&crew, 0, crew.n);
    double start = bench_now_us(), n_done;
    do {
        usleep((useconds_t)(1e6 * seconds));
        n_done = (double)(crew_done(&crew, 0, crew.n) - before);
    } while (n_done == 0);
    double took = 1e-6 * (bench_now_us() - start);
    crew_deinit(&crew);
    return took / n_done;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static struct bench_times times_of(double seconds[TURNS], double factor)
{
    qsort(seconds, TURNS, sizeof(seconds[0]), compare_doubles);
    return (struct bench_times){factor * seconds[0], factor * seconds[TURNS / 2],
                                factor * seconds[TURNS - 1]};
}

void bench_flood(struct daemon_bench *bench)
{
    for (unsigned s = 0; s < bench->n_sources; s++) {
        const struct bench_source *source = &bench->sources[s];
        double here[TURNS], there[TURNS];
        uint64_t packed_nbytes = 0;
        for (unsigned turn = 0; turn < TURNS; turn++) {
            here[turn] = time_threads(source, bench->n_clients, bench->n_seconds / TURNS);
            there[turn] = time_clients(bench, source, bench->n_seconds / TURNS);
        }
        for (unsigned i = 0; i < source->n_chunks; i++)
            packed_nbytes += source->packed_nbytes[i];
        /* In the form of other rows: how long a run over the whole source would take. */
        struct bench_row row = {
            .what = "daemon, a flood",
            .codec = "zlib",
            .data = source->name,
            .level = 6,
            .threads = bench->n_clients,
            .repetitions = TURNS,
            .chunk_nbytes = BENCH_CHUNK,
            .in_nbytes = packed_nbytes,
            .out_nbytes = (uint64_t)source->n_chunks * BENCH_CHUNK,
            .peer = "threads of one process",
            .times = times_of(there, source->n_chunks),
            .peer_times = times_of(here, source->n_chunks),
        };
        bench_print_row(stdout, &row);
    }
}

/* ---- shares -------------------------------------------------------------------------------- */

/* A third of the clients is one tenant's. */
void bench_shares(struct daemon_bench *bench)
{
    unsigned n_few = (bench->n_clients + 2) / 3, n = 3 * n_few;
    double apart[TURNS];
    uint64_t done[2] = {0, 0};
    struct crew crew;

    crew_init(&crew);
    for (unsigned i = 0; i < n; i++)
        add_client(&crew, i < n_few ? bench->second_socket : bench->wharfd.socket,
                   &bench->sources[0]);
    usleep(2 * WARM_UP_US);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        uint64_t before[2] = {crew_done(&crew, 0, n_few), crew_done(&crew, n_few, n)};
        uint64_t few, many;
        do {
            usleep((useconds_t)(1e6 * bench->n_seconds / TURNS));
            few = crew_done(&crew, 0, n_few) - before[0];
            many = crew_done(&crew, n_few, n) - before[1];
        } while (few + many == 0);
        apart[turn] = 100 * ((double)few / (double)(few + many) - 0.5) * 2;
        done[0] += few;
        done[1] += many;
    }
    crew_deinit(&crew);
    qsort(apart, TURNS, sizeof(apart[0]), compare_doubles);
    printf("{\"what\": \"daemon, shares of two floods\", \"data\": \"%s\", \"clients\": [%u, %u], "
           "\"chunks\": [%llu, %llu], \"repetitions\": %d, \"apart_percent\": %.2f, "
           "\"apart_least_percent\": %.2f, \"apart_most_percent\": %.2f, "
           "\"limited\": \"apart_percent\", \"limit_percent\": 5}\n",
           bench->sources[0].name, n_few, n - n_few, (unsigned long long)done[0],
           (unsigned long long)done[1], TURNS,
           200 * ((double)done[0] / (double)(done[0] + done[1]) - 0.5), apart[0], apart[TURNS - 1]);
    fflush(stdout);
}

/* ---- fairness ------------------------------------------------------------------------------ */

static double job_us_here(const struct bench_source *source)
{
    enum { N = 200 };
    struct bench_samples samples = bench_samples_new(N);
    uint8_t *out = malloc(BENCH_CHUNK);

    for (unsigned i = 0; i < N; i++) {
        double start = bench_now_us();
        bench_decode_here(source, i % source->n_chunks, out);
        bench_samples_add(&samples, bench_now_us() - start);
    }
    struct bench_spread spread = bench_samples_spread(&samples);
    bench_samples_free(&samples);
    free(out);
    return spread.p50_us;
}

void bench_fairness(struct daemon_bench *bench)
{
    const struct bench_source *source = &bench->sources[0];
    unsigned n = bench->n_samples / TURNS;
    struct bench_samples alone = bench_samples_new((size_t)n * TURNS);
    struct bench_samples beside = bench_samples_new((size_t)n * TURNS);
    struct bench_latency_row row = {
        .what = "an interactive chunk beside another tenant's flood",
        .data = source->name,
        .n_samples = (size_t)n * TURNS,
        .peer = "the same, alone",
        .limited = "p99_us",
    };

    for (unsigned turn = 0; turn < TURNS; turn++) {
        struct crew crew;
        bench_sample_interactive(bench, n, &alone);
        crew_init(&crew);
        for (unsigned i = 0; i < bench->n_clients; i++)
            add_client(&crew, bench->wharfd.socket, source);
        usleep(WARM_UP_US);
        bench_sample_interactive(bench, n, &beside);
        crew_deinit(&crew);
    }
    row.times = bench_samples_spread(&beside);
    row.peer_times = bench_samples_spread(&alone);
    row.limit_us = 3 * row.peer_times.p99_us + job_us_here(source);
    bench_print_latency_row(stdout, &row);
    bench_samples_free(&alone);
    bench_samples_free(&beside);
}

/* ---- a stream with splits ------------------------------------------------------------------ */

enum { STREAM_NBYTES = 16 << 20, STREAM_NSPLITS = 512 };

/* One stream of rans, as large as many chunks. */
struct stream {
    uint8_t *plain, *packed, *out;
    size_t packed_nbytes;
};

/* What the daemon has counted of such. */
struct shared_counts {
    double chunks, ranges, helped;
};

static void count_shared(void *data, const struct wharf_metric *metric)
{
    struct shared_counts *counts = data;

    if (strcmp(metric->family, "wharf_shared_chunks_total") == 0)
        counts->chunks = metric->value;
    else if (strcmp(metric->family, "wharf_shared_ranges_total") == 0)
        counts->ranges = metric->value;
    else if (strcmp(metric->family, "wharf_helped_ranges_total") == 0)
        counts->helped = metric->value;
}

static struct shared_counts shared_counts_now(struct wharf *wharf)
{
    struct shared_counts counts = {0, 0, 0};

    if (wharf_stats(wharf, count_shared, &counts) < 0)
        bench_die("no statistics");
    return counts;
}

static void sample_stream_here(const struct stream *stream, unsigned n,
                               struct bench_samples *samples)
{
    struct wharf_outcome outcome;

    for (unsigned i = 0; i < n; i++) {
        double begun_us = bench_now_us();
        wharf_rans_decode(stream->packed, stream->packed_nbytes, stream->out, STREAM_NBYTES, NULL,
                          &outcome);
        bench_samples_add(samples, bench_now_us() - begun_us);
        if (outcome.out_nbytes != STREAM_NBYTES)
            bench_die("wrong output");
    }
}

static struct shared_counts sample_stream(const struct daemon_bench *bench,
                                          const struct stream *stream, unsigned n,
                                          struct bench_samples *samples)
{
    /* Arenas have room for two chunks a job, and 32 besides. */
    struct wharf *wharf = bench_open(bench->wharfd.socket, 0, 2 * STREAM_NBYTES / BENCH_CHUNK);
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_completion completion;
    void *in = bench_alloc(wharf, stream->packed_nbytes);

    job.codec = WHARF_CODEC_RANS;
    job.in = memcpy(in, stream->packed, stream->packed_nbytes);
    job.in_nbytes = stream->packed_nbytes;
    job.out = memset(bench_alloc(wharf, STREAM_NBYTES), 0, STREAM_NBYTES);
    job.out_avail = STREAM_NBYTES;
    struct shared_counts before = shared_counts_now(wharf);
    for (unsigned i = 0; i < n; i++) {
        double begun_us = bench_now_us();
        if (wharf_submit(wharf, &job, 1) != 1 || wharf_wait(wharf, &completion, 1, 1, -1) != 1 ||
            completion.result != WHARF_OK)
            bench_die("a stream was not decoded");
        bench_samples_add(samples, bench_now_us() - begun_us);
    }
    if (memcmp(job.out, stream->plain, STREAM_NBYTES) != 0)
        bench_die("wrong output");
    struct shared_counts after = shared_counts_now(wharf);
    wharf_close(wharf);
    return (struct shared_counts){after.chunks - before.chunks, after.ranges - before.ranges,
                                  after.helped - before.helped};
}

/* Beside so many clients of another tenant that flood. */
static void run_shared_case(struct daemon_bench *bench, const struct stream *stream,
                            unsigned n_clients)
{
    unsigned n = bench->n_samples / TURNS < 20 ? bench->n_samples / TURNS : 20;
    struct bench_samples here = bench_samples_new((size_t)n * TURNS);
    struct bench_samples there = bench_samples_new((size_t)n * TURNS);
    struct shared_counts counts = {0, 0, 0};
    char more[160];
    struct bench_latency_row row = {
        .what = "a stream of 16 MiB with 512 splits, rans, n = 11",
        .n_samples = (size_t)n * TURNS,
        .peer = "the same decoder in this process, one thread",
        .more = more,
    };

    for (unsigned turn = 0; turn < TURNS; turn++) {
        struct crew crew;
        sample_stream_here(stream, n, &here);
        crew_init(&crew);
        for (unsigned i = 0; i < n_clients; i++)
            add_client(&crew, bench->second_socket, &bench->sources[0]);
        usleep(WARM_UP_US);
        struct shared_counts some = sample_stream(bench, stream, n, &there);
        crew_deinit(&crew);
        counts.chunks += some.chunks;
        counts.ranges += some.ranges;
        counts.helped += some.helped;
    }
    snprintf(more, sizeof(more),
             ", \"flooding_clients\": %u, \"ranges_per_stream\": %.1f, \"helped_per_stream\": %.1f",
             n_clients, counts.ranges / counts.chunks, counts.helped / counts.chunks);
    row.times = bench_samples_spread(&there);
    row.peer_times = bench_samples_spread(&here);
    bench_print_latency_row(stdout, &row);
    bench_samples_free(&here);
    bench_samples_free(&there);
}

void bench_shared(struct daemon_bench *bench)
{
    struct stream stream = {
        .plain = test_data_new(test_data_find("text"), 1, STREAM_NBYTES),
        .out = malloc(STREAM_NBYTES),
    };

    stream.packed =
        test_rans_encode(stream.plain, STREAM_NBYTES, 11, STREAM_NSPLITS, &stream.packed_nbytes);
    run_shared_case(bench, &stream, 0);
    run_shared_case(bench, &stream, (bench->n_clients + 1) / 2);
    run_shared_case(bench, &stream, 2 * bench->n_clients);
    free(stream.plain);
    free(stream.packed);
    free(stream.out);
}
