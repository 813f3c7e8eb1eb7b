/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cancel and deadlines of single jobs.
 */
#include <criterion/criterion.h>

#include "proto/wharf_job.h"
#include "tests/lib/test_front.h"

#define MiB ((uint64_t)1 << 20)

Test(wharfd_cancel, cancel_takes_queued_jobs_of_its_number_alone)
{
    enum { N = 200 };
    struct test_front_client client;
    unsigned n_cancelled = 0, n_other = 0;

    wharf_config_init(&test_front_config);
    test_front_config.quota.max_job_nbytes = 64 * MiB;
    test_front_start(1);
    test_front_client_init(&client, 1, "uid:1", 512, 64 * MiB);
    struct wharf_submission s = test_front_put_long(&client, 5);
    wharf_ring_submit(&client.ring, &s);
    for (unsigned i = 0; i < N; i++) {
        s = test_front_decode_of(i % 2 ? 77 : 78, 64 * MiB - 100, 10, 64 * MiB - 50, 10);
        wharf_ring_submit(&client.ring, &s);
    }
    s = (struct wharf_submission){.opcode = WHARF_OP_CANCEL, .user_data = 9, .src_offset = 77};
    test_front_submit(&client, &s);
    test_front_sleep(&client, N + 2);
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
    test_front_client_deinit(&client);
    test_front_stop();
}

/* The only worker is busy: the loop thread's timer has to see to it. */
Test(wharfd_cancel, deadline_passes_while_all_workers_are_busy)
{
    struct test_front_client client;
    struct wharf_completion completion;

    wharf_config_init(&test_front_config);
    test_front_config.quota.max_job_nbytes = 64 * MiB;
    test_front_start(1);
    test_front_client_init(&client, 1, "uid:1", 64, 64 * MiB);
    for (unsigned i = 0; i < 20; i++) {
        struct wharf_submission s = test_front_put_long(&client, 1000 + i);
        wharf_ring_submit(&client.ring, &s);
    }
    struct wharf_submission late = test_front_decode_of(2, 64 * MiB - 100, 10, 64 * MiB - 50, 10);
    late.timeout_us = 2000;
    test_front_submit(&client, &late);
    do {
        completion = test_front_reap(&client);
    } while (completion.user_data != 2);
    cr_assert_eq(completion.result, WHARF_DEADLINE);
    cr_assert_eq(completion.engine, WHARF_ENGINE_AUTO);
    cr_assert_geq(completion.queue_ns, 2000000);
    test_front_client_deinit(&client);
    test_front_stop();
}

Test(wharfd_cancel, chunk_that_ends_too_late_is_deadline, .init = test_front_set_up)
{
    struct test_front_client client;

    test_front_client_init(&client, 1, "uid:1", 64, 64 * MiB);
    struct wharf_submission s = test_front_put_long(&client, 1);
    s.timeout_us = 100;
    test_front_submit(&client, &s);
    struct wharf_completion completion = test_front_reap(&client);
    cr_assert_eq(completion.result, WHARF_DEADLINE);
    cr_assert_eq(completion.out_nbytes, 0);
    test_front_client_deinit(&client);
    test_front_stop();
}
