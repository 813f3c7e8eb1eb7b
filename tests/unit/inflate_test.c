/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU decoders give zlib's result for every source, in every form of the fast loop and with
 * every way of filling tables, and touch nothing but source and destination.  They are compared
 * with the reference engine, which asks zlib and finds the place of an error by its own walk.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "encoders/codec.h"
#include "encoders/deflate/inflate_litlen.h"
#include "encoders/deflate/inflate_loop.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_forge.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"

static const struct {
    uint32_t codec;
    int window_bits;
} wraps[] = {
    {WHARF_CODEC_DEFLATE, -15},
    {WHARF_CODEC_ZLIB, 15},
    {WHARF_CODEC_GZIP, 15 + 16},
};
enum { N_WRAPS = sizeof(wraps) / sizeof(wraps[0]) };

static const char *const forms[] = {
#define X(form) #form,
    WHARF_INFLATE_LOOP_LIST(X)
#undef X
};
enum { N_FORMS = sizeof(forms) / sizeof(forms[0]) };

static const unsigned plans[] = {WHARF_LITLEN_AUTO, 0, WHARF_LITLEN_PAIRS, WHARF_LITLEN_MATCHES,
                                 WHARF_LITLEN_PAIRS | WHARF_LITLEN_MATCHES};
enum { N_PLANS = sizeof(plans) / sizeof(plans[0]) };

/* ---- comparing ----------------------------------------------------------------------------- */

static void expect_same(const struct wharf_outcome *got, const struct wharf_outcome *want,
                        const char *who)
{
    cr_assert(test_outcome_same(got, want), "%s: %s; not %s", who, test_outcome_text(got).text,
              test_outcome_text(want).text);
}

/* Decodes from and into buffers that end, or begin, at pages that cannot be touched. */
static struct wharf_outcome expect_agreement(uint32_t codec, const uint8_t *in, size_t in_nbytes,
                                             size_t out_avail)
{
    const struct wharf_codec_ops *ops = wharf_codec_find(codec)->ops;
    uint8_t *want_out = malloc(out_avail + 1);
    struct wharf_outcome want;

    cr_assert(want_out);
    ops->decode_reference(in, in_nbytes, want_out, out_avail, NULL, &want);
    cr_assert_neq(want.result, WHARF_INTERNAL, "zlib and the walk over the bits disagree");
    for (int side = TEST_GUARD_END; side <= TEST_GUARD_START; side++) {
        struct test_guard source = test_guard_copy(in, in_nbytes, side);
        struct test_guard out = test_guard_new(out_avail, side);
        for (unsigned i = 0; i < N_FORMS * N_PLANS; i++) {
            struct wharf_outcome got;
            if (wharf_inflate_loop_force(forms[i / N_PLANS]) < 0)
                continue; /* not on this machine; "plain" is on every one */
            wharf_inflate_litlen_force(plans[i % N_PLANS]);
            ops->decode(source.data, in_nbytes, out.data, out_avail, NULL, &got);
            expect_same(&got, &want, forms[i / N_PLANS]);
            cr_assert(want.out_nbytes == 0 || memcmp(out.data, want_out, want.out_nbytes) == 0,
                      "%s, plan %u: other bytes", forms[i / N_PLANS], plans[i % N_PLANS]);
        }
        test_guard_free(&source);
        test_guard_free(&out);
    }
    wharf_inflate_loop_force(NULL);
    wharf_inflate_litlen_force(WHARF_LITLEN_AUTO);
    free(want_out);
    return want;
}

/* ---- streams of zlib's --------------------------------------------------------------------- */

struct pack_options {
    int window_bits;
    int level;
    int mem_level;
    int strategy;
    int flush; /* after every `piece` bytes */
    size_t piece;
};

static size_t pack(const struct pack_options *options, const uint8_t *raw, size_t raw_nbytes,
                   uint8_t *out, size_t out_avail)
{
    z_stream stream = {0};
    int result;

    cr_assert_eq(deflateInit2(&stream, options->level, Z_DEFLATED, options->window_bits,
                              options->mem_level, options->strategy),
                 Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)raw;
    stream.next_out = out;
    stream.avail_out = (uInt)out_avail;
    do {
        size_t left = raw_nbytes - stream.total_in;
        int is_last = left <= options->piece;
        stream.avail_in = (uInt)(is_last ? left : options->piece);
        result = deflate(&stream, is_last ? Z_FINISH : options->flush);
    } while (result == Z_OK && stream.avail_out);
    cr_assert_eq(result, Z_STREAM_END);
    deflateEnd(&stream);
    return stream.total_out;
}

/* Any options at all; blocks end where the buffers that memLevel gives are full, so small ones
 * give many blocks. */
static struct pack_options draw_options(struct test_random *random, int window_bits)
{
    static const int flushes[] = {Z_NO_FLUSH, Z_PARTIAL_FLUSH, Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_BLOCK};
    int smaller = (int)test_random_below(random, 7);
    struct pack_options options = {
        .window_bits = window_bits < 0 ? window_bits + smaller : window_bits - smaller,
        .level = (int)test_random_below(random, 10),
        .mem_level = 1 + (int)test_random_below(random, 9),
        .strategy = (int)test_random_below(random, 5),
        .flush = flushes[test_random_below(random, 5)],
        .piece = 1 + test_random_below(random, 5000),
    };
    return options;
}

Test(inflate, agrees_with_zlib_on_all_that_it_packs)
{
    enum { ROUNDS = 300, MAX_RAW = 20000, AVAIL = 4 * MAX_RAW };
    struct test_random random = {1};
    uint8_t *packed = malloc(AVAIL);

    cr_assert(packed);
    for (unsigned round = 0; round < ROUNDS; round++) {
        const struct test_data_kind *kind = &test_data_kinds[round % test_data_n_kinds];
        unsigned wrap = round % N_WRAPS;
        size_t raw_nbytes = test_random_below(&random, round % 2 ? MAX_RAW : 300);
        uint8_t *raw = test_data_new(kind, round, raw_nbytes);
        struct pack_options options = draw_options(&random, wraps[wrap].window_bits);
        size_t nbytes = pack(&options, raw, raw_nbytes, packed, AVAIL);
        struct wharf_outcome outcome =
            expect_agreement(wraps[wrap].codec, packed, nbytes, raw_nbytes);
        cr_assert_eq(outcome.result, WHARF_OK);
        cr_assert_eq(outcome.out_nbytes, raw_nbytes);
        free(raw);
    }
    free(packed);
}

/* A block so long that tables for it hold pairs and whole matches without being told to. */
Test(inflate, agrees_with_zlib_on_long_blocks)
{
    enum { RAW = 200000, AVAIL = RAW + RAW / 2 };
    uint8_t *packed = malloc(AVAIL);

    cr_assert(packed);
    for (size_t kind = 0; kind < test_data_n_kinds; kind++) {
        uint8_t *raw = test_data_new(&test_data_kinds[kind], kind, RAW);
        for (int level = 1; level < 10; level += 4) {
            struct pack_options options = {-15, level, 9, Z_DEFAULT_STRATEGY, Z_NO_FLUSH, RAW};
            size_t nbytes = pack(&options, raw, RAW, packed, AVAIL);
            expect_agreement(WHARF_CODEC_DEFLATE, packed, nbytes, RAW);
        }
        free(raw);
    }
    free(packed);
}

/* ---- streams that nobody packs ------------------------------------------------------------- */

Test(inflate, agrees_with_zlib_on_codes_of_any_shape)
{
    enum { ROUNDS = 400 };

    for (unsigned round = 0; round < ROUNDS; round++) {
        struct test_forge forge;
        test_forge_init(&forge, round);
        /* Behind enough output for the longest distances, now and then. */
        if (round % 4 == 0)
            test_forge_stored(&forge, 33000, 0);
        test_forge_stream(&forge, 1 + round % 4, round % 3 ? 200 : 3000);
        struct wharf_outcome outcome = expect_agreement(
            WHARF_CODEC_DEFLATE, forge.data, test_forge_nbytes(&forge), forge.out_nbytes);
        cr_assert_eq(outcome.result, WHARF_OK, "seed %u: %s at bit %zu", round,
                     wharf_reason_name(outcome.reason), (size_t)outcome.bit_offset);
        cr_assert_eq(outcome.out_nbytes, forge.out_nbytes);
        test_forge_deinit(&forge);
    }
}

/* One bit in a header makes codes incomplete, over-subscribed or endless; one in a body, distances
 * that are too far and symbols that are none. */
Test(inflate, agrees_with_zlib_on_damaged_streams)
{
    enum { ROUNDS = 3000 };
    struct test_random random = {2};
    unsigned n_bad = 0;

    for (unsigned round = 0; round < ROUNDS; round++) {
        struct test_forge forge;
        test_forge_init(&forge, round / 4);
        test_forge_stream(&forge, 1 + round / 4 % 3, 150);
        size_t nbytes = test_forge_nbytes(&forge);
        for (unsigned n = 1 + round % 3; n; n--)
            forge.data[test_random_below(&random, round % 2 || nbytes < 60 ? nbytes : 60)] ^=
                1 << test_random_below(&random, 8);
        size_t out_avail = forge.out_nbytes + test_random_below(&random, 2000);
        struct wharf_outcome outcome =
            expect_agreement(WHARF_CODEC_DEFLATE, forge.data, nbytes, out_avail);
        n_bad += outcome.result != WHARF_OK;
        test_forge_deinit(&forge);
    }
    cr_assert(n_bad > ROUNDS / 2 && n_bad < ROUNDS, "%u of them bad", n_bad);
}

/* ---- ends ---------------------------------------------------------------------------------- */

Test(inflate, finds_the_symbol_that_the_source_cuts_off)
{
    enum { ROUNDS = 40 };

    for (unsigned round = 0; round < ROUNDS; round++) {
        struct test_forge forge;
        test_forge_init(&forge, 1000 + round);
        test_forge_stream(&forge, 2, 60);
        for (size_t n = 0; n < test_forge_nbytes(&forge); n++) {
            struct wharf_outcome outcome =
                expect_agreement(WHARF_CODEC_DEFLATE, forge.data, n, forge.out_nbytes);
            cr_assert_eq(outcome.reason, WHARF_REASON_INPUT_TRUNCATED);
        }
        test_forge_deinit(&forge);
    }
}

Test(inflate, finds_the_symbol_that_does_not_fit)
{
    enum { ROUNDS = 12 };

    for (unsigned round = 0; round < ROUNDS; round++) {
        struct test_forge forge;
        test_forge_init(&forge, 2000 + round);
        test_forge_stream(&forge, 3, 100);
        size_t nbytes = test_forge_nbytes(&forge);
        size_t step = 1 + forge.out_nbytes / 500;
        for (size_t avail = 0; avail < forge.out_nbytes; avail += step) {
            struct wharf_outcome outcome =
                expect_agreement(WHARF_CODEC_DEFLATE, forge.data, nbytes, avail);
            cr_assert_eq(outcome.result, WHARF_OUTPUT_TOO_SMALL);
        }
        /* And every size around the end, where the fast loop hands over. */
        size_t first = forge.out_nbytes < 400 ? 0 : forge.out_nbytes - 400;
        for (size_t avail = first; avail < forge.out_nbytes + 400; avail++)
            expect_agreement(WHARF_CODEC_DEFLATE, forge.data, nbytes, avail);
        test_forge_deinit(&forge);
    }
}

Test(inflate, takes_nothing_and_gives_nothing_with_no_memory_at_all)
{
    static const uint8_t empty[] = {0x03, 0};

    for (unsigned wrap = 0; wrap < N_WRAPS; wrap++) {
        const struct wharf_codec_ops *ops = wharf_codec_find(wraps[wrap].codec)->ops;
        struct wharf_outcome got, want;
        ops->decode(NULL, 0, NULL, 0, NULL, &got);
        ops->decode_reference(NULL, 0, NULL, 0, NULL, &want);
        expect_same(&got, &want, "no source");
        cr_assert_eq(got.reason, WHARF_REASON_INPUT_TRUNCATED);
        ops->decode(empty, sizeof(empty), NULL, 0, NULL, &got);
        ops->decode_reference(empty, sizeof(empty), NULL, 0, NULL, &want);
        expect_same(&got, &want, "no destination");
    }
}

/* ---- wrapping ------------------------------------------------------------------------------ */

/* Each of the first 40 bytes, which are header, with each of its bits changed; and the trailer. */
Test(inflate, agrees_with_zlib_on_damaged_headers_and_trailers)
{
    enum { AVAIL = 2000 };
    static const uint8_t extra[] = {4, 0, 'A', 'b', 0, 0};
    uint8_t packed[AVAIL];
    z_stream stream;
    gz_header header = {.extra = (Bytef *)(uintptr_t)extra,
                        .extra_len = sizeof(extra),
                        .name = (Bytef *)(uintptr_t) "name",
                        .comment = (Bytef *)(uintptr_t) "a comment",
                        .hcrc = 1};
    uint8_t *raw = test_data_new(test_data_find("text"), 5, 300);

    for (unsigned wrap = 1; wrap < N_WRAPS; wrap++) {
        memset(&stream, 0, sizeof(stream));
        cr_assert_eq(deflateInit2(&stream, 6, Z_DEFLATED, wraps[wrap].window_bits, 8, 0), Z_OK);
        if (wraps[wrap].codec == WHARF_CODEC_GZIP)
            cr_assert_eq(deflateSetHeader(&stream, &header), Z_OK);
        stream.next_in = raw;
        stream.avail_in = 300;
        stream.next_out = packed;
        stream.avail_out = AVAIL;
        cr_assert_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
        size_t nbytes = stream.total_out;
        deflateEnd(&stream);
        for (size_t bit = 0; bit < 8 * nbytes; bit++) {
            if (bit == 8 * 40)
                bit = 8 * (nbytes - 8);
            packed[bit / 8] ^= 1 << bit % 8;
            expect_agreement(wraps[wrap].codec, packed, nbytes, 300);
            packed[bit / 8] ^= 1 << bit % 8;
        }
        for (size_t n = 0; n < nbytes; n += n < 40 || n > nbytes - 10 ? 1 : 13)
            expect_agreement(wraps[wrap].codec, packed, n, 300);
    }
    free(raw);
}

/* All 65536 headers that a zlib stream can begin with. */
Test(inflate, agrees_with_zlib_on_every_zlib_header)
{
    uint8_t stream[] = {0, 0, 0x03, 0, 0, 0, 0, 1};
    unsigned n_good = 0;

    for (unsigned header = 0; header < 65536; header++) {
        struct wharf_outcome got, want;
        uint8_t out;
        stream[0] = (uint8_t)(header >> 8);
        stream[1] = (uint8_t)header;
        const struct wharf_codec_ops *ops = wharf_codec_find(WHARF_CODEC_ZLIB)->ops;
        ops->decode(stream, sizeof(stream), &out, 1, NULL, &got);
        ops->decode_reference(stream, sizeof(stream), &out, 1, NULL, &want);
        expect_same(&got, &want, "header");
        n_good += got.result == WHARF_OK;
    }
    /* Eight windows, and the two bits of FLG that say a level, with no dictionary. */
    cr_assert_eq(n_good, 32);
}

Test(inflate, goes_on_to_the_next_member_only_where_one_begins)
{
    enum { MAX_TAIL = 40 };
    static const uint8_t empty[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3,
                                    3,    0,    0, 0, 0, 0, 0, 0, 0, 0};
    static const struct {
        const char *tail;
        size_t nbytes;
        uint32_t reason; /* NONE: all members are good, and the tail is left alone */
    } cases[] = {
        {"", 0, WHARF_REASON_NONE},
        {"\x1f", 1, WHARF_REASON_INPUT_TRUNCATED},
        {"\x1e", 1, WHARF_REASON_NONE},
        {"\0", 1, WHARF_REASON_NONE},
        {"\0\0\0\0\0\0\0\0", 8, WHARF_REASON_NONE},
        {"\0\x1f\x8b", 3, WHARF_REASON_NONE},
        {"\x1f\x8c\x08", 3, WHARF_REASON_NONE},
        {"\x8b\x1f\x08", 3, WHARF_REASON_NONE},
        {"\x1f\x8b", 2, WHARF_REASON_INPUT_TRUNCATED},
        {"\x1f\x8b\x08", 3, WHARF_REASON_INPUT_TRUNCATED},
        {"\x1f\x8b\x07\0", 4, WHARF_REASON_GZIP_METHOD},
        {"\x1f\x8b\x08\x20", 4, WHARF_REASON_GZIP_FLAGS},
        {"\x1f\x8b\x08\0\0\0\0\0\0\3\7", 11, WHARF_REASON_DEFLATE_BLOCK_TYPE},
    };
    uint8_t in[3 * sizeof(empty) + MAX_TAIL];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (unsigned n_members = 1; n_members <= 3; n_members++) {
            size_t nbytes = n_members * sizeof(empty);
            for (unsigned m = 0; m < n_members; m++)
                memcpy(in + m * sizeof(empty), empty, sizeof(empty));
            memcpy(in + nbytes, cases[i].tail, cases[i].nbytes);
            struct wharf_outcome outcome =
                expect_agreement(WHARF_CODEC_GZIP, in, nbytes + cases[i].nbytes, 10);
            cr_assert_eq(outcome.reason, cases[i].reason, "case %zu", i);
            if (cases[i].reason == WHARF_REASON_NONE)
                cr_assert_eq(outcome.in_nbytes, nbytes, "case %zu", i);
            else
                cr_assert_geq(outcome.bit_offset, 8 * nbytes, "case %zu", i);
        }
    }
}

/* ---- forms --------------------------------------------------------------------------------- */

Test(inflate, has_the_forms_that_it_lists)
{
    cr_assert_eq(wharf_inflate_loop_force("plain"), 0);
    cr_assert_eq(wharf_inflate_loop_force("no such form"), -ENOENT);
    cr_assert_eq(wharf_inflate_loop_force(NULL), 0);
}
