/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_daemon_check.c: what must come right through a daemon: vectors, storms of one client and of
 * several, with workers and daemons killed under them, and sessions that come and go. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "encoders/decode_job.h"
#include "kernels/simt/simt_batch.h"
#include "tests/gpu/gpu_daemon.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_tap.h"
#include "tests/lib/test_vector.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_worker.h"

#define MiB ((size_t)1 << 20)

static int is_simt(void)
{
    return gpu_daemon_engine() == WHARF_ENGINE_SIMT;
}

/* A metric of an engine; -1 if there is none. */
static double metric(const char *name, const char *label)
{
    return test_wharfd_metric(gpu_daemon_wharfd(), name, label);
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
                                                  .reason = WHARF_REASON_REQUEST_SIZE};
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

void gpu_daemon_check_vectors(const char *folder)
{
    struct test_vector_list list = {0};
    unsigned n_bad = 0, n_run = 0;

    test_vector_list_read_folder(&list, folder);
    gpu_daemon_start("chunk = 4M\n");
    struct wharf *wharf = gpu_daemon_open(gpu_daemon_engine(), 16, 32 * MiB);
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
    gpu_daemon_finish();
    test_vector_list_deinit(&list);
}

/* ---- storms -------------------------------------------------------------------------------- */

static int run_storm(uint32_t wanted, uint64_t seed, uint64_t n_jobs, struct test_storm *storm)
{
    /* Pinning a large arena takes longer than a few jobs; the default one has room for fewer. */
    int is_small = is_simt() || n_jobs < 1000;
    unsigned n_in_flight = is_small ? 32 : 600;
    size_t arena_nbytes = is_small ? 0 : 512 * MiB;

    *storm = (struct test_storm){
        .wharf = gpu_daemon_open(wanted, is_simt() ? 64 : 1000, arena_nbytes),
        .chunks = storm->chunks,
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

void gpu_daemon_check_storms(const struct test_chunks *chunks, uint64_t n_jobs)
{
    const char *own = is_simt() ? "simt" : "gpu";
    struct test_storm storm = {.chunks = chunks};

    gpu_daemon_start("");
    int good = run_storm(gpu_daemon_engine(), 1, n_jobs, &storm);
    double by_gpu = metric("wharf_chunks_total", own), by_cpu = metric("wharf_chunks_total", "cpu");
    test_tap_report(good && by_cpu <= 0,
                    "a storm on the GPU alone: %g chunks by the GPU, %g by the CPU", by_gpu,
                    by_cpu < 0 ? 0 : by_cpu);
    good = run_storm(WHARF_ENGINE_AUTO, 2, n_jobs, &storm);
    test_tap_report(good, "a storm on any engine: %g chunks by the GPU, %g by the CPU",
                    metric("wharf_chunks_total", own) - by_gpu,
                    metric("wharf_chunks_total", "cpu"));
    gpu_daemon_finish();
}

/* ---- several clients ----------------------------------------------------------------------- */

enum { N_CLIENTS = 4 };

void gpu_daemon_check_clients(const struct test_chunks *chunks, uint64_t n_jobs)
{
    pid_t pids[N_CLIENTS];
    int good = 1;

    gpu_daemon_start("");
    fflush(stdout);
    for (unsigned i = 0; i < N_CLIENTS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            struct test_storm storm = {.chunks = chunks};
            int is_bad = !run_storm(i % 2 ? WHARF_ENGINE_AUTO : gpu_daemon_engine(), 10 + i,
                                    n_jobs / N_CLIENTS, &storm);
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
    gpu_daemon_finish();
}

/* ---- deaths -------------------------------------------------------------------------------- */

struct killer {
    struct test_random random;
    int kills_daemons;
    pid_t victim;
    uint64_t kill_at_ns;
    uint64_t killed_ns; /* the last one */
    bool was_early;     /* and was not ready */
    unsigned n_kills;
};

/* Whether the victim may be killed.  When three workers in a row have ended before they were ready,
 * the daemon does without a GPU, and where starting takes long each would be such a one: so it is
 * one at most. */
static bool may_kill(struct killer *killer)
{
    bool is_up = killer->kills_daemons || metric("wharf_gpu_up", NULL) > 0;
    bool may = is_up || !killer->was_early;

    if (may)
        killer->was_early = !is_up;
    return may;
}

static void kill_one(struct killer *killer)
{
    killer->n_kills++;
    killer->killed_ns = wharf_now_ns();
    if (!killer->kills_daemons) {
        kill(killer->victim, SIGKILL);
        return;
    }
    test_wharfd_kill(gpu_daemon_wharfd());
    test_wharfd_spawn(gpu_daemon_wharfd());
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
    if (killer->victim && may_kill(killer))
        kill_one(killer);
    pid_t pid = test_worker_pid(gpu_daemon_pid());
    killer->victim = pid == killer->victim ? 0 : pid;
    killer->kill_at_ns = now_ns + test_random_below(&killer->random, most_ms * WHARF_NS_PER_MS);
}

/* The longest that no job comes back when a worker dies.  Where the CPU plays the GPU other tests
 * run beside this one: there it only says that nobody waits for a client's patience to end. */
static uint64_t most_gap_ms(void)
{
    return is_simt() ? 90000 : 500;
}

void gpu_daemon_check_kills(const struct test_chunks *chunks, int kills_daemons, uint64_t n_jobs)
{
    struct killer killer = {.random = {1}, .kills_daemons = kills_daemons};
    struct test_storm storm = {.chunks = chunks, .tick = tick, .tick_data = &killer};
    uint64_t longest_ns = 0;
    int good = 1;

    gpu_daemon_start("");
    /* On a fast machine storms may be over before anything is there to be killed. */
    for (unsigned n = 0; good && n < (killer.n_kills < 3 ? 2000 : 40) && killer.n_kills < 6; n++) {
        good = run_storm(gpu_daemon_engine(), 20 + n, n_jobs, &storm);
        if (storm.longest_gap_ns > longest_ns)
            longest_ns = storm.longest_gap_ns;
    }
    test_tap_report(good && killer.n_kills >= 3,
                    "%u times %s was killed, %" PRIu64 " ms without a completion", killer.n_kills,
                    kills_daemons ? "the daemon" : "the worker", longest_ns / WHARF_NS_PER_MS);
    if (!kills_daemons)
        test_tap_report(longest_ns < most_gap_ms() * WHARF_NS_PER_MS,
                        "jobs of a dead worker are answered within %" PRIu64 " ms", most_gap_ms());
    test_tap_report(test_worker_wait(gpu_daemon_pid(), 0) != 0, "there is a worker again");
    gpu_daemon_finish();
}

/* ---- come and go --------------------------------------------------------------------------- */

/* How much larger a worker may be, by what its threads and the driver keep; and what is pinned at
 * most when nobody is there, `spare` in wharfd.conf. */
#define WORKER_MORE_KIB (16 << 10)
#define SPARE_NBYTES (257 << 20)
/* A descriptor for each spare arena, of which there are more or fewer, and sockets on their way
 * out; of a leak there would be one at least for every second session, of which there are 30 or
 * more. */
#define SPARE_FDS 12

void gpu_daemon_check_churn(const struct test_chunks *chunks, unsigned n_sessions)
{
    struct test_storm storm = {.chunks = chunks};
    int n_fds = 0, n_worker_fds = 0, good = 1;
    long kib = 0, worker_kib = 0;

    gpu_daemon_keep_nothing();
    gpu_daemon_start("");
    pid_t worker = test_worker_wait(gpu_daemon_pid(), 0);
    for (unsigned i = 0; good && i < n_sessions; i++) {
        if (i == n_sessions / 2) {
            n_fds = test_wharfd_n_fds(gpu_daemon_wharfd());
            kib = test_wharfd_kib(gpu_daemon_wharfd());
            n_worker_fds = test_process_n_fds(worker);
            worker_kib = test_process_kib(worker);
        }
        good = run_storm(i % 2 ? gpu_daemon_engine() : WHARF_ENGINE_AUTO, 100 + i, 20, &storm);
    }
    /* But for the asking client's own ring. */
    bool is_given_back = TEST_WAIT(metric("wharf_memory_bytes", NULL) < 65536);
    test_tap_report(good && is_given_back, "%u sessions came and went, and all their memory",
                    n_sessions);
    test_tap_report(TEST_WAIT(test_wharfd_n_fds(gpu_daemon_wharfd()) <= n_fds + SPARE_FDS),
                    "no descriptor is left: %d, then %d", n_fds,
                    test_wharfd_n_fds(gpu_daemon_wharfd()));
    test_tap_report(test_wharfd_kib(gpu_daemon_wharfd()) < kib + GPU_DAEMON_MORE_KIB,
                    "no memory is left: %ld KiB, then %ld", kib,
                    test_wharfd_kib(gpu_daemon_wharfd()));
    int n_fds_now = test_process_n_fds(worker);
    long kib_now = test_process_kib(worker);
    test_tap_report(n_fds_now >= 0 && n_fds_now <= n_worker_fds + 4,
                    "nor a descriptor in the worker, which is the same: %d, then %d", n_worker_fds,
                    n_fds_now);
    test_tap_report(kib_now < worker_kib + WORKER_MORE_KIB,
                    "nor memory in the worker: %ld KiB, then %ld", worker_kib, kib_now);
    double pinned = metric("wharf_gpu_pinned_bytes", NULL);
    test_tap_report(pinned < SPARE_NBYTES, "%g bytes are pinned, all for clients to come", pinned);
    gpu_daemon_finish();
}
