/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_memory_main.c: a client of the daemon that uses CUDA itself, and has sources and outputs in
 * its own GPU memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "daemon/base/clock.h"
#include "kernels/cuda_error.h"
#include "tests/gpu/gpu_memory_parts.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_help.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_storm.h"
#include "tests/lib/test_tap.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"

static const char help[] =
    "usage: wharf_gpu_memory [--gpu N] check N\n"
    "       wharf_gpu_memory [--gpu N] measure SECONDS CHUNK CODEC FILE...\n"
    "       wharf_gpu_memory [--gpu N] files SECONDS CHUNK CODEC FILE...\n"
    "       wharf_gpu_memory [--gpu N] share PROCESSES CHUNKS SECONDS CHUNK CODEC FILE...\n"
    "       wharf_gpu_memory flood SOCKET\n"
    "\n"
    "Drives the daemon as a client that uses CUDA itself, and has sources and outputs in its\n"
    "own GPU memory.  The modes:\n"
    "\n"
    "  check     storms of N jobs, kills, wrong memory\n"
    "  measure   bytes a second, in GPU memory and not\n"
    "  files     the same with sources in a file in the page cache\n"
    "  share     the same of several processes, each with one batch of CHUNKS in flight\n"
    "  flood     what check runs as a process of its own: chunks without an end to the daemon\n"
    "            at SOCKET\n"
    "\n"
    "With --gpu 1 the client's memory is on that GPU, and the daemon has that one and all\n"
    "before.  check reports in the Test Anything Protocol, the others print one JSON object a\n"
    "line.  It is run from BUILD/tests or from a folder beside wharfd and wharfd-gpu.\n";

#define MiB ((size_t)1 << 20)
#define GRANULARITY (2 * MiB)

static char gpu[8] = "0";

/* ---- daemon and memory --------------------------------------------------------------------- */

static void start(void)
{
    char config[128];

    snprintf(config, sizeof(config), "device = 0-%s\n[quota]\nmax_memory = 64G\nmax_arena = 8G\n",
             gpu);
    test_wharfd_start_gpu(&gpu_memory_wharfd, "cuda", config);
}

static void finish(void)
{
    if (test_wharfd_stop(&gpu_memory_wharfd) != 0)
        test_tap_report(0, "the daemon ends as it should");
    test_wharfd_remove(&gpu_memory_wharfd);
}

static double metric(const char *name, const char *label)
{
    return test_wharfd_metric(&gpu_memory_wharfd, name, label);
}

static int is_given_back(void)
{
    return TEST_WAIT(metric("wharf_gpu_memory_bytes", NULL) == 0);
}

/* ---- what the GPU sees --------------------------------------------------------------------- */

static void set(uint8_t *to, int byte, size_t nbytes)
{
    gpu_memory_must_cuda("setting", gpu_client_set(to, byte, nbytes));
}

static void put(uint8_t *to, const void *from, size_t nbytes)
{
    gpu_memory_must_cuda("copying", gpu_client_put(to, from, nbytes));
}

static void get(void *to, const uint8_t *from, size_t nbytes)
{
    gpu_memory_must_cuda("copying", gpu_client_get(to, from, nbytes));
}

/* A kernel that is launched as soon as the completion is there finds each byte. */
static void check_visible(const struct test_chunks *chunks, unsigned n_rounds)
{
    struct wharf *wharf = gpu_memory_open(WHARF_ENGINE_GPU, 4, 4 * MiB);
    struct gpu_client_memory out = gpu_memory_register(wharf, chunks->max_out_avail + 16);
    struct gpu_client_memory expected;
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_completion completion;
    unsigned n_wrong = 0, n_seen = 0, n_differ;
    void *in;

    gpu_memory_must_cuda("making memory", gpu_client_make(out.nbytes, &expected));
    gpu_memory_must("wharf_alloc", wharf_alloc(wharf, chunks->max_packed_nbytes, &in));
    for (unsigned i = 0; i < n_rounds; i++) {
        const struct test_chunk *chunk = &chunks->chunks[i % chunks->n];
        if (chunk->outcome.result != WHARF_OK)
            continue;
        memcpy(in, chunk->packed, chunk->packed_nbytes);
        gpu_memory_must_cuda("copying",
                             gpu_client_put(expected.at, chunk->plain, chunk->out_avail));
        set(out.at, (int)(i & 0xff), out.nbytes);
        job.codec = chunk->codec;
        job.in = in;
        job.in_nbytes = chunk->packed_nbytes;
        job.out = out.at + i % 16;
        job.out_avail = chunk->out_avail;
        gpu_memory_must("submitting", wharf_submit(wharf, &job, 1));
        gpu_memory_must("waiting", wharf_wait(wharf, &completion, 1, 1, -1));
        gpu_memory_must_cuda("comparing", gpu_client_compare(out.at + i % 16, expected.at,
                                                             chunk->out_avail, &n_differ));
        n_wrong += completion.result != WHARF_OK || completion.engine != WHARF_ENGINE_GPU;
        n_wrong += n_differ != 0;
        n_seen++;
    }
    test_tap_report(
        n_seen > 0 && n_wrong == 0,
        "kernels find %u of %u outputs whole that are compared as soon as they are there",
        n_seen - n_wrong, n_seen);
    wharf_close(wharf);
    gpu_client_free(&out);
    gpu_client_free(&expected);
}

/* ---- storms -------------------------------------------------------------------------------- */

static int run_storm(uint32_t engine, uint64_t seed, uint64_t n_jobs,
                     const struct test_chunks *chunks, struct test_worker_killer *killer)
{
    struct test_storm storm = {
        .chunks = chunks,
        .seed = seed,
        .n_jobs = n_jobs,
        .n_in_flight = 200,
        .batch_one_in = 6,
        .cancel_one_in = 10,
        .limit_s = 60,
        .tick = killer ? test_worker_kill : NULL,
        .tick_data = killer,
        .set_memory = set,
        .put_memory = put,
        .get_memory = get,
    };

    storm.wharf = gpu_memory_open(engine, 400, 256 * MiB);
    struct gpu_client_memory out = gpu_memory_register(storm.wharf, test_storm_out_nbytes(&storm));
    struct gpu_client_memory in = gpu_memory_register(storm.wharf, test_storm_in_nbytes(&storm));
    storm.out_memory = out.at;
    storm.in_memory = in.at;
    int r = test_storm_run(&storm);
    if (r < 0)
        printf("# %s\n", storm.error);
    wharf_close(storm.wharf);
    gpu_client_free(&out);
    gpu_client_free(&in);
    return r == 0 && storm.n_done == n_jobs;
}

static void check_storms(const struct test_chunks *chunks, uint64_t n_jobs)
{
    struct test_worker_killer killer = {.random = {1},
                                        .wharfd = &gpu_memory_wharfd,
                                        .gpu = gpu,
                                        .within_ns = 1500 * WHARF_NS_PER_MS};
    int good = run_storm(WHARF_ENGINE_GPU, 1, n_jobs, chunks, NULL);

    test_tap_report(good, "a storm of %llu jobs, every second source and output in GPU memory",
                    (unsigned long long)n_jobs);
    good = run_storm(WHARF_ENGINE_AUTO, 2, n_jobs, chunks, NULL);
    test_tap_report(good,
                    "the same, by who asks for no engine: %g chunks by the CPU, %g by the GPU",
                    metric("wharf_chunks_total", "cpu"), metric("wharf_chunks_total", "gpu"));
    good = 1;
    for (unsigned n = 0; good && n < 40 && killer.n_kills < 4; n++)
        good = run_storm(WHARF_ENGINE_GPU, 10 + n, n_jobs, chunks, &killer);
    test_tap_report(good && killer.n_kills >= 3,
                    "no job is lost when the worker is killed %u times", killer.n_kills);
    test_tap_report(is_given_back(), "all of that memory is given back");
}

/* ---- what is no such memory ---------------------------------------------------------------- */

static int refuses(struct wharf *wharf, const char *what, int fd, uint8_t *at, size_t nbytes,
                   int expected)
{
    int r = wharf_register_gpu(wharf, fd, (uintptr_t)at, nbytes);

    printf("# %s: %d, %s\n", what, r, r < 0 ? wharf_error_message() : "registered");
    return r == expected;
}

static int refuses_file(struct wharf *wharf, const char *path, int expected)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    int good = fd < 0 || refuses(wharf, path, fd, (uint8_t *)MiB, GRANULARITY, expected);

    if (fd >= 0)
        close(fd);
    return good;
}

static void check_refusals(void)
{
    struct wharf *wharf = gpu_memory_open(WHARF_ENGINE_GPU, 4, MiB);
    pid_t worker = test_worker_of_gpu(gpu_memory_wharfd.pid, gpu);
    struct gpu_client_memory memory;
    uint8_t *const nowhere = (uint8_t *)MiB; /* with room behind it for any size */
    int good;

    gpu_memory_must_cuda("making memory", gpu_client_make(4 * GRANULARITY, &memory));
    good = refuses_file(wharf, "/dev/null", -EBADF);
    good &= refuses_file(wharf, "/dev/nvidia-uvm", -EBADF);
    good &= refuses_file(wharf, "/dev/nvidiactl", -EINVAL);
    good &= refuses_file(wharf, "/dev/nvidia0", -EINVAL);
    int memfd = test_memfd(GRANULARITY, F_SEAL_SHRINK | F_SEAL_GROW);
    good &= refuses(wharf, "a memfd", memfd, nowhere, GRANULARITY, -EBADF);
    close(memfd);
    good &= refuses(wharf, "2 MiB too many", memory.fd, nowhere, 5 * GRANULARITY, -EINVAL);
    good &= refuses(wharf, "far too many", memory.fd, nowhere, (size_t)32 << 30, -EINVAL);
    good &= refuses(wharf, "over the quota", memory.fd, nowhere, (size_t)1 << 40, -EDQUOT);
    good &= refuses(wharf, "not a multiple", memory.fd, nowhere, 4 * GRANULARITY - 4096, -EINVAL);
    good &= refuses(wharf, "a part of it", memory.fd, nowhere, GRANULARITY, -EINVAL);
    test_tap_report(good, "what is no GPU memory of that size is refused");
    good = refuses(wharf, "all of it", memory.fd, memory.at, 4 * GRANULARITY, 0);
    test_tap_report(good && worker && test_worker_of_gpu(gpu_memory_wharfd.pid, gpu) == worker &&
                        metric("wharf_gpu_memory_bytes", NULL) > 0,
                    "that did the worker no harm, and what is some is taken");
    wharf_close(wharf);
    gpu_client_free(&memory);
}

/* ---- the example --------------------------------------------------------------------------- */

static int run_example(const char *input)
{
    char path[4096];
    int status = -1;

    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 32);
    if (n < 0)
        return -1;
    path[n] = 0;
    strcpy(strrchr(path, '/'), "/example_gpu");
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("WHARF_SOCKET", gpu_memory_wharfd.socket, 1);
        if (!freopen(input, "r", stdin))
            _exit(3);
        execl(path, "example_gpu", "gzip", (char *)NULL);
        _exit(3);
    }
    waitpid(pid, &status, 0);
    return status;
}

static void check_example(const struct test_chunks *chunks)
{
    const struct test_chunk *good = NULL, *bad = NULL;
    char path[128];

    for (size_t i = 0; i < chunks->n; i++) {
        const struct test_chunk *chunk = &chunks->chunks[i];
        if (chunk->codec == WHARF_CODEC_GZIP && chunk->out_avail > 1000)
            *(chunk->outcome.result == WHARF_OK ? &good : &bad) = chunk;
    }
    snprintf(path, sizeof(path), "%s/input", gpu_memory_wharfd.folder);
    int results[2] = {-1, -1};
    for (unsigned i = 0; i < 2; i++) {
        const struct test_chunk *chunk = i ? bad : good;
        FILE *file = chunk ? fopen(path, "we") : NULL;
        if (!file)
            continue;
        fwrite(chunk->packed, 1, chunk->packed_nbytes, file);
        fclose(file);
        results[i] = run_example(path);
    }
    test_tap_report(results[0] == 0 && WIFEXITED(results[1]) && WEXITSTATUS(results[1]) == 1,
                    "the example decodes what is good and tells what is bad");
}

/* ---- large chunks -------------------------------------------------------------------------- */

/* Some MiB of zeros and ones, from GPU memory to GPU memory, as they are and as one Deflate stream
 * that is far larger than what a warp takes. */
static void check_large(void)
{
    enum { NBYTES = 24 << 20 };
    uint8_t *plain = malloc(NBYTES), *packed = malloc(NBYTES), *copy = malloc(NBYTES);
    struct wharf *wharf = gpu_memory_open(WHARF_ENGINE_AUTO, 4, 4 * MiB);
    struct gpu_client_memory in = gpu_memory_register(wharf, NBYTES),
                             out = gpu_memory_register(wharf, NBYTES);
    struct test_random random = {3};
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_outcome outcome;
    uLongf packed_nbytes = NBYTES;
    unsigned n_good = 0;

    for (size_t i = 0; i < NBYTES; i++)
        plain[i] = (uint8_t)test_random_below(&random, 2);
    if (compress2(packed, &packed_nbytes, plain, NBYTES, 1) != Z_OK)
        exit(1);
    for (unsigned i = 0; i < 2; i++) {
        put(in.at, i ? packed : plain, i ? packed_nbytes : NBYTES);
        set(out.at, 0xee, NBYTES);
        job.codec = i ? WHARF_CODEC_ZLIB : WHARF_CODEC_STORED;
        job.in = in.at;
        job.in_nbytes = i ? packed_nbytes : NBYTES;
        job.out = out.at;
        job.out_avail = NBYTES;
        gpu_memory_must("decoding", wharf_decompress(wharf, &job, &outcome));
        get(copy, out.at, NBYTES);
        n_good += outcome.result == WHARF_OK && memcmp(copy, plain, NBYTES) == 0;
    }
    test_tap_report(n_good == 2, "%u of 2 chunks of %d MiB are decoded in GPU memory", n_good,
                    NBYTES >> 20);
    wharf_close(wharf);
    gpu_client_free(&in);
    gpu_client_free(&out);
    free(plain);
    free(packed);
    free(copy);
}

/* ---- clients that die ---------------------------------------------------------------------- */

enum { N_DYING = 6 };

/* Never ends. */
_Noreturn static void flood(const char *socket, size_t chunk_nbytes)
{
    enum { DEPTH = 256 };
    struct wharf_job jobs[DEPTH];
    struct wharf_completion completions[DEPTH];
    void *in;

    snprintf(gpu_memory_wharfd.socket, sizeof(gpu_memory_wharfd.socket), "%s", socket);
    struct wharf *wharf = gpu_memory_open(WHARF_ENGINE_GPU, DEPTH, 4 * MiB);
    struct gpu_client_memory out = gpu_memory_register(wharf, DEPTH * chunk_nbytes);
    gpu_memory_must("wharf_alloc", wharf_alloc(wharf, chunk_nbytes, &in));
    memset(in, 1, chunk_nbytes);
    for (unsigned i = 0; i < DEPTH; i++) {
        jobs[i] = (struct wharf_job)WHARF_JOB_INIT;
        jobs[i].in = in;
        jobs[i].in_nbytes = jobs[i].out_avail = chunk_nbytes;
        jobs[i].out = out.at + i * chunk_nbytes;
        jobs[i].user_data = i;
    }
    gpu_memory_must("submitting", wharf_submit(wharf, jobs, DEPTH));
    for (;;) {
        int n = wharf_wait(wharf, completions, DEPTH, 1, -1);
        gpu_memory_must("waiting", n);
        for (int i = 0; i < n; i++)
            gpu_memory_must("submitting", wharf_submit(wharf, &jobs[completions[i].user_data], 1));
    }
}

static void check_deaths(void)
{
    struct test_random random = {1};
    pid_t worker = test_worker_of_gpu(gpu_memory_wharfd.pid, gpu);
    unsigned n_flooding = 0;

    for (unsigned i = 0; i < N_DYING; i++) {
        double before = metric("wharf_chunks_total", "gpu");
        pid_t pid = fork();
        if (pid == 0) {
            execl("/proc/self/exe", "wharf_gpu_memory", "--gpu", gpu, "flood",
                  gpu_memory_wharfd.socket, (char *)NULL);
            _exit(3);
        }
        n_flooding += TEST_WAIT(metric("wharf_chunks_total", "gpu") > before);
        usleep((useconds_t)test_random_below(&random, 20000));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    test_tap_report(n_flooding == N_DYING && is_given_back() &&
                        test_worker_of_gpu(gpu_memory_wharfd.pid, gpu) == worker,
                    "%u clients die while the kernel writes to their memory, which is given back",
                    n_flooding);
}

/* ---- come and go --------------------------------------------------------------------------- */

static void check_churn(unsigned n)
{
    struct wharf *wharf = gpu_memory_open(WHARF_ENGINE_GPU, 4, MiB);
    size_t before = 0, after = 0;

    for (unsigned i = 0; i < n; i++) {
        struct gpu_client_memory memory = gpu_memory_register(wharf, 32 * MiB);
        gpu_memory_must("unregistering", wharf_unregister(wharf, memory.at));
        gpu_memory_must_cuda("freeing", gpu_client_free(&memory));
        if (i == n / 2) {
            is_given_back();
            gpu_memory_must_cuda("looking", gpu_client_room(&before));
        }
    }
    int good = is_given_back();
    gpu_memory_must_cuda("looking", gpu_client_room(&after));
    test_tap_report(
        good && after + 64 * MiB > before,
        "memory was registered and freed %u times: %zu MiB of the GPU are free, before %zu", n,
        after / MiB, before / MiB);
    wharf_close(wharf);
}

static int check(uint64_t n_jobs)
{
    struct test_chunks chunks;

    test_chunks_init(&chunks, 1, 200, 100000, 8);
    start();
    check_refusals();
    check_visible(&chunks, (unsigned)n_jobs);
    check_storms(&chunks, n_jobs);
    check_example(&chunks);
    check_large();
    check_deaths();
    check_churn(200);
    finish();
    test_chunks_deinit(&chunks);
    return test_tap_end();
}

/* ---- main ---------------------------------------------------------------------------------- */

static int measure(int argc, char **argv)
{
    bool is_of_files = strcmp(argv[1], "files") == 0;
    double seconds = strtod(argv[2], NULL);
    size_t chunk_nbytes = strtoul(argv[3], NULL, 10);

    start();
    for (int i = 5; i < argc; i++)
        (is_of_files ? gpu_memory_measure_files : gpu_memory_measure)(argv[4], argv[i],
                                                                      chunk_nbytes, seconds);
    finish();
    return test_tap_end();
}

static int share(int argc, char **argv)
{
    unsigned n_processes = (unsigned)strtoul(argv[2], NULL, 10);
    uint32_t n_chunks = (uint32_t)strtoul(argv[3], NULL, 10);

    start();
    for (int i = 7; i < argc; i++)
        gpu_memory_measure_share(argv[6], argv[i], strtoul(argv[5], NULL, 10), n_processes,
                                 n_chunks, strtod(argv[4], NULL));
    finish();
    return test_tap_end();
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    if (argc > 2 && strcmp(argv[1], "--gpu") == 0) {
        snprintf(gpu, sizeof(gpu), "%.7s", argv[2]);
        gpu_memory_must_cuda("using that GPU", gpu_client_use(atoi(gpu)));
        argv += 2;
        argc -= 2;
    }
    if (argc == 3 && strcmp(argv[1], "check") == 0)
        return check(strtoul(argv[2], NULL, 10));
    if (argc == 3 && strcmp(argv[1], "flood") == 0)
        flood(argv[2], 65536);
    if (argc >= 6 && (strcmp(argv[1], "measure") == 0 || strcmp(argv[1], "files") == 0))
        return measure(argc, argv);
    if (argc >= 8 && strcmp(argv[1], "share") == 0)
        return share(argc, argv);
    return test_usage(help);
}
