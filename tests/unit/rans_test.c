/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans: what the encoder makes, the same by all its forms, comes back by every form of the decoder,
 * whatever is done to it gives the same outcome by all of them, and thinning changes nothing but
 * the splits.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/rans/rans.h"
#include "encoders/rans/rans_encode.h"
#include "encoders/rans/rans_loop.h"
#include "encoders/rans/rans_thin.h"
#include "encoders/rans/rans_write.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_rans.h"

/* The same outcome by all forms, which is returned. */
static struct wharf_outcome decode_all(const uint8_t *in, size_t in_nbytes, uint32_t symbol_nbytes,
                                       uint8_t *out, size_t out_avail, const char *what)
{
    struct wharf_outcome outcome;
    const char *wrong =
        test_rans_decode_all(in, in_nbytes, symbol_nbytes - 1, out, out_avail, &outcome);

    cr_assert_null(wrong, "%s: form \"%s\" and the reference differ", what, wrong);
    return outcome;
}

static void expect_comes_back(const struct test_rans *rans, const uint8_t *stream, size_t nbytes,
                              const char *what)
{
    struct test_guard out = test_guard_new(rans->plain_nbytes, TEST_GUARD_END);
    struct wharf_outcome outcome =
        decode_all(stream, nbytes, rans->shape.symbol_nbytes, out.data, out.nbytes, what);

    cr_assert_eq(outcome.result, WHARF_OK, "%s: %s", what, wharf_reason_string(outcome.reason));
    cr_assert_eq(outcome.in_nbytes, nbytes);
    cr_assert_eq(outcome.out_nbytes, rans->plain_nbytes);
    cr_assert(rans->plain_nbytes == 0 || memcmp(out.data, rans->plain, rans->plain_nbytes) == 0,
              "%s: other bytes", what);
    test_guard_free(&out);
}

static uint32_t most_symbols(uint32_t n_bits, uint32_t symbol_nbytes, uint32_t n_distributions)
{
    uint32_t most = symbol_nbytes == 1 ? 256 : 5000;

    if (most > 1u << n_bits)
        most = 1u << n_bits;
    return most * n_distributions > WHARF_RANS_INLINE_NSLOTS
               ? WHARF_RANS_INLINE_NSLOTS / n_distributions
               : most;
}

static void check_plan(const struct test_rans_plan *plan)
{
    struct test_rans rans = test_rans_new(plan);
    char what[100];

    snprintf(what, sizeof(what), "n %u, %u bytes, %u distributions, %u symbols, %u splits",
             (unsigned)plan->n_bits, (unsigned)plan->symbol_nbytes, (unsigned)plan->n_distributions,
             (unsigned)plan->n_symbols, (unsigned)plan->max_splits);
    expect_comes_back(&rans, rans.stream, rans.stream_nbytes, what);
    test_rans_free(&rans);
}

/* ---- round trips ------------------------------------------------------------------------- */

Test(rans, every_size_comes_back)
{
    static const uint32_t sizes[] = {0, 1, 2, 31, 32, 33, 63, 64, 65, 1000, 4096, 70001};

    for (uint32_t n_bits = 8; n_bits <= 16; n_bits++)
        for (uint32_t nbytes = 1; nbytes <= 2; nbytes++)
            for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
                check_plan(&(struct test_rans_plan){n_bits, nbytes, 1, sizes[i], 1 + 2 * n_bits,
                                                    most_symbols(n_bits, nbytes, 1), i});
}

Test(rans, every_number_of_splits_comes_back)
{
    for (uint32_t max_splits = 1; max_splits < 200; max_splits += 1 + max_splits / 5)
        for (uint32_t n_bits = 8; n_bits <= 16; n_bits += 4)
            check_plan(&(struct test_rans_plan){n_bits, 1 + max_splits % 2, 1, 60000, max_splits,
                                                most_symbols(n_bits, 1, 1), max_splits});
}

Test(rans, indexed_models_come_back)
{
    for (uint32_t n_bits = 8; n_bits <= 15; n_bits++)
        for (uint32_t nbytes = 1; nbytes <= 2; nbytes++)
            for (uint32_t n = 2; n <= 1u << (16 - n_bits); n *= 4)
                check_plan(&(struct test_rans_plan){n_bits, nbytes, n, 9000, 12,
                                                    most_symbols(n_bits, nbytes, n), n});
}

/* One symbol takes no words at all; 2^n symbols take n bits each. */
Test(rans, extreme_models_come_back)
{
    for (uint32_t n_bits = 8; n_bits <= 16; n_bits++) {
        check_plan(&(struct test_rans_plan){n_bits, 1, 1, 5000, 9, 1, 1});
        check_plan(&(struct test_rans_plan){n_bits, 2, 1, 90000, 9, 1u << n_bits, 1});
    }
}

/* ---- damage ------------------------------------------------------------------------------ */

static const struct test_rans_plan damaged_plans[] = {
    {8, 1, 1, 900, 4, 200, 1},   {11, 1, 1, 1400, 6, 100, 2}, {12, 2, 1, 1000, 4, 300, 3},
    {16, 1, 1, 1200, 5, 256, 4}, {9, 1, 20, 1000, 4, 60, 5},  {16, 2, 1, 700, 3, 900, 6},
    {11, 1, 1, 40, 1, 30, 7},    {12, 2, 8, 800, 4, 100, 8},
};
enum { N_DAMAGED = sizeof(damaged_plans) / sizeof(damaged_plans[0]), OUT_AVAIL = 4096 };

/* No proper part of a stream is one. */
Test(rans, truncation_at_every_byte_has_one_outcome)
{
    uint8_t out[OUT_AVAIL];

    for (size_t i = 0; i < N_DAMAGED; i++) {
        struct test_rans rans = test_rans_new(&damaged_plans[i]);

        for (size_t n = 0; n < rans.stream_nbytes; n++) {
            struct wharf_outcome outcome =
                decode_all(rans.stream, n, rans.shape.symbol_nbytes, out, OUT_AVAIL, "truncated");
            cr_assert_neq(outcome.result, WHARF_OK, "plan %zu, %zu bytes", i, n);
        }
        test_rans_free(&rans);
    }
}

Test(rans, flipped_bits_have_one_outcome)
{
    struct test_random random = {11};
    uint8_t out[OUT_AVAIL];
    unsigned n_bad = 0;

    for (unsigned i = 0; i < 6000; i++) {
        struct test_rans rans = test_rans_new(&damaged_plans[i / 4 % N_DAMAGED]);
        struct wharf_outcome outcome;
        /* Half of them in front of the words, where the fields are. */
        uint64_t limit = i % 2 ? 8 * rans.stream_nbytes : 4 * rans.stream_nbytes;

        for (unsigned k = 0; k <= i % 4; k++) {
            uint64_t bit = test_random_below(&random, limit);
            rans.stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        outcome = decode_all(rans.stream, rans.stream_nbytes, rans.shape.symbol_nbytes, out,
                             OUT_AVAIL, "flipped");
        n_bad += outcome.result != WHARF_OK;
        test_rans_free(&rans);
    }
    /* Some bits decide nothing: padding, unused indexes, names of symbols. */
    cr_assert_gt(n_bad, 4800, "%u", n_bad);
}

Test(rans, too_little_room_has_one_outcome)
{
    uint8_t out[OUT_AVAIL];

    for (size_t i = 0; i < N_DAMAGED; i++) {
        struct test_rans rans = test_rans_new(&damaged_plans[i]);
        for (size_t less = 1; less <= rans.plain_nbytes; less *= 3) {
            struct wharf_outcome outcome =
                decode_all(rans.stream, rans.stream_nbytes, rans.shape.symbol_nbytes, out,
                           rans.plain_nbytes - less, "no room");
            cr_assert_eq(outcome.result, WHARF_OUTPUT_TOO_SMALL);
            cr_assert_eq(outcome.reason, WHARF_REASON_OUTPUT_FULL);
        }
        test_rans_free(&rans);
    }
}

/* ---- splits ------------------------------------------------------------------------------ */

/* A body's fields as the writer takes them; marks are for the caller to free. */
static struct wharf_rans_plan read_plan(const struct wharf_rans_body *body,
                                        struct wharf_rans_mark **ret_marks)
{
    struct wharf_rans_cursor cursor = wharf_rans_first_split(body);
    struct wharf_rans_mark *marks = calloc(body->n_splits, sizeof(*marks));
    struct wharf_rans_plan plan = {.n_symbols = body->n_symbols,
                                   .n_words = body->n_words,
                                   .marks = marks,
                                   .n_splits = body->n_splits};
    struct wharf_rans_split split;

    for (size_t s = 0; wharf_rans_next_split(body, &cursor, &split); s++) {
        marks[s].first_word = split.first_word;
        marks[s].first_group = split.first_group;
        for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++) {
            marks[s].start_offset[lane] = (uint16_t)(split.start[lane] - split.first_group);
            marks[s].state[lane] = split.state[lane];
        }
    }
    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++)
        plan.final_state[lane] = wharf_rans_final_state(body, lane);
    *ret_marks = marks;
    return plan;
}

/* Changes one thing of one split by a little or by much. */
static void lie(struct test_random *random, struct wharf_rans_mark *marks, uint32_t n_marks)
{
    struct wharf_rans_mark *mark = &marks[test_random_below(random, n_marks)];
    uint32_t lane = (uint32_t)test_random_below(random, WHARF_RANS_N_LANES);
    uint32_t other = (uint32_t)test_random_below(random, WHARF_RANS_N_LANES);
    uint32_t by = test_random_below(random, 4) ? 1 : (uint32_t)test_random_below(random, 60);
    uint32_t sign = test_random_below(random, 2) ? 1 : UINT32_MAX;

    switch (test_random_below(random, 5)) {
    case 0:
        mark->first_word += (int32_t)(sign * by);
        break;
    case 1:
        mark->first_group += sign * by;
        break;
    case 2:
        mark->start_offset[lane] = (uint16_t)(mark->start_offset[lane] + sign * by);
        break;
    case 3:
        mark->state[lane] = (uint16_t)(mark->state[lane] + sign * by);
        break;
    default:
        mark->start_offset[lane] = mark->start_offset[other];
        mark->state[lane] = mark->state[other];
    }
}

/* Places are an equal share of the symbols, rounded up, apart: the last ones may be behind the end.
 * A search that waited there for a better one was late for all splits before: 12 were left. */
Test(rans, splits_are_as_many_as_there_are_places)
{
    enum { N_SYMBOLS = 300000, MAX_SPLITS = 1153 };
    struct test_random random = {77};
    uint8_t *bytes = malloc(N_SYMBOLS);
    struct wharf_rans_stream stream;
    struct wharf_outcome outcome;
    size_t nbytes;

    test_random_fill(&random, bytes, N_SYMBOLS);
    uint8_t *encoded = test_rans_encode(bytes, N_SYMBOLS, 11, MAX_SPLITS, &nbytes);
    cr_assert(wharf_rans_stream_parse(encoded, nbytes, &stream, &outcome));
    uint32_t n = stream.body.n_splits;
    cr_assert(n > MAX_SPLITS - 10 && n < MAX_SPLITS, "%u splits", n);
    free(encoded);
    free(bytes);
}

Test(rans, splits_that_lie_have_one_outcome)
{
    struct test_random random = {5};
    uint8_t out[OUT_AVAIL];
    unsigned n_split_reasons = 0;

    for (unsigned i = 0; i < 4000; i++) {
        struct test_rans rans = test_rans_new(&damaged_plans[i % 6]);
        struct wharf_rans_stream stream;
        struct wharf_rans_mark *marks;
        struct wharf_outcome outcome;

        cr_assert(wharf_rans_stream_parse(rans.stream, rans.stream_nbytes, &stream, &outcome));
        struct wharf_rans_plan plan = read_plan(&stream.body, &marks);
        size_t words_nbytes = stream.body.n_words * WHARF_RANS_WORD_NBYTES;
        lie(&random, marks, plan.n_splits - 1);
        size_t fields_nbytes = wharf_rans_fields_nbytes(&plan);
        size_t nbytes = stream.body_at + fields_nbytes + words_nbytes;
        uint8_t *changed = calloc(1, nbytes);
        memcpy(changed, rans.stream, stream.body_at);
        wharf_rans_write_fields(&plan, changed + stream.body_at);
        memcpy(changed + stream.body_at + fields_nbytes, stream.body.words, words_nbytes);
        outcome = decode_all(changed, nbytes, rans.shape.symbol_nbytes, out, OUT_AVAIL, "lie");
        cr_assert(outcome.result == WHARF_OK || outcome.reason == WHARF_REASON_RANS_SPLIT);
        n_split_reasons += outcome.reason == WHARF_REASON_RANS_SPLIT;
        free(changed);
        free(marks);
        test_rans_free(&rans);
    }
    cr_assert_gt(n_split_reasons, 3600, "%u", n_split_reasons);
}

static void check_thin(const struct test_rans *rans, uint32_t max_splits)
{
    struct wharf_rans_stream stream;
    struct wharf_rans_stream thinned;
    struct wharf_outcome outcome;
    size_t nbytes = 0;

    cr_assert(wharf_rans_stream_parse(rans->stream, rans->stream_nbytes, &stream, &outcome));
    size_t bound = wharf_rans_thin_bound(&stream, max_splits);
    struct test_guard out = test_guard_new(bound, TEST_GUARD_END);
    cr_assert_eq(wharf_rans_thin(&stream, rans->stream, max_splits, out.data, bound, &nbytes), 0);
    cr_assert(wharf_rans_stream_parse(out.data, nbytes, &thinned, &outcome));
    uint32_t expected = max_splits < stream.body.n_splits ? max_splits : stream.body.n_splits;
    cr_assert_eq(thinned.body.n_splits, expected);
    cr_assert_eq(thinned.body.n_words, stream.body.n_words);
    cr_assert_eq(memcmp(thinned.body.words, stream.body.words, 2 * stream.body.n_words), 0);
    if (max_splits >= stream.body.n_splits) {
        cr_assert_eq(nbytes, rans->stream_nbytes);
        cr_assert_eq(memcmp(out.data, rans->stream, nbytes), 0);
    }
    expect_comes_back(rans, out.data, nbytes, "thinned");
    size_t front_bound = wharf_rans_thin_front_bound(&stream, max_splits), front_nbytes;
    struct test_guard front = test_guard_new(front_bound, TEST_GUARD_END);
    cr_assert_eq(wharf_rans_thin_front(&stream, rans->stream, max_splits, front.data, front_bound,
                                       &front_nbytes),
                 0);
    cr_assert_eq(front_nbytes, nbytes - 2 * stream.body.n_words);
    cr_assert_eq(memcmp(front.data, out.data, front_nbytes), 0);
    test_guard_free(&front);
    cr_assert_eq(wharf_rans_thin(&stream, rans->stream, max_splits, out.data, nbytes - 1, &nbytes),
                 -ENOSPC);
    test_guard_free(&out);
}

Test(rans, thinning_keeps_everything_but_splits)
{
    for (uint32_t n_bits = 8; n_bits <= 16; n_bits += 2) {
        struct test_rans rans = test_rans_new(
            &(struct test_rans_plan){n_bits, 1, 1, 100000, 300, most_symbols(n_bits, 1, 1), 3});
        for (uint32_t m = 1; m <= 400; m += 1 + m / 4)
            check_thin(&rans, m);
        test_rans_free(&rans);
    }
}

/* Where a split is in more than 2^32 words does not go into its field.  Such a body is bad anyway,
 * and keeps none. */
Test(rans, thinning_of_too_many_words_keeps_no_split)
{
    struct test_rans rans = test_rans_new(&damaged_plans[0]);
    struct wharf_rans_stream stream;
    struct wharf_outcome outcome;
    uint8_t out[OUT_AVAIL];
    size_t nbytes;

    cr_assert(wharf_rans_stream_parse(rans.stream, rans.stream_nbytes, &stream, &outcome));
    cr_assert_gt(stream.body.n_splits, 1);
    stream.body.n_words = 1ull << 33; /* none of them is read */
    cr_assert_eq(wharf_rans_thin_front(&stream, rans.stream, 4, out, OUT_AVAIL, &nbytes), 0);
    cr_assert(wharf_rans_stream_parse(out, nbytes, &stream, &outcome));
    cr_assert_eq(stream.body.n_splits, 1);
    test_rans_free(&rans);
}

Test(rans, thinning_to_nothing_is_refused)
{
    struct test_rans rans = test_rans_new(&damaged_plans[0]);
    struct wharf_rans_stream stream;
    struct wharf_outcome outcome;
    uint8_t out[OUT_AVAIL];
    size_t nbytes;

    cr_assert(wharf_rans_stream_parse(rans.stream, rans.stream_nbytes, &stream, &outcome));
    cr_assert_eq(wharf_rans_thin(&stream, rans.stream, 0, out, OUT_AVAIL, &nbytes), -EINVAL);
    test_rans_free(&rans);
}

/* Frequencies that leave a quarter of the slots to nobody: what damage leads there is found by all
 * forms at the same symbol. */
Test(rans, slots_of_nobody_have_one_outcome)
{
    struct test_random random = {11};
    uint8_t symbols[5000], out[5000];

    for (uint32_t i = 0; i < sizeof(symbols); i++)
        symbols[i] = test_random_below(&random, 3) == 0;
    for (uint32_t n_bits = 8; n_bits <= 16; n_bits++) {
        const uint32_t frequencies[2] = {1u << (n_bits - 1), 1u << (n_bits - 2)};
        const struct wharf_rans_job job = {.shape = {n_bits, 1, 2, 1},
                                           .frequencies = frequencies,
                                           .symbols = symbols,
                                           .n_symbols = sizeof(symbols),
                                           .max_splits = 6};
        uint8_t stream[8000];
        size_t nbytes;
        unsigned n_found = 0;

        cr_assert_eq(wharf_rans_encode(&job, stream, sizeof(stream), &nbytes), 0);
        cr_assert_eq(decode_all(stream, nbytes, 1, out, sizeof(out), "whole").result, WHARF_OK);
        cr_assert_eq(memcmp(out, symbols, sizeof(out)), 0);
        for (unsigned i = 0; i < 60; i++) {
            uint64_t bit = 4 * nbytes + test_random_below(&random, 4 * nbytes);
            stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
            n_found += decode_all(stream, nbytes, 1, out, sizeof(out), "flipped").reason ==
                       WHARF_REASON_RANS_SYMBOL;
            stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        cr_assert_gt(n_found, 0, "n %u", (unsigned)n_bits);
    }
}

/* Frequencies of a few slots for most symbols and of none for some; one has most of the slots, and
 * now and then some are nobody's. */
static void make_narrow_model(struct test_random *random, uint32_t n_bits,
                              uint32_t frequencies[256])
{
    uint32_t most = (uint32_t)test_random_below(random, 256);
    uint32_t n_left = 1u << n_bits;

    for (uint32_t s = 0; s < 256; s++) {
        frequencies[s] = (uint32_t)test_random_below(random, 1u << test_random_below(random, 4));
        n_left -= frequencies[s];
    }
    frequencies[most] += n_left - (uint32_t)test_random_below(random, 2) * 5;
}

/* Where slots next to each other belong to many symbols, and to symbols far apart. */
Test(rans, models_of_narrow_symbols_have_one_outcome)
{
    struct test_random random = {12};
    uint8_t symbols[2000], out[2000], stream[8000];

    for (uint32_t i = 0; i < 40; i++) {
        uint32_t frequencies[256];
        struct wharf_rans_job job = {.shape = {12 + i % 5, 1, 256, 1},
                                     .frequencies = frequencies,
                                     .symbols = symbols,
                                     .n_symbols = sizeof(symbols),
                                     .max_splits = 1 + i % 7};
        size_t nbytes;

        make_narrow_model(&random, 12 + i % 5, frequencies);
        for (uint32_t k = 0; k < sizeof(symbols); k++)
            do
                symbols[k] = (uint8_t)test_random_below(&random, 256);
            while (frequencies[symbols[k]] == 0);
        cr_assert_eq(wharf_rans_encode(&job, stream, sizeof(stream), &nbytes), 0);
        cr_assert_eq(decode_all(stream, nbytes, 1, out, sizeof(out), "whole").result, WHARF_OK);
        cr_assert_eq(memcmp(out, symbols, sizeof(out)), 0);
        for (unsigned k = 0; k < 20; k++) {
            uint64_t bit = 8 * 200 + test_random_below(&random, 8 * (nbytes - 200));
            stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
            decode_all(stream, nbytes, 1, out, sizeof(out), "flipped");
        }
    }
}

/* ---- the encoder's and the forms' own rules ------------------------------------------------ */

Test(rans, jobs_that_cannot_be_are_refused)
{
    uint32_t frequencies[2] = {2048, 0};
    uint8_t symbols[4] = {0, 0, 0, 0}, indexes[4] = {0}, out[1000];
    const struct wharf_rans_job good = {.shape = {11, 1, 2, 1},
                                        .frequencies = frequencies,
                                        .symbols = symbols,
                                        .n_symbols = 4,
                                        .max_splits = 1};
    size_t nbytes;
    struct wharf_rans_job job = good;

    cr_assert_eq(wharf_rans_encode(&job, out, sizeof(out), &nbytes), 0);
    symbols[2] = 1; /* has no frequency */
    cr_assert_eq(wharf_rans_encode(&job, out, sizeof(out), &nbytes), -EINVAL);
    symbols[2] = 2; /* is not in the alphabet */
    cr_assert_eq(wharf_rans_encode(&job, out, sizeof(out), &nbytes), -EINVAL);
    symbols[2] = 0;
    job.shape.n_bits = 17;
    cr_assert_eq(wharf_rans_encode(&job, out, sizeof(out), &nbytes), -EINVAL);
    job = good;
    job.max_splits = 0;
    cr_assert_eq(wharf_rans_encode(&job, out, sizeof(out), &nbytes), -EINVAL);
    job = good;
    job.indexes = indexes; /* for one distribution */
    cr_assert_eq(wharf_rans_encode(&job, out, sizeof(out), &nbytes), -EINVAL);
    job = good;
    for (size_t avail = 0; avail < nbytes; avail++) {
        size_t again;
        cr_assert_eq(wharf_rans_encode(&job, out, avail, &again), -ENOSPC);
    }
}

Test(rans, all_forms_make_the_same_stream)
{
    static const struct test_rans_plan plans[] = {
        {8, 1, 1, 33, 1, 200, 1},       {11, 1, 1, 30001, 30, 250, 2},
        {16, 1, 1, 30001, 5, 256, 3},   {12, 2, 1, 20001, 7, 4096, 4},
        {16, 2, 1, 10000, 3, 65536, 5}, {9, 1, 7, 20001, 9, 100, 6},
        {11, 2, 16, 20001, 9, 2000, 7}, {8, 1, 1, 9000, 4, 1, 8},
        {16, 2, 1, 9000, 4, 1, 9},      {15, 1, 2, 9000, 4, 2, 10},
    };
#define X(form, coder, where, where_in_buckets) #form,
    static const char *const forms[] = {"none", WHARF_RANS_LOOP_LIST(X)};
#undef X

    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        wharf_rans_loop_force("none");
        struct test_rans rans = test_rans_new(&plans[i]);
        for (size_t k = 1; k < sizeof(forms) / sizeof(forms[0]); k++) {
            if (wharf_rans_loop_force(forms[k]) < 0)
                continue;
            struct test_rans other = test_rans_new(&plans[i]);
            cr_assert_eq(other.stream_nbytes, rans.stream_nbytes, "%s, plan %zu", forms[k], i);
            cr_assert_eq(memcmp(other.stream, rans.stream, rans.stream_nbytes), 0, "%s, plan %zu",
                         forms[k], i);
            test_rans_free(&other);
        }
        test_rans_free(&rans);
    }
    wharf_rans_loop_force(NULL);
}

/* Equal counts, counts far apart, and more symbols than slots. */
Test(rans, frequencies_add_up)
{
    struct test_random random = {9};
    uint64_t counts[300];
    uint32_t frequencies[300];

    for (unsigned i = 0; i < 500; i++) {
        uint32_t n_bits = 8 + i % 9;
        uint32_t alphabet = 1 + (uint32_t)test_random_below(&random, 300);
        uint32_t n = 0;
        uint64_t sum = 0;

        for (uint32_t s = 0; s < alphabet; s++) {
            counts[s] = test_random_next(&random) >> (24 + test_random_below(&random, 40));
            n += counts[s] > 0;
        }
        int rc = wharf_rans_normalise(counts, alphabet, n_bits, frequencies);
        if (n == 0 || n > 1u << n_bits) {
            cr_assert_eq(rc, -EINVAL);
            continue;
        }
        cr_assert_eq(rc, 0);
        for (uint32_t s = 0; s < alphabet; s++) {
            cr_assert_eq(frequencies[s] > 0, counts[s] > 0);
            sum += frequencies[s];
        }
        cr_assert_eq(sum, 1u << n_bits);
    }
}

/* So many symbols that those of one count get their slots together: no slot would save more with
 * another symbol than where it is. */
Test(rans, slots_of_many_symbols_are_where_they_save_most)
{
    enum { ALPHABET = 6000 };
    static uint64_t counts[ALPHABET];
    static uint32_t frequencies[ALPHABET];
    struct test_random random = {11};

    for (uint32_t i = 0; i < 12; i++) {
        uint32_t n_bits = 13 + i % 4;
        uint64_t sum = 0;
        double most_to_gain = 0;
        double least_gained = INFINITY;

        for (uint32_t s = 0; s < ALPHABET; s++)
            counts[s] = test_random_below(&random, 1u << test_random_below(&random, 3 + i));
        cr_assert_eq(wharf_rans_normalise(counts, ALPHABET, n_bits, frequencies), 0);
        for (uint32_t s = 0; s < ALPHABET; s++) {
            double count = (double)counts[s];
            uint32_t f = frequencies[s];

            cr_assert_eq(f > 0, counts[s] > 0);
            sum += f;
            if (f > 0)
                most_to_gain = fmax(most_to_gain, count * log2(1 + 1.0 / f));
            if (f > 1)
                least_gained = fmin(least_gained, count * log2(1 + 1.0 / (f - 1)));
        }
        cr_assert_eq(sum, 1u << n_bits);
        cr_assert(most_to_gain <= least_gained * (1 + 1e-9), "n = %u, case %u", n_bits, i);
    }
}

Test(rans, unknown_forms_are_refused)
{
    cr_assert_eq(wharf_rans_loop_force("nothing"), -ENOENT);
    cr_assert_eq(wharf_rans_loop_force("none"), 0);
    cr_assert_null(wharf_rans_loop(false));
    cr_assert_null(wharf_rans_loop(true));
    cr_assert_eq(wharf_rans_loop_force(NULL), 0);
}
