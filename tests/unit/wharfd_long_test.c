/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks that take seconds: whoever sends them, others go on, and they can be stopped.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_core.h"
#include "tests/lib/test_wait.h"

#define MiB ((uint64_t)1 << 20)

/* A chunk of this size takes at least 1.6 s: 31 ns a byte, on an idle machine. */
#define SLOW_NBYTES (50 * MiB)

/* What others may have to wait for: slices and steps of decoders are below 3 ms.  Much more than
 * that, for sanitizers, and less than the above. */
#define SOON_NS (1 * (uint64_t)WHARF_NS_PER_S)

/* How often a chunk is begun that was done each time before this thread had its turn. */
#define MOST_TRIES 20

/* What this process has had of the processors: what others take of them makes nothing late. */
static uint64_t used_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * WHARF_NS_PER_S + (uint64_t)now.tv_nsec;
}

static void start(uint32_t n_workers)
{
    wharf_config_init(&test_core_config);
    test_core_config.quota.max_job_nbytes = 64 * MiB;
    test_core_start(n_workers);
}

/* Or is done already. */
static void wait_until_running(struct test_core_client *client)
{
    cr_assert(TEST_WAIT(TEST_CORE_LOCKED(client->session->n_pieces) > 0 ||
                        wharf_ring_load_cq_tail(&client->ring.d->cq_tail) != client->ring.cq_head));
}

/* ---- stopping ------------------------------------------------------------------------------ */

/* Begins a slow chunk and cancels it; how it was completed. */
static struct wharf_completion cancel_slow(struct test_core_client *client, uint64_t *ret_used_ns)
{
    const struct wharf_submission cancel = {
        .opcode = WHARF_OP_CANCEL, .user_data = 8, .src_offset = 7};
    const struct wharf_submission slow = test_core_put_slow(client, 7, 0, SLOW_NBYTES);
    struct wharf_completion completions[2];

    test_core_submit(client, &slow);
    wait_until_running(client);
    uint64_t start_ns = used_ns();
    test_core_submit(client, &cancel);
    for (unsigned i = 0; i < 2; i++)
        completions[i] = test_core_reap(client);
    *ret_used_ns = used_ns() - start_ns;
    return completions[completions[0].user_data == 7 ? 0 : 1];
}

static void check_cancel(uint8_t engine)
{
    struct test_core_client client;
    struct wharf_completion completion;
    uint64_t took_ns;

    start(1);
    test_core_client_init(&client, 1, "uid:1", 8, 64 * MiB);
    TEST_CORE_LOCKED(client.session->engine = engine);
    for (unsigned i = 0; i < MOST_TRIES; i++) {
        completion = cancel_slow(&client, &took_ns);
        if (completion.result == WHARF_CANCELLED)
            break;
    }
    cr_assert_eq(completion.result, WHARF_CANCELLED);
    cr_assert_eq(completion.reason, WHARF_REASON_NONE);
    cr_assert_eq(completion.out_nbytes, 0);
    cr_assert_lt(took_ns, SOON_NS);
    test_core_client_deinit(&client);
    test_core_stop();
}

Test(wharfd_long, running_chunk_is_cancelled)
{
    check_cancel(WHARF_ENGINE_CPU);
}

/* zlib takes ten times as long for such data, which is longer than the watchdog waits. */
Test(wharfd_long, running_chunk_of_the_reference_engine_is_cancelled)
{
    check_cancel(WHARF_ENGINE_REFERENCE);
}

Test(wharfd_long, deadline_passes_in_the_middle_of_a_chunk)
{
    struct test_core_client client;

    start(1);
    test_core_client_init(&client, 1, "uid:1", 8, 64 * MiB);
    struct wharf_submission s = test_core_put_slow(&client, 7, 0, SLOW_NBYTES);
    s.timeout_us = 20000;
    uint64_t start_ns = used_ns();
    test_core_submit(&client, &s);
    cr_assert_eq(test_core_reap(&client).result, WHARF_DEADLINE);
    cr_assert_lt(used_ns() - start_ns, 20 * WHARF_NS_PER_MS + SOON_NS);
    test_core_client_deinit(&client);
    test_core_stop();
}

Test(wharfd_long, dead_session_ends_in_the_middle_of_a_chunk)
{
    struct test_core_client client;

    start(1);
    test_core_client_init(&client, 1, "uid:1", 8, 64 * MiB);
    struct wharf_submission s = test_core_put_slow(&client, 7, 0, SLOW_NBYTES);
    test_core_submit(&client, &s);
    wait_until_running(&client);
    uint64_t start_ns = used_ns();
    test_core_client_deinit(&client);
    cr_assert_lt(used_ns() - start_ns, SOON_NS);
    test_core_stop();
}

/* ---- others -------------------------------------------------------------------------------- */

/* Of others' jobs, that may be late: a thread that is kept from its processor while the others go
 * on is late by what those use.  With each chunk begun before them all would be. */
#define MOST_LATE 2

/* Another tenant's jobs, one after the other, are each done soon. */
static void expect_others_go_on(uint64_t id, unsigned n)
{
    struct test_core_client client;
    unsigned n_late = 0;

    test_core_client_init(&client, id, "uid:99", 8, MiB);
    for (unsigned i = 0; i < n; i++) {
        struct wharf_submission s = test_core_decode_of(i, 0, 100, 4096, 4096);
        s.codec = WHARF_CODEC_STORED;
        uint64_t start_ns = used_ns();
        test_core_submit(&client, &s);
        cr_assert_eq(test_core_reap(&client).result, WHARF_OK);
        n_late += used_ns() - start_ns >= SOON_NS;
        usleep(1000);
    }
    cr_assert_leq(n_late, MOST_LATE, "%u jobs took too long", n_late);
    test_core_client_deinit(&client);
}

/* The daemon learns that the tenant's jobs are fast, before they are not. */
static void teach_wrong_estimates(struct test_core_client *client)
{
    for (unsigned i = 0; i < 300; i++) {
        struct wharf_submission s = test_core_decode_of(i, 55 * MiB, 65540, 56 * MiB, 65535);
        s.codec = WHARF_CODEC_DEFLATE;
        test_core_submit(client, &s);
        cr_assert_eq(test_core_reap(client).result, WHARF_OK);
    }
}

/* What was taken together with a chunk that turns out to be long is not begun, nor held. */
Test(wharfd_long, jobs_taken_together_with_a_long_one_have_their_deadlines)
{
    enum { N = 5 };
    static const uint8_t stored[5] = {0x01, 0xff, 0xff, 0x00, 0x00};
    struct test_core_client client;

    start(1);
    test_core_client_init(&client, 1, "uid:1", 16, 64 * MiB);
    struct wharf_submission s = test_core_put_slow(&client, 7, 0, SLOW_NBYTES);
    memcpy(client.arena + 55 * MiB, stored, sizeof(stored));
    teach_wrong_estimates(&client);
    /* 130 ms, estimated to be 35 us. */
    s.src_nbytes = 4 * MiB;
    wharf_ring_submit(&client.ring, &s);
    for (unsigned i = 0; i < N; i++) {
        struct wharf_submission late =
            test_core_decode_of(100 + i, 55 * MiB, 65540, 56 * MiB + i * 65536, 65535);
        late.codec = WHARF_CODEC_DEFLATE;
        late.timeout_us = 10000;
        wharf_ring_submit(&client.ring, &late);
    }
    test_core_publish(&client);
    for (unsigned i = 0; i < N; i++) {
        struct wharf_completion completion = test_core_reap(&client);
        cr_assert_eq(completion.result, WHARF_DEADLINE, "job %u: %u",
                     (unsigned)completion.user_data, completion.result);
        cr_assert_geq(completion.user_data, 100);
    }
    cr_assert_eq(test_core_reap(&client).user_data, 7);
    test_core_client_deinit(&client);
    test_core_stop();
}

static void check_others(uint32_t n_workers, uint8_t engine, bool teaches)
{
    enum { N = 3 };
    static const uint8_t stored[5] = {0x01, 0xff, 0xff, 0x00, 0x00};
    struct test_core_client hostile[N];
    char tenant[16];

    start(n_workers);
    for (unsigned i = 0; i < N; i++) {
        snprintf(tenant, sizeof(tenant), "uid:%u", i / 2);
        test_core_client_init(&hostile[i], i, tenant, 8, 64 * MiB);
        TEST_CORE_LOCKED(hostile[i].session->engine = engine);
        memcpy(hostile[i].arena + 55 * MiB, stored, sizeof(stored));
        if (teaches)
            teach_wrong_estimates(&hostile[i]);
    }
    for (unsigned i = 0; i < N; i++) {
        struct wharf_submission s = test_core_put_slow(&hostile[i], 7, 0, SLOW_NBYTES);
        for (unsigned k = 0; k < 4; k++) {
            s.job_class = (uint8_t)k;
            test_core_submit(&hostile[i], &s);
        }
    }
    wait_until_running(&hostile[0]);
    expect_others_go_on(N, 20);
    for (unsigned i = 0; i < N; i++)
        test_core_client_deinit(&hostile[i]);
    test_core_stop();
}

Test(wharfd_long, one_worker_serves_others_in_the_middle_of_a_chunk)
{
    check_others(1, WHARF_ENGINE_CPU, false);
}

Test(wharfd_long, several_workers_serve_others_in_the_middle_of_chunks)
{
    check_others(3, WHARF_ENGINE_CPU, false);
}

Test(wharfd_long, estimates_that_are_made_wrong_starve_nobody)
{
    check_others(2, WHARF_ENGINE_CPU, true);
}

Test(wharfd_long, reference_engine_starves_nobody)
{
    check_others(2, WHARF_ENGINE_REFERENCE, false);
}
