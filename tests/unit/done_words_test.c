/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Done words, as the library hands them out, writes and reads them: streams wait for jobs while
 * daemons die at every step, go away for good, or are not to be trusted.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "proto/ring_ops.h"
#include "tests/lib/test_daemon.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_words.h"

enum { CHUNK_NBYTES = 1000 };

static struct wharf *open_handle(const struct test_daemon *daemon, uint32_t patience_ms)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf;

    options.flags = WHARF_OPEN_DAEMON;
    options.socket_path = daemon->path;
    options.patience_ms = patience_ms;
    options.max_jobs = 100;
    cr_assert_eq(wharf_open(&options, &wharf), 0, "%s", wharf_error_message());
    return wharf;
}

/* One of the arena, zeroed. */
static struct wharf_done *new_word(struct wharf *wharf)
{
    void *at;

    cr_assert_eq(wharf_alloc(wharf, sizeof(struct wharf_done), &at), 0);
    return memset(at, 0, sizeof(struct wharf_done));
}

static uint64_t word_of(const struct wharf_done *done)
{
    return wharf_ring_load_done(&done->word);
}

/* Copies bytes of the arena. */
static struct wharf_job new_job(struct wharf *wharf, struct wharf_done *done, uint32_t serial)
{
    struct wharf_job job = WHARF_JOB_INIT;
    void *at;

    cr_assert_eq(wharf_alloc(wharf, 2 * CHUNK_NBYTES, &at), 0);
    memset(at, 7, CHUNK_NBYTES);
    job.in = at;
    job.in_nbytes = job.out_avail = CHUNK_NBYTES;
    job.out = (char *)at + CHUNK_NBYTES;
    job.user_data = serial;
    job.done = done;
    job.done_serial = serial;
    return job;
}

static void expect_words(struct test_words *words)
{
    cr_assert_eq(test_words_run(words), 0, "%s", words->error);
    cr_assert_eq(words->n_done, words->n_jobs);
}

Test(done_words, tell_of_every_job_before_its_completion)
{
    struct test_daemon *daemon = test_daemon_new();
    struct test_chunks chunks;

    test_chunks_init(&chunks, 1, 200, 3000, 8);
    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon, TEST_PATIENCE_MS);
    struct test_words words = {.wharf = wharf,
                               .chunks = &chunks,
                               .seed = 1,
                               .n_jobs = 2000,
                               .n_in_flight = 50,
                               .batch_one_in = 5,
                               .cancel_one_in = 10,
                               .limit_s = 600};
    expect_words(&words);
    cr_expect_gt(words.n_cancelled, 0);
    wharf_close(wharf);
    test_daemon_free(daemon);
    test_chunks_deinit(&chunks);
}

/* Between the word and the completion too: such a job is not run again, since the stream has its
 * memory by then. */
Test(done_words, survive_death_at_every_step)
{
    struct test_daemon *daemon = test_daemon_new();
    struct test_chunks chunks;

    test_chunks_init(&chunks, 2, 50, 500, 8);
    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon, TEST_PATIENCE_MS);
    for (unsigned step = 1; step < 240; step += step < 60 ? 1 : 5) {
        struct test_words words = {.wharf = wharf,
                                   .chunks = &chunks,
                                   .seed = step,
                                   .n_jobs = 40,
                                   .n_in_flight = 20,
                                   .batch_one_in = 6,
                                   .cancel_one_in = 8,
                                   .limit_s = 600};
        __atomic_store_n(&daemon->die_at_step, step, __ATOMIC_RELAXED);
        test_daemon_kill(daemon);
        expect_words(&words);
    }
    wharf_close(wharf);
    test_daemon_free(daemon);
    test_chunks_deinit(&chunks);
}

/* The library writes what a daemon cannot. */
Test(done_words, are_written_where_the_next_daemon_is_older)
{
    struct test_daemon *daemon = test_daemon_new();
    struct wharf_completion completion;

    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon, TEST_PATIENCE_MS);
    struct wharf_done *done = new_word(wharf);
    struct wharf_job job = new_job(wharf, done, 1);
    __atomic_store_n(&daemon->has_no_words, 1, __ATOMIC_RELAXED);
    test_daemon_kill(daemon);
    cr_assert_eq(wharf_submit(wharf, &job, 1), 1, "%s", wharf_error_message());
    cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1);
    cr_expect_eq(completion.result, WHARF_OK);
    cr_expect_eq(word_of(done), WHARF_DONE_VALUE(1));
    cr_expect_eq(done->out_nbytes, CHUNK_NBYTES);
    job = new_job(wharf, done, 2);
    cr_expect_eq(wharf_submit(wharf, &job, 1), -EOPNOTSUPP);
    wharf_close(wharf);
    test_daemon_free(daemon);
}

/* Streams go on then, and the job, which they wait for no longer, is not run by a later daemon. */
Test(done_words, are_set_when_the_daemon_stays_away)
{
    struct test_daemon *daemon = test_daemon_new();
    struct wharf_completion completion;

    daemon->job_us = 100000000;
    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon, 200);
    struct wharf_done *done = new_word(wharf);
    struct wharf_job job = new_job(wharf, done, 5);
    cr_assert_eq(wharf_submit(wharf, &job, 1), 1);
    __atomic_store_n(&daemon->stays_dead, 1, __ATOMIC_RELAXED);
    test_daemon_kill(daemon);
    cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), -ENOTCONN);
    cr_expect_eq(word_of(done),
                 WHARF_DONE_VALUE(5) | WHARF_REASON_DAEMON_LOST << 16 | WHARF_CANCELLED);
    uint64_t n_run = __atomic_load_n(&daemon->n_run, __ATOMIC_RELAXED);
    test_daemon_stop(daemon);
    daemon->job_us = 0;
    daemon->stays_dead = 0;
    test_daemon_start(daemon);
    cr_assert(TEST_WAIT(wharf_wait(wharf, &completion, 1, 1, 1000000) == 1));
    cr_expect_eq(completion.result, WHARF_CANCELLED);
    cr_expect_eq(completion.reason, WHARF_REASON_DAEMON_LOST);
    cr_expect_eq(__atomic_load_n(&daemon->n_run, __ATOMIC_RELAXED), n_run);
    wharf_close(wharf);
    test_daemon_free(daemon);
}

Test(done_words, are_set_when_the_daemon_breaks_the_protocol)
{
    struct test_daemon *daemon = test_daemon_new();
    struct wharf_completion completion;

    daemon->misdeed = TEST_MISDEED_TAIL_JUMPS;
    daemon->takes_at_once = 1;
    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon, TEST_PATIENCE_MS);
    struct wharf_done *done[2] = {new_word(wharf), new_word(wharf)};
    for (unsigned i = 0; i < 2; i++) {
        struct wharf_job job = new_job(wharf, done[i], i + 1);
        wharf_submit(wharf, &job, 1);
    }
    while (wharf_wait(wharf, &completion, 1, 1, -1) > 0)
        continue;
    cr_expect(wharf_done_is_set(word_of(done[0]), 1));
    cr_expect(wharf_done_is_set(word_of(done[1]), 2));
    wharf_close(wharf);
    test_daemon_free(daemon);
}

/* Of the arena, which goes with the handle, the test keeps a mapping by registered memory. */
Test(done_words, are_set_when_the_handle_is_closed)
{
    struct test_daemon *daemon = test_daemon_new();
    struct wharf_memory memory = WHARF_MEMORY_INIT;

    daemon->job_us = 100000000;
    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon, TEST_PATIENCE_MS);
    memory.fd = memfd_create("words", MFD_ALLOW_SEALING);
    cr_assert_eq(ftruncate(memory.fd, 4096), 0);
    cr_assert_eq(fcntl(memory.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    memory.nbytes = 4096;
    memory.address = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd, 0);
    cr_assert_eq(wharf_register(wharf, &memory), 0, "%s", wharf_error_message());
    struct wharf_done *done = memory.address;
    struct wharf_job job = new_job(wharf, done, 3);
    cr_assert_eq(wharf_submit(wharf, &job, 1), 1, "%s", wharf_error_message());
    cr_expect_eq(wharf_unregister(wharf, memory.address), -EBUSY);
    wharf_close(wharf);
    cr_expect_eq(word_of(done), WHARF_DONE_VALUE(3) | WHARF_CANCELLED);
    test_daemon_free(daemon);
}

Test(done_words, are_refused_at_places_that_are_none)
{
    struct test_daemon *daemon = test_daemon_new();
    struct wharf_outcome outcome;
    struct wharf *embedded;
    struct wharf_options options = WHARF_OPTIONS_INIT;

    test_daemon_start(daemon);
    struct wharf *wharf = open_handle(daemon, TEST_PATIENCE_MS);
    struct wharf_done *done = new_word(wharf);
    struct wharf_job job = new_job(wharf, done, 1);
    cr_expect_eq(wharf_decompress(wharf, &job, &outcome), -EINVAL);
    job.done = (struct wharf_done *)((char *)done + 8);
    cr_expect_eq(wharf_submit(wharf, &job, 1), -EINVAL);
    job.done = (struct wharf_done *)daemon;
    cr_expect_eq(wharf_submit(wharf, &job, 1), -EFAULT);
    job.done = done;
    job.done_serial = 0;
    cr_expect_eq(wharf_submit(wharf, &job, 1), -EINVAL, "the word is set for that");
    job.reserved_2 = 1;
    cr_expect_eq(wharf_submit(wharf, &job, 1), -EINVAL);
    /* What only the ring has a meaning for. */
    struct wharf_completion completion;
    job = new_job(wharf, NULL, 1);
    job.flags = WHARF_SUBMISSION_DONE_WORD;
    cr_assert_eq(wharf_submit(wharf, &job, 1), 1);
    cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1);
    cr_expect_eq(completion.reason, WHARF_REASON_REQUEST_FLAGS);
    options.flags = WHARF_OPEN_EMBEDDED;
    cr_assert_eq(wharf_open(&options, &embedded), 0);
    job = new_job(embedded, new_word(embedded), 1);
    cr_expect_eq(wharf_submit(embedded, &job, 1), -EOPNOTSUPP);
    wharf_close(embedded);
    wharf_close(wharf);
    test_daemon_free(daemon);
}
