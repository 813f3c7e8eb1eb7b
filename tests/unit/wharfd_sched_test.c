/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler: deficit round robin, lanes, sessions; estimates, quotas, lists of processors. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/base/cpu_set.h"
#include "daemon/base/list.h"
#include "daemon/base/turns.h"
#include "daemon/core/estimate.h"
#include "daemon/core/job.h"
#include "daemon/core/queues.h"
#include "daemon/core/session.h"
#include "daemon/core/tenant.h"
#include "daemon/core/totals.h"
#include "daemon/schedule/sched.h"
#include "tests/lib/test_bare.h"
#include "tests/lib/test_random.h"

/* ---- turns --------------------------------------------------------------------------------- */

enum { N_MEMBERS = 5 };

struct member {
    struct wharf_turn turn;
    int64_t used_ns;
};

static void check_shares(const struct member *members, const int64_t *quanta, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        double expected = (double)members[0].used_ns / (double)quanta[0];
        double got = (double)members[i].used_ns / (double)quanta[i];
        cr_assert(got > 0.95 * expected && got < 1.05 * expected, "%u: %g instead of %g", i, got,
                  expected);
    }
}

/* However large the jobs and however wrong their estimates, time goes by quantum. */
Test(wharfd_sched, time_is_shared_by_quantum_whatever_jobs_and_estimates_are)
{
    static const int64_t quanta[N_MEMBERS] = {500, 500, 1000, 50, 500};
    static const uint64_t job_ns[N_MEMBERS] = {10, 100000, 700, 499, 30000};
    struct member members[N_MEMBERS];
    struct test_random random = {7};
    struct wharf_turns turns;

    wharf_turns_init(&turns);
    for (unsigned i = 0; i < N_MEMBERS; i++) {
        wharf_turn_init(&members[i].turn);
        members[i].used_ns = 0;
        wharf_turns_join(&turns, &members[i].turn, quanta[i]);
    }
    for (unsigned n = 0; n < 2000000; n++) {
        struct wharf_turn *turn = wharf_turns_first(&turns);
        struct member *member = WHARF_LIST_ENTRY(turn, struct member, turn);
        int64_t took = (int64_t)(1 + test_random_below(&random, 2 * job_ns[member - members]));
        int64_t estimate = (int64_t)test_random_below(&random, 1000);
        wharf_turns_charge(&turns, turn, estimate);
        wharf_turns_charge(&turns, turn, took - estimate);
        member->used_ns += took;
    }
    check_shares(members, quanta, N_MEMBERS);
}

/* A member with one job at a time leaves after each: its debt must not be forgotten then, or large
 * jobs would get more than small ones. */
Test(wharfd_sched, leaving_does_not_pay_debts)
{
    static const int64_t quanta[2] = {500, 500};
    struct member members[2] = {{.used_ns = 0}, {.used_ns = 0}};
    struct wharf_turns turns;

    wharf_turns_init(&turns);
    wharf_turn_init(&members[0].turn);
    wharf_turn_init(&members[1].turn);
    wharf_turns_join(&turns, &members[0].turn, 500);
    for (unsigned n = 0; n < 1000000; n++) {
        wharf_turns_join(&turns, &members[1].turn, 500);
        struct wharf_turn *turn = wharf_turns_first(&turns);
        struct member *member = WHARF_LIST_ENTRY(turn, struct member, turn);
        int64_t took = member == &members[1] ? 20000 : 150;
        wharf_turns_charge(&turns, turn, took);
        member->used_ns += took;
        wharf_turns_leave(&turns, &members[1].turn);
    }
    check_shares(members, quanta, 2);
}

Test(wharfd_sched, time_that_was_not_used_is_not_saved_up)
{
    struct member members[2] = {{.used_ns = 0}, {.used_ns = 0}};
    struct wharf_turns turns;
    unsigned n_row = 0;

    wharf_turns_init(&turns);
    for (unsigned i = 0; i < 2; i++) {
        wharf_turn_init(&members[i].turn);
        wharf_turns_join(&turns, &members[i].turn, 1000);
    }
    wharf_turns_leave(&turns, &members[1].turn);
    for (unsigned n = 0; n < 10000; n++)
        wharf_turns_charge(&turns, wharf_turns_first(&turns), 1000);
    wharf_turns_join(&turns, &members[1].turn, 1000);
    for (unsigned n = 0; n < 100; n++) {
        struct wharf_turn *turn = wharf_turns_first(&turns);
        n_row = turn == &members[1].turn ? n_row + 1 : 0;
        cr_assert_leq(n_row, 2);
        wharf_turns_charge(&turns, turn, 1000);
    }
}

/* Once the last in the list had the first turn of a new round: of two each had two turns in a row,
 * and who came last each time went first. */
Test(wharfd_sched, a_round_begins_with_who_has_waited_longest)
{
    struct member members[3];
    struct wharf_turns turns;

    wharf_turns_init(&turns);
    for (unsigned i = 0; i < 3; i++) {
        wharf_turn_init(&members[i].turn);
        wharf_turns_join(&turns, &members[i].turn, 1000);
    }
    for (unsigned n = 0; n < 30; n++) {
        struct wharf_turn *turn = wharf_turns_first(&turns);
        cr_assert_eq(turn, &members[n % 3].turn);
        wharf_turns_charge(&turns, turn, 1000);
    }
    for (unsigned n = 0; n < 30; n++) {
        for (unsigned i = 0; i < 3; i++)
            wharf_turns_leave(&turns, &members[i].turn);
        for (unsigned i = 0; i < 3; i++)
            wharf_turns_join(&turns, &members[i].turn, 1000);
        for (unsigned i = 0; i < 3; i++) {
            struct wharf_turn *turn = wharf_turns_first(&turns);
            cr_assert_eq(turn, &members[i].turn);
            wharf_turns_charge(&turns, turn, 600);
            wharf_turns_leave(&turns, turn);
        }
    }
}

Test(wharfd_sched, huge_debts_end)
{
    struct member member;
    struct wharf_turns turns;

    wharf_turns_init(&turns);
    wharf_turn_init(&member.turn);
    wharf_turns_join(&turns, &member.turn, 1);
    for (unsigned i = 0; i < 10; i++)
        wharf_turns_charge(&turns, &member.turn, INT64_MAX / 4);
    cr_assert_eq(wharf_turns_first(&turns), &member.turn);
    cr_assert_eq(member.turn.deficit_ns, 1);
}

/* ---- lanes and sessions -------------------------------------------------------------------- */

static struct wharf_sched sched;
static struct wharf_tenant tenants[2];
static struct wharf_session sessions[3]; /* two of the first tenant, one of the second */

static void set_up(void)
{
    wharf_sched_init(&sched, WHARF_POOL_CPU, 1000);
    for (unsigned i = 0; i < 2; i++)
        test_bare_tenant_init(&tenants[i]);
    for (unsigned i = 0; i < 3; i++)
        test_bare_session_init(&sessions[i], &tenants[i / 2], WHARF_ENGINE_AUTO);
}

static void push(struct wharf_job *job, struct wharf_session *session, enum wharf_lane lane,
                 uint64_t estimate_ns)
{
    *job = (struct wharf_job){
        .session = session,
        .lane = (uint8_t)lane,
        .estimate_ns = estimate_ns,
    };
    wharf_list_init(&job->link);
    wharf_sched_push(&sched, job);
}

/* Takes the next job out, as if it had run as long as estimated. */
static struct wharf_job *pop(void)
{
    struct wharf_job *job = wharf_sched_first(&sched, UINT64_MAX);

    if (job) {
        wharf_sched_remove(&sched, job);
        wharf_sched_charge(&sched, job, (int64_t)job->estimate_ns);
    }
    return job;
}

Test(wharfd_sched, lanes_are_served_in_their_order, .init = set_up)
{
    struct wharf_job jobs[4];

    push(&jobs[0], &sessions[0], WHARF_LANE_BACKGROUND, 10);
    push(&jobs[1], &sessions[1], WHARF_LANE_NORMAL, 10);
    push(&jobs[2], &sessions[2], WHARF_LANE_INTERACTIVE, 10);
    push(&jobs[3], &sessions[1], WHARF_LANE_NORMAL, 10);
    wharf_sched_remove(&sched, &jobs[3]);
    wharf_sched_push_front(&sched, &jobs[3]);
    cr_assert_eq(sched.n_queued, 4);
    cr_assert_eq(pop(), &jobs[2]);
    cr_assert_eq(pop(), &jobs[3]);
    cr_assert_eq(pop(), &jobs[1]);
    cr_assert_eq(pop(), &jobs[0]);
    cr_assert_null(pop());
    cr_assert_eq(sched.n_queued, 0);
}

Test(wharfd_sched, tenants_share_alike_however_many_sessions_they_have, .init = set_up)
{
    static struct wharf_job jobs[3][1000];
    unsigned n_done[3] = {0, 0, 0};

    for (unsigned s = 0; s < 3; s++)
        for (unsigned i = 0; i < 1000; i++)
            push(&jobs[s][i], &sessions[s], WHARF_LANE_NORMAL, 300);
    for (unsigned n = 0; n < 1200; n++)
        n_done[pop()->session - sessions]++;
    cr_assert(n_done[0] > 290 && n_done[0] < 310, "%u", n_done[0]);
    cr_assert(n_done[1] > 290 && n_done[1] < 310, "%u", n_done[1]);
    cr_assert(n_done[2] > 590 && n_done[2] < 610, "%u", n_done[2]);
}

/* The lane goes before others, but what a tenant uses there is part of its share. */
Test(wharfd_sched, interactive_jobs_are_charged_to_the_share, .init = set_up)
{
    static struct wharf_job normal[2][1000], interactive[1000];
    int64_t used_ns[2] = {0, 0};

    for (unsigned i = 0; i < 1000; i++) {
        push(&normal[0][i], &sessions[0], WHARF_LANE_NORMAL, 300);
        push(&normal[1][i], &sessions[2], WHARF_LANE_NORMAL, 300);
    }
    for (unsigned n = 0; n < 900; n++) {
        if (n % 4 == 0)
            push(&interactive[n], &sessions[0], WHARF_LANE_INTERACTIVE, 300);
        struct wharf_job *job = pop();
        cr_assert_eq(n % 4 == 0, job->lane == WHARF_LANE_INTERACTIVE);
        used_ns[job->session->tenant - tenants] += 300;
    }
    cr_assert_float_eq((double)used_ns[0] / (double)used_ns[1], 1.0, 0.05);
}

Test(wharfd_sched, long_jobs_are_passed_over_on_demand, .init = set_up)
{
    struct wharf_job jobs[3];

    push(&jobs[0], &sessions[0], WHARF_LANE_NORMAL, 5000);
    cr_assert_null(wharf_sched_first(&sched, 4999));
    push(&jobs[1], &sessions[1], WHARF_LANE_NORMAL, 6000);
    push(&jobs[2], &sessions[2], WHARF_LANE_NORMAL, 100);
    cr_assert_eq(wharf_sched_first(&sched, 4999), &jobs[2]);
    wharf_sched_remove(&sched, &jobs[2]);
    cr_assert_null(wharf_sched_first(&sched, 4999));
    cr_assert_not_null(wharf_sched_first(&sched, 6000));
}

/* Once a short job had its tenant's quantum and no more, for as long as the long one of another
 * tenant, whose turn it was, waited for a worker that may run it. */
Test(wharfd_sched, short_jobs_go_on_while_long_ones_wait, .init = set_up)
{
    enum { N = 200 };
    static struct wharf_job long_jobs[2], jobs[N];
    unsigned n[3] = {0};

    push(&long_jobs[0], &sessions[0], WHARF_LANE_NORMAL, 100000);
    push(&long_jobs[1], &sessions[2], WHARF_LANE_NORMAL, 100000);
    for (unsigned i = 0; i < N; i++)
        push(&jobs[i], &sessions[1], WHARF_LANE_NORMAL, 700);
    for (unsigned i = 0; i < N; i++) {
        struct wharf_job *job = wharf_sched_first(&sched, 5000);
        cr_assert_not_null(job, "after %u", i);
        wharf_sched_remove(&sched, job);
        wharf_sched_charge(&sched, job, 700);
    }
    /* They take turns by how much they have used. */
    for (unsigned i = 0; i < N; i++)
        push(&jobs[i], &sessions[i % 2 ? 1 : 2], WHARF_LANE_NORMAL, 700);
    wharf_sched_remove(&sched, &long_jobs[0]);
    wharf_sched_remove(&sched, &long_jobs[1]);
    push(&long_jobs[0], &sessions[0], WHARF_LANE_NORMAL, 100000);
    for (unsigned i = 0; i < N / 2; i++) {
        struct wharf_job *job = wharf_sched_first(&sched, 5000);
        cr_assert_not_null(job);
        wharf_sched_remove(&sched, job);
        wharf_sched_charge(&sched, job, 700);
        n[job->session - sessions]++;
    }
    cr_assert_gt(n[2], 90, "who has used nothing comes first: %u", n[2]);
}

Test(wharfd_sched, dropping_a_session_drops_its_jobs_alone, .init = set_up)
{
    struct wharf_job jobs[6];

    for (unsigned i = 0; i < 6; i++)
        push(&jobs[i], &sessions[i / 2], (enum wharf_lane)(i % 3), 10);
    wharf_sched_drop(&sched, &sessions[0]);
    cr_assert_eq(sched.n_queued, 4);
    for (unsigned i = 0; i < 4; i++)
        cr_assert_neq(pop()->session, &sessions[0]);
    cr_assert_null(pop());
    wharf_sched_drop(&sched, &sessions[0]);
}

Test(wharfd_sched, background_queues_are_looked_at_in_turn, .init = set_up)
{
    struct wharf_job jobs[3];
    unsigned n_seen[3] = {0, 0, 0};

    cr_assert_null(wharf_sched_background(&sched));
    for (unsigned i = 0; i < 3; i++)
        push(&jobs[i], &sessions[i], WHARF_LANE_BACKGROUND, 10);
    for (unsigned i = 0; i < 40; i++)
        n_seen[wharf_sched_background(&sched) - jobs]++;
    cr_assert_eq(n_seen[0], 10);
    cr_assert_eq(n_seen[1], 10);
    cr_assert_eq(n_seen[2], 20);
}

/* ---- estimates ----------------------------------------------------------------------------- */

Test(wharfd_sched, estimates_rise_at_once_and_fall_slowly)
{
    struct wharf_estimates estimates;
    uint64_t first, slow;

    wharf_estimates_init(&estimates, NULL);
    first = wharf_estimate_ns(&estimates, WHARF_CODEC_ZLIB, 32768, 65536);
    for (unsigned i = 0; i < 6; i++)
        wharf_estimates_learn(&estimates, WHARF_CODEC_ZLIB, 32768, 65536, 20 * first);
    slow = wharf_estimate_ns(&estimates, WHARF_CODEC_ZLIB, 32768, 65536);
    cr_assert_gt(slow, 18 * first);
    wharf_estimates_learn(&estimates, WHARF_CODEC_ZLIB, 32768, 65536, first);
    cr_assert_gt(wharf_estimate_ns(&estimates, WHARF_CODEC_ZLIB, 32768, 65536), 16 * first);
    cr_assert_eq(wharf_estimate_ns(&estimates, WHARF_CODEC_GZIP, 32768, 65536), first);
    for (unsigned i = 0; i < 100; i++)
        wharf_estimates_learn(&estimates, WHARF_CODEC_ZLIB, 32768, 65536, first);
    cr_assert_lt(wharf_estimate_ns(&estimates, WHARF_CODEC_ZLIB, 32768, 65536), 2 * first);
}

Test(wharfd_sched, estimates_stay_within_bounds)
{
    struct wharf_estimates estimates;

    wharf_estimates_init(&estimates, NULL);
    for (unsigned i = 0; i < 100; i++)
        wharf_estimates_learn(&estimates, 0, 4096, 0, UINT64_MAX);
    cr_assert_leq(wharf_estimate_ns(&estimates, 0, 1 << 20, 0), 200 * (1 << 20));
    for (unsigned i = 0; i < 300; i++)
        wharf_estimates_learn(&estimates, 0, (uint64_t)1 << 40, (uint64_t)1 << 40, 0);
    cr_assert_gt(wharf_estimate_ns(&estimates, 0, 1 << 20, 0), 1000);
}

/* ---- quotas -------------------------------------------------------------------------------- */

Test(wharfd_sched, quota_takes_all_or_nothing)
{
    struct wharf_totals totals;
    struct wharf_tenant tenant = {.quota = {.max_connections = 2,
                                            .max_descriptors = 100,
                                            .max_jobs = 10,
                                            .max_memory_nbytes = 1000},
                                  .totals = &totals};
    struct wharf_use use = {.n_connections = 1, .n_descriptors = 4, .memory_nbytes = 600};
    const char *which = NULL;

    wharf_totals_init_boundless(&totals);
    cr_assert_eq(wharf_tenant_charge(&tenant, &use, &which), 0);
    cr_assert_null(which);
    cr_assert_eq(wharf_tenant_charge(&tenant, &use, &which), -EDQUOT);
    cr_assert(strstr(which, "max_memory = 1000 of [quota]"), "%s", which);
    cr_assert_eq(tenant.used.n_connections, 1);
    use.memory_nbytes = UINT64_MAX;
    cr_assert_eq(wharf_tenant_charge(&tenant, &use, NULL), -EDQUOT);
    use.memory_nbytes = 400;
    cr_assert_eq(wharf_tenant_charge(&tenant, &use, NULL), 0);
    use.n_connections = 1;
    cr_assert_eq(wharf_tenant_charge(&tenant, &use, &which), -EDQUOT);
    cr_assert(strstr(which, "max_connections"), "%s", which);
    /* Lowered below what is used: nothing more fits, and giving back works. */
    tenant.quota.max_memory_nbytes = 10;
    use = (struct wharf_use){.memory_nbytes = 1};
    cr_assert_eq(wharf_tenant_charge(&tenant, &use, NULL), -EDQUOT);
    use.memory_nbytes = 1000;
    wharf_tenant_give_back(&tenant, &use);
    cr_assert_eq(tenant.used.memory_nbytes, 0);
}

/* ---- processors ---------------------------------------------------------------------------- */

Test(wharfd_sched, lists_of_processors)
{
    static const char *const bad[] = {"",    ",",     "1,",      "-3",
                                      "3-",  "5-4",   "a",       "1-2-3",
                                      "1 2", "99999", "0-99999", "18446744073709551616"};
    cpu_set_t set;

    cr_assert_eq(wharf_cpu_set_parse("0-2,5,7-7", &set), 0);
    cr_assert_eq(CPU_COUNT(&set), 5);
    cr_assert(CPU_ISSET(1, &set) && CPU_ISSET(5, &set) && CPU_ISSET(7, &set));
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert_eq(wharf_cpu_set_parse(bad[i], &set), -EINVAL, "accepted: %s", bad[i]);
}

Test(wharfd_sched, share_of_the_processors_gives_workers)
{
    struct wharf_config config;
    cpu_set_t set, own;
    uint32_t n_workers;

    wharf_config_init(&config);
    sched_getaffinity(0, sizeof(own), &own);
    cr_assert_eq(wharf_cpu_set_choose(&config, &set, &n_workers), 0);
    cr_assert_eq((int)n_workers, CPU_COUNT(&own));
    config.share_percent = 1;
    cr_assert_eq(wharf_cpu_set_choose(&config, &set, &n_workers), 0);
    cr_assert_eq(n_workers, 1);
    config.n_workers = 9;
    cr_assert_eq(wharf_cpu_set_choose(&config, &set, &n_workers), 0);
    cr_assert_eq(n_workers, 9);
    strcpy(config.cpus, "1000-1023");
    cr_assert_eq(wharf_cpu_set_choose(&config, &set, &n_workers), -EINVAL);
}
