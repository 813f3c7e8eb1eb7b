/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_stream_main.c: a client of the daemon whose CUDA streams wait for jobs, and whose jobs wait
 * for its streams, with sources and outputs in its own GPU memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "daemon/base/clock.h"
#include "kernels/cuda_error.h"
#include "proto/ring_ops.h"
#include "tests/gpu/gpu_client.h"
#include "tests/gpu/gpu_pack.h"
#include "tests/gpu/gpu_stream.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_help.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_storm.h"
#include "tests/lib/test_tap.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"

static const char help[] =
    "usage: wharf_gpu_stream [--mps] check N\n"
    "       wharf_gpu_stream measure N PAUSE_US CHUNK CODEC FILE...\n"
    "\n"
    "Drives the daemon as a client whose CUDA streams make sources, let jobs begin, wait for them\n"
    "and look at each byte of their outputs, without the processor.  The modes:\n"
    "\n"
    "  check     N jobs in peace, and some while workers and daemons are killed; streams and jobs\n"
    "            that wait for each other; a daemon that does not come back\n"
    "  measure   how long a stream waits for one chunk, of N, with pauses between, as the device\n"
    "            sees it: from before it lets the job begin until after it was told\n"
    "\n"
    "With --mps, for use under MPS, a kernel of the client's occupies all multiprocessors while\n"
    "some jobs run, and nobody is killed: one client's death would end the contexts of all.\n"
    "check reports in the Test Anything Protocol, measure prints one JSON object a file.  "
    "It\n"
    "is run from BUILD/tests or from a folder beside wharfd and wharfd-gpu.\n";

#define MiB ((size_t)1 << 20)

enum { N_STREAMS = 32, PAGE = 4096, GPU_CHUNK = 100000, PATIENCE_MS = 60000 };

static struct test_wharfd wharfd;

/* ---- what ends the program ----------------------------------------------------------------- */

static void must(const char *what, int r)
{
    if (r >= 0)
        return;
    fprintf(stderr, "%s: %s\n", what, wharf_error_message());
    exit(1);
}

static void must_cuda(const char *what, int r)
{
    if (r == 0)
        return;
    fprintf(stderr, "%s: %s\n", what, wharf_cuda_error_text());
    exit(1);
}

static struct wharf *open_handle(uint32_t patience_ms)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf;

    options.flags = WHARF_OPEN_DAEMON;
    options.socket_path = wharfd.socket;
    options.patience_ms = patience_ms;
    options.arena_nbytes = 4 * MiB;
    must("opening", wharf_open(&options, &wharf));
    return wharf;
}

/* ---- words and memory ---------------------------------------------------------------------- */

/* A client with its words, which the device reaches too. */
struct client {
    struct wharf *wharf;
    struct wharf_done *done;
    uint64_t *starts;
    uint64_t device_done, device_starts;
    uint8_t *shared; /* of the host: what the device stores, and what it waits for */
    uint64_t device_shared;
};

static void client_open(struct client *client, uint32_t patience_ms)
{
    void *at;

    client->wharf = open_handle(patience_ms);
    must("wharf_alloc", wharf_alloc(client->wharf, 2 * PAGE, &at));
    client->done = (struct wharf_done *)(((uintptr_t)at + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    memset(client->done, 0, PAGE);
    must("start words", wharf_make_start_words(client->wharf, PAGE / 8, &client->starts));
    client->shared = aligned_alloc(PAGE, PAGE);
    memset(client->shared, 0, PAGE);
    must_cuda("pinning", gpu_stream_pin(client->done, PAGE, &client->device_done));
    must_cuda("pinning", gpu_stream_pin(client->starts, PAGE, &client->device_starts));
    must_cuda("pinning", gpu_stream_pin(client->shared, PAGE, &client->device_shared));
}

static void client_close(struct client *client)
{
    must_cuda("unpinning", gpu_stream_unpin(client->done));
    must_cuda("unpinning", gpu_stream_unpin(client->starts));
    must_cuda("unpinning", gpu_stream_unpin(client->shared));
    wharf_close(client->wharf);
    free(client->shared);
}

static uint64_t done_of(const struct client *client, unsigned i)
{
    return client->device_done + i * sizeof(*client->done);
}

static uint64_t start_of(const struct client *client, unsigned i)
{
    return client->device_starts + i * sizeof(*client->starts);
}

static struct gpu_client_memory new_memory(struct wharf *wharf, size_t nbytes)
{
    struct gpu_client_memory memory;

    must_cuda("making memory",
              gpu_client_make((nbytes + 2 * MiB - 1) / (2 * MiB) * 2 * MiB, &memory));
    must("registering",
         wharf_register_gpu(wharf, memory.fd, (uint64_t)(uintptr_t)memory.at, memory.nbytes));
    return memory;
}

/* ---- check --------------------------------------------------------------------------------- */

/* Chunks where streams find them: packed, and what must become of them. */
struct corpus {
    struct test_chunks chunks;
    uint8_t **packed, **plain;
};

static void corpus_init(struct corpus *corpus)
{
    test_chunks_init(&corpus->chunks, 1, 200, GPU_CHUNK, 8);
    corpus->packed = calloc(corpus->chunks.n, sizeof(*corpus->packed));
    corpus->plain = calloc(corpus->chunks.n, sizeof(*corpus->plain));
    for (size_t i = 0; i < corpus->chunks.n; i++) {
        const struct test_chunk *chunk = &corpus->chunks.chunks[i];
        must_cuda("memory", gpu_stream_make(chunk->packed_nbytes + 1, &corpus->packed[i]));
        must_cuda("memory", gpu_stream_make(chunk->out_avail + 1, &corpus->plain[i]));
        must_cuda("copying",
                  gpu_client_put(corpus->packed[i], chunk->packed, chunk->packed_nbytes));
        if (chunk->outcome.result == WHARF_OK)
            must_cuda("copying",
                      gpu_client_put(corpus->plain[i], chunk->plain, chunk->outcome.out_nbytes));
    }
}

struct rounds {
    struct client client;
    const struct corpus *corpus;
    struct test_random random;
    struct gpu_client_memory in, out;
    struct gpu_stream *streams[N_STREAMS];
    uint32_t serials[N_STREAMS];
    uint64_t n_done, n_wrong;
    uint64_t n_other; /* that ended otherwise for a death's sake */
};

static size_t room(void)
{
    return GPU_CHUNK + 4096;
}

static void rounds_init(struct rounds *rounds, const struct corpus *corpus)
{
    rounds->corpus = corpus;
    rounds->random = (struct test_random){7};
    client_open(&rounds->client, PATIENCE_MS);
    rounds->in = new_memory(rounds->client.wharf, N_STREAMS * 2 * room());
    rounds->out = new_memory(rounds->client.wharf, N_STREAMS * 2 * room());
    for (unsigned i = 0; i < N_STREAMS; i++)
        must_cuda("a stream", gpu_stream_new(&rounds->streams[i]));
}

static void rounds_deinit(struct rounds *rounds)
{
    for (unsigned i = 0; i < N_STREAMS; i++)
        must_cuda("a stream", gpu_stream_free(rounds->streams[i]));
    client_close(&rounds->client);
    gpu_client_free(&rounds->in);
    gpu_client_free(&rounds->out);
}

static struct gpu_stream_counts *counts_of(const struct rounds *rounds)
{
    return (struct gpu_stream_counts *)rounds->client.shared;
}

/* The job waits for the stream, and the stream then for the job; all is enqueued at once. */
static void begin_round(struct rounds *rounds, unsigned i)
{
    struct client *client = &rounds->client;
    size_t at = test_random_below(&rounds->random, rounds->corpus->chunks.n);
    const struct test_chunk *chunk = &rounds->corpus->chunks.chunks[at];
    struct gpu_stream *stream = rounds->streams[i];
    struct wharf_job job = WHARF_JOB_INIT;
    uint8_t *in = rounds->in.at + i * 2 * room() + at % 16;
    uint8_t *out = rounds->out.at + i * 2 * room() + at % 13;
    uint32_t serial = ++rounds->serials[i];

    job.codec = chunk->codec;
    job.in = in;
    job.in_nbytes = chunk->packed_nbytes;
    job.out = out;
    job.out_avail = chunk->out_avail;
    job.user_data = i;
    job.done = &client->done[i];
    job.start = &client->starts[i];
    job.done_serial = job.start_serial = serial;
    if (wharf_submit(client->wharf, &job, 1) != 1)
        must("submitting", -1);
    must_cuda("filling", gpu_stream_set(stream, out, (int)(serial & 0xff), chunk->out_avail));
    must_cuda("copying",
              gpu_stream_copy(stream, in, rounds->corpus->packed[at], chunk->packed_nbytes));
    must_cuda("starting", gpu_stream_write_start(stream, start_of(client, i), serial));
    must_cuda("waiting", gpu_stream_wait_done(stream, done_of(client, i), serial));
    must_cuda("looking", gpu_stream_look(stream, done_of(client, i), chunk->outcome.result, out,
                                         rounds->corpus->plain[at], chunk->outcome.out_nbytes,
                                         client->device_shared));
}

/* Until n rounds are done; `tick`, if it is not NULL, now and then. */
static void run_rounds(struct rounds *rounds, uint64_t n, void (*tick)(struct rounds *rounds))
{
    struct wharf_completion completions[N_STREAMS];
    uint64_t n_begun = 0, n_before = rounds->n_done;

    for (unsigned i = 0; i < N_STREAMS && n_begun < n; i++, n_begun++)
        begin_round(rounds, i);
    while (rounds->n_done - n_before < n) {
        int n_taken =
            wharf_wait(rounds->client.wharf, completions, N_STREAMS, 1, 100 * WHARF_NS_PER_MS);
        must("waiting", n_taken);
        for (int k = 0; k < n_taken; k++) {
            rounds->n_done++;
            rounds->n_other += completions[k].result == WHARF_DEVICE_FAULT ||
                               completions[k].reason == WHARF_REASON_START_TIME;
            if (n_begun < n) {
                begin_round(rounds, (unsigned)completions[k].user_data);
                n_begun++;
            }
        }
        if (tick)
            tick(rounds);
    }
    for (unsigned i = 0; i < N_STREAMS; i++)
        must_cuda("a stream", gpu_stream_sync(rounds->streams[i]));
}

static void report_rounds(struct rounds *rounds, const char *what)
{
    const struct gpu_stream_counts *counts = counts_of(rounds);

    test_tap_report(counts->n_looks == rounds->n_done && counts->n_results <= rounds->n_other &&
                        counts->n_bytes == 0,
                    "%s: streams waited for %llu jobs and jobs for streams, %llu words and %llu "
                    "bytes were wrong",
                    what, (unsigned long long)counts->n_looks,
                    (unsigned long long)counts->n_results, (unsigned long long)counts->n_bytes);
}

static struct test_worker_killer killer;

static void kill_worker(struct rounds *rounds)
{
    struct test_storm storm = {.tick_data = &killer};

    (void)rounds;
    test_worker_kill_ready(&storm);
}

static uint64_t n_done_before;
static unsigned n_kills;

static void kill_daemon(struct rounds *rounds)
{
    if (n_kills == 10 || rounds->n_done < n_done_before + 50)
        return;
    test_wharfd_kill(&wharfd);
    test_wharfd_restart(&wharfd);
    n_done_before = rounds->n_done;
    n_kills++;
}

static void check_rounds(const struct corpus *corpus, const char *what, uint64_t n,
                         void (*tick)(struct rounds *rounds))
{
    struct rounds *rounds = calloc(1, sizeof(*rounds));

    rounds_init(rounds, corpus);
    run_rounds(rounds, n, tick);
    report_rounds(rounds, what);
    rounds_deinit(rounds);
    free(rounds);
}

/* The stream lets the job begin after it has waited for it. */
static void check_each_other(void)
{
    struct client client;
    struct gpu_stream *stream;
    struct wharf_completion completion = {.result = 99};
    struct wharf_job job = WHARF_JOB_INIT;
    void *memory;

    client_open(&client, PATIENCE_MS);
    must("wharf_alloc", wharf_alloc(client.wharf, 200, &memory));
    must_cuda("a stream", gpu_stream_new(&stream));
    job.in = memory;
    job.in_nbytes = job.out_avail = 100;
    job.out = (char *)memory + 100;
    job.done = client.done;
    job.start = client.starts;
    job.done_serial = job.start_serial = 1;
    job.start_timeout_us = 50000;
    must("submitting", wharf_submit(client.wharf, &job, 1));
    must_cuda("waiting", gpu_stream_wait_done(stream, done_of(&client, 0), 1));
    must_cuda("starting", gpu_stream_write_start(stream, start_of(&client, 0), 1));
    must_cuda("a stream", gpu_stream_sync(stream));
    must("waiting", wharf_wait(client.wharf, &completion, 1, 1, -1));
    test_tap_report(completion.result == WHARF_DEADLINE &&
                        completion.reason == WHARF_REASON_START_TIME,
                    "a stream and a job that wait for each other go on: %s, %s",
                    wharf_result_name(completion.result), wharf_reason_name(completion.reason));
    must_cuda("a stream", gpu_stream_free(stream));
    client_close(&client);
}

/* Nobody ends the job but the library. */
static void check_lost(void)
{
    struct client client;
    struct gpu_stream *stream;
    struct wharf_completion completion;
    struct wharf_job job = WHARF_JOB_INIT;
    void *memory;

    client_open(&client, 300);
    must("wharf_alloc", wharf_alloc(client.wharf, 200, &memory));
    must_cuda("a stream", gpu_stream_new(&stream));
    job.in = memory;
    job.in_nbytes = job.out_avail = 100;
    job.out = (char *)memory + 100;
    job.done = client.done;
    job.start = client.starts;
    job.done_serial = job.start_serial = 1;
    must("submitting", wharf_submit(client.wharf, &job, 1));
    must_cuda("waiting", gpu_stream_wait_done(stream, done_of(&client, 0), 1));
    test_wharfd_kill(&wharfd);
    int r = wharf_wait(client.wharf, &completion, 1, 1, -1);
    must_cuda("a stream", gpu_stream_sync(stream));
    test_tap_report(r == -ENOTCONN &&
                        WHARF_DONE_REASON(client.done->word) == WHARF_REASON_DAEMON_LOST,
                    "a stream goes on that waits for a daemon which does not come back");
    must_cuda("a stream", gpu_stream_free(stream));
    client_close(&client);
}

/* All multiprocessors are busy with the client's own kernel. */
static void check_spin(const struct corpus *corpus)
{
    struct rounds *rounds = calloc(1, sizeof(*rounds));
    struct gpu_stream *spinner;
    uint32_t *stop;

    rounds_init(rounds, corpus);
    stop = (uint32_t *)(rounds->client.shared + 1024);
    must_cuda("a stream", gpu_stream_new(&spinner));
    must_cuda("spinning", gpu_stream_spin(spinner, rounds->client.device_shared + 1024));
    run_rounds(rounds, 2000, NULL);
    __atomic_store_n(stop, 1, __ATOMIC_RELEASE);
    must_cuda("a stream", gpu_stream_sync(spinner));
    must_cuda("a stream", gpu_stream_free(spinner));
    report_rounds(rounds, "beside a kernel that spins everywhere");
    rounds_deinit(rounds);
    free(rounds);
}

static int check(uint64_t n, int has_mps)
{
    struct corpus corpus;

    test_wharfd_start_gpu(&wharfd, "cuda", "");
    corpus_init(&corpus);
    check_each_other();
    check_rounds(&corpus, "in peace", n, NULL);
    if (has_mps) {
        check_spin(&corpus);
        test_wharfd_finish(&wharfd);
        return test_tap_end();
    }
    killer = (struct test_worker_killer){
        .random = {3}, .wharfd = &wharfd, .within_ns = 300 * WHARF_NS_PER_MS, .most_kills = 5};
    check_rounds(&corpus, "while workers are killed", n < 20000 ? n : 20000, kill_worker);
    check_rounds(&corpus, "while daemons are killed", n < 5000 ? n : 5000, kill_daemon);
    check_lost();
    test_wharfd_remove(&wharfd);
    return test_tap_end();
}

/* ---- measure ------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double busy_s(void)
{
    return test_wharfd_metric(&wharfd, "wharf_gpu_busy_seconds_total", NULL);
}

struct measuring {
    struct client client;
    struct gpu_client_memory in, out;
    struct gpu_stream *stream;
    uint8_t *packed;
    const struct gpu_source *source;
    uint64_t *ns;
};

/* The stream stands at a gate, a word as those of jobs, until all is enqueued. */
static uint64_t measure_one(struct measuring *m, uint32_t serial, size_t at)
{
    struct client *client = &m->client;
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_completion completion;
    volatile uint64_t *stamps = (volatile uint64_t *)(client->shared + 1024);
    uint64_t *gate = (uint64_t *)(client->shared + 2048);
    const struct gpu_packed *packed = &m->source->packed[at];

    job.codec = m->source->codec_number;
    job.parameter = m->source->parameter;
    job.in = m->in.at;
    job.in_nbytes = packed->nbytes;
    job.out = m->out.at;
    job.out_avail = m->source->chunk_nbytes;
    job.done = client->done;
    job.start = client->starts;
    job.done_serial = job.start_serial = serial;
    must_cuda("copying", gpu_client_put(m->packed, packed->data, packed->nbytes));
    must_cuda("waiting", gpu_stream_wait_done(m->stream, client->device_shared + 2048, serial));
    must_cuda("copying", gpu_stream_copy(m->stream, m->in.at, m->packed, packed->nbytes));
    must_cuda("the time", gpu_stream_stamp(m->stream, client->device_shared + 1024));
    must_cuda("starting", gpu_stream_write_start(m->stream, start_of(client, 0), serial));
    must_cuda("waiting", gpu_stream_wait_done(m->stream, done_of(client, 0), serial));
    must_cuda("the time", gpu_stream_stamp(m->stream, client->device_shared + 1032));
    if (wharf_submit(client->wharf, &job, 1) != 1)
        must("submitting", -1);
    wharf_ring_store_start(gate, WHARF_START_VALUE(serial));
    must_cuda("a stream", gpu_stream_sync(m->stream));
    must("waiting", wharf_wait(client->wharf, &completion, 1, 1, -1));
    if (completion.result != WHARF_OK) {
        fprintf(stderr, "%s\n", wharf_reason_name(completion.reason));
        exit(1);
    }
    return stamps[1] - stamps[0];
}

static void measure_file(const char *path, const char *codec, size_t chunk_nbytes, unsigned n,
                         unsigned pause_us)
{
    enum { N_BEFORE = 200 };
    struct measuring m = {.ns = calloc(n, sizeof(*m.ns))};
    struct gpu_source source = {0};
    size_t nbytes;
    uint8_t *file = test_file_read(path, &nbytes);
    double before_s = 0;

    gpu_source_choose(&source, codec);
    source.file = file;
    gpu_pack(&source, nbytes, chunk_nbytes, 64);
    m.source = &source;
    client_open(&m.client, PATIENCE_MS);
    m.in = new_memory(m.client.wharf, 2 * chunk_nbytes + 4096);
    m.out = new_memory(m.client.wharf, chunk_nbytes);
    must_cuda("memory", gpu_stream_make(2 * chunk_nbytes + 4096, &m.packed));
    must_cuda("a stream", gpu_stream_new(&m.stream));
    /* CUDA loads a kernel at its first launch, for which streams must not be at a gate. */
    must_cuda("the time", gpu_stream_stamp(m.stream, m.client.device_shared + 1024));
    must_cuda("a stream", gpu_stream_sync(m.stream));
    for (unsigned i = 0; i < N_BEFORE + n; i++) {
        if (i == N_BEFORE)
            before_s = busy_s();
        uint64_t ns = measure_one(&m, i + 1, i % source.n_chunks);
        if (i >= N_BEFORE)
            m.ns[i - N_BEFORE] = ns;
        if (pause_us)
            usleep(pause_us);
    }
    double decode_us = 1e6 * (busy_s() - before_s) / n;
    qsort(m.ns, n, sizeof(*m.ns), compare);
    printf("{\"what\": \"stream_job_stream\", \"file\": \"%s\", \"codec\": \"%s\", "
           "\"chunk_nbytes\": %zu, \"n\": %u, \"pause_us\": %u, \"p50_us\": %.2f, "
           "\"p10_us\": %.2f, \"p90_us\": %.2f, \"p99_us\": %.2f, \"warp_us\": %.2f, "
           "\"beyond_p50_us\": %.2f}\n",
           path, codec, chunk_nbytes, n, pause_us, 1e-3 * (double)m.ns[n / 2],
           1e-3 * (double)m.ns[n / 10], 1e-3 * (double)m.ns[n * 9 / 10],
           1e-3 * (double)m.ns[n * 99 / 100], decode_us, 1e-3 * (double)m.ns[n / 2] - decode_us);
    must_cuda("a stream", gpu_stream_free(m.stream));
    client_close(&m.client);
    gpu_client_free(&m.in);
    gpu_client_free(&m.out);
    gpu_source_free(&source);
    free(m.ns);
    free(file);
}

/* ---- main ---------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    int has_mps = argc > 1 && strcmp(argv[1], "--mps") == 0;
    if (has_mps) {
        argc--;
        argv++;
    }
    if (argc == 3 && strcmp(argv[1], "check") == 0)
        return check(strtoull(argv[2], NULL, 10), has_mps);
    if (argc < 7 || strcmp(argv[1], "measure") != 0) {
        fputs(help, stderr);
        return 2;
    }
    test_wharfd_start_gpu(&wharfd, "cuda", "");
    for (int i = 6; i < argc; i++)
        measure_file(argv[i], argv[5], strtoul(argv[4], NULL, 10),
                     (unsigned)strtoul(argv[2], NULL, 10), (unsigned)strtoul(argv[3], NULL, 10));
    test_wharfd_remove(&wharfd);
    return 0;
}
