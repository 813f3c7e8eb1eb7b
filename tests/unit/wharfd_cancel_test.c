/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancel and deadlines, and what they leave behind.
 */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/core/engine_status.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_core.h"
#include "tests/lib/test_wait.h"

#define MiB ((uint64_t)1 << 20)

Test(wharfd_cancel, cancel_takes_queued_jobs_of_its_number_alone)
{
    enum { N = 200 };
    struct test_core_client client;
    unsigned n_cancelled = 0, n_other = 0;

    wharf_config_init(&test_core_config);
    test_core_config.quota.max_job_nbytes = 64 * MiB;
    test_core_start(1);
    test_core_client_init(&client, 1, "uid:1", 512, 64 * MiB);
    struct wharf_submission s = test_core_put_long(&client, 5);
    wharf_ring_submit(&client.ring, &s);
    for (unsigned i = 0; i < N; i++) {
        s = test_core_decode_of(i % 2 ? 77 : 78, 64 * MiB - 100, 10, 64 * MiB - 50, 10);
        wharf_ring_submit(&client.ring, &s);
    }
    s = (struct wharf_submission){.opcode = WHARF_OP_CANCEL, .user_data = 9, .src_offset = 77};
    test_core_submit(&client, &s);
    test_core_sleep(&client, N + 2);
    struct wharf_completion completion;
    while (wharf_ring_reap(&client.ring, &completion) == 1) {
        if (completion.user_data == 77) {
            cr_assert_eq(completion.result, WHARF_CANCELLED);
            cr_assert_eq(completion.engine, WHARF_ENGINE_AUTO);
            n_cancelled++;
        } else if (completion.user_data == 9) {
            cr_assert_eq(completion.result, WHARF_OK);
        } else {
            cr_assert_neq(completion.result, WHARF_CANCELLED);
            n_other++;
        }
    }
    cr_assert_eq(n_cancelled, N / 2);
    cr_assert_eq(n_other, N / 2 + 1);
    test_core_client_deinit(&client);
    test_core_stop();
}

/* The only worker is busy: the loop thread's timer has to see to it. */
Test(wharfd_cancel, deadline_passes_while_all_workers_are_busy)
{
    struct test_core_client client;
    struct wharf_completion completion;

    wharf_config_init(&test_core_config);
    test_core_config.quota.max_job_nbytes = 64 * MiB;
    test_core_start(1);
    test_core_client_init(&client, 1, "uid:1", 64, 64 * MiB);
    for (unsigned i = 0; i < 20; i++) {
        struct wharf_submission s = test_core_put_long(&client, 1000 + i);
        wharf_ring_submit(&client.ring, &s);
    }
    struct wharf_submission late = test_core_decode_of(2, 64 * MiB - 100, 10, 64 * MiB - 50, 10);
    late.timeout_us = 2000;
    test_core_submit(&client, &late);
    do {
        completion = test_core_reap(&client);
    } while (completion.user_data != 2);
    cr_assert_eq(completion.result, WHARF_DEADLINE);
    cr_assert_eq(completion.engine, WHARF_ENGINE_AUTO);
    cr_assert_geq(completion.queue_ns, 2000000);
    test_core_client_deinit(&client);
    test_core_stop();
}

Test(wharfd_cancel, chunk_that_ends_too_late_is_deadline, .init = test_core_set_up)
{
    struct test_core_client client;

    test_core_client_init(&client, 1, "uid:1", 64, 64 * MiB);
    struct wharf_submission s = test_core_put_long(&client, 1);
    s.timeout_us = 100;
    test_core_submit(&client, &s);
    struct wharf_completion completion = test_core_reap(&client);
    cr_assert_eq(completion.result, WHARF_DEADLINE);
    cr_assert_eq(completion.out_nbytes, 0);
    test_core_client_deinit(&client);
    test_core_stop();
}

/* Once the job behind a long one that was cancelled waited for other long ones to end: nobody told
 * the worker that stays free for short ones. */
Test(wharfd_cancel, job_behind_a_cancelled_one_is_begun)
{
    struct test_core_client busy, client;
    struct wharf_completion completion;

    wharf_config_init(&test_core_config);
    test_core_config.quota.max_job_nbytes = 64 * MiB;
    /* A worker that is called to watch the rings would find it by chance. */
    test_core_config.spin_ns = 0;
    test_core_start(2);
    test_core_client_init(&busy, 1, "uid:1", 8, 64 * MiB);
    test_core_client_init(&client, 2, "uid:2", 8, 64 * MiB);
    test_core_make_slower(&busy);
    test_core_make_slower(&client);
    struct wharf_submission s = test_core_put_slow(&busy, 1, 0, 50 * MiB);
    test_core_submit(&busy, &s);
    cr_assert(TEST_WAIT(TEST_CORE_LOCKED(test_core.workers.n_long) > 0));
    s = test_core_put_slow(&client, 5, 0, 50 * MiB);
    wharf_ring_submit(&client.ring, &s);
    s = test_core_decode_of(6, 60 * MiB, 10, 61 * MiB, 10);
    s.codec = WHARF_CODEC_STORED;
    test_core_submit(&client, &s);
    cr_assert(TEST_WAIT(TEST_CORE_LOCKED(test_core.workers.n_sleeping) > 0));
    s = (struct wharf_submission){.opcode = WHARF_OP_CANCEL, .src_offset = 5};
    test_core_submit(&client, &s);
    do {
        completion = test_core_reap(&client);
    } while (completion.user_data != 6);
    cr_assert_eq(completion.result, WHARF_OK);
    cr_assert_eq(wharf_ring_reap(&busy.ring, &completion), 0, "it waited for the other long one");
    test_core_client_deinit(&client);
    test_core_client_deinit(&busy);
    test_core_stop();
}

/* What is left of it costs nothing: it does not wait until a background job would have its turn. */
Test(wharfd_cancel, cancelled_batch_does_not_wait_for_its_turn)
{
    enum { N = 2000, CHUNKS = 2 << 20, RESULTS = 4 << 20, TABLE = 1 << 20 };
    struct test_core_client flood, client;
    struct wharf_completion completion;
    struct wharf_chunk chunk = {.dst_offset = CHUNKS, .dst_nbytes = TEST_CORE_CHUNK};

    wharf_config_init(&test_core_config);
    test_core_config.background_age_ns = 1000 * (uint64_t)WHARF_NS_PER_S;
    test_core_start(1);
    test_core_client_init(&client, 1, "uid:1", 8, 8 * MiB);
    test_core_client_init(&flood, 2, "uid:2", 64, 64 * MiB);
    test_core_make_slower(&flood);
    chunk.src_nbytes = (uint32_t)test_core_put_slow(&client, 1, 0, 100000).src_nbytes;
    for (unsigned i = 0; i < N; i++)
        memcpy(client.arena + TABLE + i * sizeof(chunk), &chunk, sizeof(chunk));
    struct wharf_submission s = {
        .opcode = WHARF_OP_BATCH,
        .codec = WHARF_CODEC_DEFLATE,
        .job_class = WHARF_CLASS_BACKGROUND,
        .user_data = 3,
        .src_offset = TABLE,
        .src_nbytes = N * sizeof(chunk),
    };
    test_core_submit(&client, &s);
    cr_assert(TEST_WAIT(TEST_CORE_LOCKED(client.session->jobs[0].batch != NULL)));
    /* Much more work than is done before the cancel comes, however late that is. */
    s = test_core_put_slow(&flood, 1, 0, 8 * MiB);
    for (unsigned i = 0; i < 60; i++)
        wharf_ring_submit(&flood.ring, &s);
    test_core_publish(&flood);
    cr_assert(TEST_WAIT(wharf_ring_load_sq_head(&flood.ring.d->sq_head) > 0));
    s = (struct wharf_submission){.opcode = WHARF_OP_CANCEL, .src_offset = 3};
    test_core_submit(&client, &s);
    do {
        completion = test_core_reap(&client);
    } while (completion.user_data != 3);
    /* Its first chunk is bad, being without an end, or was interrupted. */
    cr_assert(completion.result == WHARF_BAD_DATA || completion.result == WHARF_CANCELLED);
    cr_assert_eq(completion.first_bad_chunk, 0);
    cr_assert_lt(wharf_ring_load_cq_tail(&flood.ring.d->cq_tail), 60, "it waited for all others");
    test_core_client_deinit(&flood);
    test_core_client_deinit(&client);
    test_core_stop();
}

/* Jobs of a session that has just died are forgotten some at a time.  Once a deadline that passed
 * in between took a job out of a queue that it was no longer in, and the daemon lost count. */
Test(wharfd_cancel, deadlines_pass_while_their_session_is_forgotten)
{
    enum { N = 4096 };
    struct test_core_client busy;

    test_core_set_up();
    test_core_client_init(&busy, 0, "uid:1", 8, 64 * MiB);
    struct wharf_submission s = test_core_put_slow(&busy, 1, 0, 50 * MiB);
    test_core_submit(&busy, &s);
    test_core_submit(&busy, &s);
    for (unsigned round = 0; round < 12; round++) {
        struct test_core_client client;
        test_core_client_init(&client, 1 + round, "uid:2", N, MiB);
        for (unsigned i = 0; i < N; i++) {
            s = test_core_decode_of(i, 0, MiB / 2, MiB / 2, MiB / 2);
            s.timeout_us = 2000 + 3 * i;
            wharf_ring_submit(&client.ring, &s);
        }
        test_core_publish(&client);
        usleep(3000 + 700 * round);
        test_core_client_deinit(&client);
        /* The other session's second job is all that can be queued. */
        cr_assert_leq(TEST_CORE_LOCKED(wharf_place_n_queued(&test_core)), 1, "after %u", round);
    }
    test_core_client_deinit(&busy);
    cr_assert_eq(TEST_CORE_LOCKED(wharf_place_n_queued(&test_core)), 0);
    cr_assert_null(TEST_CORE_LOCKED(test_core.deadlines.root));
    test_core_stop();
}
