/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start words: jobs wait for their clients' streams, for a limited time, and hold nothing
 * meanwhile.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/core/activity.h"
#include "daemon/dispatch/session_end.h"
#include "proto/ring_ops.h"
#include "tests/lib/test_core.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_wait.h"

#define MiB ((uint64_t)1 << 20)

enum { N_ENTRIES = 256, DONE = 1 << 20, PLAIN = 1024, OUTPUT = 2 << 20, STARTS_NBYTES = 4096 };

static struct test_core_client client;
static uint64_t *starts;
static uint8_t *plain;
static size_t packed_nbytes;

static void set_up_with(uint64_t max_start_ns)
{
    wharf_config_init(&test_core_config);
    test_core_config.quota.max_start_ns = max_start_ns;
    test_core_start(2);
    test_core_client_init(&client, 1, "uid:1", N_ENTRIES, 16 * MiB);
    starts = test_core_add_starts(&client, STARTS_NBYTES);
    plain = test_data_new(test_data_find("text"), 1, PLAIN);
    packed_nbytes = test_core_put_chunk(&client, 0, plain, PLAIN);
}

/* No job ends for its start word's sake. */
static void set_up(void)
{
    set_up_with(3600 * (uint64_t)WHARF_NS_PER_S);
}

static void tear_down(void)
{
    test_core_client_deinit(&client);
    test_core_stop();
    munmap(starts, STARTS_NBYTES);
    free(plain);
}

static struct wharf_submission_words words_of(unsigned i, uint32_t serial)
{
    return (struct wharf_submission_words){
        .start_region = 2, .start_offset = 8 * i, .start_serial = serial};
}

static struct wharf_submission job_of(uint64_t user_data)
{
    return test_core_decode_of(user_data, 0, packed_nbytes, OUTPUT + user_data * PLAIN, PLAIN);
}

static void put(struct wharf_submission submission, const struct wharf_submission_words *words)
{
    submission.flags |= WHARF_SUBMISSION_START_WORD;
    wharf_ring_submit_words(&client.ring, words);
    wharf_ring_submit(&client.ring, &submission);
}

/* Of word i, with serial number 1. */
static void submit_held(unsigned i)
{
    struct wharf_submission_words words = words_of(i, 1);

    put(job_of(i), &words);
    test_core_publish(&client);
}

static void set_start(unsigned i, uint32_t serial)
{
    wharf_ring_store_start(&starts[i], WHARF_START_VALUE(serial));
}

static bool is_held(unsigned job)
{
    return TEST_CORE_LOCKED(client.session->jobs[job].words != NULL &&
                            client.session->jobs[job].words->is_held);
}

static void wait_until_all_sleep(void)
{
    cr_assert(TEST_WAIT(TEST_CORE_LOCKED(test_core.workers.n_sleeping) == 2));
}

static void expect_late(struct wharf_completion completion)
{
    cr_expect_eq(completion.result, WHARF_DEADLINE);
    cr_expect_eq(completion.reason, WHARF_REASON_START_TIME);
    cr_expect_eq(completion.engine, WHARF_ENGINE_AUTO);
}

Test(wharfd_start_word, job_begins_when_its_word_is_set, .init = set_up, .fini = tear_down)
{
    for (unsigned i = 0; i < 50; i++) {
        submit_held(i);
        cr_assert(TEST_WAIT(is_held(0)));
        /* In half of the cases all that could look sleeps but the loop thread. */
        if (i % 2)
            wait_until_all_sleep();
        cr_assert_not(test_core_has_completion(&client));
        set_start(i, 1);
        struct wharf_completion completion = test_core_reap(&client);
        cr_expect_eq(completion.result, WHARF_OK);
        cr_expect_arr_eq(client.arena + OUTPUT + i * PLAIN, plain, PLAIN);
    }
}

Test(wharfd_start_word, word_that_is_set_is_waited_for_by_nobody, .init = set_up, .fini = tear_down)
{
    const uint32_t serials[][2] = {{1, 1}, {1, 7}, {0x7fffffff, 0x80000005}, {0xffffffff, 3}};

    for (unsigned i = 0; i < 4; i++) {
        struct wharf_submission_words words = words_of(i, serials[i][0]);
        set_start(i, serials[i][1]);
        put(job_of(i), &words);
        test_core_publish(&client);
        cr_expect_eq(test_core_reap(&client).result, WHARF_OK);
    }
}

/* Others' jobs, and the client's own, go past those that wait. */
Test(wharfd_start_word, job_that_waits_holds_nothing, .init = set_up, .fini = tear_down)
{
    for (unsigned i = 0; i < 100; i++)
        submit_held(i);
    wait_until_all_sleep();
    for (unsigned i = 100; i < 200; i++) {
        struct wharf_submission s = job_of(i);
        test_core_submit(&client, &s);
        cr_expect_eq(test_core_reap(&client).user_data, i);
    }
    wait_until_all_sleep();
    cr_expect_eq(TEST_CORE_LOCKED(client.session->n_pieces), 0);
    for (unsigned i = 100; i-- > 0;) {
        set_start(i, 1);
        cr_expect_eq(test_core_reap(&client).user_data, i);
    }
}

/* Others' shares and leases once shrank for as long as a tenant had a job that waited. */
Test(wharfd_start_word, job_that_waits_makes_its_tenant_no_active_one, .init = set_up,
     .fini = tear_down)
{
    submit_held(1);
    cr_assert(TEST_WAIT(is_held(0)));
    cr_assert(TEST_WAIT(TEST_CORE_LOCKED(!client.session->activity.is_watched)));
    wharf_core_enter(&test_core);
    wharf_core_drop_stale(&test_core, wharf_now_ns() + WHARF_NS_PER_S);
    cr_expect_eq(test_core.watching.active_weight, 0);
    wharf_core_leave(&test_core);
    set_start(1, 1);
    cr_expect_eq(test_core_reap(&client).result, WHARF_OK);
    cr_expect_eq(TEST_CORE_LOCKED(client.session->placing.n_held), 0);
}

Test(wharfd_start_word, several_jobs_wait_for_one_word, .init = set_up, .fini = tear_down)
{
    for (unsigned i = 0; i < 30; i++) {
        struct wharf_submission_words words = words_of(0, 1 + i / 10);
        put(job_of(i), &words);
    }
    test_core_publish(&client);
    for (uint32_t serial = 1; serial <= 3; serial++) {
        set_start(0, serial);
        for (unsigned n = 0; n < 10; n++)
            cr_expect_eq(test_core_reap(&client).user_data / 10, serial - 1);
        cr_assert_not(test_core_has_completion(&client));
    }
}

Test(wharfd_start_word, waiting_ends_by_the_jobs_own_limit, .init = set_up, .fini = tear_down)
{
    struct wharf_submission_words words = words_of(0, 1);

    words.start_timeout_us = 20000;
    put(job_of(1), &words);
    test_core_publish(&client);
    struct wharf_completion completion = test_core_reap(&client);
    expect_late(completion);
    cr_expect_geq(completion.queue_ns, 20000000);
    /* And what is set then lets nothing begin. */
    set_start(0, 1);
    struct wharf_submission s = job_of(2);
    test_core_submit(&client, &s);
    cr_expect_eq(test_core_reap(&client).user_data, 2);
    cr_expect_eq(TEST_CORE_LOCKED(client.session->n_in_flight), 0);
}

Test(wharfd_start_word, waiting_ends_by_the_daemons_limit)
{
    set_up_with(20 * WHARF_NS_PER_MS);
    struct wharf_submission_words words = words_of(0, 1);
    words.start_timeout_us = UINT32_MAX;
    put(job_of(1), &words);
    submit_held(2);
    expect_late(test_core_reap(&client));
    expect_late(test_core_reap(&client));
    tear_down();
}

/* It counts from the submission on. */
Test(wharfd_start_word, waiting_ends_by_the_deadline, .init = set_up, .fini = tear_down)
{
    struct wharf_submission_words words = words_of(0, 1);
    struct wharf_submission s = job_of(1);

    s.timeout_us = 20000;
    put(s, &words);
    test_core_publish(&client);
    struct wharf_completion completion = test_core_reap(&client);
    cr_expect_eq(completion.result, WHARF_DEADLINE);
    cr_expect_eq(completion.reason, WHARF_REASON_NONE);
    /* It is not forgotten when the job may begin. */
    words = words_of(1, 1);
    s = job_of(2);
    s.timeout_us = 3600000000u;
    put(s, &words);
    test_core_publish(&client);
    cr_assert(TEST_WAIT(is_held(0)));
    set_start(1, 1);
    cr_expect_eq(test_core_reap(&client).result, WHARF_OK);
    cr_expect_null(TEST_CORE_LOCKED(test_core.deadlines.root));
}

Test(wharfd_start_word, job_that_waits_is_cancelled, .init = set_up, .fini = tear_down)
{
    submit_held(1);
    submit_held(2);
    struct wharf_submission s = {.opcode = WHARF_OP_CANCEL, .user_data = 9, .src_offset = 1};
    test_core_submit(&client, &s);
    for (unsigned n = 0; n < 2; n++) {
        struct wharf_completion completion = test_core_reap(&client);
        cr_expect_eq(completion.result, completion.user_data == 9 ? WHARF_OK : WHARF_CANCELLED);
    }
    set_start(2, 1);
    cr_expect_eq(test_core_reap(&client).user_data, 2);
}

/* The stream that is to set the start word waits for the job itself. */
static void *wait_for_each_other(void *data)
{
    struct wharf_done *done = data;

    while (!wharf_done_is_set(wharf_ring_load_done(&done->word), 1))
        sched_yield();
    set_start(0, 1);
    return NULL;
}

Test(wharfd_start_word, stream_and_job_that_wait_for_each_other_both_go_on, .init = set_up,
     .fini = tear_down)
{
    struct wharf_submission_words words = words_of(0, 1);
    struct wharf_submission s = job_of(1);
    pthread_t stream;

    words.start_timeout_us = 20000;
    words.done_offset = DONE;
    words.done_serial = 1;
    s.flags = WHARF_SUBMISSION_DONE_WORD;
    cr_assert_eq(pthread_create(&stream, NULL, wait_for_each_other, client.arena + DONE), 0);
    put(s, &words);
    test_core_publish(&client);
    expect_late(test_core_reap(&client));
    pthread_join(stream, NULL);
    cr_expect_eq(((struct wharf_done *)(client.arena + DONE))->word,
                 WHARF_DONE_VALUE(1) | WHARF_REASON_START_TIME << 16 | WHARF_DEADLINE);
}

Test(wharfd_start_word, batch_waits, .init = set_up, .fini = tear_down)
{
    struct wharf_chunk *table = (struct wharf_chunk *)(client.arena + DONE);
    struct wharf_submission_words words = words_of(0, 1);
    struct wharf_submission s = job_of(1);

    s.opcode = WHARF_OP_BATCH;
    s.src_offset = DONE;
    s.src_nbytes = 3 * sizeof(*table);
    s.dst_offset = s.dst_nbytes = 0;
    put(s, &words);
    test_core_publish(&client);
    cr_assert(TEST_WAIT(is_held(0)));
    /* Its table too is read only then. */
    for (unsigned i = 0; i < 3; i++)
        table[i] = (struct wharf_chunk){.src_nbytes = (uint32_t)packed_nbytes,
                                        .dst_offset = OUTPUT + i * PLAIN,
                                        .dst_nbytes = PLAIN};
    set_start(0, 1);
    cr_expect_eq(test_core_reap(&client).out_nbytes, 3 * PLAIN);
}

Test(wharfd_start_word, session_may_end_while_jobs_wait, .init = set_up, .fini = tear_down)
{
    for (unsigned i = 0; i < 100; i++)
        submit_held(i);
}

Test(wharfd_start_word, session_that_drains_waits_for_its_jobs, .init = set_up, .fini = tear_down)
{
    submit_held(1);
    cr_assert(TEST_WAIT(is_held(0)));
    wharf_core_enter(&test_core);
    wharf_core_drain_session(&test_core, client.session);
    wharf_core_leave(&test_core);
    set_start(1, 1);
    cr_expect_eq(test_core_reap(&client).result, WHARF_OK);
    test_core_wait_until_told(&client, WHARF_SESSION_IS_DRAINED);
}

Test(wharfd_start_word, places_that_are_none_are_refused, .init = set_up, .fini = tear_down)
{
    const struct wharf_submission_words bad[] = {
        {.start_region = 2, .start_offset = 4},
        {.start_region = 2, .start_offset = STARTS_NBYTES},
        {.start_region = 2, .start_offset = UINT64_MAX - 7},
        {.start_region = 3},
        /* Where the client could punch holes. */
        {.start_region = 0},
        {.start_region = 2, .done_serial = 1},
        {.start_region = 2, .done_offset = 64},
        {.start_region = 2, .done_region = 2},
    };

    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        put(job_of(1), &bad[i]);
        test_core_publish(&client);
        struct wharf_completion completion = test_core_reap(&client);
        cr_expect_eq(completion.result, WHARF_BAD_REQUEST, "case %u", i);
        cr_expect_eq(completion.reason, WHARF_REASON_REQUEST_WORD, "case %u", i);
    }
}

/* ---- clients that write what is not so ----------------------------------------------------- */

static uint32_t stops;

static void *scribble(void *data)
{
    struct test_random random = {1};

    (void)data;
    while (!__atomic_load_n(&stops, __ATOMIC_RELAXED))
        for (unsigned i = 0; i < N_ENTRIES; i++)
            __atomic_store_n(&starts[i], test_random_next(&random), __ATOMIC_RELAXED);
    return NULL;
}

Test(wharfd_start_word, words_may_say_anything_at_any_time)
{
    pthread_t thread;

    set_up_with(50 * WHARF_NS_PER_MS);
    cr_assert_eq(pthread_create(&thread, NULL, scribble, NULL), 0);
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 200; i++) {
            struct wharf_submission_words words = words_of(i, round * 0x10000000u);
            put(job_of(i), &words);
        }
        test_core_publish(&client);
        for (unsigned i = 0; i < 200; i++) {
            struct wharf_completion completion = test_core_reap(&client);
            if (completion.result != WHARF_OK)
                expect_late(completion);
        }
    }
    __atomic_store_n(&stops, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    tear_down();
}

/* Sessions that come, wait in every way, cancel, and end in the middle of it. */
static void attack(unsigned round)
{
    static const uint32_t timeouts_us[] = {0, 1, 10, 1000, UINT32_MAX};
    struct test_core_client hostile;

    test_core_client_init(&hostile, 2 + round, "uid:2", N_ENTRIES, MiB);
    uint64_t *words = test_core_add_starts(&hostile, STARTS_NBYTES);
    for (unsigned i = 0; i < 200; i++) {
        struct wharf_submission s = test_core_decode_of(i, 0, 100, 4096, 100);
        struct wharf_submission_words at = words_of(i, 1);
        at.start_timeout_us = timeouts_us[i % 5];
        s.timeout_us = timeouts_us[(i + round) % 5];
        s.flags |= WHARF_SUBMISSION_START_WORD;
        wharf_ring_submit_words(&hostile.ring, &at);
        wharf_ring_submit(&hostile.ring, &s);
        if (i % 3 == 0)
            wharf_ring_store_start(&words[i / 2], WHARF_START_VALUE(1));
        if (i % 16 == 15)
            test_core_publish(&hostile);
    }
    struct wharf_submission cancel = {.opcode = WHARF_OP_CANCEL, .user_data = 9, .src_offset = 7};
    test_core_submit(&hostile, &cancel);
    test_core_client_deinit(&hostile);
    munmap(words, STARTS_NBYTES);
}

Test(wharfd_start_word, others_streams_go_on_beside_a_hostile_client, .init = set_up,
     .fini = tear_down)
{
    for (unsigned round = 0; round < 13; round++) {
        submit_held(round);
        attack(round);
        cr_assert(TEST_WAIT(is_held(0)));
        set_start(round, 1);
        struct wharf_completion completion = test_core_reap(&client);
        cr_expect_eq(completion.result, WHARF_OK);
        cr_expect_eq(completion.user_data, round);
    }
    cr_expect_null(TEST_CORE_LOCKED(test_core.starts.looks.root));
    cr_expect_null(TEST_CORE_LOCKED(test_core.deadlines.root));
}
