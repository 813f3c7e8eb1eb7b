/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codecs' encoders, and the list that they are found by.  Everything here goes over all codecs
 * of the list, all their encoders and all levels: a new codec is tested without a word more.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/codec.h"
#include "encoders/wharf_codec.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_guard.h"

static const uint32_t codecs[] = {
#define X(ID, name, number, summary) number,
    WHARF_CODEC_LIST(X)
#undef X
};
enum { N_CODECS = sizeof(codecs) / sizeof(codecs[0]) };

struct variant {
    uint32_t number;
    const struct wharf_codec_row *codec;
    const struct wharf_encoder_row *encoder;
    int level;
    uint32_t parameter;
};

/* Calls `visit` for every codec, encoder and level. */
static void for_each_variant(void (*visit)(const struct variant *variant))
{
    for (size_t i = 0; i < N_CODECS; i++) {
        const struct wharf_codec_row *codec = wharf_codec_find(codecs[i]);
        const struct wharf_encoder_row *row = codec->ops->encoder_rows;
        cr_assert_not_null(row->name, "%s has no encoder", codec->name);
        for (; row->name; row++)
            for (int level = row->level_min; level <= row->level_max; level++)
                for (uint32_t p = 0; wharf_codec_unit_nbytes(codec->ops, p); p++)
                    visit(&(struct variant){codecs[i], codec, row, level, p});
    }
}

static struct wharf_encoder *new_encoder(const struct variant *variant)
{
    struct wharf_encoder_options options = {variant->encoder->name, variant->level,
                                            variant->parameter};
    struct wharf_encoder *encoder;

    cr_assert_eq(variant->codec->ops->encoder->new (&options, &encoder), 0);
    return encoder;
}

static void expect_decodes(const struct variant *variant, const uint8_t *in, size_t in_nbytes,
                           const uint8_t *raw, size_t raw_nbytes)
{
    wharf_decode_fn *const decoders[] = {variant->codec->ops->decode,
                                         variant->codec->ops->decode_reference};
    const struct wharf_codec_setting setting = {.parameter = variant->parameter};
    uint8_t *out = malloc(raw_nbytes + 1);

    for (size_t i = 0; i < 2; i++) {
        struct wharf_outcome outcome;
        decoders[i](in, in_nbytes, out, raw_nbytes, &setting, &outcome);
        cr_assert_eq(outcome.result, WHARF_OK, "%s by %s, level %d: %s", variant->codec->name,
                     variant->encoder->name, variant->level, wharf_reason_string(outcome.reason));
        cr_assert_eq(outcome.in_nbytes, in_nbytes);
        cr_assert_eq(outcome.out_nbytes, raw_nbytes);
        cr_assert_eq(memcmp(out, raw, raw_nbytes), 0);
    }
    free(out);
}

/* One size of one kind: into exactly `bound` bytes, and into exactly what it takes. */
static void check_round_trip(const struct variant *variant, struct wharf_encoder *encoder,
                             const uint8_t *raw, size_t raw_nbytes)
{
    const struct wharf_encoder_ops *ops = variant->codec->ops->encoder;
    size_t bound = ops->bound(encoder, raw_nbytes);
    struct test_guard loose = test_guard_new(bound, TEST_GUARD_END);
    struct test_guard tight;
    /* Nothing may be nowhere: liblz4's thorough compressor looked there. */
    const uint8_t *in = raw_nbytes ? raw : NULL;
    size_t nbytes = 0;
    size_t again = 0;

    cr_assert_eq(ops->encode(encoder, in, raw_nbytes, loose.data, bound, &nbytes), 0,
                 "%s by %s, level %d: %zu bytes do not fit %zu", variant->codec->name,
                 variant->encoder->name, variant->level, raw_nbytes, bound);
    cr_assert_leq(nbytes, bound);
    cr_assert(wharf_codec_may_yield(variant->codec->ops, nbytes, raw_nbytes));
    expect_decodes(variant, loose.data, nbytes, raw, raw_nbytes);
    tight = test_guard_new(nbytes, TEST_GUARD_END);
    if (ops->encode(encoder, in, raw_nbytes, tight.data, nbytes, &again) == 0) {
        cr_assert_eq(again, nbytes);
        cr_assert_eq(memcmp(loose.data, tight.data, nbytes), 0, "not the same bytes twice");
    }
    test_guard_free(&tight);
    test_guard_free(&loose);
}

/* Sizes around 0, 1, a warp, a match and a page; for each level some above a block. */
static void check_sizes(const struct variant *variant)
{
    static const size_t sizes[] = {0, 1, 2, 31, 32, 33, 258, 4095, 4096, 4097, 70000};
    struct wharf_encoder *encoder = new_encoder(variant);

    for (size_t kind = 0; kind < test_data_n_kinds; kind++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            uint8_t *raw;
            if (sizes[i] > 5000 && (kind + (size_t)variant->level) % 4 != 0)
                continue;
            raw = test_data_new(&test_data_kinds[kind], i, sizes[i]);
            size_t nbytes = test_data_fit(variant->number, variant->parameter, raw, sizes[i]);
            check_round_trip(variant, encoder, raw, nbytes);
            free(raw);
        }
    variant->codec->ops->encoder->free(encoder);
}

Test(encode, every_level_gives_back_what_it_took)
{
    for_each_variant(check_sizes);
}

static void check_room(const struct variant *variant)
{
    const struct wharf_encoder_ops *ops = variant->codec->ops->encoder;
    struct wharf_encoder *encoder = new_encoder(variant);
    uint8_t *raw = test_data_new(test_data_find("random"), 1, 3000);
    size_t raw_nbytes = test_data_fit(variant->number, variant->parameter, raw, 3000);
    /* What boolrle makes of so many, the others of so much. */
    size_t least_nbytes = variant->number == WHARF_CODEC_BOOLRLE ? 3000 / 8 : 3000;

    for (size_t avail = 0; avail < least_nbytes; avail += 1 + avail / 2) {
        struct test_guard out = test_guard_new(avail, TEST_GUARD_END);
        size_t nbytes;
        cr_assert_eq(ops->encode(encoder, raw, raw_nbytes, out.data, avail, &nbytes), -ENOSPC,
                     "%s by %s, level %d, %zu bytes", variant->codec->name, variant->encoder->name,
                     variant->level, avail);
        test_guard_free(&out);
    }
    check_round_trip(variant, encoder, raw, raw_nbytes);
    ops->free(encoder);
    free(raw);
}

/* Nothing is written behind the end, and the encoder is good for the next chunk. */
Test(encode, too_little_room_is_an_answer)
{
    for_each_variant(check_room);
}

Test(encode, unknown_names_and_levels_are_refused)
{
    for (size_t i = 0; i < N_CODECS; i++) {
        const struct wharf_codec_row *codec = wharf_codec_find(codecs[i]);
        struct wharf_encoder *encoder = NULL;

        for (const struct wharf_encoder_row *row = codec->ops->encoder_rows; row->name; row++) {
            struct wharf_encoder_options options = {row->name, row->level_max + 1, 0};
            cr_assert_eq(codec->ops->encoder->new (&options, &encoder), -EINVAL);
            options.level = row->level_min - 1;
            if (options.level != WHARF_LEVEL_DEFAULT)
                cr_assert_eq(codec->ops->encoder->new (&options, &encoder), -EINVAL);
            options.level = WHARF_LEVEL_DEFAULT - 1;
            cr_assert_eq(codec->ops->encoder->new (&options, &encoder), -EINVAL);
        }
        cr_assert_eq(
            codec->ops->encoder->new (
                &(struct wharf_encoder_options){"nobody", WHARF_LEVEL_DEFAULT, 0}, &encoder),
            -EINVAL);
        cr_assert_eq(
            codec->ops->encoder->new (
                &(struct wharf_encoder_options){NULL, WHARF_LEVEL_DEFAULT, 65535}, &encoder),
            -EINVAL);
        cr_assert_null(encoder);
        codec->ops->encoder->free(NULL);
    }
}

/* NULL options, a NULL name and the default level all mean the first row's default. */
Test(encode, defaults_are_the_first_encoders)
{
    for (size_t i = 0; i < N_CODECS; i++) {
        const struct wharf_codec_ops *ops = wharf_codec_find(codecs[i])->ops;
        const struct wharf_encoder_row *rows = ops->encoder_rows;
        const struct wharf_encoder_options unnamed = {NULL, WHARF_LEVEL_DEFAULT, 0};
        const struct wharf_encoder_row *row = NULL;
        int level = -2;

        cr_assert_eq(wharf_encoder_choose(ops, NULL, &row, &level), 0);
        cr_assert(row == rows && level == rows->level_default);
        row = NULL;
        cr_assert_eq(wharf_encoder_choose(ops, &unnamed, &row, &level), 0);
        cr_assert(row == rows && level == rows->level_default);
    }
}

/* Better levels are there to pack better: on data of some structure, with rare bytes in it. */
Test(encode, higher_levels_pack_better)
{
    uint8_t *raw = test_data_new(test_data_find("mixed"), 1, 70000);

    for (size_t i = 0; i < N_CODECS; i++) {
        const struct wharf_codec_row *codec = wharf_codec_find(codecs[i]);
        for (const struct wharf_encoder_row *row = codec->ops->encoder_rows; row->name; row++) {
            size_t nbytes[2] = {0, 0};
            if (row->level_min == row->level_max)
                continue;
            for (int high = 0; high < 2; high++) {
                struct variant variant = {codecs[i], codec, row,
                                          high ? row->level_max : row->level_min, 0};
                struct wharf_encoder *encoder = new_encoder(&variant);
                size_t bound = codec->ops->encoder->bound(encoder, 70000);
                uint8_t *out = malloc(bound);
                cr_assert_eq(
                    codec->ops->encoder->encode(encoder, raw, 70000, out, bound, &nbytes[high]), 0);
                free(out);
                codec->ops->encoder->free(encoder);
            }
            cr_assert_lt(nbytes[1], nbytes[0], "%s by %s", codec->name, row->name);
        }
    }
    free(raw);
}

Test(codec, rows_are_found_by_number)
{
    for (size_t i = 0; i < N_CODECS; i++) {
        const struct wharf_codec_row *row = wharf_codec_find(codecs[i]);
        cr_assert_not_null(row);
        cr_assert_not_null(row->ops->decode);
        cr_assert_not_null(row->ops->decode_reference);
        cr_assert_gt(row->ops->max_ratio, 0);
    }
    cr_assert_null(wharf_codec_find(UINT32_MAX));
}

/* Products and sums past 64 bits mean "yes", never a small number. */
Test(codec, claims_are_compared_without_wrapping)
{
    const struct wharf_codec_ops ops = {.max_ratio = 1032, .max_constant = 7};

    cr_assert(wharf_codec_may_yield(&ops, 0, 7));
    cr_assert(!wharf_codec_may_yield(&ops, 0, 8));
    cr_assert(wharf_codec_may_yield(&ops, 1, 1039));
    cr_assert(!wharf_codec_may_yield(&ops, 1, 1040));
    cr_assert(!wharf_codec_may_yield(&ops, 1, UINT64_MAX));
    cr_assert(wharf_codec_may_yield(&ops, UINT64_MAX, UINT64_MAX));
    cr_assert(wharf_codec_may_yield(&ops, UINT64_MAX / 1032 + 1, UINT64_MAX));
}

/* The bounds that the rows give, taken to their limit: zeros at the highest level. */
Test(codec, nothing_packs_tighter_than_its_row_says)
{
    size_t raw_nbytes = 1 << 20;
    uint8_t *raw = test_data_new(test_data_find("zeros"), 1, raw_nbytes);
    uint8_t *out = malloc(2 * raw_nbytes);

    for (size_t i = 0; i < N_CODECS; i++) {
        const struct wharf_codec_row *codec = wharf_codec_find(codecs[i]);
        const struct wharf_encoder_row *row = codec->ops->encoder_rows;
        struct wharf_encoder *encoder =
            new_encoder(&(struct variant){codecs[i], codec, row, row->level_max, 0});
        size_t nbytes;

        cr_assert_eq(
            codec->ops->encoder->encode(encoder, raw, raw_nbytes, out, 2 * raw_nbytes, &nbytes), 0);
        cr_assert(wharf_codec_may_yield(codec->ops, nbytes, raw_nbytes));
        codec->ops->encoder->free(encoder);
    }
    free(out);
    free(raw);
}
