/* SPDX-License-Identifier: Apache-2.0 */
/* Which tenants are kept, and for how long. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/base/fair_queue.h"
#include "daemon/base/list.h"
#include "daemon/core/queues.h"
#include "daemon/core/tenant.h"
#include "kernels/memo.h"
#include "tests/lib/test_config.h"

#define S ((uint64_t)WHARF_NS_PER_S)

static struct wharf_config config;
static struct wharf_tenants all;

static void set_up(void)
{
    wharf_config_init(&config);
    wharf_tenants_init(&all);
}

static void tear_down(void)
{
    wharf_tenants_deinit(&all);
    wharf_config_deinit(&config);
}

static struct wharf_tenant *get(const char *name)
{
    struct wharf_tenant *tenant = wharf_tenants_get(&all, name, &config);

    cr_assert_not_null(tenant);
    return tenant;
}

/* It comes, and goes. */
static struct wharf_tenant *visit(const char *name)
{
    struct wharf_tenant *tenant = get(name);

    tenant->stats.n_connections++;
    wharf_tenant_unref(tenant);
    return tenant;
}

static void tidy(uint64_t now_ns)
{
    wharf_tenants_tidy(&all, &config, now_ns, 1000000);
}

/* Whether the tenant is gone at `at_ns`, and is there just before. */
static void expect_gone_at(uint64_t at_ns)
{
    tidy(at_ns - 1);
    cr_assert_eq(all.n, 1);
    tidy(at_ns);
    cr_assert_eq(all.n, 0);
    cr_assert_not(wharf_tenants_has_idle(&all));
}

/* There were always 256 of them, for ever. */
Test(wharfd_tenants, tenants_without_anything_are_dropped, .init = set_up, .fini = tear_down)
{
    struct wharf_tenant *tenant = visit("uid:1");

    expect_gone_at(tenant->idle_ns + config.keep_tenants_ns);
}

/* Parts of the memory for chunks that GPUs keep are for who came first, until they are dropped; and
 * nobody is taken for somebody before. */
Test(wharfd_tenants, kept_chunks_are_for_one_tenant, .init = set_up, .fini = tear_down)
{
    struct wharf_tenant *first = get("uid:1"), *second = get("uid:2"), *third = get("uid:3");
    uint64_t of_first = wharf_tenant_memo_owner(&all, first, 2);
    uint64_t of_second = wharf_tenant_memo_owner(&all, second, 2);

    cr_assert(of_first && of_second);
    cr_assert_neq(WHARF_MEMO_PART_OF(of_first), WHARF_MEMO_PART_OF(of_second));
    cr_assert_eq(wharf_tenant_memo_owner(&all, third, 2), 0);
    cr_assert_eq(wharf_tenant_memo_owner(&all, first, 2), of_first);
    cr_assert_eq(wharf_tenant_memo_owner(&all, get("unknown"), 3), 0);
    uint64_t gone_ns = wharf_now_ns() + 2 * config.keep_tenants_ns;
    wharf_tenant_unref(first);
    cr_assert_eq(wharf_tenant_memo_owner(&all, third, 2), 0);
    tidy(gone_ns);
    uint64_t of_third = wharf_tenant_memo_owner(&all, third, 2);
    cr_assert_eq(WHARF_MEMO_PART_OF(of_third), WHARF_MEMO_PART_OF(of_first));
    cr_assert_neq(of_third, of_first);
    cr_assert_eq(wharf_tenant_memo_owner(&all, get("uid:1"), 2), 0);
}

Test(wharfd_tenants, tenants_that_come_back_are_kept, .init = set_up, .fini = tear_down)
{
    struct wharf_tenant *tenant = visit("uid:1");
    uint64_t idle_ns = tenant->idle_ns;

    cr_assert_eq(get("uid:1"), tenant);
    tidy(idle_ns + 100 * config.keep_tenants_ns);
    cr_assert_eq(all.n, 1);
    wharf_tenant_unref(tenant);
    expect_gone_at(tenant->idle_ns + config.keep_tenants_ns);
}

/* What refers to a tenant: what it uses, who pinned it, a process that its descriptors hung. */
Test(wharfd_tenants, tenants_with_something_are_kept, .init = set_up, .fini = tear_down)
{
    struct wharf_use use = {.n_descriptors = 1};
    struct wharf_tenant *tenants[3];

    for (unsigned i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof(name), "uid:%u", i);
        tenants[i] = get(name);
    }
    cr_assert_eq(wharf_tenant_charge(tenants[0], &use, NULL), 0);
    wharf_tenant_ref(tenants[1]);
    tenants[2]->n_hung_filters = 1;
    for (unsigned i = 0; i < 3; i++)
        wharf_tenant_unref(tenants[i]);
    tidy(wharf_now_ns() + 3600 * S);
    cr_assert_eq(all.n, 3);
    wharf_tenant_give_back(tenants[0], &use);
    wharf_tenant_unref(tenants[1]);
    wharf_tenant_forget_hang(tenants[2]);
    tidy(wharf_now_ns() + 3600 * S);
    cr_assert_eq(all.n, 0);
}

/* ---- debts --------------------------------------------------------------------------------- */

/* Each of them keeps it, even of too many, until it is over: who comes back has it still. */
static void expect_kept_until(struct wharf_tenant *tenant, uint64_t end_ns)
{
    config.keep_tenants_ns = 0;
    cr_assert_eq(wharf_tenant_debts_end_ns(tenant, &config), end_ns);
    expect_gone_at(end_ns);
}

Test(wharfd_tenants, a_ban_outlasts_its_tenants_connections, .init = set_up, .fini = tear_down)
{
    struct wharf_tenant *tenant = visit("uid:1");

    tenant->gpu_trust.banned_until_ns = tenant->idle_ns + 600 * S;
    expect_kept_until(tenant, tenant->idle_ns + 600 * S);
}

Test(wharfd_tenants, a_suspect_stays_one_for_as_long_as_a_ban, .init = set_up, .fini = tear_down)
{
    struct wharf_tenant *tenant = visit("uid:1");

    tenant->gpu_trust.n_alone = 8;
    tenant->gpu_trust.n_worker_faults = 2;
    tenant->gpu_trust.suspect_ns = tenant->idle_ns;
    expect_kept_until(tenant, tenant->idle_ns + config.gpu_ban_ns);
}

Test(wharfd_tenants, what_may_become_a_ban_is_kept, .init = set_up, .fini = tear_down)
{
    struct wharf_tenant *tenant = visit("uid:1");

    tenant->gpu_trust.n_slow = 1;
    tenant->gpu_trust.slow_ns = tenant->idle_ns + 1;
    tenant->gpu_trust.n_stalls = 1;
    tenant->gpu_trust.stall_ns = tenant->idle_ns + 2;
    tenant->gpu_trust.watched_until_ns = tenant->idle_ns + 10 * S;
    expect_kept_until(tenant, tenant->idle_ns + 2 + config.gpu_ban_ns);
}

Test(wharfd_tenants, who_hung_gates_stays_barred, .init = set_up, .fini = tear_down)
{
    struct wharf_tenant *tenant = visit("uid:1");

    tenant->n_filter_hangs = 1;
    tenant->filter_hang_ns = tenant->idle_ns;
    expect_kept_until(tenant, tenant->idle_ns + wharf_config_barred_ns(&config));
}

Test(wharfd_tenants, time_that_was_had_too_much_is_owed, .init = set_up, .fini = tear_down)
{
    struct wharf_tenant *tenant = visit("uid:1");

    tenant->sched[WHARF_POOL_ANY].lane[WHARF_LANE_BACKGROUND].turn.deficit_ns = -(int64_t)(20 * S);
    tenant->interactive_ns = -(int64_t)(10 * S);
    tenant->interactive_at_ns = tenant->idle_ns;
    expect_kept_until(tenant, tenant->idle_ns + 20 * S);
}

Test(wharfd_tenants, interactive_time_is_not_had_twice, .init = set_up, .fini = tear_down)
{
    struct wharf_tenant *tenant = visit("uid:1");

    tenant->interactive_at_ns = tenant->idle_ns;
    expect_kept_until(tenant, tenant->idle_ns + S);
}

Test(wharfd_tenants, looks_at_start_words_are_not_had_twice, .init = set_up, .fini = tear_down)
{
    struct wharf_tenant *tenant = visit("uid:1");

    tenant->starts.left_at_ns = tenant->idle_ns;
    expect_kept_until(tenant, tenant->idle_ns + S);
}

Test(wharfd_tenants, who_kept_workers_waiting_stays_suspended, .init = set_up, .fini = tear_down)
{
    struct wharf_tenant *tenant = visit("uid:1");

    config.keep_tenants_ns = 0;
    tenant->is_suspended = true;
    tidy(tenant->idle_ns + 3600 * S);
    cr_assert_eq(all.n, 1);
    tenant->is_suspended = false;
    tenant->suspended_until_ns = tenant->idle_ns + 5 * S;
    tenant->not_here_until_ns = tenant->idle_ns + 7 * S;
    expect_kept_until(tenant, tenant->idle_ns + 7 * S);
}

/* ---- settings ------------------------------------------------------------------------------ */

static void configure(const char *text)
{
    char message[256];

    wharf_config_deinit(&config);
    wharf_config_init(&config);
    cr_assert_eq(test_config_parse(&config, text, strlen(text), message, sizeof(message)), 0);
    wharf_tenants_reload(&all, &config);
}

Test(wharfd_tenants, tenants_with_settings_are_kept, .init = set_up, .fini = tear_down)
{
    configure("[tenant uid:1]\nweight = 200\n");
    visit("uid:1");
    visit("uid:2");
    cr_assert_eq(all.n, 2);
    tidy(wharf_now_ns() + 3600 * S);
    cr_assert_eq(all.n, 1);
    /* Of another one now. */
    visit("uid:2");
    configure("[tenant uid:2]\nweight = 200\n");
    tidy(wharf_now_ns() + 3600 * S);
    cr_assert_eq(all.n, 1);
    wharf_tenant_unref(get("uid:2"));
    cr_assert_eq(all.n, 1);
}

/* ---- turns in the loop ---------------------------------------------------------------------- */

/* Who closed a last connection and connected again owed nothing. */
Test(wharfd_tenants, a_party_in_the_loop_outlives_connections, .init = set_up, .fini = tear_down)
{
    struct wharf_fair_queue turns = {.now = 0};
    struct wharf_tenant *tenant = get("uid:1");
    struct wharf_fair_party *party = wharf_tenant_party(tenant);

    cr_assert_not_null(party);
    wharf_fair_queue_charge(&turns, party, 1000);
    wharf_tenant_unref(tenant);
    tenant = get("uid:1");
    cr_assert_eq(wharf_tenant_party(tenant), party);
    cr_assert_eq(party->finish, 1000);
    wharf_tenant_unref(tenant);
    tidy(wharf_now_ns() + 3600 * S);
    cr_assert_eq(all.n, 1);
    cr_assert_null(wharf_fair_queue_next(&turns), "nobody waits: all debts are forgiven");
    tidy(wharf_now_ns() + 3600 * S);
    cr_assert_eq(all.n, 0);
}

/* ---- many ---------------------------------------------------------------------------------- */

static void come_and_go(unsigned n)
{
    char name[32];

    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "uid:%u", i);
        wharf_tenants_tidy(&all, &config, wharf_now_ns(), 4);
        visit(name);
    }
}

/* All of them, one turn of the loop after the other, a bounded number in each. */
static unsigned pass(uint64_t now_ns)
{
    unsigned n_calls = 0;
    bool goes_on = true;

    while (goes_on) {
        uint32_t n_before = all.n;
        goes_on = wharf_tenants_tidy_on(&all, &config, now_ns);
        cr_assert_leq(n_before - all.n, (uint32_t)WHARF_TENANTS_TIDIED);
        n_calls++;
    }
    return n_calls;
}

/* All were looked at in one call, however many they were. */
Test(wharfd_tenants, many_that_are_idle_are_looked_at_in_many_turns, .init = set_up,
     .fini = tear_down)
{
    enum { N = 10 * WHARF_TENANTS_TIDIED };
    char name[32];

    for (unsigned i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "uid:%u", i);
        struct wharf_tenant *tenant = visit(name);
        if (i % 2)
            tenant->suspended_until_ns = wharf_now_ns() + 7200 * S;
    }
    /* Those that owe something are passed over, and once: a pass ends. */
    cr_assert_leq(pass(wharf_now_ns() + 3600 * S), N / WHARF_TENANTS_TIDIED);
    cr_assert_eq(all.n, N / 2);
    cr_assert_leq(pass(wharf_now_ns() + 3600 * S), N / WHARF_TENANTS_TIDIED);
    cr_assert_eq(all.n, N / 2);
    pass(wharf_now_ns() + 10000 * S);
    cr_assert_eq(all.n, 0);
}

/* As the loop thread calls it for each connection.  Old entries and counts are kept. */
Test(wharfd_tenants, a_hundred_thousand_are_seen_and_few_remembered, .init = set_up,
     .fini = tear_down)
{
    struct wharf_tenant *busy = get("uid:busy");

    busy->stats.n_connections = 1;
    come_and_go(100000);
    cr_assert_leq(all.n, 2 + WHARF_TENANTS_REMEMBERED);
    cr_assert_eq(get("uid:busy"), busy);
    cr_assert_eq(all.last_number, 100001);
    uint64_t n = all.dropped.n_connections;
    WHARF_LIST_FOR(link, &all.list)
    n += WHARF_LIST_ENTRY(link, struct wharf_tenant, link)->stats.n_connections;
    cr_assert_eq(n, 100001);
    cr_assert_eq(get("uid:99999")->stats.n_connections, 1);
}

/* Those that owe something are passed over. */
Test(wharfd_tenants, debtors_are_kept_beyond_those_that_are_remembered, .init = set_up,
     .fini = tear_down)
{
    struct wharf_tenant *debtor = visit("uid:debtor");

    debtor->gpu_trust.banned_until_ns = WHARF_NEVER;
    come_and_go(10000);
    cr_assert_leq(all.n, 2 + WHARF_TENANTS_REMEMBERED);
    cr_assert_eq(get("uid:debtor"), debtor);
    cr_assert_eq(debtor->gpu_trust.banned_until_ns, WHARF_NEVER);
}

/* Of the loop thread's time: whoever had been dropped among many came back and owed nothing. */
Test(wharfd_tenants, who_owes_the_loop_thread_time_is_kept, .init = set_up, .fini = tear_down)
{
    struct wharf_fair_queue queue = {0};
    struct wharf_tenant *debtor = visit("uid:debtor");

    wharf_fair_queue_charge(&queue, wharf_tenant_party(debtor), 1000);
    uint64_t n_before = debtor->number;
    come_and_go(10000);
    cr_assert_eq(get("uid:debtor")->number, n_before);
    wharf_tenant_unref(debtor);
    cr_assert_null(wharf_fair_queue_next(&queue));
    come_and_go(10000);
    cr_assert_neq(get("uid:debtor")->number, n_before);
}

/* Who goes through all of them finds none dropped meanwhile. */
Test(wharfd_tenants, nobody_is_dropped_during_a_walk, .init = set_up, .fini = tear_down)
{
    visit("uid:1");
    all.n_walks++;
    tidy(wharf_now_ns() + 3600 * S);
    cr_assert_eq(all.n, 1);
    all.n_walks--;
    tidy(wharf_now_ns() + 3600 * S);
    cr_assert_eq(all.n, 0);
}
