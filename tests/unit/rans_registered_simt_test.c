/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_registered_simt_test: the device's decoder has the CPU's outcomes for streams whose models
 * are registered, whatever is wrong with them.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/wharf_codec.h"
#include "kernels/simt/simt_batch.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_rans.h"

static const uint32_t kernels[] = {WHARF_CODEC_RANS, WHARF_DEVICE_INDEXED | WHARF_CODEC_RANS,
                                   WHARF_DEVICE_ANY_CODEC};
enum { N_KERNELS = sizeof(kernels) / sizeof(kernels[0]) };

/* With `image`, which may be another stream's, or NULL; by one of the kernels. */
static void check(const struct test_rans *rans, const void *image, unsigned number)
{
    uint32_t parameter = rans->shape.symbol_nbytes - 1;
    struct test_guard in = test_guard_copy(rans->stream, rans->stream_nbytes, TEST_GUARD_END);
    struct test_guard out = test_guard_new(rans->plain_nbytes, TEST_GUARD_END);
    uint8_t *want_out = malloc(rans->plain_nbytes + 1);
    struct wharf_outcome want, got = {0};
    const char *wrong = test_rans_decode_either(in.data, in.nbytes, parameter, image, want_out,
                                                rans->plain_nbytes, &want);

    cr_assert_null(wrong);
    struct wharf_device_chunk chunk = {.in = in.data,
                                       .out = out.data,
                                       .in_nbytes = in.nbytes,
                                       .out_avail = rans->plain_nbytes,
                                       .codec = WHARF_CODEC_RANS,
                                       .parameter = parameter,
                                       .model = image};
    struct wharf_device_batch batch = {.chunks = &chunk, .outcomes = &got, .n_chunks = 1};
    batch.codec = kernels[number % N_KERNELS];
    cr_assert_eq(wharf_simt_decode_batch(&batch, (enum wharf_simt_order)(number / N_KERNELS % 3),
                                         number, NULL),
                 0);
    cr_assert(test_outcome_same(&got, &want), "case %u: %s; not %s", number,
              test_outcome_text(&got).text, test_outcome_text(&want).text);
    if (want.result == WHARF_OK)
        cr_assert(memcmp(out.data, want_out, want.out_nbytes) == 0, "case %u", number);
    free(want_out);
    test_guard_free(&in);
    test_guard_free(&out);
}

/* Tables in shared memory of either kind, and those of the image, also of more slots than a stream
 * can bring. */
static const struct test_rans_plan plans[] = {
    {8, 1, 1, 1500, 4, 100, 1},    {10, 1, 1, 1500, 4, 200, 2},  {11, 1, 1, 1500, 4, 200, 3},
    {12, 1, 1, 1500, 4, 250, 4},   {16, 1, 1, 1500, 4, 250, 5},  {11, 2, 1, 1500, 4, 900, 6},
    {16, 2, 1, 1500, 2, 40000, 7}, {14, 2, 20, 1500, 4, 900, 8}, {16, 1, 256, 1500, 4, 256, 9},
};
enum { N_PLANS = sizeof(plans) / sizeof(plans[0]) };

Test(rans_registered_simt, streams_without_models_come_back)
{
    for (unsigned i = 0; i < N_KERNELS * N_PLANS; i++) {
        struct test_rans rans = test_rans_new_registered(&plans[i / N_KERNELS]);
        check(&rans, rans.image, i);
        test_rans_free(&rans);
    }
}

Test(rans_registered_simt, models_that_do_not_fit_have_one_outcome)
{
    struct test_rans rans[N_PLANS], brings = test_rans_new(&plans[2]);

    for (unsigned i = 0; i < N_PLANS; i++)
        rans[i] = test_rans_new_registered(&plans[i]);
    for (unsigned i = 0; i < N_PLANS; i++) {
        check(&rans[i], rans[(i + 1) % N_PLANS].image, i);
        check(&rans[i], NULL, i + 1);
    }
    check(&brings, rans[2].image, 0);
    for (unsigned i = 0; i < N_PLANS; i++)
        test_rans_free(&rans[i]);
    test_rans_free(&brings);
}

/* Long enough for four chains: where windows are needed, several of them for a bucket, or too many;
 * where slots are nobody's; and of models that stand in their streams. */
static const struct test_rans_plan long_plans[] = {
    {12, 2, 1, 9000, 4, 900, 11},  {16, 2, 1, 9001, 4, 900, 12},  {16, 2, 1, 9002, 5, 40000, 13},
    {12, 2, 16, 9003, 4, 300, 14}, {14, 2, 64, 9004, 9, 500, 15}, {16, 1, 64, 9005, 6, 256, 16},
    {8, 1, 256, 9006, 4, 200, 17}, {16, 2, 3, 9031, 4, 9000, 18}, {9, 2, 100, 9008, 4, 300, 19},
    {12, 2, 16, 9009, 4, 300, 20}, {16, 2, 2, 9010, 4, 9000, 21}, {9, 1, 5, 9011, 4, 4, 22},
};
static const uint32_t long_free[] = {0, 40, 0, 1, 99};
enum { N_LONG_FREE = sizeof(long_free) / sizeof(long_free[0]) };
enum { N_LONG_PLANS = sizeof(long_plans) / sizeof(long_plans[0]) };

Test(rans_registered_simt, symbols_come_back_by_chains)
{
    for (unsigned i = 0; i < 2 * N_LONG_PLANS; i++) {
        const struct test_rans_plan *plan = &long_plans[i / 2];
        struct test_rans registered =
            test_rans_new_with_free_slots(plan, long_free[i % N_LONG_FREE]);
        check(&registered, registered.image, i);
        if (plan->n_distributions << plan->n_bits <= WHARF_RANS_INLINE_NSLOTS) {
            struct test_rans brings = test_rans_new(plan);
            check(&brings, NULL, i);
            test_rans_free(&brings);
        }
        test_rans_free(&registered);
    }
}

Test(rans_registered_simt, damaged_symbols_have_one_outcome)
{
    struct test_random random = {6};

    for (unsigned i = 0; i < 4 * N_LONG_PLANS; i++) {
        const struct test_rans_plan *plan = &long_plans[i % N_LONG_PLANS];
        bool fits = plan->n_distributions << plan->n_bits <= WHARF_RANS_INLINE_NSLOTS;
        struct test_rans rans =
            fits && i % 2 ? test_rans_new(plan)
                          : test_rans_new_with_free_slots(plan, long_free[i % N_LONG_FREE]);
        uint64_t bit = test_random_below(&random, 8 * rans.stream_nbytes);
        rans.stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        check(&rans, rans.image, i);
        test_rans_free(&rans);
    }
}

Test(rans_registered_simt, damage_has_one_outcome)
{
    struct test_random random = {5};

    for (unsigned i = 0; i < 90; i++) {
        struct test_rans_plan plan = plans[i % N_PLANS];
        plan.n_symbols = 600;
        plan.seed += i;
        struct test_rans rans = test_rans_new_registered(&plan);
        uint64_t limit = i % 2 ? 8 * rans.stream_nbytes : 8 * 16 + 1200;
        for (unsigned k = 0; k <= i % 3; k++) {
            uint64_t bit = test_random_below(&random, limit);
            rans.stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        if (i % 4 == 3)
            rans.stream_nbytes = test_random_below(&random, rans.stream_nbytes);
        check(&rans, rans.image, i);
        test_rans_free(&rans);
    }
}
