/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients with interactive jobs while all workers are busy: they need not ring, and who is woken
 * gets a processor.
 */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/core/activity.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/intake.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_core.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_wait.h"

#define MiB ((uint64_t)1 << 20)

enum { PLAIN = 4096 };

/* The C library's has nothing to do for the rest of this program. */
static unsigned n_yields;

int sched_yield(void)
{
    __atomic_fetch_add(&n_yields, 1, __ATOMIC_SEQ_CST);
    return 0;
}

static size_t packed_nbytes;

static struct wharf_submission job_of(uint8_t job_class)
{
    struct wharf_submission s = test_core_decode_of(1, 0, packed_nbytes, MiB / 2, PLAIN);

    s.job_class = job_class;
    return s;
}

/* One worker, which has a piece that takes many seconds, a job behind it, which is not that
 * tenant's turn meanwhile, and a client of another tenant. */
static void set_up(struct test_core_client *slow, struct test_core_client *client)
{
    uint8_t *plain = test_data_new(test_data_find("text"), 1, PLAIN);

    wharf_config_init(&test_core_config);
    test_core_config.quota.max_job_nbytes = 64 * MiB;
    test_core_start(1);
    test_core_client_init(slow, 1, "uid:1", 8, 64 * MiB);
    test_core_client_init(client, 2, "uid:2", 8, MiB);
    test_core_make_slower(slow);
    packed_nbytes = test_core_put_chunk(client, 0, plain, PLAIN);
    free(plain);
    struct wharf_submission s = test_core_put_slow(slow, 7, 0, 50 * MiB);
    test_core_submit(slow, &s);
    cr_assert(TEST_WAIT(TEST_CORE_LOCKED(slow->session->n_pieces) > 0));
    test_core_submit(slow, &s);
}

static void tear_down(struct test_core_client *slow, struct test_core_client *client)
{
    test_core_client_deinit(slow);
    test_core_client_deinit(client);
    test_core_stop();
}

/* Whether the client is watched when somebody looks after it has been quiet for so long. */
static bool is_watched_after(struct test_core_client *client, uint64_t quiet_ns)
{
    wharf_core_enter(&test_core);
    wharf_core_watch(&test_core, client->session, wharf_now_ns() - quiet_ns);
    client->session->activity.watch_ns = 0;
    wharf_core_poll_rings(&test_core);
    bool is_watched = client->session->activity.is_watched;
    /* What it does is no work that keeps others from having leases. */
    cr_assert_eq(client->session->activity.lingers, is_watched);
    cr_assert_eq(test_core.watching.n_lingering, is_watched);
    wharf_core_leave(&test_core);
    return is_watched;
}

static void do_job(struct test_core_client *client, uint8_t job_class)
{
    struct wharf_submission s = job_of(job_class);

    test_core_submit(client, &s);
    cr_assert_eq(test_core_reap(client).result, WHARF_OK);
}

/* Whoever had to ring waited for the loop thread to get a processor, all of which were busy. */
Test(wharfd_interactive, client_need_not_ring_while_all_workers_are_busy)
{
    struct test_core_client slow, client;
    unsigned n_tries = 0;

    set_up(&slow, &client);
    /* This thread can be kept from its processor for longer than the client is watched. */
    do {
        cr_assert_lt(++n_tries, 1000);
        do_job(&client, WHARF_CLASS_INTERACTIVE);
    } while (!is_watched_after(&client, WHARF_NS_PER_MS));
    /* Not for ever. */
    cr_assert_not(is_watched_after(&client, WHARF_NS_PER_S));
    do_job(&client, WHARF_CLASS_NORMAL);
    cr_assert_not(is_watched_after(&client, WHARF_NS_PER_MS));
    tear_down(&slow, &client);
}

/* Once who had been woken on the processor of a worker waited for milliseconds. */
Test(wharfd_interactive, workers_give_way_to_who_has_been_woken)
{
    struct test_core_client slow, client;
    unsigned n_tries = 0;

    set_up(&slow, &client);
    for (unsigned i = 0; i < 5; i++)
        do_job(&client, WHARF_CLASS_NORMAL);
    cr_assert_eq(__atomic_load_n(&test_core.n_urgent_wakes, __ATOMIC_SEQ_CST), 0);
    __atomic_store_n(&n_yields, 0, __ATOMIC_SEQ_CST);
    /* It may not be asleep yet when the job is done: then it need not be woken. */
    while (__atomic_load_n(&test_core.n_urgent_wakes, __ATOMIC_SEQ_CST) == 0) {
        cr_assert_lt(++n_tries, 10000);
        do_job(&client, WHARF_CLASS_INTERACTIVE);
    }
    /* Workers that have nothing to do yield too: in the middle of the piece, not after it. */
    for (;;) {
        unsigned n = __atomic_load_n(&n_yields, __ATOMIC_SEQ_CST);
        cr_assert_gt(TEST_CORE_LOCKED(slow.session->n_in_flight), 0);
        if (n > 0)
            break;
        usleep(100);
    }
    tear_down(&slow, &client);
}
