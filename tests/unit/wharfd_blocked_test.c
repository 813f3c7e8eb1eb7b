/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a client that keeps whoever touches it waiting for as long as the client likes: its own
 * jobs wait, nobody else's.  Where the kernel would wait for a hole that is punched, a handler of
 * the fault waits for the test.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/control/model_requests.h"
#include "daemon/core/core.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/session_end.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_core.h"
#include "tests/lib/test_data.h"

#define MiB ((uint64_t)1 << 20)

/* Outputs are a page each. */
enum { PLAIN = 4096, OUTPUT = 1 << 20, N_JOBS = 8 };

/* Of the hostile tenant there are two, so that two workers have jobs of it. */
static struct test_core_client hostile[2], innocent;
static uint8_t *plain;
static size_t packed_nbytes;

/* ---- slow memory --------------------------------------------------------------------------- */

static uint32_t is_released;
static uint32_t n_waiting; /* threads */

static void protect(int protection)
{
    for (unsigned i = 0; i < 2; i++) {
        uint8_t *arena = hostile[i].session->regions[0].segment.address;
        if (mprotect(arena + OUTPUT, N_JOBS * PLAIN, protection) < 0)
            abort();
    }
}

static void on_fault(int number)
{
    (void)number;
    __atomic_add_fetch(&n_waiting, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&is_released, __ATOMIC_SEQ_CST))
        usleep(1000);
    __atomic_sub_fetch(&n_waiting, 1, __ATOMIC_SEQ_CST);
    protect(PROT_READ | PROT_WRITE);
}

static void slow_down(void)
{
    __atomic_store_n(&is_released, 0, __ATOMIC_SEQ_CST);
    protect(PROT_NONE);
}

static void release(void)
{
    __atomic_store_n(&is_released, 1, __ATOMIC_SEQ_CST);
}

static uint32_t count_waiting(void)
{
    return __atomic_load_n(&n_waiting, __ATOMIC_SEQ_CST);
}

static void wait_until_some_are_blocked(void)
{
    while (TEST_CORE_LOCKED(test_core.workers.n_blocked) == 0)
        usleep(1000);
}

static void wait_until_none_is_blocked(void)
{
    while (TEST_CORE_LOCKED(test_core.workers.n_blocked) > 0)
        usleep(1000);
}

/* ---- the scene ----------------------------------------------------------------------------- */

static void set_up_with(uint32_t n_workers)
{
    struct sigaction action = {.sa_handler = on_fault};

    sigaction(SIGSEGV, &action, NULL);
    wharf_config_init(&test_core_config);
    test_core_start(n_workers);
    test_core_client_init(&hostile[0], 1, "uid:1", 2 * N_JOBS, 2 * MiB);
    test_core_client_init(&hostile[1], 2, "uid:1", 2 * N_JOBS, 2 * MiB);
    test_core_client_init(&innocent, 3, "uid:2", 8, 2 * MiB);
    plain = test_data_new(test_data_find("text"), 1, PLAIN);
    packed_nbytes = test_core_put_chunk(&hostile[0], 0, plain, PLAIN);
    test_core_put_chunk(&hostile[1], 0, plain, PLAIN);
    test_core_put_chunk(&innocent, 0, plain, PLAIN);
}

static void set_up(void)
{
    set_up_with(2);
}

static void tear_down(void)
{
    test_core_client_deinit(&hostile[0]);
    test_core_client_deinit(&hostile[1]);
    test_core_client_deinit(&innocent);
    test_core_stop();
    free(plain);
}

static void submit_to(struct test_core_client *client)
{
    for (unsigned i = 0; i < N_JOBS; i++) {
        struct wharf_submission s =
            test_core_decode_of(i, 0, packed_nbytes, OUTPUT + i * PLAIN, PLAIN);
        wharf_ring_submit(&client->ring, &s);
    }
    test_core_publish(client);
}

static void reap_from(struct test_core_client *client)
{
    for (unsigned i = 0; i < N_JOBS; i++)
        cr_assert_eq(test_core_reap(client).result, WHARF_OK);
    for (unsigned i = 0; i < N_JOBS; i++)
        cr_assert_arr_eq(client->arena + OUTPUT + i * PLAIN, plain, PLAIN);
}

static void submit_hostile(void)
{
    submit_to(&hostile[0]);
    submit_to(&hostile[1]);
}

static void reap_hostile(void)
{
    reap_from(&hostile[0]);
    reap_from(&hostile[1]);
}

static void run_innocent(unsigned n)
{
    struct wharf_submission s = test_core_decode_of(7, 0, packed_nbytes, OUTPUT, PLAIN);

    for (unsigned i = 0; i < n; i++) {
        memset(innocent.arena + OUTPUT, 0, PLAIN);
        test_core_submit(&innocent, &s);
        cr_assert_eq(test_core_reap(&innocent).result, WHARF_OK);
        cr_assert_arr_eq(innocent.arena + OUTPUT, plain, PLAIN);
    }
}

/* Until so many workers wait.  When the first is found to be blocked before another one has begun,
 * it stays the only one. */
static void have_waiting(uint32_t n)
{
    for (;;) {
        slow_down();
        submit_hostile();
        wait_until_some_are_blocked();
        if (count_waiting() == n)
            return;
        release();
        reap_hostile();
        wait_until_none_is_blocked();
    }
}

/* All workers waited, and everybody's jobs with them. */
Test(wharfd_blocked, others_are_served_while_all_workers_wait, .init = set_up, .fini = tear_down,
     .timeout = 600)
{
    have_waiting(2);
    run_innocent(20);
    /* No spare worker has followed the workers. */
    cr_assert_eq(count_waiting(), 2);
    release();
    reap_hostile();
    wait_until_none_is_blocked();
    run_innocent(5);
    /* Whoever stood in has gone. */
    while (TEST_CORE_LOCKED(test_core.workers.n_workers) != 2)
        usleep(1000);
    while (TEST_CORE_LOCKED(hostile[0].session->tenant->is_suspended))
        usleep(1000);
}

/* Submitted before and while they wait, by a client that does not ring for each. */
Test(wharfd_blocked, jobs_that_were_queued_before_are_begun, .init = set_up, .fini = tear_down,
     .timeout = 600)
{
    for (unsigned i = 0; i < 5; i++) {
        slow_down();
        submit_hostile();
        run_innocent(3);
        release();
        reap_hostile();
    }
}

/* The tenant's turn comes again when others were served for as long. */
Test(wharfd_blocked, tenant_is_suspended_for_as_long_as_workers_waited, .init = set_up,
     .fini = tear_down, .timeout = 600)
{
    slow_down();
    submit_hostile();
    wait_until_some_are_blocked();
    uint64_t since_ns = TEST_CORE_LOCKED(hostile[0].session->tenant->blocked_since_ns);
    usleep(50000);
    release();
    wait_until_none_is_blocked();
    const struct wharf_tenant *tenant = hostile[0].session->tenant;
    if (TEST_CORE_LOCKED(tenant->is_suspended))
        cr_assert_geq(TEST_CORE_LOCKED(tenant->suspended_until_ns), since_ns + 100000000);
    reap_hostile();
}

static bool is_leased(void)
{
    return TEST_CORE_LOCKED(hostile[0].session->lease != NULL);
}

/* Models were entered and removed while the worker had the session, which could not be had to
 * itself by any worker afterwards, or by one while its regions were changed. */
static void expect_models_stay(struct wharf_session *session)
{
    struct wharf_model_made made = {.order.number = WHARF_FIRST_MODEL};
    struct wharf_segment segment;
    struct wharf_use use;

    cr_assert_eq(wharf_model_enter(&test_core, session, &made), -ETIME);
    cr_assert_eq(wharf_model_remove(&test_core, session, WHARF_FIRST_MODEL, &segment, &use),
                 -ETIME);
    cr_assert(!session->models[0].is_there);
    cr_assert_eq(TEST_CORE_LOCKED(session->n_recalls), 0);
}

/* The loop thread waited until the worker let go of the session: nobody was heard. */
Test(wharfd_blocked, session_whose_worker_waits_is_not_waited_for, .fini = tear_down,
     .timeout = 600)
{
    set_up_with(1);
    for (;;) {
        slow_down();
        submit_to(&hostile[0]);
        wait_until_some_are_blocked();
        if (is_leased())
            break;
        release();
        reap_from(&hostile[0]);
        wait_until_none_is_blocked();
    }
    wharf_core_enter(&test_core);
    cr_assert(!wharf_core_recall(&test_core, hostile[0].session));
    wharf_core_recall_all(&test_core, NULL);
    cr_assert(!wharf_core_drain_session(&test_core, hostile[0].session));
    wharf_core_leave(&test_core);
    expect_models_stay(hostile[0].session);
    cr_assert(is_leased());
    run_innocent(3);
    release();
    reap_from(&hostile[0]);
    wharf_core_enter(&test_core);
    cr_assert(wharf_core_recall(&test_core, hostile[0].session));
    wharf_core_let_go(hostile[0].session);
    wharf_core_leave(&test_core);
}

/* What it kept workers waiting for was taken for what other programs had of the processor. */
Test(wharfd_blocked, tenant_pays_for_the_time, .init = set_up, .fini = tear_down, .timeout = 600)
{
    uint64_t busy_ns;

    slow_down();
    submit_to(&hostile[0]);
    wait_until_some_are_blocked();
    usleep(100000);
    release();
    reap_from(&hostile[0]);
    wait_until_none_is_blocked();
    wharf_core_enter(&test_core);
    wharf_core_recall_all(&test_core, NULL);
    busy_ns = hostile[0].session->tenant->stats.engines[WHARF_ENGINE_CPU].busy_ns;
    wharf_core_leave(&test_core);
    cr_assert_geq(busy_ns, 100000000);
}
