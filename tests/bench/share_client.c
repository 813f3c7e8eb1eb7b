/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share_client.c: one of several processes that decode at the same time, for share-run.
 *
 * A program of its own, since the peers that it stands beside are: each has a context on the GPU,
 * or none.  It times each call, at a given rate if need be, which daemon_flood.c does not.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "clientlib/wharf.h"
#include "daemon/base/clock.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_help.h"

static const char help[] =
    "usage: share_client --socket PATH | --libdeflate [OPTION]... FILE\n"
    "\n"
    "Decodes chunks of FILE for a time, as one of several processes that do, for share-run.\n"
    "\n"
    "  --socket PATH, --engine auto|cpu|gpu|simt   by that daemon, on that engine (auto)\n"
    "  --libdeflate        in this process, by libdeflate, instead\n"
    "  --chunk N           bytes of a chunk (65536)\n"
    "  --count N           chunks a call (1): the first ones of the file, the same in each\n"
    "                      call\n"
    "  --batch             a call is one batch, not as many jobs\n"
    "  --call              a call is one of wharf_decompress for each chunk, in memory of the\n"
    "                      program's own, and the library has the choice of where\n"
    "  --spin US           looks for completions for so long before it sleeps; the library's\n"
    "                      default without it\n"
    "  --rate N            calls a second; as many as there can be without it\n"
    "  --seconds S         how long (1), or until SIGTERM\n"
    "  --go PATH           when all is ready makes PATH.pid, and begins when there is PATH\n"
    "\n"
    "Chunks are raw Deflate by zlib level 9, as nvcomp_bench makes them, in memory that the\n"
    "daemon reads and writes itself but for --call.  A call is timed from its submission to\n"
    "its last completion.  Prints one JSON object, and ends with status 1 if any byte was\n"
    "wrong.\n"
    "\n"
    "Of a daemon's calls it tells where their time went, by the job that took longest: in its\n"
    "queue, with an engine, and the rest, which is on the way to the daemon and back; in the\n"
    "mean of calls around the median and of the slowest hundredth.  slow_per_s are calls that\n"
    "took more than twice the median.\n";

enum { MOST_CHUNKS = 4096, MOST_SAMPLES = 4000000, N_ENGINES = WHARF_ENGINE_SIMT + 1 };

/* For this long calls are made before any is timed: memory is pinned, estimates settle. */
#define WARM_UP_NS (300 * WHARF_NS_PER_MS)
/* A daemon that has just been started looks for its GPU first. */
#define PATIENCE_NS ((uint64_t)30 * WHARF_NS_PER_S)

struct options {
    const char *path, *socket, *go;
    uint32_t engine, spin_us;
    bool is_libdeflate, is_batch, is_call;
    size_t chunk_nbytes;
    unsigned n_chunks;
    double rate, seconds;
};

struct chunk {
    const uint8_t *plain;
    uint8_t *in, *out;
    size_t in_nbytes, out_nbytes;
};

/* What a call took, in nanoseconds, and of that in the daemon's queue and with an engine. */
struct sample {
    uint32_t all, queue, run;
};

struct client {
    struct options options;
    struct chunk *chunks;
    struct wharf *wharf; /* or a decompressor of libdeflate's */
    struct libdeflate_decompressor *decompressor;
    struct wharf_job *jobs;
    struct wharf_batch_chunk *table;
    uint64_t by_engine[N_ENGINES];
    struct sample last; /* of the call's job that took longest; not `all` */
};

_Noreturn static void die(const char *what, const char *why)
{
    fprintf(stderr, "share_client: %s: %s\n", what, why);
    exit(1);
}

static void must(int r, const char *what)
{
    if (r < 0)
        die(what, wharf_error_message());
}

/* ---- chunks -------------------------------------------------------------------------------- */

static uint8_t *pack(const uint8_t *plain, size_t nbytes, size_t *ret_nbytes)
{
    z_stream stream = {0};

    if (deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        die("zlib", "no memory");
    size_t bound = deflateBound(&stream, nbytes);
    uint8_t *packed = malloc(bound);
    if (!packed)
        die("packing", "no memory");
    stream.next_in = (uint8_t *)plain;
    stream.avail_in = (uInt)nbytes;
    stream.next_out = packed;
    stream.avail_out = (uInt)bound;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        die("zlib", "cannot pack");
    *ret_nbytes = bound - stream.avail_out;
    deflateEnd(&stream);
    return packed;
}

static void *take_memory(struct client *client, size_t nbytes)
{
    void *memory = NULL;

    if (client->wharf && !client->options.is_call)
        must(wharf_alloc(client->wharf, nbytes, &memory), "taking memory");
    else if (!(memory = malloc(nbytes)))
        die("taking memory", strerror(ENOMEM));
    return memory;
}

/* The first chunks of the file, over and over where it has too few. */
static void make_chunks(struct client *client)
{
    const struct options *options = &client->options;
    size_t nbytes, chunk_nbytes = options->chunk_nbytes;
    const uint8_t *file = test_file_read(options->path, &nbytes);

    if (!file || nbytes < chunk_nbytes)
        die(options->path, file ? "has less than a chunk" : strerror(errno));
    client->chunks = calloc(options->n_chunks, sizeof(client->chunks[0]));
    for (unsigned i = 0; i < options->n_chunks; i++) {
        struct chunk *chunk = &client->chunks[i];
        chunk->plain = file + i % (nbytes / chunk_nbytes) * chunk_nbytes;
        uint8_t *packed = pack(chunk->plain, chunk_nbytes, &chunk->in_nbytes);
        chunk->out_nbytes = chunk_nbytes;
        chunk->in = take_memory(client, chunk->in_nbytes);
        chunk->out = take_memory(client, chunk_nbytes);
        memcpy(chunk->in, packed, chunk->in_nbytes);
        memset(chunk->out, 0, chunk_nbytes);
        free(packed);
    }
}

static unsigned count_wrong(const struct client *client)
{
    unsigned n_wrong = 0;

    for (unsigned i = 0; i < client->options.n_chunks; i++) {
        const struct chunk *chunk = &client->chunks[i];
        n_wrong += memcmp(chunk->plain, chunk->out, chunk->out_nbytes) != 0;
    }
    return n_wrong;
}

/* ---- calls --------------------------------------------------------------------------------- */

static void open_daemon(struct client *client)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    uint64_t end_ns = wharf_now_ns() + PATIENCE_NS;
    /* Packed chunks are at most a little larger than plain ones; a batch has a table too. */
    size_t chunk_nbytes = 2 * client->options.chunk_nbytes + 8192;

    options.flags = client->options.is_call ? 0 : WHARF_OPEN_DAEMON;
    options.socket_path = client->options.socket;
    options.engine = client->options.engine;
    options.spin_us = client->options.spin_us;
    options.max_jobs = client->options.n_chunks;
    options.arena_nbytes = chunk_nbytes * client->options.n_chunks;
    while (wharf_open(&options, &client->wharf) < 0) {
        if (wharf_now_ns() > end_ns)
            die("no daemon", wharf_error_message());
        usleep(20000);
    }
}

static void make_jobs(struct client *client)
{
    unsigned n = client->options.n_chunks;

    client->jobs = calloc(n, sizeof(client->jobs[0]));
    client->table = calloc(n, sizeof(client->table[0]));
    for (unsigned i = 0; i < n; i++) {
        const struct chunk *chunk = &client->chunks[i];
        struct wharf_job *job = &client->jobs[i];
        *job = (struct wharf_job)WHARF_JOB_INIT;
        job->codec = WHARF_CODEC_DEFLATE;
        job->in = chunk->in;
        job->in_nbytes = chunk->in_nbytes;
        job->out = chunk->out;
        job->out_avail = chunk->out_nbytes;
        client->table[i] = (struct wharf_batch_chunk){
            .in = chunk->in,
            .out = chunk->out,
            .in_nbytes = (uint32_t)chunk->in_nbytes,
            .out_avail = (uint32_t)chunk->out_nbytes,
        };
    }
}

static void submit(struct client *client)
{
    unsigned n = client->options.n_chunks;
    struct wharf_batch batch = WHARF_BATCH_INIT;

    if (client->options.is_batch) {
        batch.codec = WHARF_CODEC_DEFLATE;
        batch.chunks = client->table;
        batch.n_chunks = n;
        must(wharf_submit_batch(client->wharf, &batch), "submitting");
        return;
    }
    for (unsigned done = 0; done < n;) {
        int r = wharf_submit(client->wharf, client->jobs + done, n - done);
        must(r, "submitting");
        done += (unsigned)r;
    }
}

static void take_completion(struct client *client, const struct wharf_completion *completion)
{
    struct sample *last = &client->last;

    if (completion->result != WHARF_OK)
        die("a job failed", wharf_result_name(completion->result));
    client->by_engine[completion->engine % N_ENGINES]++;
    if (completion->queue_ns + completion->run_ns < (uint64_t)last->queue + last->run)
        return;
    last->queue = (uint32_t)completion->queue_ns;
    last->run = (uint32_t)completion->run_ns;
}

static void call_daemon(struct client *client)
{
    unsigned n_jobs = client->options.is_batch ? 1 : client->options.n_chunks;
    struct wharf_completion completions[64];

    submit(client);
    for (unsigned done = 0; done < n_jobs;) {
        unsigned left = n_jobs - done < 64 ? n_jobs - done : 64;
        int n = wharf_wait(client->wharf, completions, left, left, -1);
        must(n, "waiting");
        for (int i = 0; i < n; i++)
            take_completion(client, &completions[i]);
        done += (unsigned)n;
    }
}

/* Which engine ran them is not to be had, but for how many of them this process did. */
static void call_one_by_one(struct client *client)
{
    struct wharf_outcome outcome;

    for (unsigned i = 0; i < client->options.n_chunks; i++) {
        must(wharf_decompress(client->wharf, &client->jobs[i], &outcome), "calling");
        if (outcome.result != WHARF_OK)
            die("a job failed", wharf_result_name(outcome.result));
    }
}

static void call_libdeflate(struct client *client)
{
    for (unsigned i = 0; i < client->options.n_chunks; i++) {
        const struct chunk *chunk = &client->chunks[i];
        if (libdeflate_deflate_decompress(client->decompressor, chunk->in, chunk->in_nbytes,
                                          chunk->out, chunk->out_nbytes, NULL) != 0)
            die("libdeflate", "bad data");
    }
}

static void call(struct client *client)
{
    if (client->options.is_call)
        call_one_by_one(client);
    else if (client->wharf)
        call_daemon(client);
    else
        call_libdeflate(client);
}

/* ---- measuring ----------------------------------------------------------------------------- */

static volatile sig_atomic_t is_stopped;

static void stop(int number)
{
    (void)number;
    is_stopped = 1;
}

static void sleep_until(uint64_t ns)
{
    struct timespec until = {.tv_sec = (time_t)(ns / WHARF_NS_PER_S),
                             .tv_nsec = (long)(ns % WHARF_NS_PER_S)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        continue;
}

static void wait_for_go(const char *go)
{
    char path[4096];

    if (!go)
        return;
    snprintf(path, sizeof(path), "%s.%d", go, (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        die(path, strerror(errno));
    close(fd);
    while (access(go, F_OK) < 0)
        usleep(100);
}

static int by_time(const void *a, const void *b)
{
    uint32_t x = ((const struct sample *)a)->all, y = ((const struct sample *)b)->all;

    return x < y ? -1 : x > y;
}

static uint64_t n_here(const struct client *client)
{
    struct wharf_info info = {.struct_nbytes = sizeof(info)};

    if (!client->options.is_call || wharf_get_info(client->wharf, &info) < 0)
        return 0;
    return info.n_here;
}

/* Makes calls for so long; returns how many. */
static size_t make_calls(struct client *client, uint64_t span_ns, struct sample *samples)
{
    uint64_t begun_ns = wharf_now_ns(), now_ns = begun_ns;
    double step_ns = client->options.rate > 0 ? 1e9 / client->options.rate : 0;
    size_t n = 0;

    while (now_ns - begun_ns < span_ns && n < MOST_SAMPLES && !is_stopped) {
        if (step_ns > 0)
            sleep_until(begun_ns + (uint64_t)((double)n * step_ns));
        uint64_t start_ns = wharf_now_ns();
        client->last = (struct sample){0};
        call(client);
        now_ns = wharf_now_ns();
        client->last.all = (uint32_t)(now_ns - start_ns);
        samples[n++] = client->last;
    }
    return n;
}

/* The mean of these calls' parts. */
static void print_parts(const char *name, const struct sample *samples, size_t n)
{
    double all = 0, queue = 0, run = 0, each = 1e-3 / (double)n;

    for (size_t i = 0; i < n; i++) {
        all += samples[i].all;
        queue += samples[i].queue;
        run += samples[i].run;
    }
    printf(", \"%s_queue_us\": %.1f, \"%s_run_us\": %.1f, \"%s_rest_us\": %.1f", name, each * queue,
           name, each * run, name, each * (all - queue - run));
}

/* Of n samples in order. */
static void print_times(const struct sample *samples, size_t n, double seconds, bool has_parts)
{
    uint32_t middle_ns = samples[n / 2].all;
    size_t n_slow = 0;

    while (n_slow < n && samples[n - 1 - n_slow].all > 2 * (uint64_t)middle_ns)
        n_slow++;
    printf("\"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, \"max_us\": %.1f, "
           "\"slow_per_s\": %.1f",
           1e-3 * middle_ns, 1e-3 * samples[n * 99 / 100].all, 1e-3 * samples[n * 999 / 1000].all,
           1e-3 * samples[n - 1].all, (double)n_slow / seconds);
    if (!has_parts)
        return;
    /* Around the median, and from the 99th percentile on. */
    print_parts("mid", samples + n * 2 / 5, n * 3 / 5 - n * 2 / 5 + 1);
    print_parts("tail", samples + n * 99 / 100, n - n * 99 / 100);
}

static int measure(struct client *client)
{
    struct sample *samples = malloc(MOST_SAMPLES * sizeof(*samples));
    const struct options *options = &client->options;

    make_calls(client, WARM_UP_NS, samples);
    wait_for_go(options->go);
    memset(client->by_engine, 0, sizeof(client->by_engine));
    uint64_t n_here_before = n_here(client);
    uint64_t begun_ns = wharf_now_ns();
    size_t n = make_calls(client, (uint64_t)(1e9 * options->seconds), samples);
    double took_ns = (double)(wharf_now_ns() - begun_ns);
    unsigned n_wrong = count_wrong(client);
    uint64_t by_here = n_here(client) - n_here_before;
    uint64_t n_gpu = client->by_engine[WHARF_ENGINE_GPU] + client->by_engine[WHARF_ENGINE_SIMT];
    size_t nbytes = options->n_chunks * options->chunk_nbytes;

    qsort(samples, n, sizeof(*samples), by_time);
    printf("{\"chunk\": %zu, \"chunks\": %u, \"calls\": %zu, \"GBps\": %.4f, ",
           options->chunk_nbytes, options->n_chunks, n, (double)n * (double)nbytes / took_ns);
    print_times(samples, n, 1e-9 * took_ns, client->wharf && !options->is_call);
    printf(", \"by_cpu\": %" PRIu64 ", \"by_gpu\": %" PRIu64 ", \"by_here\": %" PRIu64
           ", \"wrong\": %u}\n",
           client->by_engine[WHARF_ENGINE_CPU], n_gpu, by_here, n_wrong);
    free(samples);
    return n_wrong != 0;
}

/* ---- main ---------------------------------------------------------------------------------- */

static uint32_t engine_named(const char *name)
{
    int engine = wharf_engine_from_name(name);

    if (engine < 0)
        die(name, "no engine");
    return (uint32_t)engine;
}

static void parse_options(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"socket", required_argument, NULL, 's'}, {"engine", required_argument, NULL, 'e'},
        {"libdeflate", no_argument, NULL, 'l'},   {"chunk", required_argument, NULL, 'k'},
        {"count", required_argument, NULL, 'n'},  {"batch", no_argument, NULL, 'b'},
        {"call", no_argument, NULL, 'c'},         {"rate", required_argument, NULL, 'r'},
        {"spin", required_argument, NULL, 'p'},   {"seconds", required_argument, NULL, 't'},
        {"go", required_argument, NULL, 'g'},     {NULL, 0, NULL, 0},
    };
    int option;

    *options = (struct options){.chunk_nbytes = 65536, .n_chunks = 1, .seconds = 1};
    while ((option = getopt_long(argc, argv, "", known, NULL)) >= 0) {
        switch (option) {
        case 's':
            options->socket = optarg;
            break;
        case 'e':
            options->engine = engine_named(optarg);
            break;
        case 'l':
            options->is_libdeflate = true;
            break;
        case 'k':
            options->chunk_nbytes = strtoul(optarg, NULL, 0);
            break;
        case 'n':
            options->n_chunks = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'b':
            options->is_batch = true;
            break;
        case 'c':
            options->is_call = true;
            break;
        case 'p':
            options->spin_us = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'r':
            options->rate = strtod(optarg, NULL);
            break;
        case 't':
            options->seconds = strtod(optarg, NULL);
            break;
        case 'g':
            options->go = optarg;
            break;
        default:
            exit(test_usage(help));
        }
    }
    if (optind != argc - 1 || !options->socket == !options->is_libdeflate ||
        options->n_chunks < 1 || options->n_chunks > MOST_CHUNKS || options->chunk_nbytes < 1 ||
        options->chunk_nbytes > (1 << 24) || !(options->seconds > 0)) {
        exit(test_usage(help));
    }
    options->path = argv[optind];
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    static struct client client;

    parse_options(argc, argv, &client.options);
    signal(SIGTERM, stop);
    if (client.options.is_libdeflate)
        client.decompressor = libdeflate_alloc_decompressor();
    else
        open_daemon(&client);
    make_chunks(&client);
    make_jobs(&client);
    int status = measure(&client);
    wharf_close(client.wharf);
    libdeflate_free_decompressor(client.decompressor);
    return status;
}
