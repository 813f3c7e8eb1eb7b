/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_daemon_flood.c: what one and several clients get of the daemon when they have many chunks of
 * a file in flight all the time; where those wait; what that costs of processors; why they were
 * placed as they were.
 *
 * Threads of the process that started the daemon, with its statistics and its processors' time at
 * hand, and with a worker that only plays a GPU where there is none; share_client.c has neither.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/wharf.h"
#include "daemon/base/clock.h"
#include "tests/gpu/gpu_daemon.h"
#include "tests/gpu/gpu_pack.h"
#include "tests/lib/test_file.h"

enum { MOST_CLIENTS = 64, MOST_NUMBERS = 8, MOST_ASKED = 8, MOST_REASONS = 16, REAP = 64 };
/* Of the file. */
#define MOST_FILE_NBYTES ((size_t)64 << 20)
/* Before anything is counted: memory of the clients before is given up meanwhile, and estimates
 * settle. */
#define WARM_UP_S 0.5
#define ALIGN_NBYTES 256

/* Sums over the completions that one client has taken. */
struct sums {
    _Atomic uint64_t n, n_gpu, queue_ns, run_ns, cpu_ns;
};

struct flood {
    const struct gpu_source *source;
    uint32_t engine;
    unsigned batch; /* chunks of a job; 0: jobs are chunks */
    pthread_barrier_t ready;
    atomic_bool is_over;
};

struct flooder {
    struct flood *flood;
    pthread_t thread;
    unsigned number, depth; /* chunks that it has in flight */
    struct sums sums;
};

/* What a client has: a job for each chunk, and perhaps batches of them, with their chunks. */
struct work {
    struct wharf *wharf;
    struct wharf_job *jobs;
    unsigned n_batches; /* 0: there are none */
    struct wharf_batch *batches;
    struct wharf_batch_chunk *chunks;
};

static void must(int r)
{
    if (r >= 0)
        return;
    fprintf(stderr, "wharf_gpu_daemon: %s\n", wharf_error_message());
    exit(1);
}

static uint64_t thread_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * WHARF_NS_PER_S + (uint64_t)now.tv_nsec;
}

static void make_job(struct wharf *wharf, const struct flooder *own, unsigned i,
                     struct wharf_job *ret_job)
{
    const struct gpu_source *source = own->flood->source;
    size_t nbytes = gpu_chunk_nbytes(source);
    const struct gpu_packed *packed =
        &source->packed[(own->number * own->depth + i) % source->n_chunks];
    struct wharf_job job = WHARF_JOB_INIT;
    void *in, *out;

    must(wharf_alloc(wharf, packed->nbytes, &in));
    must(wharf_alloc(wharf, nbytes, &out));
    memcpy(in, packed->data, packed->nbytes);
    memset(out, 0, nbytes);
    job.codec = source->codec_number;
    job.parameter = source->parameter;
    job.in = in;
    job.in_nbytes = packed->nbytes;
    job.out = out;
    job.out_avail = nbytes;
    job.user_data = i;
    *ret_job = job;
}

static void count(struct flooder *own, const struct wharf_completion *completions, unsigned n)
{
    uint64_t each = own->flood->batch ? own->flood->batch : 1;

    for (unsigned i = 0; i < n; i++) {
        if (completions[i].result != WHARF_OK) {
            fprintf(stderr, "wharf_gpu_daemon: %s\n", wharf_result_name(completions[i].result));
            exit(1);
        }
        own->sums.n_gpu += completions[i].engine != WHARF_ENGINE_CPU ? each : 0;
        own->sums.queue_ns += each * completions[i].queue_ns;
        own->sums.run_ns += each * completions[i].run_ns;
    }
    own->sums.n += each * n;
    own->sums.cpu_ns = thread_ns();
}

/* Whether each job's destination holds what it should: once, when all are back. */
static void compare(const struct flooder *own, const struct wharf_job *jobs)
{
    const struct gpu_source *source = own->flood->source;

    for (unsigned i = 0; i < own->depth; i++) {
        size_t chunk = (own->number * own->depth + i) % source->n_chunks;
        if (memcmp(jobs[i].out, source->file + chunk * source->chunk_nbytes, jobs[i].out_avail)) {
            fprintf(stderr, "wharf_gpu_daemon: chunk %zu is wrong\n", chunk);
            exit(1);
        }
    }
}

static size_t arena_of(const struct flooder *own)
{
    const struct gpu_source *source = own->flood->source;
    size_t nbytes = (size_t)own->depth * (gpu_chunk_nbytes(source) + ALIGN_NBYTES);

    for (unsigned i = 0; i < own->depth; i++)
        nbytes +=
            ALIGN_NBYTES + source->packed[(own->number * own->depth + i) % source->n_chunks].nbytes;
    return nbytes;
}

static void make_batch(const struct flood *flood, struct work *work, unsigned at)
{
    struct wharf_batch *batch = &work->batches[at];
    struct wharf_batch_chunk *chunks = &work->chunks[at * flood->batch];

    for (unsigned i = 0; i < flood->batch; i++) {
        const struct wharf_job *job = &work->jobs[at * flood->batch + i];
        chunks[i] = (struct wharf_batch_chunk){
            .in = job->in,
            .in_nbytes = (uint32_t)job->in_nbytes,
            .out = job->out,
            .out_avail = (uint32_t)job->out_avail,
        };
    }
    *batch = (struct wharf_batch)WHARF_BATCH_INIT;
    batch->codec = flood->source->codec_number;
    batch->parameter = flood->source->parameter;
    batch->chunks = chunks;
    batch->n_chunks = flood->batch;
    batch->user_data = at;
}

static void make_work(const struct flooder *own, struct work *work)
{
    const struct flood *flood = own->flood;

    work->n_batches = flood->batch ? own->depth / flood->batch : 0;
    work->jobs = calloc(own->depth, sizeof(*work->jobs));
    work->batches = calloc(work->n_batches + 1, sizeof(*work->batches));
    work->chunks = calloc(own->depth, sizeof(*work->chunks));
    work->wharf = gpu_daemon_open(flood->engine, work->n_batches ? work->n_batches : own->depth,
                                  arena_of(own));
    for (unsigned i = 0; i < own->depth; i++)
        make_job(work->wharf, own, i, &work->jobs[i]);
    for (unsigned i = 0; i < work->n_batches; i++)
        make_batch(flood, work, i);
}

/* The jobs, or batches, of these numbers. */
static void submit(const struct work *work, const struct wharf_completion *completions, unsigned n)
{
    struct wharf_job again[REAP];

    for (unsigned i = 0; i < n; i++) {
        if (work->n_batches)
            must(wharf_submit_batch(work->wharf, &work->batches[completions[i].user_data]));
        else
            again[i] = work->jobs[completions[i].user_data];
    }
    if (!work->n_batches)
        must(wharf_submit(work->wharf, again, n));
}

static unsigned submit_all(const struct work *work, unsigned depth)
{
    if (!work->n_batches)
        must(wharf_submit(work->wharf, work->jobs, depth));
    for (unsigned i = 0; i < work->n_batches; i++)
        must(wharf_submit_batch(work->wharf, &work->batches[i]));
    return work->n_batches ? work->n_batches : depth;
}

static void *run_client(void *argument)
{
    struct flooder *own = argument;
    struct flood *flood = own->flood;
    struct wharf_completion completions[REAP];
    struct work work;

    make_work(own, &work);
    pthread_barrier_wait(&flood->ready);
    for (unsigned n_there = submit_all(&work, own->depth); n_there > 0;) {
        int n = wharf_wait(work.wharf, completions, REAP, 1, -1);
        must(n);
        count(own, completions, (unsigned)n);
        if (flood->is_over)
            n_there -= (unsigned)n;
        else
            submit(&work, completions, (unsigned)n);
    }
    compare(own, work.jobs);
    wharf_close(work.wharf);
    free(work.jobs);
    free(work.batches);
    free(work.chunks);
    return NULL;
}

/* ---- one row ------------------------------------------------------------------------------- */

/* Why chunks were placed as they were: how many, in the daemon's order. */
struct placements {
    unsigned n;
    struct {
        char reason[32];
        double n_chunks;
    } of[MOST_REASONS];
};

struct reading {
    uint64_t now_ns, n, n_gpu, queue_ns, run_ns, client_ns;
    struct gpu_daemon_used used;
    struct placements placements;
};

static void add_placement(void *data, const struct wharf_metric *metric)
{
    struct placements *placements = data;

    if (strcmp(metric->family, "wharf_placements_total") != 0)
        return;
    for (uint32_t i = 0; i < metric->n_labels && placements->n < MOST_REASONS; i++)
        if (strcmp(metric->labels[i].name, "reason") == 0) {
            snprintf(placements->of[placements->n].reason, sizeof(placements->of[0].reason), "%s",
                     metric->labels[i].value);
            placements->of[placements->n++].n_chunks = metric->value;
        }
}

static double n_placed(const struct placements *placements, const char *reason)
{
    for (unsigned i = 0; i < placements->n; i++)
        if (strcmp(placements->of[i].reason, reason) == 0)
            return placements->of[i].n_chunks;
    return 0;
}

static struct reading read_all(struct wharf *wharf, const struct flooder *flooders, unsigned n)
{
    struct reading reading = {.now_ns = 0};

    must(wharf_stats(wharf, add_placement, &reading.placements));
    reading.now_ns = wharf_now_ns();
    reading.used = gpu_daemon_used_now();
    for (unsigned i = 0; i < n; i++) {
        reading.n += flooders[i].sums.n;
        reading.n_gpu += flooders[i].sums.n_gpu;
        reading.queue_ns += flooders[i].sums.queue_ns;
        reading.run_ns += flooders[i].sums.run_ns;
        reading.client_ns += flooders[i].sums.cpu_ns;
    }
    return reading;
}

/* Parts of all chunks. */
static void print_placements(const struct placements *a, const struct placements *b)
{
    double sum = 0;
    const char *comma = "";

    for (unsigned i = 0; i < b->n; i++)
        sum += b->of[i].n_chunks - n_placed(a, b->of[i].reason);
    printf("\"placed\": {");
    for (unsigned i = 0; i < b->n; i++) {
        double n = b->of[i].n_chunks - n_placed(a, b->of[i].reason);
        if (n <= 0)
            continue;
        printf("%s\"%s\": %.3f", comma, b->of[i].reason, n / sum);
        comma = ", ";
    }
    printf("}");
}

static void print(const struct flood *flood, const char *type, const char *data, unsigned n_clients,
                  unsigned depth, const struct reading *a, const struct reading *b)
{
    const struct gpu_source *source = flood->source;
    double nbytes = (double)gpu_chunk_nbytes(source), in_nbytes = 0;
    double n = (double)(b->n - a->n), ns = (double)(b->now_ns - a->now_ns);

    for (size_t i = 0; i < source->n_chunks; i++)
        in_nbytes += (double)source->packed[i].nbytes;
    printf("{\"what\": \"daemon flood\", \"asked\": \"%s\", \"codec\": \"%s\", \"type\": \"%s\", "
           "\"data\": \"%s\", \"chunk_nbytes\": %.0f, \"ratio\": %.3f, \"batch\": %u, \"clients\": "
           "%u, "
           "\"depth\": %u, \"seconds\": %.2f, \"gbps\": %.2f, \"by_gpu\": %.3f, "
           "\"queue_us\": %.1f, \"run_us\": %.1f, \"chunk_us\": %.3f, \"feeder_us\": %.3f, "
           "\"daemon_us\": %.3f, \"client_us\": %.3f, ",
           wharf_engine_name(flood->engine), source->codec->name, type, data, nbytes,
           nbytes * (double)source->n_chunks / in_nbytes, flood->batch, n_clients, depth, ns / 1e9,
           n * nbytes / ns, (double)(b->n_gpu - a->n_gpu) / n,
           1e-3 * (double)(b->queue_ns - a->queue_ns) / n,
           1e-3 * (double)(b->run_ns - a->run_ns) / n, 1e-3 * ns / n,
           1e-3 * (b->used.feeder_ns - a->used.feeder_ns) / n,
           1e-3 * (b->used.daemon_ns - a->used.daemon_ns) / n,
           1e-3 * (double)(b->client_ns - a->client_ns) / n);
    print_placements(&a->placements, &b->placements);
    printf("}\n");
    fflush(stdout);
}

static void sleep_s(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds,
                            .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};

    nanosleep(&time, NULL);
}

static void run_flood(const struct gpu_source *source, uint32_t engine, unsigned batch,
                      const char *type, const char *data, unsigned n_clients, unsigned depth,
                      double seconds)
{
    static struct flooder flooders[MOST_CLIENTS];
    struct flood flood = {.source = source, .engine = engine, .batch = batch};
    unsigned unit = batch ? batch : 1, each = depth / n_clients / unit * unit;

    if (each == 0)
        return;
    pthread_barrier_init(&flood.ready, NULL, n_clients + 1);
    memset(flooders, 0, sizeof(flooders));
    for (unsigned i = 0; i < n_clients; i++) {
        flooders[i].flood = &flood;
        flooders[i].number = i;
        flooders[i].depth = each;
        if (pthread_create(&flooders[i].thread, NULL, run_client, &flooders[i]) != 0)
            exit(1);
    }
    pthread_barrier_wait(&flood.ready);
    sleep_s(WARM_UP_S);
    struct wharf *wharf = gpu_daemon_open(WHARF_ENGINE_CPU, 1, 1);
    struct reading before = read_all(wharf, flooders, n_clients);
    sleep_s(seconds);
    struct reading after = read_all(wharf, flooders, n_clients);
    wharf_close(wharf);
    flood.is_over = true;
    for (unsigned i = 0; i < n_clients; i++)
        pthread_join(flooders[i].thread, NULL);
    pthread_barrier_destroy(&flood.ready);
    print(&flood, type, data, n_clients, each * n_clients, &before, &after);
}

/* ---- all ----------------------------------------------------------------------------------- */

struct numbers {
    unsigned n, at[MOST_NUMBERS];
};

static struct numbers numbers_of(const char *words, unsigned most)
{
    struct numbers numbers = {0};

    for (char *end; numbers.n < MOST_NUMBERS; words = end + 1) {
        unsigned long number = strtoul(words, &end, 10);
        if (end == words || number == 0 || number > most) {
            fprintf(stderr, "wharf_gpu_daemon: %s: not numbers from 1 to %u\n", words, most);
            exit(2);
        }
        numbers.at[numbers.n++] = (unsigned)number;
        if (*end != ',')
            break;
    }
    return numbers;
}

static unsigned engines_of(const char *words, uint32_t *ret_engines)
{
    unsigned n = 0;

    for (const char *end; n < MOST_ASKED; words = end + 1) {
        char name[16];
        end = strchrnul(words, ',');
        snprintf(name, sizeof(name), "%.*s", (int)(end - words), words);
        int engine = strcmp(name, "all") == 0 || strcmp(name, "gpu") == 0
                         ? (int)gpu_daemon_engine()
                         : wharf_engine_from_name(name);
        if (engine < 0) {
            fprintf(stderr, "wharf_gpu_daemon: %s: no engine\n", name);
            exit(2);
        }
        ret_engines[n++] = (uint32_t)engine;
        if (!*end)
            break;
    }
    return n;
}

void gpu_daemon_flood(const struct gpu_daemon_flood *what, double seconds)
{
    uint32_t engines[MOST_ASKED];
    unsigned n_engines = engines_of(what->asked, engines);
    struct gpu_source source = {0};
    struct numbers clients = numbers_of(what->clients, MOST_CLIENTS);
    struct numbers depths = numbers_of(what->depths, 32767);
    const char *type = strchr(what->codec, ':'), *name = strrchr(what->path, '/');
    size_t file_nbytes;
    uint8_t *file = test_file_read(what->path, &file_nbytes);

    if (!file || file_nbytes == 0) {
        fprintf(stderr, "wharf_gpu_daemon: %s: no such file\n", what->path);
        exit(2);
    }
    gpu_source_choose(&source, what->codec);
    source.file = file;
    gpu_pack(&source, file_nbytes, what->chunk_nbytes,
             (MOST_FILE_NBYTES - 1) / what->chunk_nbytes + 1);
    for (unsigned c = 0; c < clients.n; c++)
        for (unsigned d = 0; d < depths.n; d++)
            for (unsigned i = 0; i < what->n_passes * n_engines; i++)
                run_flood(&source, engines[i % n_engines], what->batch, type ? type + 1 : "",
                          name ? name + 1 : what->path, clients.at[c], depths.at[d], seconds);
    gpu_source_free(&source);
    free(file);
}
