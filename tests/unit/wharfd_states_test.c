/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon is killed while clients are in all states: on the way in, with memory that they
 * register and take back, with threads that decode, and with children that they have forked.  Every
 * job that was taken ends well, with the right bytes.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"

enum { N_KINDS = 4, N_EACH = 3, N_CLIENTS = N_KINDS * N_EACH, N_THREADS = 3, PLAIN_NBYTES = 30000 };
/* In a row: fewer than make the daemon give up a job as the cause of the deaths. */
enum { N_KILLS = 6, N_SERIES = 4 };
#define MEMORY_NBYTES (1 << 16)

/* What all processes share. */
static struct {
    uint32_t stop;
    uint32_t n_rounds[N_CLIENTS][N_THREADS]; /* clients without threads have the first alone */
} * shared;

static struct test_wharfd wharfd;
static unsigned self; /* which client a process is */
static uint8_t plain[PLAIN_NBYTES], packed[PLAIN_NBYTES];
static uLongf packed_nbytes = sizeof(packed);

/* ---- clients ------------------------------------------------------------------------------- */

/* In processes of their own: the test sees how they end. */
static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "client %d: %s: %s\n", (int)getpid(), what, wharf_error_message());
    _exit(1);
}

static void must(int r, const char *what)
{
    if (r < 0)
        fail(what);
}

static int goes_on(unsigned thread)
{
    __atomic_add_fetch(&shared->n_rounds[self][thread], 1, __ATOMIC_RELAXED);
    return !__atomic_load_n(&shared->stop, __ATOMIC_RELAXED);
}

/* Opening does not wait for a daemon that is away, as calls on an open handle do. */
static struct wharf *open_handle(void)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf = NULL;

    options.flags = WHARF_OPEN_DAEMON;
    options.socket_path = wharfd.socket;
    options.arena_nbytes = 1 << 20;
    options.patience_ms = TEST_PATIENCE_MS;
    while (wharf_open(&options, &wharf) < 0 && goes_on(0))
        usleep(1000);
    return wharf;
}

/* Jobs from `in`, which has the packed bytes, to as many places one behind the other at `out`. */
static void run_jobs(struct wharf *wharf, const void *in, uint8_t *out, unsigned n)
{
    struct wharf_completion completions[16];
    unsigned n_done = 0;

    memset(out, 0, (size_t)n * PLAIN_NBYTES);
    for (unsigned i = 0; i < n; i++) {
        struct wharf_job job = WHARF_JOB_INIT;
        job.codec = WHARF_CODEC_ZLIB;
        job.in = in;
        job.in_nbytes = packed_nbytes;
        job.out = out + (size_t)i * PLAIN_NBYTES;
        job.out_avail = PLAIN_NBYTES;
        must(wharf_submit(wharf, &job, 1), "wharf_submit");
    }
    while (n_done < n) {
        int r = wharf_wait(wharf, completions, 16, 1, -1);
        must(r, "wharf_wait");
        for (int i = 0; i < r; i++)
            if (completions[i].result != WHARF_OK)
                fail(wharf_result_name(completions[i].result));
        n_done += (unsigned)r;
    }
    for (unsigned i = 0; i < n; i++)
        if (memcmp(out + (size_t)i * PLAIN_NBYTES, plain, PLAIN_NBYTES) != 0)
            fail("wrong bytes");
}

static void take(struct wharf *wharf, size_t nbytes, void *ret_memory)
{
    must(wharf_alloc(wharf, nbytes, (void **)ret_memory), "wharf_alloc");
}

static void come_and_go(void)
{
    do {
        struct wharf *wharf = open_handle();
        if (!wharf)
            return;
        uint8_t *in, *out;
        take(wharf, packed_nbytes, &in);
        take(wharf, (size_t)2 * PLAIN_NBYTES, &out);
        memcpy(in, packed, packed_nbytes);
        run_jobs(wharf, in, out, 2);
        wharf_close(wharf);
    } while (goes_on(0));
}

/* Sources and destinations in memory that was just registered. */
static void register_memory(void)
{
    struct wharf *wharf = open_handle();

    do {
        struct wharf_memory memory = WHARF_MEMORY_INIT;
        memory.nbytes = MEMORY_NBYTES;
        memory.fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (ftruncate(memory.fd, MEMORY_NBYTES) < 0 ||
            fcntl(memory.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
            fail("memfd");
        memory.address =
            mmap(NULL, MEMORY_NBYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd, 0);
        memcpy(memory.address, packed, packed_nbytes);
        must(wharf_register(wharf, &memory), "wharf_register");
        run_jobs(wharf, memory.address, (uint8_t *)memory.address + PLAIN_NBYTES, 1);
        must(wharf_unregister(wharf, memory.address), "wharf_unregister");
        munmap(memory.address, MEMORY_NBYTES);
        close(memory.fd);
    } while (goes_on(0));
    wharf_close(wharf);
}

struct decoder {
    struct wharf *wharf;
    unsigned number;
    pthread_t thread;
};

static void *decompress(void *data)
{
    struct decoder *decoder = data;
    uint8_t *out = malloc(PLAIN_NBYTES);
    struct wharf_outcome outcome;
    struct wharf_job job = WHARF_JOB_INIT;

    job.codec = WHARF_CODEC_ZLIB;
    job.in = packed;
    job.in_nbytes = packed_nbytes;
    job.out = out;
    job.out_avail = PLAIN_NBYTES;
    do {
        memset(out, 0, PLAIN_NBYTES);
        must(wharf_decompress(decoder->wharf, &job, &outcome), "wharf_decompress");
        if (outcome.result != WHARF_OK || memcmp(out, plain, PLAIN_NBYTES) != 0)
            fail("wrong outcome");
    } while (goes_on(decoder->number));
    free(out);
    return NULL;
}

static void decode_in_threads(void)
{
    struct wharf *wharf = open_handle();
    struct decoder decoders[N_THREADS];

    for (unsigned i = 0; i < N_THREADS; i++) {
        decoders[i] = (struct decoder){.wharf = wharf, .number = i};
        if (pthread_create(&decoders[i].thread, NULL, decompress, &decoders[i]) != 0)
            fail("pthread_create");
    }
    for (unsigned i = 0; i < N_THREADS; i++)
        pthread_join(decoders[i].thread, NULL);
    wharf_close(wharf);
}

/* The child is refused, closes its copy, and lives on for a while, with jobs of the parent under
 * way. */
static void fork_children(void)
{
    struct wharf *wharf = open_handle();
    unsigned n_children = 0;
    uint8_t *in, *out;

    take(wharf, packed_nbytes, &in);
    take(wharf, (size_t)12 * PLAIN_NBYTES, &out);
    memcpy(in, packed, packed_nbytes);
    do {
        pid_t child = n_children < 8 ? fork() : -1;
        n_children += child > 0;
        if (child == 0) {
            struct wharf_completion completion;
            if (wharf_poll(wharf, &completion, 1) != -ESTALE)
                _exit(1);
            wharf_close(wharf);
            usleep(30000);
            _exit(0);
        }
        run_jobs(wharf, in, out, 12);
        int status;
        while (waitpid(-1, &status, WNOHANG) > 0) {
            n_children--;
            if (status != 0)
                fail("a child");
        }
    } while (goes_on(0));
    wharf_close(wharf);
}

static void (*const kinds[N_KINDS])(void) = {come_and_go, register_memory, decode_in_threads,
                                             fork_children};

static pid_t fork_client(unsigned number)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        self = number;
        kinds[number % N_KINDS]();
        _exit(0);
    }
    return pid;
}

/* ---- who kills ----------------------------------------------------------------------------- */

static void kill_again_and_again(struct test_random *random)
{
    for (unsigned i = 0; i < N_KILLS; i++) {
        /* Some time after it serves, or while clients come back to it. */
        usleep((useconds_t)test_random_below(random, i % 2 ? 100000 : 5000));
        test_wharfd_kill(&wharfd);
        test_wharfd_restart(&wharfd);
    }
}

/* Until all threads of all clients have ended the jobs that they have now. */
static void wait_for_rounds(void)
{
    for (unsigned i = 0; i < N_CLIENTS; i++)
        for (unsigned t = 0; t < (kinds[i % N_KINDS] == decode_in_threads ? N_THREADS : 1); t++) {
            uint32_t from = __atomic_load_n(&shared->n_rounds[i][t], __ATOMIC_RELAXED);
            for (unsigned ms = 0; ms < 30000; ms++) {
                if (__atomic_load_n(&shared->n_rounds[i][t], __ATOMIC_RELAXED) != from)
                    break;
                usleep(1000);
            }
        }
}

Test(wharfd_states, nothing_is_lost_in_any_state_of_a_client, .timeout = 600)
{
    struct test_random random = {(uint64_t)time(NULL)};
    pid_t pids[N_CLIENTS];
    int status;

    for (unsigned i = 0; i < PLAIN_NBYTES; i++)
        plain[i] = (uint8_t)(i * i >> 7);
    cr_assert_eq(compress(packed, &packed_nbytes, plain, PLAIN_NBYTES), Z_OK);
    cr_assert_leq(packed_nbytes, PLAIN_NBYTES);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    test_wharfd_start(&wharfd, "");
    for (unsigned i = 0; i < N_CLIENTS; i++)
        pids[i] = fork_client(i);
    wait_for_rounds();
    fprintf(stderr, "# seed %llu\n", (unsigned long long)random.state);
    for (unsigned i = 0; i < N_SERIES; i++) {
        kill_again_and_again(&random);
        wait_for_rounds();
    }
    __atomic_store_n(&shared->stop, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < N_CLIENTS; i++) {
        cr_assert_eq(waitpid(pids[i], &status, 0), pids[i]);
        cr_assert_eq(status, 0, "a client of kind %u failed: %x", i % N_KINDS, (unsigned)status);
    }
    test_wharfd_finish(&wharfd);
}
