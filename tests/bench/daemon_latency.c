/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon_latency.c: one thing at a time, through the daemon and without it.
 */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/daemon_parts.h"

/* Longer than the daemon watches a ring: 200 us by default. */
enum { PAUSE_US = 500 };

/* ---- a word there and back, between two processes ------------------------------------------ */

struct echo {
    uint32_t there;
    uint32_t back;
};

/* Passes a number on.  It is never 0 twice running, so a waiter sees each one. */
static void tell(uint32_t *word, uint32_t value, bool sleeps)
{
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
    if (sleeps)
        syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void hear(uint32_t *word, uint32_t value, bool sleeps)
{
    uint32_t seen;

    while ((seen = __atomic_load_n(word, __ATOMIC_SEQ_CST)) != value)
        if (sleeps)
            syscall(SYS_futex, word, FUTEX_WAIT, seen, NULL, NULL, 0);
}

static pid_t start_echo(struct echo *echo, unsigned n, bool sleeps)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (uint32_t i = 1; i <= n; i++) {
            hear(&echo->there, i, sleeps);
            tell(&echo->back, i, sleeps);
        }
        _exit(0);
    }
    return pid;
}

static void sample_echo(struct bench_samples *samples, unsigned n, bool sleeps, unsigned pause_us)
{
    struct echo *echo = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (echo == MAP_FAILED)
        bench_die("out of memory");
    pid_t pid = start_echo(echo, n, sleeps);
    for (uint32_t i = 1; i <= n; i++) {
        if (pause_us)
            usleep(pause_us);
        double start = bench_now_us();
        tell(&echo->there, i, sleeps);
        hear(&echo->back, i, sleeps);
        bench_samples_add(samples, bench_now_us() - start);
    }
    waitpid(pid, NULL, 0);
    munmap(echo, 4096);
}

/* ---- no-op --------------------------------------------------------------------------------- */

static void take_one(struct wharf *wharf)
{
    struct wharf_completion completion;

    if (wharf_wait(wharf, &completion, 1, 1, -1) != 1 || completion.result != WHARF_OK)
        bench_die("a job failed");
}

static void sample_noops(struct wharf *wharf, struct bench_samples *samples, unsigned n,
                         unsigned pause_us)
{
    for (unsigned i = 0; i < n; i++) {
        if (pause_us)
            usleep(pause_us);
        double start = bench_now_us();
        if (wharf_submit_noop(wharf, 0) < 0)
            bench_die("cannot submit");
        take_one(wharf);
        bench_samples_add(samples, bench_now_us() - start);
    }
}

struct noop_case {
    const char *what;
    uint32_t spin_us;
    unsigned pause_us;
    unsigned n_samples; /* times those asked for */
    bool echo_sleeps;
    double limit_us;
};

static void run_noop_case(struct daemon_bench *bench, const struct noop_case *c)
{
    enum { TURNS = 10 };
    unsigned n = c->n_samples * bench->n_samples / TURNS;
    struct bench_samples ours = bench_samples_new((size_t)n * TURNS);
    struct bench_samples theirs = bench_samples_new((size_t)n * TURNS);
    struct bench_latency_row row = {
        .what = c->what,
        .n_samples = (size_t)n * TURNS,
        .peer = c->echo_sleeps ? "a futex there and back" : "a word there and back",
        .limited = "p50_us",
        .limit_us = c->limit_us,
    };

    for (unsigned turn = 0; turn < TURNS; turn++) {
        sample_echo(&theirs, n, c->echo_sleeps, c->pause_us);
        struct wharf *wharf = bench_open(bench->wharfd.socket, c->spin_us, 1);
        sample_noops(wharf, &ours, n, c->pause_us);
        wharf_close(wharf);
    }
    row.times = bench_samples_spread(&ours);
    row.peer_times = bench_samples_spread(&theirs);
    bench_print_latency_row(stdout, &row);
    bench_samples_free(&ours);
    bench_samples_free(&theirs);
}

void bench_noop(struct daemon_bench *bench)
{
    static const struct noop_case cases[] = {
        {"no-op, both spin", 1000000, 0, 10, false, 2},
        {"no-op, the client sleeps", WHARF_SPIN_NEVER, 0, 1, true, 20},
        {"no-op, both sleep", WHARF_SPIN_NEVER, PAUSE_US, 1, true, 20},
    };

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        run_noop_case(bench, &cases[i]);
}

/* ---- a lone chunk -------------------------------------------------------------------------- */

struct lone_case {
    const char *what;
    uint32_t spin_us;
    unsigned pause_us;
};

/* What in process may take more, through the daemon. */
#define LONE_LIMIT_US 15

static double time_here(const struct bench_source *source, unsigned i, uint8_t *out)
{
    double start = bench_now_us();

    bench_decode_here(source, i, out);
    return bench_now_us() - start;
}

static double time_there(struct wharf *wharf, const struct wharf_job *job)
{
    double start = bench_now_us();

    if (wharf_submit(wharf, job, 1) != 1)
        bench_die("cannot submit");
    take_one(wharf);
    return bench_now_us() - start;
}

static void sample_chunks(struct wharf *wharf, const struct bench_source *source, unsigned n,
                          unsigned pause_us, struct bench_samples *ours,
                          struct bench_samples *theirs)
{
    struct bench_loaded loaded = bench_load(wharf, source);
    uint8_t *out = malloc(BENCH_CHUNK), *shared_out = bench_alloc(wharf, BENCH_CHUNK);

    for (unsigned i = 0; i < n; i++) {
        unsigned chunk = i % source->n_chunks;
        struct wharf_job job = bench_job(source, chunk, loaded.in[chunk], shared_out);
        if (pause_us)
            usleep(pause_us);
        bench_samples_add(theirs, time_here(source, chunk, out));
        if (pause_us)
            usleep(pause_us);
        bench_samples_add(ours, time_there(wharf, &job));
    }
    free(loaded.in);
    free(out);
}

static void run_lone_case(struct daemon_bench *bench, const struct bench_source *source,
                          const struct lone_case *c)
{
    unsigned n = c->pause_us ? bench->n_samples / 3 : bench->n_samples;
    struct bench_samples ours = bench_samples_new(n), theirs = bench_samples_new(n);
    struct wharf *wharf = bench_open(bench->wharfd.socket, c->spin_us, 1);
    struct bench_latency_row row = {
        .what = c->what,
        .data = source->name,
        .n_samples = n,
        .peer = "the same decoder in process",
        .limited = "p50_us",
    };

    sample_chunks(wharf, source, n, c->pause_us, &ours, &theirs);
    wharf_close(wharf);
    row.times = bench_samples_spread(&ours);
    row.peer_times = bench_samples_spread(&theirs);
    row.limit_us = row.peer_times.p50_us + LONE_LIMIT_US;
    bench_print_latency_row(stdout, &row);
    bench_samples_free(&ours);
    bench_samples_free(&theirs);
}

void bench_lone_chunk(struct daemon_bench *bench)
{
    static const struct lone_case cases[] = {
        {"lone chunk, the client spins", 1000000, 0},
        {"lone chunk, the client waits by default", 0, 0},
        {"lone chunk, both sleep", WHARF_SPIN_NEVER, PAUSE_US},
    };

    for (unsigned s = 0; s < bench->n_sources; s++)
        for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
            run_lone_case(bench, &bench->sources[s], &cases[i]);
}
