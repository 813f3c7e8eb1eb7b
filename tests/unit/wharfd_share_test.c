/* SPDX-License-Identifier: Apache-2.0 */
/* Who pays for what: interactive time is a part of a tenant's share. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "daemon/clock.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_front.h"

#define MiB ((uint64_t)1 << 20)

enum { N_ENTRIES = 64, PLAIN = 4096, OUTPUTS = 65536 };

static size_t packed_nbytes;

static void start(uint32_t n_workers)
{
    wharf_config_init(&test_front_config);
    test_front_config.quota.max_job_nbytes = 64 * MiB;
    test_front_start(n_workers);
}

static void client_init(struct test_front_client *client, uint64_t id, const char *tenant_name)
{
    uint8_t *plain = test_data_new(test_data_find("text"), 1, PLAIN);

    test_front_client_init(client, id, tenant_name, N_ENTRIES, 64 * MiB);
    packed_nbytes = test_front_put_chunk(client, 0, plain, PLAIN);
    free(plain);
}

static struct wharf_submission job_of(unsigned i)
{
    return test_front_decode_of(i, 0, packed_nbytes, OUTPUTS + i * PLAIN, PLAIN);
}

/* Under the front lock, so that no worker gets at them: takes what is published. */
static void take_in(struct test_front_client *client)
{
    uint32_t n_before = client->session->ring.sq_head;

    wharf_ring_publish_submissions(&client->ring);
    wharf_front_rung(&test_front, client->session, 1);
    while (client->session->ring.sq_head == n_before)
        wharf_front_look(&test_front);
}

/* ---- interactive time ---------------------------------------------------------------------- */

/* Once all tenants had the same interactive time, though one had four times the share of another.
 */
Test(wharfd_share, interactive_time_is_by_weight)
{
    static const char *const names[] = {"uid:1", "uid:2"};
    static const uint64_t weights[] = {100, 400};
    struct test_front_client clients[2];
    int64_t got_ns[2];

    start(1);
    for (unsigned i = 0; i < 2; i++) {
        client_init(&clients[i], i, names[i]);
        TEST_FRONT_LOCKED(clients[i].session->tenant->quota.weight = weights[i]);
    }
    wharf_front_enter(&test_front);
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
    wharf_front_leave(&test_front);
    int64_t all_ns =
        (int64_t)(WHARF_NS_PER_S / 100) * (int64_t)test_front_config.interactive_percent;
    cr_assert_eq(got_ns[0], all_ns / 5);
    cr_assert_eq(got_ns[1], all_ns / 5 * 4);
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(test_front_reap(&clients[i]).result, WHARF_OK);
        cr_assert_eq(test_front_reap(&clients[i]).result, WHARF_OK);
        test_front_client_deinit(&clients[i]);
    }
    test_front_stop();
}
