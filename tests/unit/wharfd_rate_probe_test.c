/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which policy of placing passes most: found by trying, at little cost, and found anew when it
 * changes. A clock of the test's own, and chunks that come back at the rate of the policy that is
 * taken.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/core/rate_probe.h"
#include "tests/lib/test_random.h"

#define CHUNK_NBYTES 65536u
#define MS ((uint64_t)WHARF_NS_PER_MS)

static struct wharf_rate_probe probe;
static uint64_t now_ns = 1000 * MS;
/* What the CPU alone could pass, KiB a second. */
static uint64_t cpu_rate = UINT32_MAX;
/* What each policy has had, of time. */
static uint64_t had_ns[WHARF_PROBE_N_POLICIES];

/* For so long, chunks come back at so many MB a second by each policy; n_present are there. */
static void flood(uint64_t for_ns, const uint32_t *mbps, unsigned n_present, bool may_try)
{
    uint64_t until_ns = now_ns + for_ns;

    memset(had_ns, 0, sizeof(had_ns));
    while (now_ns < until_ns) {
        uint8_t policy = probe.policy;
        uint64_t took_ns = (uint64_t)CHUNK_NBYTES * 1000 / mbps[policy];
        now_ns += took_ns;
        had_ns[policy] += took_ns;
        wharf_rate_probe_count(&probe, now_ns, 1, CHUNK_NBYTES, n_present * took_ns, may_try,
                               cpu_rate);
    }
}

/* A policy has had nearly all of a flood, by what passed and so by time. */
static void expect_mostly(enum wharf_policy policy, double part)
{
    uint64_t sum_ns = had_ns[0] + had_ns[1] + had_ns[2];

    cr_assert_geq((double)had_ns[policy], part * (double)sum_ns, "%u: %lu of %lu us", policy,
                  (unsigned long)had_ns[policy] / 1000, (unsigned long)sum_ns / 1000);
}

Test(wharfd_rate_probe, best_policy_is_found_and_kept)
{
    static const uint32_t rates[WHARF_PROBE_N_POLICIES][WHARF_PROBE_N_POLICIES] = {
        {30000, 20000, 25000}, {15000, 20000, 18000}, {2000, 800, 8000}};

    for (unsigned best = 0; best < WHARF_PROBE_N_POLICIES; best++) {
        memset(&probe, 0, sizeof(probe));
        flood(2000 * MS, rates[best], 16, true);
        flood(2000 * MS, rates[best], 16, true);
        expect_mostly((enum wharf_policy)best, 0.95);
    }
}

/* It changes with what clients do: within a fraction of a second the other policy is taken. */
Test(wharfd_rate_probe, policy_that_becomes_the_best_is_found)
{
    static const uint32_t before[] = {15000, 20000, 18000}, after[] = {15000, 8000, 18000};

    flood(1000 * MS, before, 16, true);
    cr_assert_eq(probe.best, WHARF_POLICY_GPU);
    flood(2000 * MS, after, 16, true);
    flood(1000 * MS, after, 16, true);
    expect_mostly(WHARF_POLICY_CPU, 0.94);
}

/* What is far worse is tried ever more rarely. */
Test(wharfd_rate_probe, poor_policies_cost_little)
{
    static const uint32_t rates[] = {30000, 1000, 900};

    flood(4000 * MS, rates, 16, true);
    flood(4000 * MS, rates, 16, true);
    expect_mostly(WHARF_POLICY_BY_TIME, 0.985);
}

/* Who waits for one chunk after the other has each done as soon as it can be. */
Test(wharfd_rate_probe, few_chunks_at_a_time_are_placed_by_their_time)
{
    static const uint32_t rates[] = {15000, 20000, 18000};

    flood(500 * MS, rates, 16, true);
    cr_assert_eq(probe.best, WHARF_POLICY_GPU);
    flood(500 * MS, rates, 2, true);
    flood(500 * MS, rates, 2, true);
    cr_assert_eq(had_ns[WHARF_POLICY_GPU] + had_ns[WHARF_POLICY_CPU], 0);
}

/* Also for a thousand: once, both engines had such batches and hindered each other. */
Test(wharfd_rate_probe, best_policy_of_very_many_is_found)
{
    static const uint32_t rates[] = {15000, 20000, 18000};

    flood(1000 * MS, rates, 1000, true);
    flood(1000 * MS, rates, 1000, true);
    expect_mostly(WHARF_POLICY_GPU, 0.9);
}

/* A policy that is not any more what it was is left at once, for one that passed more.  Once it was
 * kept until the other one's turn came: estimates that went wrong with the best policy, to give
 * each chunk to whom would be done with it first, cost a third of a short flood. */
Test(wharfd_rate_probe, policy_that_gets_worse_is_left)
{
    static const uint32_t before[] = {20000, 15000, 19000}, after[] = {12000, 12000, 19000};

    flood(100 * MS, before, 16, true);
    cr_assert_eq(probe.best, WHARF_POLICY_BY_TIME);
    cr_assert_gt(probe.rates[WHARF_POLICY_CPU], 0);
    flood(40 * MS, after, 16, true);
    cr_assert_eq(probe.best, WHARF_POLICY_CPU);
}

/* Once it was not looked at again for half a second: the CPU's threads had met 128 MiB of memory
 * for the first time, and passed half of what they do. */
Test(wharfd_rate_probe, policy_that_is_poor_at_first_is_found)
{
    static const uint32_t before[] = {15000, 20000, 9000}, after[] = {15000, 20000, 24000};

    flood(40 * MS, before, 16, true);
    cr_assert_eq(probe.best, WHARF_POLICY_GPU);
    cr_assert_gt(probe.rates[WHARF_POLICY_CPU], 0);
    flood(100 * MS, after, 16, true);
    cr_assert_eq(probe.best, WHARF_POLICY_CPU);
}

/* What cannot pass more is not tried: in a deep flood it takes long until that much has passed. */
Test(wharfd_rate_probe, cpu_that_cannot_do_it_is_not_tried)
{
    static const uint32_t rates[] = {15000, 20000, 3000};

    cpu_rate = 4000000 / 1024 * 1000;
    flood(1000 * MS, rates, 1000, true);
    cr_assert_eq(probe.best, WHARF_POLICY_GPU);
    cr_assert_eq(probe.rates[WHARF_POLICY_CPU], 0);
}

/* Once a flood of stored chunks was the GPU's for half a second and more, since the few that the
 * CPU had had met memory that it had never touched. */
Test(wharfd_rate_probe, cpu_that_seems_to_pass_half_is_tried)
{
    static const uint32_t rates[] = {37000, 38000, 46000};

    cpu_rate = 20000000 / 1024 * 1000;
    flood(200 * MS, rates, 1000, true);
    cr_assert_eq(probe.best, WHARF_POLICY_CPU);
}

/* One of two others that is never tried does not keep the other from its turn. */
Test(wharfd_rate_probe, policy_that_was_tried_last_is_tried_again)
{
    static const uint32_t before[] = {15000, 20000, 3000}, after[] = {22000, 20000, 3000};

    cpu_rate = 4000000 / 1024 * 1000;
    flood(1000 * MS, before, 16, true);
    cr_assert_eq(probe.best, WHARF_POLICY_GPU);
    flood(1000 * MS, after, 16, true);
    cr_assert_eq(probe.best, WHARF_POLICY_BY_TIME);
}

Test(wharfd_rate_probe, nothing_is_tried_where_there_is_one_engine)
{
    static const uint32_t rates[] = {15000, 20000, 18000};

    flood(500 * MS, rates, 16, false);
    cr_assert_eq(had_ns[WHARF_POLICY_GPU] + had_ns[WHARF_POLICY_CPU], 0);
}

/* A policy that nearly stops does not last: its window ends with the first chunk after its time. */
Test(wharfd_rate_probe, policy_that_does_nothing_is_left)
{
    static const uint32_t rates[] = {15000, 1, 1};

    flood(2000 * MS, rates, 16, true);
    flood(3000 * MS, rates, 16, true);
    expect_mostly(WHARF_POLICY_BY_TIME, 0.9);
}

/* While clients' memory gets ready for the GPU it passes nothing: that is not held against it. Once
 * it was not tried again for most of a second, in which the CPU passed half. */
Test(wharfd_rate_probe, policy_that_was_not_ready_is_tried_again_soon)
{
    static const uint32_t before[] = {15000, 10, 25000}, after[] = {15000, 50000, 25000};

    flood(60 * MS, before, 4000, true);
    cr_assert_neq(probe.best, WHARF_POLICY_GPU);
    flood(200 * MS, after, 4000, true);
    cr_assert_eq(probe.best, WHARF_POLICY_GPU);
}

/* GB/s of a flood of so long in which the CPU passes by its rate, more or less by a quarter for
 * some milliseconds at a time, and in its first `cold_ns` a third of it. */
static double gusty_flood(uint64_t for_ns, const uint32_t *mbps, uint64_t cold_ns, uint64_t seed)
{
    struct test_random rng = {.state = seed};
    uint64_t begun_ns = now_ns, gust_ends_ns = 0, policy_begun_ns = now_ns, n = 0;
    uint8_t last = probe.policy;
    double gust = 1;

    for (; now_ns < begun_ns + for_ns; n++) {
        uint8_t policy = probe.policy;
        if (policy != last)
            policy_begun_ns = now_ns;
        last = policy;
        if (now_ns >= gust_ends_ns) {
            gust = 0.75 + test_random_below(&rng, 501) / 1000.0;
            gust_ends_ns = now_ns + MS + test_random_below(&rng, 20 * MS);
        }
        double rate = mbps[policy] * (policy == WHARF_POLICY_GPU ? 1 : gust);
        if (policy == WHARF_POLICY_CPU && now_ns - policy_begun_ns < cold_ns)
            rate /= 3;
        uint64_t took_ns = (uint64_t)(CHUNK_NBYTES * 1000 / rate);
        now_ns += took_ns;
        wharf_rate_probe_count(&probe, now_ns, 1, CHUNK_NBYTES, 16 * took_ns, true, cpu_rate);
    }
    return (double)n * CHUNK_NBYTES / (double)(now_ns - begun_ns);
}

/* Once it was mostly not found that the CPU passes more, where its threads take most of a window to
 * wake up: 0.82 of what it passes. */
Test(wharfd_rate_probe, policy_that_takes_milliseconds_to_wake_up_is_found)
{
    static const uint32_t rates[] = {34000, 38000, 46000};

    for (uint64_t cold_ns = 0; cold_ns <= 3 * MS; cold_ns += MS) {
        double sum = 0;
        for (uint64_t seed = 1; seed <= 100; seed++) {
            memset(&probe, 0, sizeof(probe));
            gusty_flood(500 * MS, rates, cold_ns, seed);
            sum += gusty_flood(500 * MS, rates, cold_ns, 1000 + seed);
        }
        cr_expect_geq(sum / 100 / 46, 0.95, "%lu ms: %.3f", (unsigned long)(cold_ns / MS),
                      sum / 100 / 46);
    }
}

/* Threads look at the clock before they have the lock. */
Test(wharfd_rate_probe, times_that_go_back_are_no_new_flood)
{
    static const uint32_t rates[] = {15000, 20000, 18000};

    flood(1000 * MS, rates, 16, true);
    struct wharf_rate_probe before = probe;
    wharf_rate_probe_count(&probe, before.begun_ns - 5000, 1, CHUNK_NBYTES, 0, true, cpu_rate);
    cr_assert_eq(probe.best, before.best);
    cr_assert_eq(probe.rates[WHARF_POLICY_GPU], before.rates[WHARF_POLICY_GPU]);
}
