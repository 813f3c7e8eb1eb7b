/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_daemon_main.c: a whole daemon with its GPU, driven through the library.
 *
 *     wharf_gpu_daemon [OPTION]... vectors FOLDER
 *         every vector through daemon and worker
 *     wharf_gpu_daemon [OPTION]... check N
 *         N jobs a storm: of one client and of several, with workers and daemons killed under it;
 *         sessions that come and go; registered models
 *     wharf_gpu_daemon [OPTION]... check-models N
 *         the models alone, with N damaged streams
 *     wharf_gpu_daemon [OPTION]... gpus N
 *         with two GPUs: storms of N jobs, the worker of one killed under them
 *     wharf_gpu_daemon [OPTION]... faults
 *         jobs that end the worker, with wharfd-poison beside wharfd
 *     wharf_gpu_daemon [OPTION]... sessions N
 *         N that come and go, and what they leave
 *     wharf_gpu_daemon [OPTION]... soak SECONDS
 *         sixteen clients of all kinds at once, and what they leave behind
 *     wharf_gpu_daemon [OPTION]... measure SECONDS
 *         latency and throughput
 *     wharf_gpu_daemon [OPTION]... flood CODEC[:TYPE] FILE SECONDS
 *         throughput of the file's chunks, packed, to several clients
 *     wharf_gpu_daemon [OPTION]... models SECONDS
 *         throughput of streams that bring their models, and of such that do not
 *
 *     --engine cuda|simt     the GPU (cuda), or its code on the CPU
 *     --output kernel|copy   who takes outputs to the clients' memory, as in wharfd.conf
 *     --worker PROGRAM       the worker, likewise: tests/wharfd-host where there is no GPU
 *     --setting NAME=VALUE   one more setting of [gpu]; with device=0,1 measure is of two GPUs
 *     --chunk NBYTES, --asked cpu|gpu|simt|auto
 *                            for measure: chunks of that size; for that engine alone
 *     --batch N              for flood: N chunks a job
 *     --clients N,N... --depth N,N...
 *                            for flood: so many clients (1,4,16), so many chunks in flight (4096)
 *     --spin MICROSECONDS    for how long clients look for completions before they sleep
 *
 * With simt, for machines without a GPU, chunks are small.  All but measure report in the Test
 * Anything Protocol; measure prints one JSON object a line.  It is run from BUILD/tests or from a
 * folder beside wharfd and wharfd-gpu.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "daemon/base/clock.h"
#include "encoders/codec.h"
#include "encoders/decode_job.h"
#include "kernels/simt/simt_batch.h"
#include "tests/gpu/gpu_daemon.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_storm.h"
#include "tests/lib/test_tap.h"
#include "tests/lib/test_vector.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"

#define MiB ((size_t)1 << 20)

static struct test_wharfd wharfd;
static const char *engine_name = "cuda";
static const char *output_name = "kernel";
static const char *worker_name = "";
static const char *setting = "";
static const char *asked = "all";
static size_t chunk_nbytes;
static unsigned batch;
static const char *clients = "1,4,16";
static const char *depths = "4096";
static uint32_t spin_us;
static uint32_t engine = WHARF_ENGINE_GPU;

static int is_simt(void)
{
    return engine == WHARF_ENGINE_SIMT;
}

/* ---- daemons and clients ------------------------------------------------------------------- */

static void start(const char *more)
{
    char config[1024];

    snprintf(config, sizeof(config),
             "output = %s\nworker = %s\n%s\n%s[quota]\nmax_memory = 64G\nmax_arena = 4G\n",
             output_name, worker_name, setting, more);
    test_wharfd_start_gpu(&wharfd, engine_name, config);
}

static void finish(void)
{
    if (test_wharfd_stop(&wharfd) != 0)
        test_tap_report(0, "the daemon ends as it should");
    test_wharfd_remove(&wharfd);
}

pid_t gpu_daemon_pid(void)
{
    return wharfd.pid;
}

const struct test_wharfd *gpu_daemon_wharfd(void)
{
    return &wharfd;
}

struct wharf *gpu_daemon_open(uint32_t wanted, uint32_t max_jobs, size_t arena_nbytes)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf;

    options.flags = WHARF_OPEN_DAEMON;
    options.socket_path = wharfd.socket;
    options.patience_ms = TEST_PATIENCE_MS;
    options.engine = wanted;
    options.max_jobs = max_jobs;
    options.arena_nbytes = arena_nbytes;
    options.spin_us = spin_us;
    if (wharf_open(&options, &wharf) < 0) {
        fprintf(stderr, "cannot open: %s\n", wharf_error_message());
        exit(1);
    }
    return wharf;
}

/* A metric of an engine; -1 if there is none. */
static double metric(const char *name, const char *label)
{
    return test_wharfd_metric(&wharfd, name, label);
}

/* ---- vectors ------------------------------------------------------------------------------- */

/* Larger ones are not for a GPU, and are told so. */
#define VECTOR_NBYTES (4 * MiB)

static int run_vector(struct wharf *wharf, const struct test_vector *vector, size_t out_avail)
{
    size_t in_nbytes;
    uint8_t *in = test_file_read(vector->path, &in_nbytes);
    uint8_t *out = calloc(1, out_avail + 1), *expected = calloc(1, out_avail + 1);
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_decode_job plain = {
        .codec = vector->codec,
        .setting.parameter = vector->parameter,
        .in = in,
        .in_nbytes = in_nbytes,
        .out = expected,
        .out_avail = out_avail,
    };
    struct wharf_outcome outcome, expected_outcome;

    job.codec = vector->codec;
    job.parameter = vector->parameter;
    job.in = in;
    job.in_nbytes = in_nbytes;
    job.out = out;
    job.out_avail = out_avail;
    wharf_decode_job_run(&plain, 0, &expected_outcome);
    if (in_nbytes > VECTOR_NBYTES || out_avail > VECTOR_NBYTES)
        expected_outcome = (struct wharf_outcome){.result = WHARF_BAD_REQUEST,
                                                  .reason = WHARF_REASON_REQUEST_RANGE};
    int r = wharf_decompress(wharf, &job, &outcome);
    int good = r == 0 && memcmp(&outcome, &expected_outcome, sizeof(outcome)) == 0 &&
               memcmp(out, expected, outcome.out_nbytes) == 0;
    if (!good)
        printf("# %s into %zu: %s, %s at %" PRIu64 " instead of %s, %s at %" PRIu64 " (%s)\n",
               vector->path, out_avail, wharf_result_name(outcome.result),
               wharf_reason_name(outcome.reason), outcome.bit_offset,
               wharf_result_name(expected_outcome.result),
               wharf_reason_name(expected_outcome.reason), expected_outcome.bit_offset,
               r < 0 ? wharf_error_message() : "wrong");
    free(in);
    free(out);
    free(expected);
    return good;
}

static void check_vectors(const char *folder)
{
    struct test_vector_list list = {0};
    unsigned n_bad = 0, n_run = 0;

    test_vector_list_read_folder(&list, folder);
    start("chunk = 4M\n");
    struct wharf *wharf = gpu_daemon_open(engine, 16, 32 * MiB);
    for (size_t i = 0; i < list.n_vectors; i++) {
        const struct test_vector *vector = &list.vectors[i];
        if (!wharf_simt_can_decode(vector->codec))
            continue;
        n_bad += !run_vector(wharf, vector, vector->out_avail);
        if (vector->out_avail)
            n_bad += !run_vector(wharf, vector, vector->out_avail - 1);
        n_run++;
    }
    wharf_close(wharf);
    double by_cpu = metric("wharf_chunks_total", "cpu");
    double by_gpu = metric("wharf_chunks_total", is_simt() ? "simt" : "gpu");
    test_tap_report(
        n_bad == 0 && n_run > 0 && by_cpu <= 0 && by_gpu >= n_run,
        "%u vectors give what the CPU gives, %u do not; %g chunks by the GPU, %g by the CPU", n_run,
        n_bad, by_gpu, by_cpu < 0 ? 0 : by_cpu);
    finish();
    test_vector_list_deinit(&list);
}

/* ---- storms -------------------------------------------------------------------------------- */

static struct test_chunks chunks;

static void make_chunks(void)
{
    if (is_simt())
        test_chunks_init(&chunks, 1, 60, 1000, 8);
    else
        test_chunks_init(&chunks, 1, 400, 100000, 8);
}

static int run_storm(uint32_t wanted, uint64_t seed, uint64_t n_jobs, struct test_storm *storm)
{
    /* Pinning a large arena takes longer than a few jobs; the default one has room for fewer. */
    int is_small = is_simt() || n_jobs < 1000;
    unsigned n_in_flight = is_small ? 32 : 600;
    size_t arena_nbytes = is_small ? 0 : 512 * MiB;

    *storm = (struct test_storm){
        .wharf = gpu_daemon_open(wanted, is_simt() ? 64 : 1000, arena_nbytes),
        .chunks = &chunks,
        .way = (enum test_storm_way)(seed % 3),
        .seed = seed,
        .n_jobs = n_jobs,
        .n_in_flight = n_jobs < n_in_flight ? (unsigned)n_jobs : n_in_flight,
        .batch_one_in = 8,
        .cancel_one_in = 10,
        .limit_s = 300,
        .tick = storm->tick,
        .tick_data = storm->tick_data,
    };
    int r = test_storm_run(storm);
    if (r < 0)
        printf("# %s\n", storm->error);
    wharf_close(storm->wharf);
    return r == 0 && storm->n_done == n_jobs;
}

static void check_storms(uint64_t n_jobs)
{
    const char *own = is_simt() ? "simt" : "gpu";
    struct test_storm storm = {.tick = NULL};

    start("");
    int good = run_storm(engine, 1, n_jobs, &storm);
    double by_gpu = metric("wharf_chunks_total", own), by_cpu = metric("wharf_chunks_total", "cpu");
    test_tap_report(good && by_cpu <= 0,
                    "a storm on the GPU alone: %g chunks by the GPU, %g by the CPU", by_gpu,
                    by_cpu < 0 ? 0 : by_cpu);
    good = run_storm(WHARF_ENGINE_AUTO, 2, n_jobs, &storm);
    test_tap_report(good, "a storm on any engine: %g chunks by the GPU, %g by the CPU",
                    metric("wharf_chunks_total", own) - by_gpu,
                    metric("wharf_chunks_total", "cpu"));
    finish();
}

/* ---- several clients ----------------------------------------------------------------------- */

enum { N_CLIENTS = 4 };

static void check_clients(uint64_t n_jobs)
{
    pid_t pids[N_CLIENTS];
    int good = 1;

    start("");
    fflush(stdout);
    for (unsigned i = 0; i < N_CLIENTS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            struct test_storm storm = {.tick = NULL};
            int is_bad =
                !run_storm(i % 2 ? WHARF_ENGINE_AUTO : engine, 10 + i, n_jobs / N_CLIENTS, &storm);
            /* What went wrong was printed. */
            fflush(stdout);
            _exit(is_bad);
        }
    }
    for (unsigned i = 0; i < N_CLIENTS; i++) {
        int status = -1;
        waitpid(pids[i], &status, 0);
        good = good && status == 0;
    }
    test_tap_report(good, "storms of %d processes at once", N_CLIENTS);
    finish();
}

/* ---- deaths -------------------------------------------------------------------------------- */

struct killer {
    struct test_random random;
    int kills_daemons;
    pid_t victim;
    uint64_t kill_at_ns;
    uint64_t killed_ns; /* the last one */
    unsigned n_kills;
};

static void kill_one(struct killer *killer)
{
    killer->n_kills++;
    killer->killed_ns = wharf_now_ns();
    if (!killer->kills_daemons) {
        kill(killer->victim, SIGKILL);
        return;
    }
    test_wharfd_kill(&wharfd);
    test_wharfd_spawn(&wharfd);
}

/* Each worker, or each daemon with its worker, some time after it was first seen. */
static void tick(const struct test_storm *storm)
{
    struct killer *killer = storm->tick_data;
    uint64_t now_ns = wharf_now_ns();
    uint64_t most_ms = is_simt() ? (killer->kills_daemons ? 400 : 80) : 1500;

    if (killer->victim && now_ns < killer->kill_at_ns)
        return;
    /* Daemons that are killed before they serve anybody prove nothing. */
    if (killer->kills_daemons && storm->last_done_ns <= killer->killed_ns)
        return;
    if (killer->victim)
        kill_one(killer);
    pid_t pid = test_worker_pid(wharfd.pid);
    killer->victim = pid == killer->victim ? 0 : pid;
    killer->kill_at_ns = now_ns + test_random_below(&killer->random, most_ms * WHARF_NS_PER_MS);
}

/* The longest that no job comes back when a worker dies.  Where the CPU plays the GPU other tests
 * run beside this one: there it only says that nobody waits for a client's patience to end. */
static uint64_t most_gap_ms(void)
{
    return is_simt() ? 20000 : 500;
}

static void check_kills(int kills_daemons, uint64_t n_jobs)
{
    struct killer killer = {.random = {1}, .kills_daemons = kills_daemons};
    struct test_storm storm = {.tick = tick, .tick_data = &killer};
    uint64_t longest_ns = 0;
    int good = 1;

    start("");
    for (unsigned n = 0; good && n < 40 && killer.n_kills < 6; n++) {
        good = run_storm(engine, 20 + n, n_jobs, &storm);
        if (storm.longest_gap_ns > longest_ns)
            longest_ns = storm.longest_gap_ns;
    }
    test_tap_report(good && killer.n_kills >= 3,
                    "%u times %s was killed, %" PRIu64 " ms without a completion", killer.n_kills,
                    kills_daemons ? "the daemon" : "the worker", longest_ns / WHARF_NS_PER_MS);
    if (!kills_daemons)
        test_tap_report(longest_ns < most_gap_ms() * WHARF_NS_PER_MS,
                        "jobs of a dead worker are answered within %" PRIu64 " ms", most_gap_ms());
    test_tap_report(test_worker_wait(wharfd.pid, 0) != 0, "there is a worker again");
    finish();
}

/* ---- come and go --------------------------------------------------------------------------- */

/* The address sanitizer keeps what was freed, and frames of functions that have returned, 40 KiB
 * and more for a session: not in this daemon. */
static void keep_nothing(void)
{
    const char *options = getenv("ASAN_OPTIONS");
    char more[512];

    snprintf(more, sizeof(more),
             "%s:quarantine_size_mb=0:thread_local_quarantine_size_kb=0:"
             "detect_stack_use_after_return=0",
             options ? options : "");
    setenv("ASAN_OPTIONS", more, 1);
}

/* How much larger a worker may be, by what its threads and the driver keep; and what is pinned at
 * most when nobody is there, `spare` in wharfd.conf. */
#define WORKER_MORE_KIB (16 << 10)
#define SPARE_NBYTES (257 << 20)
/* A descriptor for each spare arena, of which there are more or fewer, and sockets on their way
 * out; of a leak there would be one at least for every second session, of which there are 30 or
 * more. */
#define SPARE_FDS 12

/* Memory that clients give up is let go of by the worker, and by the daemon's books. */
static void check_churn(unsigned n_sessions)
{
    struct test_storm storm = {.tick = NULL};
    int n_fds = 0, n_worker_fds = 0, good = 1;
    long kib = 0, worker_kib = 0;

    keep_nothing();
    start("");
    pid_t worker = test_worker_wait(wharfd.pid, 0);
    for (unsigned i = 0; good && i < n_sessions; i++) {
        if (i == n_sessions / 2) {
            n_fds = test_wharfd_n_fds(&wharfd);
            kib = test_wharfd_kib(&wharfd);
            n_worker_fds = test_process_n_fds(worker);
            worker_kib = test_process_kib(worker);
        }
        good = run_storm(i % 2 ? engine : WHARF_ENGINE_AUTO, 100 + i, 20, &storm);
    }
    /* But for the asking client's own ring. */
    bool is_given_back = TEST_WAIT(metric("wharf_memory_bytes", NULL) < 65536);
    test_tap_report(good && is_given_back, "%u sessions came and went, and all their memory",
                    n_sessions);
    test_tap_report(TEST_WAIT(test_wharfd_n_fds(&wharfd) <= n_fds + SPARE_FDS),
                    "no descriptor is left: %d, then %d", n_fds, test_wharfd_n_fds(&wharfd));
    test_tap_report(test_wharfd_kib(&wharfd) < kib + GPU_DAEMON_MORE_KIB,
                    "no memory is left: %ld KiB, then %ld", kib, test_wharfd_kib(&wharfd));
    int n_fds_now = test_process_n_fds(worker);
    long kib_now = test_process_kib(worker);
    test_tap_report(n_fds_now >= 0 && n_fds_now <= n_worker_fds + 4,
                    "nor a descriptor in the worker, which is the same: %d, then %d", n_worker_fds,
                    n_fds_now);
    test_tap_report(kib_now < worker_kib + WORKER_MORE_KIB,
                    "nor memory in the worker: %ld KiB, then %ld", worker_kib, kib_now);
    double pinned = metric("wharf_gpu_pinned_bytes", NULL);
    test_tap_report(pinned < SPARE_NBYTES, "%g bytes are pinned, all for clients to come", pinned);
    finish();
}

/* ---- main ---------------------------------------------------------------------------------- */

static int usage(void)
{
    fputs("usage: wharf_gpu_daemon [--engine cuda|simt] vectors FOLDER | check N | gpus N | "
          "faults | sessions N | soak SECONDS | check-models N | measure SECONDS | models SECONDS "
          "| flood CODEC FILE SECONDS\n",
          stderr);
    return 2;
}

static void sessions(unsigned n_sessions)
{
    make_chunks();
    check_churn(n_sessions);
    test_chunks_deinit(&chunks);
}

static void check_gpus(uint64_t n_jobs)
{
    make_chunks();
    start("device = 0,1\n");
    gpu_daemon_check_gpus(engine, &chunks, n_jobs);
    finish();
    test_chunks_deinit(&chunks);
}

static void measure(double seconds)
{
    start("");
    gpu_daemon_measure(engine, seconds, chunk_nbytes, asked);
    finish();
}

static void flood(char **argv, double seconds)
{
    struct gpu_daemon_flood what = {argv[0], argv[1], chunk_nbytes ? chunk_nbytes : 128 << 10,
                                    batch,   clients, depths};
    uint32_t wanted = strcmp(asked, "all") == 0    ? engine
                      : strcmp(asked, "cpu") == 0  ? WHARF_ENGINE_CPU
                      : strcmp(asked, "auto") == 0 ? WHARF_ENGINE_AUTO
                                                   : engine;

    start("");
    gpu_daemon_flood(wanted, &what, seconds);
    finish();
}

static void soak(double seconds)
{
    keep_nothing();
    make_chunks();
    start("");
    gpu_daemon_soak(engine, &chunks, seconds);
    finish();
    test_chunks_deinit(&chunks);
}

/* By a daemon of its own, whose jobs can ask for faults. */
static void faults(void)
{
    test_wharfd_program = "wharfd-poison";
    start("hang_timeout = 10min\n[listen other]\npath = other\ntenant = socket\n");
    gpu_daemon_faults(engine);
    finish();
    test_wharfd_program = "wharfd";
}

static void check_models(unsigned n_damaged)
{
    start("");
    unsigned n_bad = gpu_daemon_check_models(engine, n_damaged);
    test_tap_report(n_bad == 0, "registered models, %u damaged streams: %u differ", n_damaged,
                    n_bad);
    finish();
}

static void measure_models(double seconds)
{
    start("");
    gpu_daemon_measure_models(engine, seconds);
    finish();
}

static void check(uint64_t n_jobs)
{
    make_chunks();
    check_storms(n_jobs);
    check_clients(n_jobs);
    check_kills(0, n_jobs);
    check_kills(1, n_jobs);
    check_churn(is_simt() ? 60 : 400);
    check_models(is_simt() ? 200 : 2000);
    test_chunks_deinit(&chunks);
}

int main(int argc, char **argv)
{
    for (; argc > 2 && strncmp(argv[1], "--", 2) == 0; argv += 2, argc -= 2) {
        if (strcmp(argv[1], "--engine") == 0)
            engine_name = argv[2];
        else if (strcmp(argv[1], "--output") == 0)
            output_name = argv[2];
        else if (strcmp(argv[1], "--worker") == 0)
            worker_name = argv[2];
        else if (strcmp(argv[1], "--setting") == 0)
            setting = argv[2];
        else if (strcmp(argv[1], "--asked") == 0)
            asked = argv[2];
        else if (strcmp(argv[1], "--chunk") == 0)
            chunk_nbytes = strtoul(argv[2], NULL, 0);
        else if (strcmp(argv[1], "--batch") == 0)
            batch = (unsigned)strtoul(argv[2], NULL, 0);
        else if (strcmp(argv[1], "--clients") == 0)
            clients = argv[2];
        else if (strcmp(argv[1], "--depth") == 0)
            depths = argv[2];
        else if (strcmp(argv[1], "--spin") == 0)
            spin_us = (uint32_t)strtoul(argv[2], NULL, 0);
        else
            return usage();
    }
    engine = strcmp(engine_name, "simt") == 0 ? WHARF_ENGINE_SIMT : WHARF_ENGINE_GPU;
    if (argc == 2 && strcmp(argv[1], "faults") == 0)
        faults();
    else if (argc == 5 && strcmp(argv[1], "flood") == 0)
        flood(argv + 2, strtod(argv[4], NULL));
    else if (argc != 3)
        return usage();
    else if (strcmp(argv[1], "vectors") == 0)
        check_vectors(argv[2]);
    else if (strcmp(argv[1], "check") == 0)
        check(strtoull(argv[2], NULL, 0));
    else if (strcmp(argv[1], "gpus") == 0)
        check_gpus(strtoull(argv[2], NULL, 0));
    else if (strcmp(argv[1], "sessions") == 0)
        sessions((unsigned)strtoul(argv[2], NULL, 0));
    else if (strcmp(argv[1], "soak") == 0)
        soak(strtod(argv[2], NULL));
    else if (strcmp(argv[1], "measure") == 0)
        measure(strtod(argv[2], NULL));
    else if (strcmp(argv[1], "models") == 0)
        measure_models(strtod(argv[2], NULL));
    else if (strcmp(argv[1], "check-models") == 0)
        check_models((unsigned)strtoul(argv[2], NULL, 0));
    else
        return usage();
    return test_tap_end();
}
