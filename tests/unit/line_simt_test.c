/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bdi, fpc, cpack, best and palette on the device against the CPU engine: streams of all shapes and
 * kinds of data, whole, cut off, with flipped bits and forged indexes, from and to memory at any
 * alignment that ends at untouchable pages.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/line/line_shape.h"
#include "tests/lib/test_lines.h"
#include "tests/lib/test_random.h"
#include "tests/unit/device_compare.h"

enum { MAX_NBYTES = 20000 };

static uint32_t expect_same(uint32_t codec, const uint8_t *stream, size_t nbytes, size_t out_avail,
                            unsigned order)
{
    const struct wharf_device_chunk chunk = {
        .in = stream, .in_nbytes = nbytes, .out_avail = out_avail, .codec = codec};

    return compare_on_device(codec, chunk, 0, order, "lines").result;
}

Test(line_simt, streams_of_all_shapes_come_back)
{
    static const size_t sizes[] = {0, 1, 33, 128, 4095, 4096, 9001};
    static uint8_t raw[MAX_NBYTES];

    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        struct wharf_line_choice choice = test_lines_choice(c);
        for (unsigned kind = 0; kind < TEST_LINES_N_KINDS; kind++) {
            size_t n = sizes[(c + kind) % (sizeof(sizes) / sizeof(sizes[0]))], nbytes;
            test_lines_fill((enum test_lines_kind)kind, c, raw, n);
            uint8_t *stream = test_lines_encode(&choice, raw, n, &nbytes);
            cr_assert_eq(expect_same(choice.codec, stream, nbytes, n, c + kind), WHARF_OK);
            cr_assert_eq(expect_same(choice.codec, stream, nbytes, n + 5, c + kind), WHARF_OK);
            free(stream);
        }
    }
}

/* Of mixed data, and for palette of numbers that it has outliers of. */
static uint8_t *make_stream(unsigned c, size_t n, struct wharf_line_choice *choice,
                            size_t *ret_nbytes)
{
    static uint8_t raw[MAX_NBYTES];
    enum test_lines_kind kind = TEST_LINES_MIXED;

    *choice = test_lines_choice(c);
    if (choice->codec == WHARF_CODEC_PALETTE && c % 2 == 0)
        kind = choice->type <= WHARF_LINE_F16 ? TEST_LINES_WEIGHTS : TEST_LINES_BYTES;
    test_lines_fill(kind, c, raw, n);
    return test_lines_encode(choice, raw, n, ret_nbytes);
}

Test(line_simt, damaged_streams_have_one_outcome)
{
    struct test_random random = {3};

    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        enum { N = 5000 };
        struct wharf_line_choice choice;
        struct wharf_line_shape shape;
        size_t nbytes;
        uint8_t *stream = make_stream(c, N, &choice, &nbytes);
        wharf_line_shape_read(&shape, choice.codec, stream, nbytes, N);
        for (unsigned i = 0; i < 60; i++) {
            size_t range = i % 2 ? nbytes : shape.data_at + 30;
            size_t at = test_random_below(&random, range);
            uint8_t before = stream[at];
            stream[at] = i % 4 < 2 ? (uint8_t)test_random_next(&random)
                                   : (uint8_t)(before ^ 1u << test_random_below(&random, 8));
            expect_same(choice.codec, stream, nbytes, N, i);
            stream[at] = before;
        }
        for (unsigned i = 0; i < 25; i++) {
            size_t n = i < 10 ? i * (shape.data_at + 20) / 9 : test_random_below(&random, nbytes);
            expect_same(choice.codec, stream, n, N, i);
        }
        expect_same(choice.codec, stream, nbytes, N - 1, 0);
        free(stream);
    }
}

/* A small one of each codec, each bit of it. */
Test(line_simt, every_flipped_bit_has_one_outcome)
{
    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c += 3) {
        enum { N = 70 };
        struct wharf_line_choice choice;
        size_t nbytes;
        uint8_t *stream = make_stream(c + c / 3 % 3, N, &choice, &nbytes);
        for (size_t bit = 0; bit < 8 * nbytes; bit++) {
            stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
            expect_same(choice.codec, stream, nbytes, N, (unsigned)bit);
            stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(stream);
    }
}
