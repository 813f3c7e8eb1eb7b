/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_registered_test: models that stand in no stream: their images, and streams that name them.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/little_endian.h"
#include "encoders/rans/rans_image.h"
#include "encoders/rans/rans_window.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_rans.h"

static void check_round_trip(const struct test_rans_plan *plan)
{
    struct test_rans rans = test_rans_new_registered(plan);
    uint8_t *out = malloc(rans.plain_nbytes + 1);
    struct wharf_outcome outcome;
    const char *wrong = test_rans_decode_registered(rans.stream, rans.stream_nbytes, rans.image,
                                                    out, rans.plain_nbytes, &outcome);

    cr_assert_null(wrong, "%s differs", wrong);
    cr_assert_eq(outcome.result, WHARF_OK, "n %u, %u distributions: %s", plan->n_bits,
                 plan->n_distributions, wharf_reason_string(outcome.reason));
    cr_assert_eq(outcome.out_nbytes, rans.plain_nbytes);
    cr_assert_eq(outcome.in_nbytes, rans.stream_nbytes);
    cr_assert(memcmp(out, rans.plain, rans.plain_nbytes) == 0);
    free(out);
    test_rans_free(&rans);
}

Test(rans_registered, streams_without_models_come_back)
{
    for (uint32_t n_bits = 8; n_bits <= 16; n_bits++)
        for (uint32_t nbytes = 1; nbytes <= 2; nbytes++)
            check_round_trip(
                &(struct test_rans_plan){n_bits, nbytes, 1, 5000, 4, 200, 10 * n_bits + nbytes});
}

/* 65536 slots are the most that a stream can bring with it. */
Test(rans_registered, models_are_larger_than_streams_can_bring)
{
    check_round_trip(&(struct test_rans_plan){16, 2, 3, 4000, 3, 3000, 1});
    check_round_trip(&(struct test_rans_plan){16, 1, 256, 20000, 9, 256, 2});
    check_round_trip(&(struct test_rans_plan){12, 2, 256, 20000, 9, 900, 3});
}

/* Which of the reasons for which nothing of it is a model; and that none is read past its end. */
static enum wharf_reason register_copy(const uint8_t *model, size_t nbytes)
{
    uint8_t *copy = malloc(nbytes + 1);
    size_t image_nbytes;
    void *image = NULL;
    enum wharf_reason reason;

    memcpy(copy, model, nbytes);
    reason = wharf_rans_image_nbytes(copy, nbytes, &image_nbytes);
    if (reason == WHARF_REASON_NONE) {
        image = calloc(1, image_nbytes);
        reason = wharf_rans_image_make(copy, nbytes, image);
    }
    free(image);
    free(copy);
    return reason;
}

Test(rans_registered, what_is_no_model_is_refused)
{
    struct test_rans rans =
        test_rans_new_registered(&(struct test_rans_plan){11, 1, 1, 3000, 1, 200, 5});
    uint8_t *model = malloc(rans.model_nbytes + 1);

    memcpy(model, rans.model, rans.model_nbytes);
    cr_assert_eq(register_copy(model, rans.model_nbytes), WHARF_REASON_NONE);
    model[rans.model_nbytes] = 0;
    cr_assert_eq(register_copy(model, rans.model_nbytes + 1), WHARF_REASON_INPUT_LEFT);
    for (size_t n = 0; n < rans.model_nbytes; n++)
        cr_assert_eq(register_copy(model, n), WHARF_REASON_INPUT_TRUNCATED, "%zu bytes", n);

    struct {
        size_t at;
        uint8_t value;
        enum wharf_reason reason;
    } const changes[] = {
        {0, 2, WHARF_REASON_RANS_VERSION},   {1, 7, WHARF_REASON_RANS_HEADER},
        {1, 17, WHARF_REASON_RANS_HEADER},   {2, 0, WHARF_REASON_RANS_HEADER},
        {2, 3, WHARF_REASON_RANS_HEADER},    {3, 1, WHARF_REASON_RANS_HEADER},
        {5, 1, WHARF_REASON_RANS_HEADER},    /* 257 distributions */
        {7, 1, WHARF_REASON_RANS_HEADER},    /* an alphabet that bytes do not have */
        {12, 1, WHARF_REASON_RANS_HEADER},   /* indexes */
        {4, 1, WHARF_REASON_RANS_MODEL},     /* a distribution that is not there */
        {1, 10, WHARF_REASON_RANS_MODEL},    /* more slots than 2^n */
        {16, 0xff, WHARF_REASON_RANS_MODEL}, /* a width of 31 */
    };
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        memcpy(model, rans.model, rans.model_nbytes);
        model[changes[i].at] = changes[i].value;
        enum wharf_reason reason = register_copy(model, rans.model_nbytes);
        cr_assert_eq(reason, changes[i].reason, "change %zu: %s", i, wharf_reason_string(reason));
    }
    free(model);
    test_rans_free(&rans);
}

/* 2^24 slots are the most, and a header that claims so many without what they need gets nothing: 16
 * bytes were given 101 MiB. */
Test(rans_registered, a_header_cannot_ask_for_more_than_is_there)
{
    enum { WIDTHS_NBYTES = 256 * 2048 * 5 / 8 };
    uint8_t model[16] = {1, 16, 2, 0, 255, 0, 255, 255};
    uint8_t *widths = calloc(1, sizeof(model) + WIDTHS_NBYTES);
    size_t nbytes = 0;

    cr_assert_eq(wharf_rans_image_nbytes(model, sizeof(model), &nbytes), WHARF_REASON_RANS_MODEL);
    memcpy(widths, model, sizeof(model));
    for (uint32_t less = 0; less <= 1; less++) {
        wharf_store_le32(widths + 8, WIDTHS_NBYTES - less);
        enum wharf_reason reason =
            wharf_rans_image_nbytes(widths, sizeof(model) + WIDTHS_NBYTES - less, &nbytes);
        cr_assert_eq(reason, less ? WHARF_REASON_RANS_MODEL : WHARF_REASON_NONE);
    }
    cr_assert_leq(nbytes, (size_t)101 << 20);
    /* All of them 0 are no distributions. */
    wharf_store_le32(widths + 8, WIDTHS_NBYTES);
    void *image = calloc(1, nbytes);
    cr_assert_eq(wharf_rans_image_make(widths, sizeof(model) + WIDTHS_NBYTES, image),
                 WHARF_REASON_RANS_MODEL);
    free(image);
    free(widths);
}

/* ---- windows ------------------------------------------------------------------------------- */

/* A slot's symbol, its first slot and its last one, as rans_window.h says. */
static void find_in_windows(const struct wharf_rans_image *image, uint32_t d, uint32_t slot,
                            uint32_t found[3])
{
    const uint8_t *at = (const uint8_t *)image;
    const struct wharf_rans_window *window =
        (const struct wharf_rans_window *)(const void *)(at + image->windows_at) +
        d * image->windows_stride;
    uint32_t scale = ((const uint32_t *)(const void *)(at + image->scales_at))[d];
    const uint16_t *buckets = (const uint16_t *)(const void *)(at + image->buckets_at) +
                              (scale & ((1u << WHARF_RANS_SCALE_SHIFT) - 1));
    uint32_t first = buckets[slot >> (scale >> WHARF_RANS_SCALE_SHIFT)], n = first, i = 0;

    while (window[n].edges[WHARF_RANS_WINDOW_NSYMBOLS] < slot)
        cr_assert_lt(++n, image->windows_stride);
    cr_assert_leq(n - first, WHARF_RANS_MOST_WINDOWS_BEHIND);
    while (window[n].edges[i + 1] < slot)
        i++;
    found[0] = window[n].symbols[i];
    found[1] = (uint16_t)(window[n].edges[i] + 1);
    found[2] = window[n].edges[i + 1];
}

static void check_windows(const struct wharf_rans_image *image)
{
    struct wharf_rans_model model;

    cr_assert_neq(image->windows_at, 0);
    wharf_rans_image_model(image, &model);
    for (uint32_t d = 0; d < model.shape.n_distributions; d++)
        for (uint32_t slot = 0; slot < 1u << model.shape.n_bits; slot++) {
            uint32_t found[3], symbol = model.slot_symbols[d << model.shape.n_bits | slot];
            const struct wharf_rans_range *range = &model.ranges[d * model.shape.alphabet + symbol];
            find_in_windows(image, d, slot, found);
            if (slot >= model.totals[d]) {
                cr_assert_eq(found[1], model.totals[d]);
            } else {
                cr_assert_eq(found[0], symbol);
                cr_assert_eq(found[1], range->first);
                cr_assert_eq(found[2], (uint32_t)range->first + range->frequency_less_1);
            }
        }
}

Test(rans_registered, windows_say_what_slots_do)
{
    const struct test_rans_plan plans[] = {
        {8, 1, 256, 9000, 1, 200, 1}, {12, 2, 16, 9000, 1, 900, 2}, {16, 2, 1, 9000, 1, 40000, 3},
        {16, 2, 64, 9000, 1, 300, 4}, {9, 2, 64, 900, 1, 7, 5},     {16, 2, 3, 900, 1, 1, 6},
        {16, 2, 3, 900, 1, 9, 7},     {11, 1, 17, 900, 1, 14, 8},
    };

    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        struct test_rans rans = test_rans_new_with_free_slots(&plans[i], i % 2 ? 30 : 0);
        check_windows(rans.image);
        test_rans_free(&rans);
    }
}

/* As many symbols as can be in one bucket, first or last; or behind it slots that are nobody's. */
Test(rans_registered, windows_of_a_bucket_are_few)
{
    enum { ALPHABET = 400, N_BITS = 16 };
    const struct wharf_rans_shape shape = {N_BITS, 2, ALPHABET, 1};

    for (unsigned i = 0; i < 3; i++) {
        uint32_t frequencies[ALPHABET];
        uint8_t model[8 * ALPHABET];
        for (unsigned s = 0; s < ALPHABET; s++)
            frequencies[s] = 1;
        frequencies[i > 0 ? ALPHABET - 1 : 0] += (1u << N_BITS) - ALPHABET - (i == 2 ? 20000 : 0);
        size_t nbytes = wharf_rans_model_write(&shape, frequencies, model, sizeof(model));
        cr_assert_leq(nbytes, sizeof(model));
        void *image = test_rans_image(model, nbytes, NULL);
        check_windows(image);
        free(image);
    }
}

/* Many distributions of many symbols, and few slots. */
Test(rans_registered, windows_are_left_out_where_they_are_of_no_use)
{
    const struct test_rans_plan plans[] = {{16, 2, 32, 3000, 1, 40000, 1},
                                           {12, 2, 1, 3000, 1, 900, 1}};

    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        struct test_rans rans = test_rans_new_registered(&plans[i]);
        cr_assert_eq(((const struct wharf_rans_image *)rans.image)->windows_at, 0);
        test_rans_free(&rans);
    }
}

static enum wharf_reason decode_with(const struct test_rans *rans, const void *image)
{
    uint8_t *out = malloc(rans->plain_nbytes + 1);
    struct wharf_outcome outcome;
    const char *wrong = test_rans_decode_either(rans->stream, rans->stream_nbytes, 0, image, out,
                                                rans->plain_nbytes, &outcome);

    cr_assert_null(wrong, "%s differs", wrong);
    cr_assert_eq(outcome.result == WHARF_OK, outcome.reason == WHARF_REASON_NONE);
    free(out);
    return (enum wharf_reason)outcome.reason;
}

Test(rans_registered, streams_and_models_have_to_fit)
{
    struct test_rans_plan plan = {11, 1, 1, 3000, 2, 200, 6};
    struct test_rans with = test_rans_new(&plan);
    struct test_rans without = test_rans_new_registered(&plan);
    struct test_rans other =
        test_rans_new_registered(&(struct test_rans_plan){12, 1, 1, 3000, 2, 200, 6});

    cr_assert_eq(decode_with(&without, without.image), WHARF_REASON_NONE);
    cr_assert_eq(decode_with(&with, NULL), WHARF_REASON_NONE);
    cr_assert_eq(decode_with(&without, NULL), WHARF_REASON_RANS_MODEL);
    cr_assert_eq(decode_with(&with, without.image), WHARF_REASON_RANS_HEADER);
    cr_assert_eq(decode_with(&without, other.image), WHARF_REASON_RANS_HEADER);
    test_rans_free(&with);
    test_rans_free(&without);
    test_rans_free(&other);
}

/* A model of the right shape with other frequencies: an answer, the same of all forms. */
Test(rans_registered, wrong_models_and_damage_have_one_outcome)
{
    struct test_random random = {11};

    for (unsigned i = 0; i < 120; i++) {
        struct test_rans_plan plan = {i % 3 ? 11 : 16, 1 + i % 2, i % 4 ? 1 : 5, 2000, 4, 1 + i, i};
        struct test_rans rans = test_rans_new_registered(&plan);
        uint8_t *out = malloc(rans.plain_nbytes + 1);
        struct wharf_outcome outcome;

        if (i % 5) {
            uint64_t bit = test_random_below(&random, 8 * rans.stream_nbytes);
            rans.stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        } else {
            plan.seed += 1000;
            struct test_rans other = test_rans_new_registered(&plan);
            void *image = rans.image;
            rans.image = other.image;
            other.image = image;
            test_rans_free(&other);
        }
        const char *wrong = test_rans_decode_registered(rans.stream, rans.stream_nbytes, rans.image,
                                                        out, rans.plain_nbytes, &outcome);
        cr_assert_null(wrong, "case %u: %s differs", i, wrong);
        free(out);
        test_rans_free(&rans);
    }
}
