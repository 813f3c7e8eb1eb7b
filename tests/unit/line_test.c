/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bdi, fpc, cpack, best and palette: encodings as encoders/line/LINES.md has them, round trips of
 * all kinds of data in all shapes, and one outcome of damaged streams by the reference and all
 * forms of the decoder.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/line/line.h"
#include "encoders/line/line_shape.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_lines.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_random.h"

static const char *const all_forms[] = {"plain", "avx2", "avx512"};

/* Memory of any size up to MAX_NBYTES that ends at an untouchable page, the same each time. */
enum { MAX_NBYTES = 100000 };

static uint8_t *end_of(struct test_guard *guard, size_t nbytes)
{
    if (!guard->data)
        *guard = test_guard_new(MAX_NBYTES, TEST_GUARD_END);
    cr_assert_leq(nbytes, MAX_NBYTES);
    return guard->data + MAX_NBYTES - nbytes;
}

/* Decodes by the reference and by all forms that the machine has.  Returns their outcome. */
static struct wharf_outcome decode_all(uint32_t codec, const uint8_t *stream, size_t nbytes,
                                       uint8_t *want_out, size_t out_avail)
{
    static struct test_guard in_guard, out_guard;
    uint8_t *in = end_of(&in_guard, nbytes), *out = end_of(&out_guard, out_avail);
    struct wharf_outcome want, got;

    memcpy(in, stream, nbytes);
    wharf_line_decode_reference(codec, in, nbytes, want_out, out_avail, NULL, &want);
    for (size_t f = 0; f < sizeof(all_forms) / sizeof(all_forms[0]); f++) {
        if (wharf_line_force(all_forms[f]) == -ENOTSUP)
            continue;
        wharf_line_decode(codec, in, nbytes, out, out_avail, NULL, &got);
        cr_assert(test_outcome_same(&got, &want), "codec %u by %s: %s; not %s", codec, all_forms[f],
                  test_outcome_text(&got).text, test_outcome_text(&want).text);
        if (want.result == WHARF_OK && want.out_nbytes > 0)
            cr_assert_eq(memcmp(out, want_out, want.out_nbytes), 0, "codec %u by %s", codec,
                         all_forms[f]);
    }
    wharf_line_force(NULL);
    return want;
}

/* ---- encodings ------------------------------------------------------------------------------ */

/* One line, packed: its code, and its content in *ret_content. */
static uint32_t encode_line(uint32_t codec, uint32_t type, const void *line, uint32_t nbytes,
                            uint8_t *ret_content, uint32_t *ret_nbytes)
{
    const struct wharf_line_choice choice = {codec, nbytes, WHARF_LINE_PACKED, type};
    struct wharf_line_shape shape;
    struct wharf_line_code codes[256];
    uint8_t out[WHARF_LINE_MAX_NBYTES];
    size_t stream_nbytes;
    uint8_t *stream = test_lines_encode(&choice, line, nbytes, &stream_nbytes);
    struct wharf_outcome outcome = decode_all(codec, stream, stream_nbytes, out, nbytes);

    cr_assert_eq(outcome.result, WHARF_OK);
    cr_assert_eq(memcmp(out, line, nbytes), 0);
    wharf_line_shape_read(&shape, codec, stream, stream_nbytes, nbytes);
    wharf_line_codes_fill(&shape, codec == WHARF_CODEC_PALETTE ? stream[shape.heads_at + 15] : 0,
                          codes);
    uint32_t code = stream[20] & ((1u << shape.code_nbits) - 1);
    *ret_nbytes = codes[code].nbytes;
    memcpy(ret_content, stream + shape.data_at, codes[code].nbytes);
    free(stream);
    return code;
}

static void expect_code(uint32_t codec, const void *line, uint32_t nbytes, uint32_t want_code,
                        const void *want, uint32_t want_nbytes)
{
    uint8_t content[WHARF_LINE_MAX_NBYTES];
    uint32_t content_nbytes;
    uint32_t code = encode_line(codec, 0, line, nbytes, content, &content_nbytes);

    cr_assert_eq(code, want_code, "code %u, not %u", code, want_code);
    cr_assert_eq(content_nbytes, want_nbytes, "%u bytes, not %u", content_nbytes, want_nbytes);
    if (want)
        cr_assert_eq(memcmp(content, want, want_nbytes), 0, "another content");
}

/* Figure 6 of the paper: 64 bytes become 17, whose first is 0x55. */
Test(line, encodes_the_papers_line)
{
    const uint64_t line[8] = {0x00, 0x80001d000, 0x10, 0x80001d008,
                              0x20, 0x80001d010, 0x30, 0x80001d018};
    const uint8_t want[17] = {0x55, 0x00, 0xd0, 0x01, 0x00, 0x08, 0x00, 0x00, 0x00,
                              0x00, 0x00, 0x10, 0x08, 0x20, 0x10, 0x30, 0x18};

    expect_code(WHARF_CODEC_BDI, line, 64, WHARF_LINE_BDI_8_1, want, 17);
    expect_code(WHARF_CODEC_BEST, line, 64, WHARF_LINE_BDI_8_1, want, 17);
}

Test(line, bdi_has_all_bases_and_deltas)
{
    static const struct {
        uint32_t code, b, d;
        uint64_t base;
    } rows[] = {
        {WHARF_LINE_BDI_8_1, 8, 1, 0x123456789abcdef0},
        {WHARF_LINE_BDI_8_2, 8, 2, 0x123456789abcdef0},
        {WHARF_LINE_BDI_8_4, 8, 4, 0x123456789abcdef0},
        {WHARF_LINE_BDI_4_1, 4, 1, 0x12345678},
        {WHARF_LINE_BDI_4_2, 4, 2, 0x12345678},
        {WHARF_LINE_BDI_2_1, 2, 1, 0x1234},
    };

    for (uint32_t nbytes = 32; nbytes <= 128; nbytes *= 2)
        for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
            uint8_t line[WHARF_LINE_MAX_NBYTES];
            uint32_t b = rows[r].b, n = nbytes / b;
            /* The least and the most that the delta has, from the base, and from zero. */
            uint64_t most = (UINT64_C(1) << (8 * rows[r].d - 1)) - 1;
            for (uint32_t i = 0; i < n; i++) {
                uint64_t value = i % 4 == 0   ? rows[r].base
                                 : i % 4 == 1 ? rows[r].base + most
                                 : i % 4 == 2 ? rows[r].base - most - 1
                                              : -most - 1 + (i / 4 & 1);
                memcpy(line + (size_t)i * b, &value, b);
            }
            expect_code(WHARF_CODEC_BDI, line, nbytes, rows[r].code, NULL,
                        (n + 7) / 8 + b + n * rows[r].d);
        }
}

Test(line, zeros_and_repeats_have_codes_of_their_own)
{
    static const uint8_t zeros[128];
    uint64_t repeated[16];

    for (unsigned i = 0; i < 16; i++)
        repeated[i] = 0x1122334455667788;
    for (uint32_t nbytes = 32; nbytes <= 128; nbytes *= 2) {
        for (uint32_t codec = WHARF_CODEC_BDI; codec <= WHARF_CODEC_PALETTE; codec++)
            expect_code(codec, zeros, nbytes, WHARF_LINE_CODE_ZEROS, NULL, 0);
        expect_code(WHARF_CODEC_BDI, repeated, nbytes, WHARF_LINE_BDI_REPEAT, repeated, 8);
    }
}

/* A segment of each pattern, in 128 bytes. */
Test(line, fpc_has_all_patterns)
{
    const uint32_t line[32] = {
        0,
        0,
        0,
        0, /* zeros */
        7,
        0xfffffff8u,
        1,
        0xffffffffu, /* 4 bits, signed */
        127,
        0xffffff80u,
        8,
        0, /* 8 bits */
        32767,
        0xffff8000u,
        128,
        0, /* 16 bits */
        0x12340000,
        0xffff0000u,
        0,
        0x00010000, /* the upper half */
        0x007f0080u ^ 0xff00,
        0xff80007fu,
        0x00010001,
        0x00010000, /* a byte in each half */
        0x55555555,
        0xaaaaaaaau,
        0x01010101,
        0, /* a byte, four times */
        0x12345678,
        0x9abcdef0u,
        1,
        2, /* none */
    };
    const uint8_t want[3 + 2 + 4 + 8 + 8 + 8 + 4 + 16] = {
        /* patterns 0, 1, 2, 3, 4, 5, 6, 7 of three bits */
        0x88, 0xc6, 0xfa,
        /* */
        0x87, 0xf1,
        /* */
        127, 128, 8, 0,
        /* */
        0xff, 0x7f, 0x00, 0x80, 128, 0, 0, 0,
        /* */
        0x34, 0x12, 0xff, 0xff, 0, 0, 1, 0,
        /* */
        0x80, 0x7f, 0x7f, 0x80, 1, 1, 0, 1,
        /* */
        0x55, 0xaa, 1, 0,
        /* */
        0x78, 0x56, 0x34, 0x12, 0xf0, 0xde, 0xbc, 0x9a, 1, 0, 0, 0, 2, 0, 0, 0};

    expect_code(WHARF_CODEC_FPC, line, 128, 25, want, sizeof(want));
}

Test(line, cpack_has_four_words_and_low_bytes)
{
    const uint32_t a = 0x11223344, b = 0x55667788, c = 0x99aabbcc, d = 0xddeeff00;
    const uint32_t line[16] = {0, 9, a, a, a + 1, b, b ^ 0xff, 0, c, d, d | 5, 0, 0, 0, 0, a};
    const uint8_t want[8 + 16 + 4] = {0x80, 0x11, 0x29, 0x0a, 0x43, 0x0c, 0x00, 0x10,
                                      /* the dictionary */
                                      0x44, 0x33, 0x22, 0x11, 0x88, 0x77, 0x66, 0x55, 0xcc, 0xbb,
                                      0xaa, 0x99, 0x00, 0xff, 0xee, 0xdd,
                                      /* low bytes */
                                      9, 0x45, 0x77, 5};
    uint32_t five[16];

    expect_code(WHARF_CODEC_CPACK, line, 64, 4 * 17 + 4, want, sizeof(want));
    memcpy(five, line, sizeof(five));
    five[13] = 0x01010101;
    expect_code(WHARF_CODEC_CPACK, five, 64, WHARF_LINE_BYTE_RAW, five, 64);
}

/* Seven exponents in the palette, one outside. */
Test(line, palette_keeps_signs_and_mantissas)
{
    uint16_t line[64];
    uint8_t content[WHARF_LINE_MAX_NBYTES];
    uint32_t nbytes;

    for (unsigned i = 0; i < 64; i++)
        line[i] = (uint16_t)((i & 1) << 15 | (120 + i % 7) << 7 | (i * 2 & 127));
    line[5] = 0x7f80; /* infinity */
    uint32_t code = encode_line(WHARF_CODEC_PALETTE, WHARF_LINE_BF16, line, 128, content, &nbytes);
    cr_assert_eq(code, 2, "one escape");
    cr_assert_eq(nbytes, 64 + 24 + 1);
    cr_assert_eq(content[3], 6 << 1 | 1, "mantissa and sign");
    cr_assert_eq(content[88], 255, "the escaped exponent");
}

/* ---- round trips ---------------------------------------------------------------------------- */

Test(line, streams_of_all_shapes_come_back)
{
    static const size_t sizes[] = {0, 1, 31, 32, 33, 127, 128, 129, 4095, 4096, 4097, 12345, 20001};
    static uint8_t raw[20001], out[20001];

    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        struct wharf_line_choice choice = test_lines_choice(c);
        for (unsigned kind = 0; kind < TEST_LINES_N_KINDS; kind++)
            for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
                size_t nbytes;
                if (sizes[s] > 5000 && (kind + c + s) % 4 != 0)
                    continue;
                test_lines_fill((enum test_lines_kind)kind, kind + s, raw, sizes[s]);
                uint8_t *stream = test_lines_encode(&choice, raw, sizes[s], &nbytes);
                struct wharf_outcome outcome =
                    decode_all(choice.codec, stream, nbytes, out, sizes[s]);
                cr_assert_eq(outcome.result, WHARF_OK, "choice %u, kind %u, %zu bytes: %s", c, kind,
                             sizes[s], test_outcome_text(&outcome).text);
                cr_assert_eq(outcome.in_nbytes, nbytes);
                cr_assert_eq(outcome.out_nbytes, sizes[s]);
                cr_assert(sizes[s] == 0 || memcmp(out, raw, sizes[s]) == 0,
                          "choice %u, kind %u, %zu bytes: another output", c, kind, sizes[s]);
                free(stream);
            }
    }
}

/* The index is at most 2 %, and weights take at most 76.5 % with everything. */
Test(line, index_and_weights_are_small_enough)
{
    enum { N = 1 << 20 };
    uint8_t *raw = malloc(N);
    const struct wharf_line_choice weights = {WHARF_CODEC_PALETTE, 128, 0, WHARF_LINE_BF16};
    size_t nbytes;

    memset(raw, 0, N);
    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        struct wharf_line_choice choice = test_lines_choice(c);
        struct wharf_line_shape shape;
        wharf_line_shape_set(&shape, choice.codec, choice.line_nbytes, choice.layout, choice.type,
                             N);
        cr_assert_leq(shape.heads_at, N / 50);
    }
    test_lines_fill(TEST_LINES_WEIGHTS, 1, raw, N);
    free(test_lines_encode(&weights, raw, N, &nbytes));
    cr_assert_leq(nbytes, N * 0.765, "%zu of %u bytes", nbytes, N);
    free(raw);
}

/* ---- damage --------------------------------------------------------------------------------- */

enum { SMALL = 260 };

/* Some lines of mixed data in each shape. */
static uint8_t *make_small(unsigned c, struct wharf_line_choice *choice, size_t *ret_nbytes)
{
    static uint8_t raw[SMALL];
    enum test_lines_kind kind = TEST_LINES_MIXED;

    *choice = test_lines_choice(c);
    if (choice->codec == WHARF_CODEC_PALETTE)
        kind = choice->type <= WHARF_LINE_F16 ? TEST_LINES_WEIGHTS : TEST_LINES_BYTES;
    test_lines_fill(kind, c, raw, SMALL);
    return test_lines_encode(choice, raw, SMALL, ret_nbytes);
}

Test(line, truncation_at_every_byte_has_one_outcome)
{
    uint8_t out[SMALL];

    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        struct wharf_line_choice choice;
        size_t nbytes;
        uint8_t *stream = make_small(c, &choice, &nbytes);
        for (size_t n = 0; n < nbytes; n++) {
            struct wharf_outcome outcome = decode_all(choice.codec, stream, n, out, SMALL);
            cr_assert_eq(outcome.reason, WHARF_REASON_INPUT_TRUNCATED, "choice %u, %zu bytes", c,
                         n);
            cr_assert_leq(outcome.bit_offset, 8 * n);
        }
        free(stream);
    }
}

Test(line, every_flipped_bit_has_one_outcome)
{
    uint8_t out[SMALL];

    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        struct wharf_line_choice choice;
        size_t nbytes;
        uint8_t *stream = make_small(c, &choice, &nbytes);
        for (size_t bit = 0; bit < 8 * nbytes; bit++) {
            stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
            struct wharf_outcome outcome = decode_all(choice.codec, stream, nbytes, out, SMALL);
            if (bit < 16)
                cr_assert_neq(outcome.result, WHARF_OK, "choice %u, bit %zu", c, bit);
            stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(stream);
    }
}

/* Codes, offsets and widths of all values, and sizes of all kinds. */
Test(line, forged_indexes_and_sizes_have_one_outcome)
{
    static uint8_t raw[9000], out[20000];
    static const uint64_t sizes[] = {
        0, 1, 8999, 9001, 12288, 20001, UINT32_MAX, 1ull << 35, (1ull << 35) + 1, UINT64_MAX};
    struct test_random random = {5};

    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        struct wharf_line_choice choice = test_lines_choice(c);
        struct wharf_line_shape shape;
        size_t nbytes;
        test_lines_fill(TEST_LINES_MIXED, c, raw, sizeof(raw));
        uint8_t *stream = test_lines_encode(&choice, raw, sizeof(raw), &nbytes);
        uint8_t *forged = malloc(nbytes);
        wharf_line_shape_read(&shape, choice.codec, stream, nbytes, sizeof(out));
        for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            memcpy(forged, stream, nbytes);
            memcpy(forged + WHARF_LINE_AT_RAW, &sizes[i], 8);
            decode_all(choice.codec, forged, nbytes, out, sizeof(out));
        }
        for (unsigned i = 0; i < 150; i++) {
            memcpy(forged, stream, nbytes);
            for (size_t n = 1 + test_random_below(&random, 3); n > 0; n--)
                forged[16 + test_random_below(&random, shape.data_at + 40 - 16)] =
                    (uint8_t)test_random_next(&random);
            decode_all(choice.codec, forged, nbytes, out, sizeof(out));
        }
        free(forged);
        free(stream);
    }
}

/* Where each kind of damage is found, in a stream of one group of 128-byte lines. */
Test(line, damage_is_named_with_its_place)
{
    enum { N = 4096 };
    static uint8_t raw[N], out[N];
    const struct wharf_line_choice bdi = {WHARF_CODEC_BDI, 128, 0, 0};
    const struct wharf_line_choice palette = {WHARF_CODEC_PALETTE, 128, 0, 0};
    struct {
        const struct wharf_line_choice *choice;
        size_t at;
        uint8_t value;
        uint32_t reason;
        uint64_t bit_offset;
    } rows[] = {
        {&bdi, 0, 2, WHARF_REASON_LINE_VERSION, 0},
        {&bdi, 1, WHARF_CODEC_FPC, WHARF_REASON_LINE_HEADER, 8},
        {&bdi, 2, 8, WHARF_REASON_LINE_HEADER, 16},
        {&bdi, 3, 2, WHARF_REASON_LINE_HEADER, 24},
        {&bdi, 4, 1, WHARF_REASON_LINE_HEADER, 32},
        {&palette, 4, 4, WHARF_REASON_LINE_HEADER, 32},
        {&bdi, 6, 1, WHARF_REASON_LINE_HEADER, 40},
        {&bdi, 13, 1, WHARF_REASON_LINE_HEADER, 64},
        {&bdi, 9, 0x11, WHARF_REASON_OUTPUT_FULL, 64},
        {&bdi, 16, 1, WHARF_REASON_LINE_OFFSET, 128},
        {&bdi, 21, 0x81, WHARF_REASON_LINE_CODE, 8 * 21 + 4},
        {&palette, 48 + 15, 5, WHARF_REASON_LINE_PALETTE, 8 * 63},
    };

    test_lines_fill(TEST_LINES_WEIGHTS, 1, raw, N);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t nbytes;
        uint8_t *stream = test_lines_encode(rows[i].choice, raw, N, &nbytes);
        stream[rows[i].at] = rows[i].value;
        struct wharf_outcome outcome = decode_all(rows[i].choice->codec, stream, nbytes, out, N);
        cr_assert_eq(outcome.reason, rows[i].reason, "row %u: %s", i,
                     test_outcome_text(&outcome).text);
        cr_assert_eq(outcome.bit_offset, rows[i].bit_offset, "row %u: %s", i,
                     test_outcome_text(&outcome).text);
        free(stream);
    }
}
