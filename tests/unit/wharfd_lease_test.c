/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that one worker has to itself: each job is completed once, with the right bytes, and
 * counted, whatever else comes between.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/config.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/session_events.h"
#include "daemon/core/session_lease.h"
#include "daemon/core/stats.h"
#include "daemon/cpu/lease.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/intake.h"
#include "daemon/dispatch/session_end.h"
#include "daemon/placement/place_pick.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_core.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_slow.h"
#include "tests/lib/test_wait.h"

#define MiB ((uint64_t)1 << 20)

/* Packed chunk at 0, outputs of 4 KiB each from here on. */
enum { N_ENTRIES = 64, OUTPUTS = 65536, PLAIN = 4096 };

static uint8_t *plain;
static size_t packed_nbytes;

/* With one worker every session that has plain jobs alone is had by it alone. */
static void set_up(struct test_core_client *client)
{
    wharf_config_init(&test_core_config);
    test_core_config.quota.max_job_nbytes = 64 * MiB;
    test_core_start(1);
    test_core_client_init(client, 1, "uid:1", N_ENTRIES, 64 * MiB);
    plain = test_data_new(test_data_find("text"), 1, PLAIN);
    packed_nbytes = test_core_put_chunk(client, 0, plain, PLAIN);
}

static void tear_down(void)
{
    test_core_stop();
    free(plain);
    plain = NULL;
}

/* Two jobs that are in flight at the same time must not have the same place. */
static uint64_t n_places = N_ENTRIES;

static uint64_t place_of(uint64_t user_data)
{
    return OUTPUTS + user_data % n_places * PLAIN;
}

static struct wharf_submission job_of(uint64_t user_data)
{
    return test_core_decode_of(user_data, 0, packed_nbytes, place_of(user_data), PLAIN);
}

static void submit_burst(struct test_core_client *client, uint64_t from, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct wharf_submission s = job_of(from + i);
        memset(client->arena + s.dst_offset, 0, PLAIN);
        wharf_ring_submit(&client->ring, &s);
    }
    test_core_publish(client);
}

static void check_good(struct test_core_client *client, const struct wharf_completion *completion)
{
    cr_assert_eq(completion->result, WHARF_OK);
    cr_assert_eq(completion->out_nbytes, PLAIN);
    cr_assert_arr_eq(client->arena + place_of(completion->user_data), plain, PLAIN);
}

static bool is_leased(struct test_core_client *client)
{
    return TEST_CORE_LOCKED(client->session->lease != NULL);
}

/* What was done during a lease is counted when it ends. */
static void end_leases(void)
{
    wharf_core_enter(&test_core);
    wharf_core_recall_all(&test_core, NULL);
    wharf_core_leave(&test_core);
}

/* ---- leases -------------------------------------------------------------------------------- */

Test(wharfd_lease, each_job_is_done_once_and_counted)
{
    enum { BURSTS = 200, N = 32 };
    struct test_core_client client;
    unsigned n_leased = 0;

    set_up(&client);
    for (unsigned burst = 0; burst < BURSTS || n_leased == 0; burst++) {
        uint64_t seen = 0;
        cr_assert_lt(burst, 100 * BURSTS, "no session is ever leased");
        submit_burst(&client, burst * N, N);
        n_leased += is_leased(&client);
        for (unsigned i = 0; i < N; i++) {
            struct wharf_completion completion = test_core_reap(&client);
            check_good(&client, &completion);
            cr_assert_eq(completion.engine, WHARF_ENGINE_CPU);
            seen |= (uint64_t)1 << (completion.user_data - burst * N);
        }
        cr_assert_eq(seen, UINT32_MAX);
        if (burst + 1 < BURSTS)
            continue;
        end_leases();
        const struct wharf_tenant_stats *stats = &client.session->tenant->stats;
        const struct wharf_engine_stats *cpu = &stats->engines[WHARF_ENGINE_CPU];
        uint64_t n_jobs = (uint64_t)N * (burst + 1);
        cr_assert_eq(TEST_CORE_LOCKED(cpu->n_jobs[WHARF_OK]), n_jobs);
        cr_assert_eq(TEST_CORE_LOCKED(cpu->n_chunks), n_jobs);
        cr_assert_eq(TEST_CORE_LOCKED(cpu->out_nbytes), n_jobs * PLAIN);
        cr_assert_eq(TEST_CORE_LOCKED(stats->n_placed[WHARF_PLACED_NO_GPU]), n_jobs);
    }
    cr_assert_eq(TEST_CORE_LOCKED(client.session->regions[0].n_users), 0);
    cr_assert_eq(TEST_CORE_LOCKED(client.session->n_in_flight), 0);
    cr_assert_eq(TEST_CORE_LOCKED(client.session->n_plain), 0);
    cr_assert_eq(TEST_CORE_LOCKED(wharf_place_n_queued(&test_core)), 0);
    test_core_client_deinit(&client);
    tear_down();
}

/* Under the core lock, so that no worker gets at it. */
static void queue_job(struct test_core_client *client)
{
    uint64_t n_queued = wharf_place_n_queued(&test_core);
    struct wharf_submission s = job_of(0);

    wharf_ring_submit(&client->ring, &s);
    wharf_ring_publish_submissions(&client->ring);
    wharf_core_doorbell(&test_core, client->session, 1);
    while (wharf_place_n_queued(&test_core) == n_queued)
        wharf_core_poll_rings(&test_core);
}

static bool begin_lease(struct wharf_lease *lease)
{
    return wharf_lease_begin(&test_core, lease, wharf_place_first_for_cpu(&test_core, UINT64_MAX));
}

/* With leases, the tenant of one session on one worker had less than its share beside another. */
Test(wharfd_lease, no_session_is_leased_while_another_tenant_has_work)
{
    struct test_core_client clients[2];
    struct wharf_lease lease = {0};

    set_up(&clients[0]);
    test_core_client_init(&clients[1], 2, "uid:2", N_ENTRIES, 64 * MiB);
    test_core_put_chunk(&clients[1], 0, plain, PLAIN);
    wharf_core_enter(&test_core);
    queue_job(&clients[0]);
    bool alone = begin_lease(&lease);
    if (alone)
        wharf_lease_end(&test_core, &lease, NULL);
    queue_job(&clients[1]);
    bool beside = begin_lease(&lease);
    if (beside)
        wharf_lease_end(&test_core, &lease, NULL);
    wharf_lease_forget(&lease);
    wharf_core_leave(&test_core);
    cr_assert(alone);
    cr_assert_not(beside);
    for (unsigned i = 0; i < 2; i++) {
        struct wharf_completion completion = test_core_reap(&clients[i]);
        check_good(&clients[i], &completion);
        test_core_client_deinit(&clients[i]);
    }
    tear_down();
}

/* They go before all else, and a worker that goes from lease to lease never came to them. */
Test(wharfd_lease, no_session_is_leased_while_pieces_of_a_dead_gpu_worker_wait)
{
    enum { BURSTS = 200, N = 32 };
    struct test_core_client client;

    set_up(&client);
    /* That there are any is all that is looked at. */
    TEST_CORE_LOCKED(test_core.retries.n = 1);
    for (unsigned burst = 0; burst < BURSTS; burst++) {
        submit_burst(&client, burst * N, N);
        cr_assert_not(is_leased(&client));
        for (unsigned i = 0; i < N; i++) {
            struct wharf_completion completion = test_core_reap(&client);
            check_good(&client, &completion);
        }
    }
    TEST_CORE_LOCKED(test_core.retries.n = 0);
    test_core_client_deinit(&client);
    tear_down();
}

/* Some sessions are leased, others are everybody's, and become the one or the other. */
Test(wharfd_lease, sessions_change_hands_in_the_middle_of_their_jobs)
{
    enum { CLIENTS = 5, ROUNDS = 200, N = 16 };
    struct test_core_client clients[CLIENTS];
    uint64_t n_submitted[CLIENTS] = {0}, n_done[CLIENTS] = {0};
    struct wharf_completion completion;

    wharf_config_init(&test_core_config);
    test_core_config.quota.max_memory_nbytes = 1024 * MiB;
    test_core_start(3);
    n_places = ROUNDS * N;
    plain = test_data_new(test_data_find("text"), 1, PLAIN);
    for (unsigned i = 0; i < CLIENTS; i++) {
        test_core_client_init(&clients[i], i, i < 4 ? "uid:1" : "uid:2", N_ENTRIES, 16 * MiB);
        packed_nbytes = test_core_put_chunk(&clients[i], 0, plain, PLAIN);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < CLIENTS; i++) {
            if (wharf_ring_room(&clients[i].ring) >= N && (round + i) % 3 > 0) {
                submit_burst(&clients[i], n_submitted[i], N);
                n_submitted[i] += N;
            }
            while (wharf_ring_reap(&clients[i].ring, &completion) == 1) {
                check_good(&clients[i], &completion);
                n_done[i]++;
            }
        }
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        for (; n_done[i] < n_submitted[i]; n_done[i]++) {
            completion = test_core_reap(&clients[i]);
            check_good(&clients[i], &completion);
        }
        cr_assert_eq(wharf_ring_reap(&clients[i].ring, &completion), 0);
    }
    end_leases();
    for (unsigned i = 0; i < CLIENTS; i++) {
        cr_assert_eq(TEST_CORE_LOCKED(clients[i].session->n_in_flight), 0);
        cr_assert_eq(TEST_CORE_LOCKED(clients[i].session->regions[0].n_users), 0);
        test_core_client_deinit(&clients[i]);
    }
    tear_down();
}

/* One of each kind between plain ones. */
static struct wharf_submission other_of(unsigned kind, uint64_t user_data)
{
    struct wharf_submission s = job_of(user_data);

    switch (kind % 7) {
    case 0:
        s.job_class = WHARF_CLASS_INTERACTIVE;
        return s;
    case 1:
        s.job_class = WHARF_CLASS_BACKGROUND;
        return s;
    case 2:
        s.timeout_us = 60000000;
        return s;
    case 3:
        s.codec = 999;
        return s;
    case 4:
        s.codec = WHARF_CODEC_STORED;
        return s;
    case 5:
        return (struct wharf_submission){
            .opcode = WHARF_OP_CANCEL, .user_data = user_data, .src_offset = user_data + 1};
    default:
        return (struct wharf_submission){.opcode = WHARF_OP_NOOP, .user_data = user_data};
    }
}

Test(wharfd_lease, what_is_not_for_a_lease_is_done_all_the_same)
{
    enum { BURSTS = 200, N = 32 };
    struct test_core_client client;

    set_up(&client);
    for (unsigned burst = 0; burst < BURSTS; burst++) {
        uint64_t from = burst * N, seen = 0;
        submit_burst(&client, from, N - 8);
        for (unsigned i = N - 8; i < N; i++) {
            struct wharf_submission s =
                i % 2 ? job_of(from + i) : other_of(burst + i / 2, from + i);
            wharf_ring_submit(&client.ring, &s);
        }
        test_core_publish(&client);
        for (unsigned i = 0; i < N; i++) {
            struct wharf_completion completion = test_core_reap(&client);
            uint64_t at = completion.user_data - from;
            cr_assert_lt(at, N);
            if (at < N - 8)
                check_good(&client, &completion);
            seen |= (uint64_t)1 << at;
        }
        cr_assert_eq(seen, UINT32_MAX, "burst %u: %llx", burst, (unsigned long long)seen);
    }
    test_core_client_deinit(&client);
    tear_down();
}

/* The loop thread has the session to itself when it asks for it, whatever the client does. */
Test(wharfd_lease, recalled_sessions_are_nobodys)
{
    enum { ROUNDS = 2000 };
    struct test_core_client client;
    struct wharf_completion completion;
    uint64_t n_submitted = 0, n_done = 0;

    set_up(&client);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned n = wharf_ring_room(&client.ring) / 2;
        submit_burst(&client, n_submitted, n);
        n_submitted += n;
        wharf_core_enter(&test_core);
        wharf_core_recall(&test_core, client.session);
        cr_assert_null(client.session->lease);
        wharf_core_let_go(client.session);
        wharf_core_leave(&test_core);
        while (wharf_ring_reap(&client.ring, &completion) == 1) {
            check_good(&client, &completion);
            n_done++;
        }
    }
    for (; n_done < n_submitted; n_done++) {
        completion = test_core_reap(&client);
        check_good(&client, &completion);
    }
    test_core_client_deinit(&client);
    tear_down();
}

Test(wharfd_lease, killed_sessions_leave_nothing_behind)
{
    enum { DAEMONS = 10, CLIENTS = 14 };
    struct test_core_client first, client;

    for (unsigned daemon = 0; daemon < DAEMONS; daemon++) {
        set_up(&first);
        for (unsigned i = 0; i < CLIENTS; i++) {
            test_core_client_init(&client, 2 + i, "uid:1", N_ENTRIES, MiB);
            test_core_put_chunk(&client, 0, plain, PLAIN);
            submit_burst(&client, 0, 32);
            usleep((daemon * CLIENTS + i) % 10 * 20);
            test_core_client_deinit(&client);
            cr_assert_eq(TEST_CORE_LOCKED(wharf_place_n_queued(&test_core)), 0);
        }
        test_core_client_deinit(&first);
        tear_down();
    }
}

Test(wharfd_lease, broken_indices_end_a_leased_session)
{
    enum { ROUNDS = 8 };
    struct test_core_client client;

    set_up(&client);
    test_core_client_deinit(&client);
    for (unsigned round = 0; round < ROUNDS; round++) {
        test_core_client_init(&client, 2 + round, "uid:1", N_ENTRIES, MiB);
        test_core_put_chunk(&client, 0, plain, PLAIN);
        submit_burst(&client, 0, 32);
        __atomic_store_n(&client.ring.c->sq_tail, client.ring.sq_tail + 1000, __ATOMIC_SEQ_CST);
        wharf_core_enter(&test_core);
        wharf_core_doorbell(&test_core, client.session, 1);
        wharf_core_leave(&test_core);
        test_core_wait_until_told(&client, WHARF_SESSION_IS_BROKEN);
        test_core_client_deinit(&client);
    }
    tear_down();
}

/* ---- long jobs ----------------------------------------------------------------------------- */

/* With so much room for its output it is estimated to take longer than a slice. */
static struct wharf_submission long_job(uint64_t user_data)
{
    return test_core_decode_of(user_data, 0, packed_nbytes, 8 * MiB, 48 * MiB);
}

Test(wharfd_lease, long_jobs_of_a_leased_session_are_not_begun_in_the_lease)
{
    enum { BURSTS = 50, N = 32 };
    struct test_core_client client;
    unsigned n_leased = 0;

    set_up(&client);
    for (unsigned burst = 0; burst < BURSTS || n_leased == 0; burst++) {
        struct wharf_submission s = long_job(N);
        cr_assert_lt(burst, 100 * BURSTS, "no session is ever leased");
        test_slow_begin(&client, 8 * MiB, PLAIN);
        submit_burst(&client, 0, N - 1);
        n_leased += is_leased(&client);
        wharf_ring_submit(&client.ring, &s);
        test_core_publish(&client);
        cr_assert(TEST_WAIT(test_slow_n_reached() > 0));
        bool is_in_lease = is_leased(&client);
        uint32_t n_long = TEST_CORE_LOCKED(test_core.workers.n_long);
        test_slow_release();
        cr_assert_not(is_in_lease);
        cr_assert_eq(n_long, 1);
        for (unsigned i = 0; i < N; i++)
            cr_assert_eq(test_core_reap(&client).result, WHARF_OK);
    }
    test_core_client_deinit(&client);
    tear_down();
}
