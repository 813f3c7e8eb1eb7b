/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codec's encoder of rans: its short ways for the few symbols that a chunk has give what the
 * long ones give.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/rans/rans.h"
#include "encoders/rans/rans_encode.h"
#include "encoders/rans/rans_statistics.h"
#include "tests/lib/test_random.h"

enum { MAX_ALPHABET = WHARF_RANS_MAX_ALPHABET };

/* The same model by symbol, and by those that have a frequency. */
struct models {
    uint32_t all[MAX_ALPHABET];
    uint32_t symbols[MAX_ALPHABET];
    uint32_t some[MAX_ALPHABET];
    uint32_t n;
};

/* One symbol in `sparse` has a frequency, of 17 bits at most; the last one has. */
static void make_models(struct models *models, struct test_random *random, uint32_t alphabet,
                        uint32_t sparse)
{
    models->n = 0;
    for (uint32_t s = 0; s < alphabet; s++) {
        bool has = s == alphabet - 1 || test_random_below(random, sparse) == 0;

        models->all[s] =
            has ? 1 + (uint32_t)(test_random_next(random) >> 48 >> test_random_below(random, 16))
                : 0;
        if (has) {
            models->symbols[models->n] = s;
            models->some[models->n++] = models->all[s];
        }
    }
}

Test(rans_chunk, packs_some_symbols_like_all)
{
    static const uint32_t alphabets[] = {1, 2, 31, 32, 33, 64, 257, 4000, 65535, 65536};
    struct models *models = malloc(sizeof(*models));
    size_t room = wharf_rans_packed_bound(MAX_ALPHABET) + WHARF_RANS_SOME_MARGIN_NBYTES;
    uint8_t *want = malloc(room), *got = malloc(room);
    struct test_random random = {1};

    for (uint32_t i = 0; i < 60; i++) {
        struct wharf_rans_shape shape = {16, 2, alphabets[i % 10], 1};
        struct wharf_rans_some some = {models->symbols, models->some, 0};
        size_t nbytes;

        make_models(models, &random, shape.alphabet, 1u << i / 5);
        some.n = models->n;
        nbytes = wharf_rans_model_pack(&shape, models->all, want, room);
        cr_assert_eq((wharf_rans_some_nbits(&some) + 7) / 8, nbytes);
        memset(got, 0xff, room);
        cr_assert_eq(wharf_rans_some_pack(&some, got), nbytes);
        cr_assert_eq(memcmp(got, want, nbytes), 0, "case %u", i);
    }
    free(models);
    free(want);
    free(got);
}

/* Symbols that differ widely from one chunk to the next. */
static size_t make_chunk(struct test_random *random, uint8_t *out, uint32_t symbol_nbytes)
{
    uint32_t n = (uint32_t)test_random_below(random, 3000);
    uint32_t from = (uint32_t)test_random_below(random, 60000);
    uint32_t most = 1u << test_random_below(random, 13);

    for (uint32_t i = 0; i < n; i++) {
        uint32_t symbol = from + (uint32_t)test_random_below(random, most);

        out[symbol_nbytes * i] = (uint8_t)symbol;
        if (symbol_nbytes == 2)
            out[2 * i + 1] = (uint8_t)(symbol >> 8);
    }
    return n * symbol_nbytes;
}

/* Counts of one chunk that were left would be the next one's. */
Test(rans_chunk, chunks_do_not_depend_on_those_before)
{
    static uint8_t in[6000], out[2][200000];
    struct test_random random = {2};

    for (uint32_t symbol_nbytes = 1; symbol_nbytes <= 2; symbol_nbytes++) {
        struct wharf_encoder_options options = {.level = 16,
                                                .parameter = symbol_nbytes == 1
                                                                 ? WHARF_RANS_PARAMETER_BYTES
                                                                 : WHARF_RANS_PARAMETER_U16};
        struct wharf_encoder *old;

        cr_assert_eq(wharf_rans_encoder.new(&options, &old), 0);
        for (unsigned i = 0; i < 30; i++) {
            struct wharf_encoder *fresh;
            size_t in_nbytes = make_chunk(&random, in, symbol_nbytes), nbytes[2];

            cr_assert_leq(wharf_rans_encoder.bound(old, in_nbytes), sizeof(out[0]));
            cr_assert_eq(wharf_rans_encoder.new(&options, &fresh), 0);
            cr_assert_eq(
                wharf_rans_encoder.encode(old, in, in_nbytes, out[0], sizeof(out[0]), &nbytes[0]),
                0);
            cr_assert_eq(
                wharf_rans_encoder.encode(fresh, in, in_nbytes, out[1], sizeof(out[1]), &nbytes[1]),
                0);
            wharf_rans_encoder.free(fresh);
            cr_assert_eq(nbytes[0], nbytes[1]);
            cr_assert_eq(memcmp(out[0], out[1], nbytes[0]), 0);
        }
        wharf_rans_encoder.free(old);
    }
}

/* In rising order, each counted; and symbol 0 where there is none. */
Test(rans_chunk, statistics_are_of_what_is_there)
{
    static const uint8_t words[] = {5, 1, 0xff, 0xff, 5, 1, 0, 0, 5, 0, 5, 1};
    struct wharf_rans_statistics statistics;

    cr_assert_eq(wharf_rans_statistics_init(&statistics, 2), 0);
    wharf_rans_statistics_take(&statistics, words, sizeof(words) / 2);
    cr_assert_eq(statistics.n, 4);
    for (uint32_t i = 0; i < 4; i++) {
        static const uint32_t symbols[] = {0, 5, 261, 65535}, counts[] = {1, 1, 3, 1};

        cr_assert_eq(statistics.symbols[i], symbols[i]);
        cr_assert_eq(statistics.counts[i], counts[i]);
    }
    wharf_rans_statistics_take(&statistics, words, 0);
    cr_assert_eq(statistics.n, 1);
    cr_assert_eq(statistics.symbols[0], 0);
    cr_assert_eq(statistics.counts[0], 1);
    wharf_rans_statistics_deinit(&statistics);
}
