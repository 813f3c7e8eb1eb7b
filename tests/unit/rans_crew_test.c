/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_crew_test: a stream that several threads decode together, or one in any order, has the
 * outcome that one has alone.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/decode_poll.h"
#include "encoders/rans/rans.h"
#include "encoders/rans/rans_loop.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_rans.h"
#include "tests/lib/test_rounds.h"

enum { N_THREADS = 4, MAX_PARTS = 256 };

struct crew {
    struct wharf_decode_crew base;
    struct test_random random;
    unsigned n_threads; /* 1: in random order */
    unsigned n_runs;
    unsigned n_ranges;
    struct wharf_decode_poll *poll;
    /* Of a run. */
    wharf_decode_parts_fn *act;
    void *context;
    uint32_t begins[MAX_PARTS + 1];
    atomic_uint next;
    atomic_bool failed;
};

/* Random ranges that together are all parts. */
static void cut(struct crew *crew, uint32_t n_parts)
{
    uint32_t at = 0;

    crew->n_ranges = 0;
    while (at < n_parts) {
        crew->begins[crew->n_ranges++] = at;
        at += 1 + (uint32_t)test_random_below(&crew->random, n_parts);
    }
    crew->begins[crew->n_ranges] = n_parts;
}

static void run_range(struct crew *crew, uint32_t i)
{
    if (!crew->act(crew->context, crew->begins[i], crew->begins[i + 1] - crew->begins[i],
                   crew->poll))
        atomic_store(&crew->failed, true);
}

static void *work(void *data)
{
    struct crew *crew = data;

    for (uint32_t i; (i = atomic_fetch_add(&crew->next, 1)) < crew->n_ranges;)
        run_range(crew, i);
    return NULL;
}

static void run_in_random_order(struct crew *crew)
{
    uint32_t order[MAX_PARTS];

    for (uint32_t i = 0; i < crew->n_ranges; i++) {
        uint32_t other = (uint32_t)test_random_below(&crew->random, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    for (uint32_t i = 0; i < crew->n_ranges; i++)
        run_range(crew, order[i]);
}

static bool run(struct wharf_decode_crew *base, uint32_t n_parts, wharf_decode_parts_fn *act,
                void *context)
{
    struct crew *crew = (struct crew *)base;
    pthread_t threads[N_THREADS];

    cr_assert(n_parts > 1 && n_parts <= MAX_PARTS);
    crew->n_runs++;
    crew->act = act;
    crew->context = context;
    atomic_store(&crew->next, 0);
    atomic_store(&crew->failed, false);
    cut(crew, n_parts);
    if (crew->n_threads == 1) {
        run_in_random_order(crew);
        return !atomic_load(&crew->failed);
    }
    for (unsigned i = 0; i < N_THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, work, crew), 0);
    for (unsigned i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    return !atomic_load(&crew->failed);
}

#define X(form, coder, where, where_in_buckets) #form,
static const char *const forms[] = {"none", WHARF_RANS_LOOP_LIST(X)};
#undef X
enum { N_FORMS = sizeof(forms) / sizeof(forms[0]) };

/* By this form, in parts and alone; returns whether it went well. */
static bool check(const struct test_rans *rans, const char *form, struct crew *crew)
{
    struct test_guard in = test_guard_copy(rans->stream, rans->stream_nbytes, TEST_GUARD_END);
    struct test_guard out = test_guard_new(rans->plain_nbytes, TEST_GUARD_END);
    uint8_t *want_out = malloc(rans->plain_nbytes + 1);
    struct wharf_codec_setting setting = {.parameter = rans->shape.symbol_nbytes - 1,
                                          .model = rans->image};
    struct wharf_outcome want, got;

    wharf_rans_decode(in.data, in.nbytes, want_out, rans->plain_nbytes, &setting, &want);
    setting.crew = &crew->base;
    wharf_rans_decode(in.data, in.nbytes, out.data, rans->plain_nbytes, &setting, &got);
    cr_assert(test_outcome_same(&got, &want), "%s: %s; not %s", form, test_outcome_text(&got).text,
              test_outcome_text(&want).text);
    bool good = want.result == WHARF_OK;
    cr_assert(!good || memcmp(out.data, want_out, want.out_nbytes) == 0, "%s", form);
    free(want_out);
    test_guard_free(&in);
    test_guard_free(&out);
    return good;
}

/* Just over the size from which on anybody helps. */
static const struct test_rans_plan plans[] = {
    {11, 1, 1, 530000, 40, 250, 1}, {16, 1, 1, 530000, 600, 250, 2}, {12, 2, 1, 270000, 3, 900, 3},
    {12, 2, 7, 270000, 50, 900, 4}, {8, 1, 1, 530001, 2, 100, 5},
};
enum { N_PLANS = sizeof(plans) / sizeof(plans[0]) };

Test(rans_crew, parts_in_any_order_come_back, .timeout = 600)
{
    for (unsigned f = 0; f < N_FORMS; f++) {
        if (wharf_rans_loop_force(forms[f]) < 0)
            continue;
        for (unsigned i = 0; i < 2 * N_PLANS; i++) {
            struct test_rans rans =
                i % 2 ? test_rans_new(&plans[i / 2]) : test_rans_new_registered(&plans[i / 2]);
            struct crew crew = {.base.run = run, .random = {i}, .n_threads = i % 3 ? N_THREADS : 1};
            cr_assert(check(&rans, forms[f], &crew));
            cr_assert_eq(crew.n_runs, 1);
            test_rans_free(&rans);
        }
    }
    wharf_rans_loop_force(NULL);
}

Test(rans_crew, damage_has_one_outcome, .timeout = 600)
{
    struct test_random random = {7};
    unsigned n_good = 0;
    /* Every second crew is one thread, where its sanitizer has nothing to see. */
#ifdef __SANITIZE_THREAD__
    const unsigned first = 1, step = 2;
#else
    const unsigned first = 0, step = 1;
#endif

    for (unsigned i = first; i < TEST_ROUNDS(60); i += step) {
        struct test_rans rans = test_rans_new(&plans[i % N_PLANS]);
        struct crew crew = {.base.run = run, .random = {i}, .n_threads = i % 2 ? N_THREADS : 1};
        /* In the fields of splits, mostly. */
        uint64_t limit = 8 * (i % 3 ? rans.stream_nbytes / 40 : rans.stream_nbytes);
        uint64_t bit = test_random_below(&random, limit);
        rans.stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        n_good += check(&rans, "best", &crew);
        test_rans_free(&rans);
    }
    cr_assert_lt(n_good, TEST_ROUNDS(10));
}

static uint32_t refuse(struct wharf_decode_poll *poll)
{
    (void)poll;
    return WHARF_CANCELLED;
}

Test(rans_crew, who_is_stopped_says_so)
{
    struct test_rans rans = test_rans_new(&plans[0]);
    struct wharf_decode_poll poll = {refuse};
    struct crew crew = {.base.run = run, .n_threads = 1, .poll = &poll};
    const struct wharf_codec_setting setting = {.poll = &poll, .crew = &crew.base};
    uint8_t *out = malloc(rans.plain_nbytes);
    struct wharf_outcome outcome;

    wharf_rans_decode(rans.stream, rans.stream_nbytes, out, rans.plain_nbytes, &setting, &outcome);
    cr_assert_eq(outcome.result, WHARF_CANCELLED);
    cr_assert_eq(outcome.reason, WHARF_REASON_NONE);
    free(out);
    test_rans_free(&rans);
}

/* Splits that somebody took out, at the beginning, in the middle or at the end, leave one part
 * long.  It was shared all the same, and who had that part could do nothing else meanwhile. */
Test(rans_crew, nobody_is_given_a_part_far_longer_than_others, .timeout = 600)
{
    static const struct {
        uint32_t first, n;
        unsigned n_runs;
    } cases[] = {{1, 2, 1},  {19, 2, 1}, {38, 2, 1}, {1, 7, 0}, {19, 7, 0},
                 {33, 7, 0}, {1, 39, 0}, {2, 38, 1}, {1, 38, 1}};

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct test_rans rans = test_rans_new(&plans[0]);
        struct crew crew = {.base.run = run, .random = {i}, .n_threads = i % 2 ? N_THREADS : 1};
        test_rans_drop_splits(&rans, cases[i].first, cases[i].n);
        cr_assert(check(&rans, "best", &crew));
        cr_assert_eq(crew.n_runs, cases[i].n_runs, "%u from %u on", cases[i].n, cases[i].first);
        test_rans_free(&rans);
    }
}

/* Short ones, and those without splits, are nobody else's. */
Test(rans_crew, nobody_is_asked_for_little)
{
    struct test_rans rans = test_rans_new(&(struct test_rans_plan){11, 1, 1, 500000, 40, 250, 1});
    struct test_rans whole = test_rans_new(&(struct test_rans_plan){11, 1, 1, 530000, 1, 250, 1});
    struct crew crew = {.base.run = run, .n_threads = 1};

    cr_assert(check(&rans, "best", &crew));
    cr_assert(check(&whole, "best", &crew));
    cr_assert_eq(crew.n_runs, 0);
    test_rans_free(&rans);
    test_rans_free(&whole);
}
