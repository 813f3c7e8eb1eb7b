/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who pays for what: interactive time is a part of a tenant's share, and what is done without being
 * queued is charged to it too.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/core/activity.h"
#include "daemon/core/queues.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/intake.h"
#include "daemon/dispatch/job_pieces.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_core.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_wait.h"

#define MiB ((uint64_t)1 << 20)

enum { N_ENTRIES = 64, PLAIN = 4096, OUTPUTS = 65536 };

static size_t packed_nbytes;

static void start(uint32_t n_workers)
{
    wharf_config_init(&test_core_config);
    test_core_config.quota.max_job_nbytes = 64 * MiB;
    test_core_start(n_workers);
}

static void client_init(struct test_core_client *client, uint64_t id, const char *tenant_name)
{
    uint8_t *plain = test_data_new(test_data_find("text"), 1, PLAIN);

    test_core_client_init(client, id, tenant_name, N_ENTRIES, 64 * MiB);
    packed_nbytes = test_core_put_chunk(client, 0, plain, PLAIN);
    free(plain);
}

static struct wharf_submission job_of(unsigned i)
{
    return test_core_decode_of(i, 0, packed_nbytes, OUTPUTS + i * PLAIN, PLAIN);
}

/* Under the core lock, so that no worker gets at them: takes what is published. */
static void take_in(struct test_core_client *client)
{
    uint32_t n_before = client->session->ring.sq_head;

    wharf_ring_publish_submissions(&client->ring);
    wharf_core_doorbell(&test_core, client->session, 1);
    while (client->session->ring.sq_head == n_before)
        wharf_core_poll_rings(&test_core);
}

/* ---- interactive time ---------------------------------------------------------------------- */

/* Once, all tenants had equal interactive time, though one had four times the weight. */
Test(wharfd_charge, interactive_time_is_by_weight)
{
    static const char *const names[] = {"uid:1", "uid:2"};
    static const uint64_t weights[] = {100, 400};
    struct test_core_client clients[2];
    int64_t got_ns[2];

    start(1);
    for (unsigned i = 0; i < 2; i++) {
        client_init(&clients[i], i, names[i]);
        TEST_CORE_LOCKED(clients[i].session->tenant->quota.weight = weights[i]);
    }
    wharf_core_enter(&test_core);
    for (unsigned i = 0; i < 2; i++) {
        struct wharf_submission s = job_of(0);
        wharf_ring_submit(&clients[i].ring, &s);
        take_in(&clients[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct wharf_tenant *tenant = clients[i].session->tenant;
        struct wharf_submission s = job_of(1);
        s.job_class = WHARF_CLASS_INTERACTIVE;
        /* So long ago that a whole second counts, and so much owed that it does not fill up. */
        tenant->interactive_at_ns = 0;
        tenant->interactive_ns = -(int64_t)WHARF_NS_PER_S;
        wharf_ring_submit(&clients[i].ring, &s);
        take_in(&clients[i]);
        got_ns[i] = tenant->interactive_ns + (int64_t)WHARF_NS_PER_S;
    }
    wharf_core_leave(&test_core);
    int64_t all_ns =
        (int64_t)(WHARF_NS_PER_S / 100) * (int64_t)test_core_config.interactive_percent;
    cr_assert_eq(got_ns[0], all_ns / 5);
    cr_assert_eq(got_ns[1], all_ns / 5 * 4);
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(test_core_reap(&clients[i]).result, WHARF_OK);
        cr_assert_eq(test_core_reap(&clients[i]).result, WHARF_OK);
        test_core_client_deinit(&clients[i]);
    }
    test_core_stop();
}

/* ---- what is not queued -------------------------------------------------------------------- */

static struct wharf_submission no_op(void)
{
    return (struct wharf_submission){.opcode = WHARF_OP_NOOP};
}

static struct wharf_submission refused(void)
{
    struct wharf_submission s = job_of(0);

    s.codec = 999;
    return s;
}

static struct wharf_submission cancel(void)
{
    return (struct wharf_submission){.opcode = WHARF_OP_CANCEL, .src_offset = 12345};
}

static void flood(struct test_core_client *client, struct wharf_submission (*of)(void))
{
    enum { BURSTS = 200 };

    for (unsigned burst = 0; burst < BURSTS; burst++) {
        for (unsigned i = 0; i < N_ENTRIES / 2; i++) {
            struct wharf_submission s = of();
            wharf_ring_submit(&client->ring, &s);
        }
        test_core_publish(client);
        for (unsigned i = 0; i < N_ENTRIES / 2; i++)
            test_core_reap(client);
    }
}

/*
 * Queues jobs of both clients, the first one's first, and picks all of them.  Returns how many of
 * the second one's came before the first of the first one's.
 */
static unsigned n_before(struct test_core_client clients[2])
{
    enum { N = 8 };
    struct wharf_piece pieces[2 * N];
    unsigned n = 0, n_second = 0, answer = UINT32_MAX;

    wharf_core_enter(&test_core);
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned j = 0; j < N; j++) {
            struct wharf_submission s = job_of(j);
            wharf_ring_submit(&clients[i].ring, &s);
        }
        take_in(&clients[i]);
    }
    for (; n < 2 * N && wharf_core_next(&test_core, WHARF_NEVER, &pieces[n]); n++) {
        if (pieces[n].job->session == clients[1].session)
            n_second++;
        else if (answer == UINT32_MAX)
            answer = n_second;
    }
    cr_assert_eq(n, 2 * N);
    while (n > 0)
        wharf_core_put_back(&test_core, &pieces[--n]);
    wharf_core_leave(&test_core);
    for (unsigned i = 0; i < 2 * N; i++)
        cr_assert_eq(test_core_reap(&clients[i / N]).result, WHARF_OK);
    return answer;
}

/* In a new daemon, where nobody has had anything yet. */
static unsigned n_before_after(struct wharf_submission (*of)(void))
{
    struct test_core_client clients[2];

    start(1);
    client_init(&clients[0], 0, "uid:1");
    client_init(&clients[1], 1, "uid:2");
    if (of)
        flood(&clients[0], of);
    unsigned n = n_before(clients);
    test_core_client_deinit(&clients[0]);
    test_core_client_deinit(&clients[1]);
    test_core_stop();
    return n;
}

/* It owes more then than the second one's jobs take. */
static void check_is_charged(struct wharf_submission (*of)(void))
{
    cr_assert_eq(n_before_after(NULL), 0);
    cr_assert_eq(n_before_after(of), 8);
}

/* Once they cost nothing: who sent them in floods had all of its share beside. */
Test(wharfd_charge, no_ops_are_charged)
{
    check_is_charged(no_op);
}

Test(wharfd_charge, refused_jobs_are_charged)
{
    check_is_charged(refused);
}

Test(wharfd_charge, cancels_are_charged)
{
    check_is_charged(cancel);
}

/* Queues a job of the first one and many of the second, of which each is estimated to take most of
 * a slice, and picks until the first one's comes.  Returns what was picked of the second one
 * before, in time. */
static uint64_t time_before(struct test_core_client clients[2])
{
    enum { N = N_ENTRIES / 2, CAPACITY = 256 << 10 };
    struct wharf_piece pieces[1 + N];
    unsigned n = 0;
    uint64_t before_ns = 0;

    wharf_core_enter(&test_core);
    for (unsigned i = 0; i <= N; i++) {
        struct wharf_submission s = job_of(0);
        s.dst_nbytes = CAPACITY;
        wharf_ring_submit(&clients[i > 0].ring, &s);
    }
    for (unsigned i = 0; i < 2; i++)
        take_in(&clients[i]);
    for (;; before_ns += pieces[n++].charged_ns) {
        cr_assert(wharf_core_next(&test_core, WHARF_NEVER, &pieces[n]));
        if (pieces[n].job->session == clients[0].session)
            break;
    }
    n++;
    while (n > 0)
        wharf_core_put_back(&test_core, &pieces[--n]);
    wharf_core_leave(&test_core);
    for (unsigned i = 0; i <= N; i++)
        cr_assert_eq(test_core_reap(&clients[i > 0]).result, WHARF_OK);
    return before_ns;
}

/* What nobody else wanted is not held against a tenant for long: four slices, and one more until
 * its turn comes. */
Test(wharfd_charge, debt_for_what_was_not_queued_ends)
{
    struct test_core_client clients[2];

    start(1);
    client_init(&clients[0], 0, "uid:1");
    client_init(&clients[1], 1, "uid:2");
    for (unsigned i = 0; i < 20; i++)
        flood(&clients[0], no_op);
    int64_t debt_ns = -TEST_CORE_LOCKED(
        clients[0].session->tenant->sched[WHARF_POOL_CPU].lane[WHARF_LANE_NORMAL].turn.deficit_ns);
    cr_assert_gt(debt_ns, 0);
    cr_assert_leq(debt_ns, 5 * (int64_t)test_core_config.slice_ns);
    uint64_t before_ns = time_before(clients);
    cr_assert_gt(before_ns, 0);
    cr_assert_leq(before_ns, 6 * test_core_config.slice_ns);
    test_core_client_deinit(&clients[0]);
    test_core_client_deinit(&clients[1]);
    test_core_stop();
}

static void wait_until_running(const struct test_core_client *client)
{
    cr_assert(TEST_WAIT(TEST_CORE_LOCKED(client->session->n_pieces) > 0));
}

/* While there are jobs for everybody: how many of a ring full of those are taken in some looks. */
static uint32_t n_taken_beside(struct wharf_submission (*of)(void), unsigned n_looks,
                               uint32_t result)
{
    struct test_core_client slow, clients[2];

    start(1);
    test_core_client_init(&slow, 2, "uid:3", N_ENTRIES, 64 * MiB);
    client_init(&clients[0], 0, "uid:1");
    client_init(&clients[1], 1, "uid:2");
    test_core_make_slower(&slow);
    struct wharf_submission s = test_core_put_slow(&slow, 7, 0, 50 * MiB);
    test_core_submit(&slow, &s);
    wait_until_running(&slow);
    wharf_core_enter(&test_core);
    s = job_of(0);
    wharf_ring_submit(&clients[1].ring, &s);
    take_in(&clients[1]);
    uint32_t n_taken = clients[0].session->ring.sq_head;
    for (unsigned i = 0; i < N_ENTRIES; i++) {
        s = of();
        wharf_ring_submit(&clients[0].ring, &s);
    }
    take_in(&clients[0]);
    usleep(1000); /* deadlines of a microsecond have passed */
    for (unsigned i = 1; i < n_looks; i++)
        wharf_core_poll_rings(&test_core);
    n_taken = clients[0].session->ring.sq_head - n_taken;
    wharf_core_leave(&test_core);
    test_core_client_deinit(&slow);
    for (unsigned i = 0; i < N_ENTRIES; i++)
        cr_assert_eq(test_core_reap(&clients[0]).result, result);
    cr_assert_eq(test_core_reap(&clients[1]).result, WHARF_OK);
    test_core_client_deinit(&clients[0]);
    test_core_client_deinit(&clients[1]);
    test_core_stop();
    return n_taken;
}

/* One look at the rings is not spent on them. */
Test(wharfd_charge, no_ops_have_a_small_part_of_a_worker)
{
    cr_assert_leq(n_taken_beside(no_op, 1, WHARF_OK), 4);
}

static struct wharf_submission late(void)
{
    struct wharf_submission s = job_of(1);

    s.timeout_us = 1;
    return s;
}

/* Once who sent jobs with deadlines that pass at once had all looks for them, and paid for nothing:
 * the first look takes 32, and in the next ones that is paid for. */
Test(wharfd_charge, jobs_that_end_unbegun_have_a_small_part_of_a_worker)
{
    cr_assert_leq(n_taken_beside(late, 4, WHARF_DEADLINE), 32);
}

/* A client rang, and that was spent on what it owed: its jobs were not taken, nor was its ring
 * looked at again until it rang for more, which it does not while it waits for them. */
Test(wharfd_charge, who_owes_is_looked_at_again, .timeout = 600)
{
    struct test_core_client busy, owing;

    start(1);
    client_init(&busy, 1, "uid:1");
    client_init(&owing, 2, "uid:2");
    for (unsigned i = 0; i < 8; i++) {
        const struct wharf_submission job = test_core_put_long(&busy, i);
        test_core_submit(&busy, &job);
    }
    cr_assert(TEST_WAIT(TEST_CORE_LOCKED(wharf_core_has_plenty(&test_core))));
    const struct wharf_submission s = job_of(0);
    wharf_core_enter(&test_core);
    cr_assert(wharf_core_has_plenty(&test_core));
    owing.session->n_owed = 1000;
    wharf_ring_submit(&owing.ring, &s);
    wharf_ring_publish_submissions(&owing.ring);
    cr_assert(wharf_core_doorbell(&test_core, owing.session, 1));
    cr_assert_eq(owing.session->ring.sq_head, 0);
    wharf_core_leave(&test_core);
    cr_assert(TEST_WAIT(test_core_has_completion(&owing)));
    test_core_client_deinit(&owing);
    test_core_client_deinit(&busy);
    test_core_stop();
}
