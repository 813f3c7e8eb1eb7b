/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Done words: by whatever way a job ends, its word says so before its completion, and the same.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "proto/ring_ops.h"
#include "tests/lib/test_core.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_wait.h"

#define MiB ((uint64_t)1 << 20)

/* Words are there, one after the other; outputs behind them. */
enum { WORDS = 1 << 20, TABLE = (1 << 20) + 65536, PLAIN = 4096, OUTPUT = 3 << 19 };

static struct test_core_client client;
static uint8_t *plain;
static size_t packed_nbytes;

static void set_up_with(uint32_t n_workers)
{
    test_core_start(n_workers);
    test_core_client_init(&client, 1, "uid:1", 256, 64 * MiB);
    plain = test_data_new(test_data_find("text"), 1, PLAIN);
    packed_nbytes = test_core_put_chunk(&client, 0, plain, PLAIN);
}

static void set_up(void)
{
    wharf_config_init(&test_core_config);
    test_core_config.quota.max_job_nbytes = 64 * MiB;
    set_up_with(2);
}

static void tear_down(void)
{
    test_core_client_deinit(&client);
    test_core_stop();
    free(plain);
}

static struct wharf_done *word_at(unsigned i)
{
    return (struct wharf_done *)(client.arena + WORDS) + i;
}

static struct wharf_submission_words words_of(unsigned i, uint32_t serial)
{
    return (struct wharf_submission_words){.done_offset = WORDS + i * sizeof(struct wharf_done),
                                           .done_serial = serial};
}

static void put(struct wharf_submission submission, const struct wharf_submission_words *words)
{
    submission.flags |= WHARF_SUBMISSION_DONE_WORD;
    wharf_ring_submit_words(&client.ring, words);
    wharf_ring_submit(&client.ring, &submission);
}

/* With word `user_data` and that serial number too. */
static void put_with_word(struct wharf_submission submission)
{
    struct wharf_submission_words words =
        words_of((unsigned)submission.user_data, (uint32_t)submission.user_data);

    put(submission, &words);
}

static struct wharf_submission good_job(uint64_t user_data)
{
    return test_core_decode_of(user_data, 0, packed_nbytes, OUTPUT + user_data * PLAIN, PLAIN);
}

/* The word is set, and is what the completion is. */
static void expect_told(const struct wharf_completion *completion)
{
    struct wharf_completion said;
    uint32_t i = (uint32_t)completion->user_data;

    cr_assert_eq(wharf_ring_read_done(word_at(i), i, &said), 1, "the word of job %u is not set", i);
    cr_expect_eq(said.result, completion->result);
    cr_expect_eq(said.reason, completion->reason);
    cr_expect_eq(said.bit_offset, completion->bit_offset);
    cr_expect_eq(said.in_nbytes, completion->in_nbytes);
    cr_expect_eq(said.out_nbytes, completion->out_nbytes);
    cr_expect_eq(said.first_bad_chunk, completion->first_bad_chunk);
    cr_expect_eq(said.flags, completion->flags);
    cr_expect_eq(said.engine, completion->engine);
    cr_expect_eq(said.attempt, completion->attempt);
}

static struct wharf_completion reap_told(void)
{
    struct wharf_completion completion = test_core_reap(&client);

    expect_told(&completion);
    return completion;
}

/* ---- the CPU's ----------------------------------------------------------------------------- */

Test(wharfd_done_word, tells_of_good_and_bad_chunks, .init = set_up, .fini = tear_down)
{
    for (uint64_t i = 1; i < 40; i++) {
        struct wharf_submission s = good_job(i);
        s.src_nbytes -= i % 3 ? 0 : i;
        put_with_word(s);
    }
    test_core_publish(&client);
    for (unsigned n = 1; n < 40; n++) {
        struct wharf_completion completion = reap_told();
        cr_expect_eq(completion.result, completion.user_data % 3 ? WHARF_OK : WHARF_BAD_DATA);
        if (completion.result == WHARF_OK)
            cr_expect_arr_eq(client.arena + OUTPUT + completion.user_data * PLAIN, plain, PLAIN);
    }
}

/* One after the other: the loop thread decodes those itself. */
Test(wharfd_done_word, tells_of_a_lone_chunk, .init = set_up, .fini = tear_down)
{
    for (uint64_t i = 1; i < 40; i++) {
        put_with_word(good_job(i));
        test_core_publish(&client);
        cr_expect_eq(reap_told().result, WHARF_OK);
    }
}

static struct wharf_submission batch_of(uint64_t user_data, unsigned n, uint64_t bad)
{
    struct wharf_chunk *table = (struct wharf_chunk *)(client.arena + TABLE);

    for (unsigned i = 0; i < n; i++)
        table[i] = (struct wharf_chunk){
            .src_nbytes = (uint32_t)packed_nbytes - (i == bad),
            .dst_offset = OUTPUT + i * PLAIN,
            .dst_nbytes = PLAIN,
        };
    return (struct wharf_submission){
        .opcode = WHARF_OP_BATCH,
        .codec = WHARF_CODEC_ZLIB,
        .user_data = user_data,
        .src_offset = TABLE,
        .src_nbytes = n * sizeof(*table),
        .dst_offset = TABLE + n * sizeof(*table),
        .dst_nbytes = n * sizeof(struct wharf_chunk_result),
    };
}

Test(wharfd_done_word, tells_of_batches, .init = set_up, .fini = tear_down)
{
    put_with_word(batch_of(1, 100, UINT64_MAX));
    test_core_publish(&client);
    struct wharf_completion completion = reap_told();
    cr_expect_eq(completion.result, WHARF_OK);
    cr_expect_eq(completion.out_nbytes, 100 * PLAIN);
    cr_expect_eq(completion.flags, WHARF_COMPLETION_RESULTS);
    put_with_word(batch_of(2, 100, 33));
    test_core_publish(&client);
    completion = reap_told();
    cr_expect_eq(completion.result, WHARF_BAD_DATA);
    cr_expect_eq(completion.first_bad_chunk, 33);
    /* Its table makes no sense. */
    struct wharf_submission s = batch_of(3, 4, UINT64_MAX);
    ((struct wharf_chunk *)(client.arena + TABLE))[2].src_region = 9;
    put_with_word(s);
    test_core_publish(&client);
    completion = reap_told();
    cr_expect_eq(completion.reason, WHARF_REASON_REQUEST_REGION);
    cr_expect_eq(completion.first_bad_chunk, 2);
}

Test(wharfd_done_word, tells_of_jobs_that_are_refused, .init = set_up, .fini = tear_down)
{
    for (uint64_t i = 1; i < 30; i++) {
        struct wharf_submission s = good_job(i);
        s.codec = UINT16_MAX - (i % 2);
        if (i % 2)
            s.codec = WHARF_CODEC_ZLIB, s.dst_offset = client.arena_nbytes;
        put_with_word(s);
    }
    test_core_publish(&client);
    for (unsigned n = 1; n < 30; n++) {
        struct wharf_completion completion = test_core_reap(&client);
        cr_expect_eq(completion.result, WHARF_BAD_REQUEST);
        /* What has no known codec has no known flags. */
        if (completion.user_data % 2)
            expect_told(&completion);
    }
}

Test(wharfd_done_word, tells_of_cancelled_and_late_jobs)
{
    enum { N = 60 };
    unsigned n_cancelled = 0, n_late = 0;

    wharf_config_init(&test_core_config);
    test_core_config.quota.max_job_nbytes = 64 * MiB;
    set_up_with(1);
    /* The only worker is busy with the first. */
    struct wharf_submission s = test_core_put_long(&client, 1);
    put_with_word(s);
    for (unsigned i = 2; i < N; i++) {
        s = test_core_decode_of(i, 64 * MiB - 100, 10, 64 * MiB - 50, 10);
        s.timeout_us = i % 2 ? 1 : 0;
        put_with_word(s);
        if (i % 2)
            continue;
        s = (struct wharf_submission){.opcode = WHARF_OP_CANCEL, .user_data = 999, .src_offset = i};
        wharf_ring_submit(&client.ring, &s);
    }
    test_core_publish(&client);
    for (unsigned n = 1; n < N + (N - 2) / 2; n++) {
        struct wharf_completion completion = test_core_reap(&client);
        if (completion.user_data == 999)
            continue;
        expect_told(&completion);
        n_cancelled += completion.result == WHARF_CANCELLED;
        n_late += completion.result == WHARF_DEADLINE;
    }
    cr_expect_gt(n_cancelled, 0);
    cr_expect_gt(n_late, 0);
    tear_down();
}

/* In the middle of a chunk, too. */
Test(wharfd_done_word, tells_of_a_chunk_that_is_stopped)
{
    wharf_config_init(&test_core_config);
    test_core_config.quota.max_job_nbytes = 64 * MiB;
    set_up_with(1);
    test_core_make_slower(&client);
    put_with_word(test_core_put_slow(&client, 1, 0, 60 * MiB));
    test_core_publish(&client);
    cr_assert(TEST_WAIT(TEST_CORE_LOCKED(client.session->jobs[0].state) == WHARF_JOB_RUNNING));
    struct wharf_submission s = {.opcode = WHARF_OP_CANCEL, .user_data = 2, .src_offset = 1};
    test_core_submit(&client, &s);
    struct wharf_completion completion;
    do {
        completion = test_core_reap(&client);
    } while (completion.user_data != 1);
    cr_expect_eq(completion.result, WHARF_CANCELLED);
    /* The output was there, where the word is: so is the word, since it is written last. */
    expect_told(&completion);
    tear_down();
}

Test(wharfd_done_word, places_that_are_none_are_refused, .init = set_up, .fini = tear_down)
{
    const struct wharf_submission_words bad[] = {
        {.done_offset = WORDS + 8, .done_serial = 1},
        {.done_offset = 64 * MiB, .done_serial = 1},
        {.done_offset = UINT64_MAX - 63, .done_serial = 1},
        {.done_offset = WORDS, .done_serial = 1, .done_region = 7},
        {.done_offset = WORDS, .done_serial = 1, .start_region = 1},
        {.done_offset = WORDS, .done_serial = 1, .start_offset = 8},
        {.done_offset = WORDS, .done_serial = 1, .start_serial = 1},
        {.done_offset = WORDS, .done_serial = 1, .start_timeout_us = 1},
    };

    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        put(good_job(1), &bad[i]);
        test_core_publish(&client);
        struct wharf_completion completion = test_core_reap(&client);
        cr_expect_eq(completion.result, WHARF_BAD_REQUEST, "case %u", i);
        cr_expect_eq(completion.reason, WHARF_REASON_REQUEST_WORD, "case %u", i);
        cr_expect_eq(word_at(0)->word, 0);
    }
    /* Of a no-op and a cancel every flag is unknown. */
    struct wharf_submission_words words = words_of(1, 1);
    put((struct wharf_submission){.opcode = WHARF_OP_NOOP}, &words);
    test_core_publish(&client);
    cr_expect_eq(test_core_reap(&client).reason, WHARF_REASON_REQUEST_RESERVED);
}

/* ---- clients that write there themselves --------------------------------------------------- */

struct scribbler {
    pthread_t thread;
    uint32_t stops;
};

static void *scribble(void *data)
{
    struct scribbler *scribbler = data;
    struct test_random random = {1};

    while (!__atomic_load_n(&scribbler->stops, __ATOMIC_RELAXED))
        for (unsigned i = 0; i < 200; i++)
            __atomic_store_n(&word_at(i)->word, test_random_next(&random), __ATOMIC_RELAXED);
    return NULL;
}

/* What a client writes to its words is nothing to the daemon, which reads none of them.  All jobs
 * have one destination, so they need one worker. */
Test(wharfd_done_word, are_not_read, .fini = tear_down)
{
    struct scribbler scribbler = {.stops = 0};

    wharf_config_init(&test_core_config);
    set_up_with(1);
    cr_assert_eq(pthread_create(&scribbler.thread, NULL, scribble, &scribbler), 0);
    for (unsigned round = 0; round < 20; round++) {
        for (uint64_t i = 1; i < 100; i++)
            put_with_word(i % 10 ? good_job(i) : batch_of(i, 3, 1));
        test_core_publish(&client);
        for (unsigned n = 1; n < 100; n++) {
            struct wharf_completion completion = test_core_reap(&client);
            cr_expect_eq(completion.result, completion.user_data % 10 ? WHARF_OK : WHARF_BAD_DATA);
        }
    }
    __atomic_store_n(&scribbler.stops, 1, __ATOMIC_RELAXED);
    pthread_join(scribbler.thread, NULL);
}

/* ---- on a GPU ------------------------------------------------------------------------------ */

static uint64_t n_left(void)
{
    return TEST_CORE_LOCKED(test_core.fleet.gpus[0].n_left);
}

static void run_plain(uint64_t user_data)
{
    struct wharf_submission s = good_job(user_data);

    test_core_submit(&client, &s);
    cr_expect_eq(test_core_reap(&client).engine, WHARF_ENGINE_SIMT);
}

/* Where contexts take turns, a kernel that stays for its idle time is in the way of the stream that
 * goes on: it leaves when it has nothing else to do, and for no other client's sake. */
Test(wharfd_done_word, kernel_leaves_for_streams_at_once)
{
    test_core_config_simt();
    test_core_config.gpu_pin_after_ns = 0;
    test_core_config.gpu_idle_ns = WHARF_NS_PER_S;
    set_up_with(1);
    test_core_wait_until_up();
    test_core_wait_until_registered(&client);
    for (uint64_t i = 1; i < 10; i++)
        run_plain(i);
    cr_assert_eq(n_left(), 0);
    for (uint64_t i = 1; i < 10; i++) {
        put_with_word(good_job(10 + i));
        test_core_publish(&client);
        cr_expect_eq(reap_told().engine, WHARF_ENGINE_SIMT);
        cr_assert(TEST_WAIT(n_left() == i));
    }
    run_plain(1);
    cr_assert_eq(n_left(), 9);
    tear_down();
}
