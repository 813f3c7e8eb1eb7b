/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many threads on one handle: all submit, all take, some make whole calls, allocate, cancel and
 * look around meanwhile; through daemons that die, too.  Under the thread sanitizer above all.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_handle.h"
#include "tests/lib/test_wait.h"

/* "wharf", as zlib -9 packs it. */
static const uint8_t zlib_wharf[] = {0x78, 0xda, 0x2b, 0xcf, 0x48, 0x2c, 0x4a,
                                     0x03, 0x00, 0x06, 0x65, 0x02, 0x19};
enum { IN_NBYTES = sizeof(zlib_wharf), OUT_NBYTES = 5, N_THREADS = 6, N_JOBS = 3000 };

/* A daemon is killed so often in a round.  Fewer jobs are in flight than are done between two
 * kills: the handle must connect again to get there. */
enum { N_ROUNDS = 3, N_KILLS = 5, MAX_JOBS = 40 };

struct shared {
    struct wharf *wharf;
    uint8_t *memory; /* a source and a destination for each job */
    uint32_t next;   /* job to submit */
    uint32_t end;    /* jobs from here on are not to be submitted yet */
    uint32_t n_done;
    uint8_t n_completions[N_JOBS];
    uint32_t n_cancelled;
    uint32_t n_calls;
    uint32_t n_failed;
    uint32_t errors[N_THREADS]; /* lines, for the message */
};

struct worker {
    struct shared *shared;
    unsigned number;
    pthread_t thread;
};

/* Assertions are for the main thread. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            __atomic_store_n(&worker->shared->errors[worker->number], __LINE__, __ATOMIC_RELAXED); \
    } while (0)

static struct wharf_job job_of(struct shared *shared, uint32_t number)
{
    struct wharf_job job = WHARF_JOB_INIT;

    job.codec = WHARF_CODEC_ZLIB;
    job.in = shared->memory + 128 * (size_t)number;
    job.in_nbytes = IN_NBYTES;
    job.out = shared->memory + 128 * (size_t)number + 64;
    job.out_avail = OUT_NBYTES;
    job.user_data = number;
    return job;
}

static void take(struct worker *worker, const struct wharf_completion *completions, int n)
{
    struct shared *shared = worker->shared;

    for (int i = 0; i < n; i++) {
        uint64_t number = completions[i].user_data;
        CHECK(number < N_JOBS);
        CHECK(__atomic_add_fetch(&shared->n_completions[number], 1, __ATOMIC_RELAXED) == 1);
        if (completions[i].result == WHARF_CANCELLED)
            __atomic_add_fetch(&shared->n_cancelled, 1, __ATOMIC_RELAXED);
        else
            CHECK(completions[i].result == WHARF_OK &&
                  memcmp(shared->memory + 128 * number + 64, "wharf", OUT_NBYTES) == 0);
        __atomic_add_fetch(&shared->n_done, 1, __ATOMIC_RELAXED);
    }
}

/* The number of the next job; false: there is none now. */
static bool next_job(struct shared *shared, uint32_t *ret_number)
{
    uint32_t number = __atomic_load_n(&shared->next, __ATOMIC_RELAXED);

    do {
        if (number >= __atomic_load_n(&shared->end, __ATOMIC_RELAXED))
            return false;
    } while (!__atomic_compare_exchange_n(&shared->next, &number, number + 1, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    *ret_number = number;
    return true;
}

static void submit_some(struct worker *worker)
{
    struct shared *shared = worker->shared;
    uint32_t number;

    for (unsigned i = 0; i < 5 && next_job(shared, &number); i++) {
        struct wharf_completion completions[4];
        int r = 0;
        struct wharf_job job = job_of(shared, number);
        while ((r = wharf_submit(shared->wharf, &job, 1)) == -EAGAIN)
            take(worker, completions, wharf_wait(shared->wharf, completions, 4, 1, 10000000));
        CHECK(r == 1);
        if (number % 20 == 0)
            CHECK(wharf_cancel(shared->wharf, number) >= 0);
    }
}

static void call_once(struct worker *worker)
{
    struct wharf_info info = {.struct_nbytes = sizeof(info)};
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_outcome outcome;
    uint8_t out[OUT_NBYTES] = {0};
    void *memory;

    job.codec = WHARF_CODEC_ZLIB;
    job.in = zlib_wharf;
    job.in_nbytes = IN_NBYTES;
    job.out = out;
    job.out_avail = OUT_NBYTES;
    CHECK(wharf_decompress(worker->shared->wharf, &job, &outcome) == 0);
    CHECK(outcome.result == WHARF_OK && memcmp(out, "wharf", OUT_NBYTES) == 0);
    CHECK(wharf_alloc(worker->shared->wharf, 1000, &memory) == 0);
    memset(memory, (int)worker->number, 1000);
    CHECK(wharf_free(worker->shared->wharf, memory) == 0);
    CHECK(wharf_get_info(worker->shared->wharf, &info) == 0);
    CHECK(info.n_in_flight <= info.max_jobs);
    if (info.is_daemon)
        CHECK(wharf_ping(worker->shared->wharf) == 0);
    __atomic_add_fetch(&worker->shared->n_calls, 1, __ATOMIC_RELAXED);
}

/* Each thread has its own way of waiting. */
static int wait_some(struct worker *worker, struct wharf_completion *completions)
{
    struct wharf *wharf = worker->shared->wharf;
    struct pollfd readable = {.events = POLLIN};

    switch (worker->number % 3) {
    case 0:
        return wharf_wait(wharf, completions, 4, 1 + worker->number % 4, 5000000);
    case 1:
        return wharf_poll(wharf, completions, 4);
    default:
        readable.fd = wharf_fd(wharf);
        poll(&readable, 1, 5);
        return wharf_poll(wharf, completions, 4);
    }
}

static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    struct wharf_completion completions[4];

    for (unsigned round = 0; __atomic_load_n(&worker->shared->n_done, __ATOMIC_RELAXED) < N_JOBS;
         round++) {
        submit_some(worker);
        int n = wait_some(worker, completions);
        CHECK(n >= 0);
        take(worker, completions, n);
        if (round % 16 == worker->number)
            call_once(worker);
    }
    return NULL;
}

/* Kills the daemon once in each part of the jobs but the last.  However fast the threads are, they
 * do not get ahead: the next part is theirs when that is done. */
static void kill_in_every_part(struct shared *shared, struct test_daemon *dying)
{
    const uint32_t n = N_JOBS / (N_KILLS + 1);

    for (uint32_t end = n; end < N_JOBS; end += n) {
        __atomic_store_n(&shared->end, end, __ATOMIC_RELAXED);
        cr_assert(TEST_WAIT(__atomic_load_n(&shared->n_done, __ATOMIC_RELAXED) >= end - n / 2));
        test_daemon_kill(dying);
    }
    __atomic_store_n(&shared->end, N_JOBS, __ATOMIC_RELAXED);
}

static void run_threads(struct wharf *wharf, struct test_daemon *dying)
{
    static struct shared shared;
    struct worker workers[N_THREADS];
    void *memory;

    memset(&shared, 0, sizeof(shared));
    shared.wharf = wharf;
    shared.end = dying ? 0 : N_JOBS;
    cr_assert_eq(wharf_alloc(wharf, 128 * N_JOBS, &memory), 0);
    shared.memory = memory;
    for (uint32_t i = 0; i < N_JOBS; i++)
        memcpy(shared.memory + 128 * (size_t)i, zlib_wharf, IN_NBYTES);
    for (unsigned i = 0; i < N_THREADS; i++) {
        workers[i] = (struct worker){.shared = &shared, .number = i};
        cr_assert_eq(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]), 0);
    }
    if (dying)
        kill_in_every_part(&shared, dying);
    for (unsigned i = 0; i < N_THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        cr_expect_eq(shared.errors[i], 0, "line %u", shared.errors[i]);
    }
    for (uint32_t i = 0; i < N_JOBS; i++)
        cr_assert_eq(shared.n_completions[i], 1);
    cr_expect_gt(shared.n_calls, 0);
    cr_assert_eq(wharf_free(wharf, memory), 0);
}

Test(client_thread, threads_share_a_handle)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;

    options.max_jobs = MAX_JOBS;
    for (int kind = 0; kind < TEST_N_HANDLE_KINDS; kind++) {
        struct test_handle handle = test_handle_open(kind, &options);
        for (unsigned round = 0; round < N_ROUNDS; round++)
            run_threads(handle.wharf, NULL);
        test_handle_close(&handle);
    }
}

Test(client_thread, threads_share_a_handle_whose_daemon_dies)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf_info info = {.struct_nbytes = sizeof(info)};

    options.max_jobs = MAX_JOBS;
    struct test_handle handle = test_handle_open(TEST_HANDLE_DAEMON, &options);
    for (unsigned round = 0; round < N_ROUNDS; round++)
        run_threads(handle.wharf, handle.daemon);
    cr_assert_eq(wharf_get_info(handle.wharf, &info), 0);
    cr_expect_geq(info.n_reconnects, N_ROUNDS * N_KILLS);
    test_handle_close(&handle);
}

/* ---- registration while jobs run ----------------------------------------------------------- */

static void *run_pings(void *argument)
{
    struct worker *worker = argument;

    for (unsigned i = 0; i < 200; i++)
        CHECK(wharf_ping(worker->shared->wharf) == 0);
    return NULL;
}

/* Each reply goes to the call that asked. */
Test(client_thread, requests_of_many_threads_are_all_answered)
{
    struct test_handle handle = test_handle_open(TEST_HANDLE_DAEMON, NULL);
    struct shared shared = {.wharf = handle.wharf};
    struct worker workers[N_THREADS];
    struct wharf_completion completion;

    for (unsigned i = 0; i < N_THREADS; i++) {
        workers[i] = (struct worker){.shared = &shared, .number = i};
        cr_assert_eq(pthread_create(&workers[i].thread, NULL, run_pings, &workers[i]), 0);
    }
    for (unsigned i = 0; i < 500; i++) {
        cr_assert_eq(wharf_submit_noop(handle.wharf, i), 0);
        cr_assert_eq(wharf_wait(handle.wharf, &completion, 1, 1, -1), 1);
        cr_assert_eq(completion.user_data, i);
    }
    for (unsigned i = 0; i < N_THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        cr_expect_eq(shared.errors[i], 0, "line %u", shared.errors[i]);
    }
    test_handle_close(&handle);
}
