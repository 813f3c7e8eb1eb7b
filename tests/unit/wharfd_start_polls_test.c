/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When start words are polled, and who pays for it.  The test is the clock, and all threads: it
 * holds jobs, looks at words, and asks when to look next.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/core/queues.h"
#include "daemon/core/session.h"
#include "daemon/core/tenant.h"
#include "daemon/dispatch/starts.h"
#include "daemon/placement/place.h"
#include "proto/ring_ops.h"
#include "proto/wharf_result.h"
#include "tests/lib/test_bare.h"

#define US WHARF_NS_PER_US
#define MS WHARF_NS_PER_MS

enum { N_TENANTS = 40, N_SESSIONS = 200, N_JOBS = 20000 };

/* At most this part of a processor for a tenant whose words do not come, and at the beginning so
 * much at once. */
#define PART 16
#define BURST_NS (10 * (uint64_t)MS)

static struct wharf_core core;
static struct wharf_region region;
static struct wharf_tenant tenants[N_TENANTS];
static struct wharf_session sessions[N_SESSIONS];
static struct wharf_job *jobs;
static struct wharf_job_words *words;
static uint64_t *starts;
static unsigned n_jobs;
static uint64_t now_ns;

/* Session i is of tenant i, the further ones of the last. */
static void set_up(void)
{
    test_bare_core_init(&core, 0);
    core.workers.n_workers = core.workers.n_sleeping = 2;
    for (unsigned i = 0; i < N_TENANTS; i++)
        test_bare_tenant_init(&tenants[i]);
    for (unsigned i = 0; i < N_SESSIONS; i++)
        test_bare_session_init(&sessions[i], &tenants[i < N_TENANTS ? i : N_TENANTS - 1],
                               WHARF_ENGINE_AUTO);
    jobs = calloc(N_JOBS, sizeof(*jobs));
    words = calloc(N_JOBS, sizeof(*words));
    starts = calloc(N_JOBS, sizeof(*starts));
    cr_assert(jobs && words && starts);
    n_jobs = 0;
    now_ns = 3600 * (uint64_t)WHARF_NS_PER_S + 1;
}

static void tear_down(void)
{
    wharf_core_deinit(&core);
    free(jobs);
    free(words);
    free(starts);
}

/* A job of that session begins to wait, for an hour. */
static unsigned hold(unsigned session)
{
    unsigned i = n_jobs++;

    cr_assert_lt(i, N_JOBS);
    test_bare_job_init(&jobs[i], &sessions[session], WHARF_CODEC_ZLIB, 100, 100, &region, &region);
    jobs[i].words = &words[i];
    jobs[i].taken_ns = now_ns;
    words[i] = (struct wharf_job_words){.start_word = &starts[i],
                                        .start_serial = 1,
                                        .start_limit_ns = 3600 * (uint64_t)WHARF_NS_PER_S};
    wharf_starts_take(&core, &jobs[i], now_ns);
    return i;
}

static void set(unsigned job)
{
    wharf_ring_store_start(&starts[job], WHARF_START_VALUE(1));
}

static bool look_at(uint64_t at_ns)
{
    now_ns = at_ns;
    return wharf_starts_look(&core, now_ns);
}

/* The loop thread's looks until then.  Returns their number. */
static unsigned look_until(uint64_t until_ns)
{
    unsigned n = 0;

    for (uint64_t next_ns; (next_ns = wharf_starts_next_ns(&core, now_ns)) < until_ns; n++) {
        wharf_starts_woken(&core);
        look_at(next_ns);
    }
    now_ns = until_ns;
    return n;
}

/* A thread that does nothing else looks every 2 us, for as long as it should.  Returns the time. */
static uint64_t spin_until(uint64_t until_ns)
{
    uint64_t used_ns = 0;

    while (now_ns < until_ns && wharf_starts_are_young(&core, now_ns)) {
        used_ns += 2 * US;
        wharf_starts_spun(&core, 2 * US);
        look_at(now_ns + 2 * US);
    }
    if (now_ns < until_ns)
        now_ns = until_ns;
    return used_ns;
}

static int64_t owed_ns(unsigned tenant)
{
    return -tenants[tenant].sched[WHARF_POOL_CPU].lane[WHARF_LANE_NORMAL].turn.deficit_ns;
}

/* ---- when ---------------------------------------------------------------------------------- */

Test(wharfd_start_polls, pauses_grow_with_the_wait_up_to_a_millisecond, .init = set_up,
     .fini = tear_down)
{
    const uint64_t begun_ns = now_ns;

    core.config.spin_ns = 200 * US;
    hold(0);
    cr_expect(wharf_starts_are_young(&core, begun_ns + 199 * US));
    cr_expect_not(wharf_starts_are_young(&core, begun_ns + 200 * US));
    for (unsigned i = 0; i < 200; i++) {
        uint64_t next_ns = wharf_starts_next_ns(&core, now_ns);
        uint64_t most_ns = (now_ns - begun_ns) / 16;
        cr_assert_leq(next_ns - now_ns, most_ns < 50 * US ? 50 * US : most_ns);
        cr_assert_leq(next_ns - now_ns, MS);
        cr_assert_gt(next_ns, now_ns);
        look_at(next_ns);
    }
    cr_expect_eq(wharf_starts_next_ns(&core, now_ns) - now_ns, MS);
}

/* Every new job once restarted the quick looks at all words. */
Test(wharfd_start_polls, new_jobs_hasten_no_looks_at_others_words, .init = set_up,
     .fini = tear_down)
{
    unsigned old = hold(0), n_early = 0;

    look_until(now_ns + 100 * MS);
    uint64_t looked_ns = now_ns;
    set(old);
    while (words[old].is_held) {
        hold(1);
        look_at(now_ns + 60 * US);
        n_early += !words[old].is_held && now_ns - looked_ns < 500 * US;
        cr_assert_leq(now_ns - looked_ns, 2 * MS);
    }
    cr_expect_eq(n_early, 0);
}

Test(wharfd_start_polls, new_jobs_hasten_looks_at_their_own_tenants_words, .init = set_up,
     .fini = tear_down)
{
    unsigned old = hold(N_TENANTS - 1);

    look_until(now_ns + 100 * MS);
    hold(N_TENANTS);
    set(old);
    look_at(now_ns + 1);
    cr_expect_not(words[old].is_held);
}

/* Threads once went on looking for what no job waited for. */
Test(wharfd_start_polls, nobody_looks_without_a_job_that_waits, .init = set_up, .fini = tear_down)
{
    unsigned first = hold(0), second = hold(0);

    hold(1);
    wharf_place_remove(&core, &jobs[first]);
    wharf_place_drop(&core, &sessions[1]);
    cr_expect(wharf_starts_are_young(&core, now_ns));
    cr_expect_not(wharf_starts_is_young(&core, &tenants[1], now_ns));
    wharf_place_remove(&core, &jobs[second]);
    cr_expect_not(wharf_starts_are_young(&core, now_ns));
    cr_expect_eq(wharf_starts_next_ns(&core, now_ns), WHARF_NEVER);
    unsigned third = hold(0);
    set(third);
    cr_expect(look_at(now_ns + 1));
    cr_expect_not(wharf_starts_are_young(&core, now_ns));
    cr_expect_eq(wharf_starts_next_ns(&core, now_ns), WHARF_NEVER);
}

/* Looks at the words of tenants that have waited for long coincide. */
Test(wharfd_start_polls, many_tenants_take_no_more_wakes_than_one, .init = set_up,
     .fini = tear_down)
{
    for (unsigned i = 0; i < N_TENANTS; i++) {
        hold(i);
        now_ns += 37 * US;
    }
    look_until(now_ns + 100 * MS);
    /* Eight tenants for each look. */
    cr_expect_leq(look_until(now_ns + 100 * MS), 101 * (N_TENANTS / 8));
}

/* ---- who is looked at ---------------------------------------------------------------------- */

Test(wharfd_start_polls, tenants_take_turns_however_many_sessions_they_have, .init = set_up,
     .fini = tear_down)
{
    for (unsigned round = 0; round < 20; round++)
        for (unsigned i = N_TENANTS; i < N_SESSIONS; i++)
            hold(i);
    unsigned own = hold(0);
    set(own);
    look_at(now_ns + 1);
    cr_expect_not(words[own].is_held);
}

Test(wharfd_start_polls, each_word_has_its_turn, .init = set_up, .fini = tear_down)
{
    for (unsigned round = 0; round < 20; round++)
        for (unsigned i = N_TENANTS; i < N_SESSIONS; i++)
            hold(i);
    for (unsigned i = 0; i < n_jobs; i += 7)
        set(i);
    look_until(now_ns + 1000 * MS);
    for (unsigned i = 0; i < n_jobs; i++)
        cr_assert_eq(words[i].is_held, i % 7 != 0, "job %u", i);
}

/* ---- who pays ------------------------------------------------------------------------------ */

Test(wharfd_start_polls, tenant_pays_for_the_looks_at_its_words, .init = set_up, .fini = tear_down)
{
    hold(0);
    hold(1);
    look_until(now_ns + 2 * MS);
    int64_t before_ns = owed_ns(0);
    int64_t others_ns = owed_ns(1);
    hold(1);
    for (unsigned i = 0; i < 10; i++) {
        wharf_starts_spun(&core, US);
        look_at(now_ns + US);
    }
    cr_expect_eq(owed_ns(0), before_ns);
    cr_expect_geq(owed_ns(1), others_ns + 10 * US);
}

Test(wharfd_start_polls, tenants_share_a_wake_that_both_needed, .init = set_up, .fini = tear_down)
{
    hold(0);
    int64_t first_ns = owed_ns(0);
    wharf_starts_woken(&core);
    look_at(now_ns + 1);
    int64_t alone_ns = owed_ns(0) - first_ns;
    hold(1);
    first_ns = owed_ns(0);
    int64_t second_ns = owed_ns(1);
    wharf_starts_woken(&core);
    look_at(now_ns + 1);
    cr_expect_lt(owed_ns(0) - first_ns, alone_ns);
    cr_expect_eq(owed_ns(0) - first_ns, owed_ns(1) - second_ns);
    /* Who has no word that is due pays nothing. */
    wharf_place_drop(&core, &sessions[0]);
    wharf_place_drop(&core, &sessions[1]);
    first_ns = owed_ns(0);
    wharf_starts_woken(&core);
    look_at(now_ns + 1);
    cr_expect_eq(owed_ns(0), first_ns);
}

/* ---- how much ------------------------------------------------------------------------------ */

/* Of the loop thread, whose wake-ups take 5 us and more. */
Test(wharfd_start_polls, words_that_never_come_wake_the_loop_for_a_sixteenth, .init = set_up,
     .fini = tear_down)
{
    const uint64_t begun_ns = now_ns;
    uint64_t n = 0;

    hold(0);
    for (unsigned i = 0; i < 4000; i++) {
        hold(1);
        n += look_until(now_ns + 500 * US);
    }
    cr_expect_leq(n * 5 * US, BURST_NS + (now_ns - begun_ns) / PART);
    /* And it is not forgotten. */
    cr_expect_geq(look_until(now_ns + 100 * MS), 99);
}

Test(wharfd_start_polls, words_that_never_come_keep_a_thread_awake_for_a_sixteenth, .init = set_up,
     .fini = tear_down)
{
    const uint64_t begun_ns = now_ns;
    uint64_t used_ns = 0;

    for (unsigned i = 0; i < 4000; i++) {
        hold(1);
        used_ns += spin_until(now_ns + 500 * US);
    }
    cr_expect_geq(used_ns, BURST_NS / 2);
    cr_expect_leq(used_ns, BURST_NS + (now_ns - begun_ns) / PART);
    /* Others are polled for as ever. */
    hold(0);
    cr_expect_geq(spin_until(now_ns + MS), core.config.spin_ns - 4 * US);
}

/* Each job that ends because its word did not come has woken the loop thread. */
Test(wharfd_start_polls, jobs_that_end_by_their_limit_end_together_after_a_while, .init = set_up,
     .fini = tear_down)
{
    unsigned n = 0;

    for (;; n++) {
        unsigned i = hold(0);
        words[i].is_start_limit = true;
        if (jobs[i].deadline.key % MS == 0)
            break;
        cr_assert_leq(n * 5 * US, BURST_NS);
        wharf_starts_expired(&core, &jobs[i], now_ns);
        wharf_place_remove(&core, &jobs[i]);
        now_ns += 20 * US;
    }
    cr_expect_gt(n, 100);
}

/* Whoever's words come is polled for as long as it likes, while processors are idle. */
Test(wharfd_start_polls, word_that_comes_pays_for_its_looks, .init = set_up, .fini = tear_down)
{
    for (unsigned i = 0; i < 4000; i++) {
        unsigned job = hold(0);
        cr_assert(wharf_starts_is_young(&core, &tenants[0], now_ns), "job %u", i);
        cr_assert_geq(spin_until(now_ns + MS), core.config.spin_ns - 4 * US);
        cr_assert_geq(look_until(now_ns + 500 * US), 5);
        set(job);
        look_until(now_ns + 100 * US);
        cr_assert_not(words[job].is_held);
        wharf_place_remove(&core, &jobs[job]);
    }
}

static void pay_for_words_that_come(void)
{
    const uint64_t begun_ns = now_ns;
    uint64_t used_ns = 0;

    core.config.spin_ns = 10 * MS;
    core.workers.n_sleeping = 0;
    for (unsigned i = 0; i < 4000; i++) {
        unsigned job = hold(0);
        used_ns += spin_until(now_ns + MS);
        set(job);
        look_until(now_ns + 1001 * US);
        cr_assert_not(words[job].is_held);
        wharf_place_remove(&core, &jobs[job]);
    }
    cr_expect_leq(used_ns, BURST_NS + (now_ns - begun_ns) / PART);
}

Test(wharfd_start_polls, word_that_comes_pays_for_none_while_jobs_wait_for_processors,
     .init = set_up, .fini = tear_down)
{
    core.workers.n_sleeping = 0;
    unsigned other = hold(1);
    set(other);
    look_at(now_ns + 1);
    pay_for_words_that_come();
}

Test(wharfd_start_polls, word_that_comes_pays_for_none_while_all_workers_are_busy, .init = set_up,
     .fini = tear_down)
{
    core.workers.n_short = core.workers.n_long = 1;
    pay_for_words_that_come();
}

/* With no time to spin, the loop thread alone looks. */
Test(wharfd_start_polls, without_spin_the_loop_looks_soon, .init = set_up, .fini = tear_down)
{
    core.config.spin_ns = 0;
    unsigned job = hold(0);
    cr_expect_not(wharf_starts_are_young(&core, now_ns));
    set(job);
    cr_expect_eq(look_until(now_ns + 51 * US), 1);
    cr_expect_not(words[job].is_held);
}
