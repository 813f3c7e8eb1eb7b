/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon_compress.c: what another tenant waits for while clients have the daemon compress as much
 * as it can: by jobs of the class BACKGROUND, which take idle processors alone, and by jobs of the
 * class NORMAL, which nothing holds back.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/daemon_parts.h"

/* Chunks that one client has in flight, and measurements of each kind. */
enum { DEPTH = 16, TURNS = 10 };

/* Longer than clients take to connect and to fill their queues. */
#define WARM_UP_US 100000

/* Shared with the processes that compress. */
struct load {
    bool stop;
    uint64_t n_done;
};

struct compressors {
    struct load *load;
    pid_t pids[BENCH_MOST_CLIENTS];
    unsigned n;
};

/* All chunks of a source without compression, in the handle's arena. */
static uint8_t *load_plain(struct wharf *wharf, const struct bench_source *source)
{
    uint8_t *in = bench_alloc(wharf, (size_t)source->n_chunks * BENCH_CHUNK);

    for (unsigned i = 0; i < source->n_chunks; i++)
        memcpy(in + (size_t)i * BENCH_CHUNK, source->plain[i], BENCH_CHUNK);
    return in;
}

static void compress_until_told(struct wharf *wharf, const struct bench_source *source,
                                uint32_t job_class, struct load *load)
{
    uint8_t *in = load_plain(wharf, source);
    uint8_t *out = bench_alloc(wharf, (size_t)DEPTH * BENCH_CHUNK);
    struct wharf_completion done[DEPTH];
    struct wharf_job jobs[DEPTH];
    uint64_t n_begun = 0;
    int n = DEPTH;

    for (unsigned i = 0; i < DEPTH; i++)
        done[i].user_data = i;
    while (n > 0 && !__atomic_load_n(&load->stop, __ATOMIC_RELAXED)) {
        for (int i = 0; i < n; i++) {
            uint64_t slot = done[i].user_data;
            jobs[i] = (struct wharf_job)WHARF_JOB_INIT;
            jobs[i].codec = WHARF_CODEC_ZLIB;
            jobs[i].flags = WHARF_JOB_COMPRESS;
            jobs[i].job_class = job_class;
            jobs[i].in = in + n_begun++ % source->n_chunks * BENCH_CHUNK;
            jobs[i].in_nbytes = BENCH_CHUNK;
            jobs[i].out = out + slot * BENCH_CHUNK;
            jobs[i].out_avail = BENCH_CHUNK;
            jobs[i].user_data = slot;
        }
        if (wharf_submit(wharf, jobs, (unsigned)n) != n)
            bench_die("cannot submit");
        n = wharf_wait(wharf, done, DEPTH, 1, -1);
        for (int i = 0; i < n; i++)
            if (done[i].result != WHARF_OK)
                bench_die("a chunk was not compressed");
        __atomic_fetch_add(&load->n_done, (uint64_t)n, __ATOMIC_RELAXED);
    }
    if (n <= 0)
        bench_die("cannot wait");
}

static void compressors_start(struct compressors *all, const struct daemon_bench *bench,
                              uint32_t job_class)
{
    *all = (struct compressors){.n = bench->n_clients};
    all->load =
        mmap(NULL, sizeof(*all->load), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all->load == MAP_FAILED)
        bench_die("out of memory");
    for (unsigned i = 0; i < all->n; i++) {
        all->pids[i] = fork();
        if (all->pids[i] < 0)
            bench_die("cannot fork");
        if (all->pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            struct wharf *wharf = bench_open(bench->wharfd.socket, 0, DEPTH);
            compress_until_told(wharf, &bench->sources[0], job_class, all->load);
            wharf_close(wharf);
            _exit(0);
        }
    }
    usleep(WARM_UP_US);
}

static void compressors_end(struct compressors *all)
{
    int status;

    __atomic_store_n(&all->load->stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < all->n; i++)
        if (waitpid(all->pids[i], &status, 0) < 0 || status != 0)
            bench_die("a client failed");
    munmap(all->load, sizeof(*all->load));
}

static const struct kind {
    const char *what;
    uint32_t job_class;
    bool is_limited;
} kinds[] = {
    {"an interactive chunk beside background compression", WHARF_CLASS_BACKGROUND, true},
    {"an interactive chunk beside compression without a throttle", WHARF_CLASS_NORMAL, false},
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* What of it all was measured beside one kind of compression. */
struct measured {
    struct bench_samples samples;
    double seconds;
    uint64_t n_compressed;
};

static void sample_beside(const struct daemon_bench *bench, const struct kind *kind, unsigned n,
                          struct measured *m)
{
    struct compressors all;

    compressors_start(&all, bench, kind->job_class);
    uint64_t before = __atomic_load_n(&all.load->n_done, __ATOMIC_RELAXED);
    double start = bench_now_us();
    bench_sample_interactive(bench, n, &m->samples);
    m->seconds += 1e-6 * (bench_now_us() - start);
    m->n_compressed += __atomic_load_n(&all.load->n_done, __ATOMIC_RELAXED) - before;
    compressors_end(&all);
}

void bench_compress(struct daemon_bench *bench)
{
    unsigned n = bench->n_samples / TURNS;
    struct bench_samples alone = bench_samples_new((size_t)n * TURNS);
    struct measured beside[N_KINDS] = {0};

    for (unsigned k = 0; k < N_KINDS; k++)
        beside[k].samples = bench_samples_new((size_t)n * TURNS);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        bench_sample_interactive(bench, n, &alone);
        for (unsigned k = 0; k < N_KINDS; k++)
            sample_beside(bench, &kinds[k], n, &beside[k]);
    }
    for (unsigned k = 0; k < N_KINDS; k++) {
        char more[96];
        struct bench_latency_row row = {
            .what = kinds[k].what,
            .data = bench->sources[0].name,
            .n_samples = (size_t)n * TURNS,
            .peer = "the same, alone",
            .more = more,
        };
        row.times = bench_samples_spread(&beside[k].samples);
        row.peer_times = bench_samples_spread(&alone);
        if (kinds[k].is_limited) {
            row.limited = "p99_us";
            row.limit_us = 1.1 * row.peer_times.p99_us;
        }
        snprintf(more, sizeof(more), ", \"clients\": %u, \"compressed_gbps\": %.4f",
                 bench->n_clients,
                 (double)beside[k].n_compressed * BENCH_CHUNK / beside[k].seconds / 1e9);
        bench_print_latency_row(stdout, &row);
        bench_samples_free(&beside[k].samples);
    }
    bench_samples_free(&alone);
}
