/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budget of pinned memory with a worker that plays a GPU: a tenant whose memory takes all of
 * it, and whose jobs never end, makes room for others, and nobody's job is lost.
 */
#include <criterion/criterion.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/placement/gpu_memory.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_small.h"

#define MiB ((uint64_t)1 << 20)

/* A budget of two arenas. */
static void set_up(void)
{
    test_core_config_simt();
    test_core_config.gpu_memory_nbytes = 2 * MiB;
    test_core_start(1);
}

/* A client with so many jobs in flight all the time. */
enum { N_IN_FLIGHT = 4 };
struct flood {
    struct test_core_client client;
    unsigned n_done, n_refused;
};

static void flood_init(struct flood *flood, uint64_t id, const char *tenant)
{
    *flood = (struct flood){.n_done = 0};
    test_core_client_init(&flood->client, id, tenant, 16, MiB);
    for (uint64_t i = 0; i < N_IN_FLIGHT; i++)
        test_small_submit(&flood->client, i);
}

/* The next job is done, or was refused for want of room; then comes another one. */
static void go_on(struct flood *flood)
{
    struct wharf_completion completion = test_core_reap(&flood->client);

    if (completion.result == WHARF_NO_MEMORY) {
        flood->n_refused++;
        usleep(1000);
    } else {
        cr_assert_eq(completion.result, WHARF_OK, "result %u", completion.result);
        cr_assert_eq(completion.engine, WHARF_ENGINE_SIMT);
        cr_assert_arr_eq(flood->client.arena + TEST_SMALL_OUT +
                             completion.user_data * TEST_SMALL_STEP,
                         test_small_plain(), TEST_SMALL_NBYTES);
        flood->n_done++;
    }
    test_small_submit(&flood->client, completion.user_data);
}

static void flood_deinit(struct flood *flood)
{
    for (unsigned i = 0; i < N_IN_FLIGHT; i++)
        test_core_reap(&flood->client);
    test_core_client_deinit(&flood->client);
}

Test(wharfd_room, flood_makes_room_for_another_tenant, .timeout = 600)
{
    struct flood floods[2], other;

    set_up();
    test_core_wait_until_up();
    uint64_t pinned_ns = wharf_now_ns();
    for (unsigned i = 0; i < 2; i++)
        flood_init(&floods[i], 1 + i, "uid:1");
    for (unsigned n = 0; n < 100; n++)
        go_on(&floods[n % 2]);
    cr_assert_eq(floods[0].n_refused + floods[1].n_refused, 0);
    cr_assert_eq(TEST_CORE_LOCKED(test_core.residency.pinned_nbytes), 2 * MiB);
    /* The other tenant's first jobs wait until there is room for it, and all go on. */
    flood_init(&other, 3, "uid:2");
    while (other.n_done < 50) {
        go_on(&floods[0]);
        go_on(&floods[1]);
        while (test_core_has_completion(&other.client))
            go_on(&other);
    }
    cr_assert_eq(other.n_refused, 0);
    /* But not before the flood has had its memory for a while. */
    cr_assert_geq(wharf_now_ns() - pinned_ns, WHARF_NS_PER_S);
    const struct wharf_tenant *tenants[] = {floods[0].client.session->tenant,
                                            other.client.session->tenant};
    cr_assert_eq(TEST_CORE_LOCKED(tenants[0]->stats.n_evicted), 1);
    cr_assert_eq(TEST_CORE_LOCKED(tenants[1]->stats.n_evicted), 0);
    cr_assert_eq(TEST_CORE_LOCKED(tenants[0]->gpu_pins.pinned_nbytes), MiB);
    cr_assert_eq(TEST_CORE_LOCKED(tenants[1]->gpu_pins.pinned_nbytes), MiB);
    /* When it has gone all is as before. */
    flood_deinit(&other);
    unsigned n_done[2] = {floods[0].n_done, floods[1].n_done};
    while (floods[0].n_done < n_done[0] + 20 || floods[1].n_done < n_done[1] + 20) {
        go_on(&floods[0]);
        go_on(&floods[1]);
    }
    cr_assert_eq(TEST_CORE_LOCKED(test_core.residency.room.leaving_nbytes), 0);
    cr_assert_eq(TEST_CORE_LOCKED(test_core.residency.room.promised_nbytes), 0);
    flood_deinit(&floods[0]);
    flood_deinit(&floods[1]);
    test_core_stop();
}
