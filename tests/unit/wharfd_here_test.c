/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks that the thread which hears the doorbell decodes itself.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/cpu/cpu_here.h"
#include "daemon/cpu/cpu_run.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/intake.h"
#include "daemon/dispatch/session_end.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_core.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_wait.h"

#define MiB ((uint64_t)1 << 20)

enum { PLAIN = 4096 };

static void set_up(struct test_core_client *client)
{
    wharf_config_init(&test_core_config);
    test_core_start(1);
    test_core_client_init(client, 1, "uid:1", 8, MiB);
}

static void wait_until_all_sleep(void)
{
    cr_assert(
        TEST_WAIT(TEST_CORE_LOCKED(test_core.workers.n_sleeping == test_core.workers.n_workers)));
}

/* What the loop thread does when the doorbell rings. */
static void hear(struct test_core_client *client, struct wharf_cpu_here *here)
{
    wharf_core_enter(&test_core);
    wharf_core_doorbell(&test_core, client->session, 1);
    wharf_cpu_here_run(&test_core, here);
    wharf_core_leave(&test_core);
}

Test(wharfd_here, lone_chunk_is_decoded_where_the_doorbell_is_heard)
{
    enum { N = 20, MOST = 1000 };
    struct test_core_client client;
    struct wharf_cpu_here here = {.rest_until_ns = 0};
    struct wharf_completion completion;
    unsigned n_here = 0, n = 0;

    set_up(&client);
    uint8_t *plain = test_data_new(test_data_find("text"), 1, PLAIN);
    size_t nbytes = test_core_put_chunk(&client, 0, plain, PLAIN);
    /* A worker may be awake now and then, and take it. */
    for (; n < N || (n_here == 0 && n < MOST); n++) {
        struct wharf_submission s = test_core_decode_of(n, 0, nbytes, MiB / 2, PLAIN);
        memset(client.arena + MiB / 2, 0, PLAIN);
        /* Nobody watches the ring then. */
        wait_until_all_sleep();
        here.rest_until_ns = 0;
        wharf_ring_submit(&client.ring, &s);
        wharf_ring_publish_submissions(&client.ring);
        hear(&client, &here);
        n_here += here.rest_until_ns > 0;
        completion = test_core_reap(&client);
        cr_assert_eq(completion.result, WHARF_OK);
        cr_assert_arr_eq(client.arena + MiB / 2, plain, PLAIN);
    }
    cr_assert_gt(n_here, 0);
    wharf_core_enter(&test_core);
    wharf_core_recall_all(&test_core, NULL);
    wharf_core_leave(&test_core);
    const struct wharf_engine_stats *cpu = &client.session->tenant->stats.engines[WHARF_ENGINE_CPU];
    cr_assert_eq(TEST_CORE_LOCKED(cpu->n_jobs[WHARF_OK]), n);
    test_core_client_deinit(&client);
    wharf_cpu_buffer_deinit(&here.buffer);
    test_core_stop();
    free(plain);
}

/* A source that takes a hundred times what it was estimated to.  A worker that comes by first takes
 * it at once. */
Test(wharfd_here, chunk_that_was_estimated_wrong_is_left_to_a_worker)
{
    struct test_core_client client;
    struct wharf_cpu_here here = {.rest_until_ns = 0};

    set_up(&client);
    const struct wharf_estimates before = TEST_CORE_LOCKED(client.session->tenant->estimates);
    struct wharf_submission s = test_core_put_slow(&client, 7, 0, 128 * 1024);
    for (unsigned i = 0; i < 100 && here.rest_until_ns == 0; i++) {
        wait_until_all_sleep();
        wharf_ring_submit(&client.ring, &s);
        wharf_ring_publish_submissions(&client.ring);
        hear(&client, &here);
        cr_assert_eq(test_core_reap(&client).user_data, 7);
        /* The price that was learnt is forgotten. */
        TEST_CORE_LOCKED(client.session->tenant->estimates = before);
    }
    cr_assert_gt(here.rest_until_ns, 0);
    test_core_client_deinit(&client);
    wharf_cpu_buffer_deinit(&here.buffer);
    test_core_stop();
}

/* ---- memory that keeps who touches it waiting ---------------------------------------------- */

static uint8_t *absent; /* its page comes when it is touched, after a while */
static unsigned n_touched;

static void on_absent(int number)
{
    (void)number;
    n_touched++;
    /* Longer than a decoder may take between two questions. */
    usleep(20000);
    mprotect(absent, PLAIN, PROT_READ | PROT_WRITE);
}

static void run_lone(struct test_core_client *client, struct wharf_cpu_here *here,
                     struct wharf_submission *submission)
{
    wait_until_all_sleep();
    here->rest_until_ns = 0;
    wharf_ring_submit(&client->ring, submission);
    wharf_ring_publish_submissions(&client->ring);
    hear(client, here);
    cr_assert_eq(test_core_reap(client).result, WHARF_OK);
}

Test(wharfd_here, tenant_whose_memory_keeps_the_thread_waiting_is_left_to_workers)
{
    struct sigaction action = {.sa_handler = on_absent};
    struct test_core_client client, other;
    struct wharf_cpu_here here = {.rest_until_ns = 0};
    uint64_t barred_ns = 0;

    set_up(&client);
    test_core_client_init(&other, 2, "uid:2", 8, MiB);
    uint8_t *plain = test_data_new(test_data_find("text"), 1, PLAIN);
    size_t nbytes = test_core_put_chunk(&client, 0, plain, PLAIN);
    test_core_put_chunk(&other, 0, plain, PLAIN);
    struct wharf_submission s = test_core_decode_of(1, 0, nbytes, MiB / 2, PLAIN);
    /* The daemon's mapping of it. */
    absent = (uint8_t *)client.session->regions[0].segment.address + MiB / 2;
    sigaction(SIGSEGV, &action, NULL);
    const struct wharf_tenant *tenant = client.session->tenant;
    /* A worker may be awake now and then, and take it. */
    for (unsigned i = 0; i < 200 && barred_ns == 0; i++) {
        mprotect(absent, PLAIN, PROT_NONE);
        run_lone(&client, &here, &s);
        cr_assert_eq(n_touched, i + 1);
        barred_ns = TEST_CORE_LOCKED(tenant->not_here_until_ns);
    }
    cr_assert_geq(barred_ns, here.rest_until_ns + 1000 * (uint64_t)WHARF_NS_PER_MS);
    /* Now its chunks are not decoded here, and others' are. */
    run_lone(&client, &here, &s);
    cr_assert_eq(here.rest_until_ns, 0);
    for (unsigned i = 0; i < 200 && here.rest_until_ns == 0; i++)
        run_lone(&other, &here, &s);
    cr_assert_gt(here.rest_until_ns, 0);
    test_core_client_deinit(&client);
    test_core_client_deinit(&other);
    wharf_cpu_buffer_deinit(&here.buffer);
    test_core_stop();
    free(plain);
}
