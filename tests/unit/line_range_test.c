/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of streams of lines: the same bytes as of the whole stream, from the parts of the stream
 * that they need and no others, and one outcome of hostile streams by the reference and all forms
 * of the decoder, whether the rest of the stream is there or not.
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

enum { MAX_NBYTES = 40000, JUNK = 0xa7 };

/* Memory that ends at an untouchable page. */
static uint8_t *end_of(struct test_guard *guard, size_t nbytes)
{
    if (!guard->data)
        *guard = test_guard_new(MAX_NBYTES, TEST_GUARD_END);
    cr_assert_leq(nbytes, MAX_NBYTES);
    return guard->data + MAX_NBYTES - nbytes;
}

/* What the parts leave of a stream: all other bytes are junk.  Returns how many were taken. */
static size_t take_parts(uint32_t codec, const uint8_t *stream, size_t nbytes, uint64_t first,
                         size_t out_nbytes, uint8_t *in)
{
    struct wharf_line_parts parts = {codec, nbytes, first, out_nbytes, 0};
    uint64_t offset, part_nbytes, end = 0;
    size_t taken = 0, n_parts = 0;

    memset(in, JUNK, nbytes);
    while (wharf_line_parts_next(&parts, in, &offset, &part_nbytes)) {
        cr_assert_leq(++n_parts, 4);
        cr_assert(offset <= nbytes && part_nbytes <= nbytes - offset, "part outside the stream");
        cr_assert_geq(offset, end, "parts out of order");
        end = offset + part_nbytes;
        memcpy(in + offset, stream + offset, part_nbytes);
        taken += part_nbytes;
    }
    return taken;
}

/* Decodes a stream by the reference, and its parts by all forms.  Returns their outcome. */
static struct wharf_outcome decode(uint32_t codec, const uint8_t *stream, size_t nbytes,
                                   uint64_t first, uint8_t *want_out, size_t out_nbytes,
                                   size_t *ret_taken)
{
    static struct test_guard in_guard, out_guard;
    uint8_t *in = end_of(&in_guard, nbytes), *out = end_of(&out_guard, out_nbytes);
    struct wharf_outcome want, got;

    memcpy(in, stream, nbytes);
    wharf_line_decode_range_reference(codec, in, nbytes, first, want_out, out_nbytes, NULL, &want);
    *ret_taken = take_parts(codec, stream, nbytes, first, out_nbytes, in);
    for (size_t f = 0; f < sizeof(all_forms) / sizeof(all_forms[0]); f++) {
        if (wharf_line_force(all_forms[f]) == -ENOTSUP)
            continue;
        wharf_line_decode_range(codec, in, nbytes, first, out, out_nbytes, NULL, &got);
        cr_assert(test_outcome_same(&got, &want), "codec %u by %s: %s; not %s", codec, all_forms[f],
                  test_outcome_text(&got).text, test_outcome_text(&want).text);
        if (want.result == WHARF_OK && out_nbytes > 0)
            cr_assert_eq(memcmp(out, want_out, out_nbytes), 0, "codec %u by %s", codec,
                         all_forms[f]);
    }
    wharf_line_force(NULL);
    return want;
}

struct stream {
    struct wharf_line_choice choice;
    uint8_t *plain, *bytes;
    size_t plain_nbytes, nbytes;
};

static struct stream make_stream(unsigned choice, enum test_lines_kind kind, size_t nbytes)
{
    struct stream stream = {.choice = test_lines_choice(choice), .plain_nbytes = nbytes};

    stream.plain = malloc(nbytes + 1);
    test_lines_fill(kind, choice, stream.plain, nbytes);
    stream.bytes = test_lines_encode(&stream.choice, stream.plain, nbytes, &stream.nbytes);
    return stream;
}

static void free_stream(struct stream *stream)
{
    free(stream->plain);
    free(stream->bytes);
}

/* What a range may take at most: header, a record and a head for each group, and its lines as they
 * would be raw, with those that it cuts. */
static size_t most_taken(const struct stream *stream, uint64_t first, size_t nbytes)
{
    size_t n_groups = nbytes ? (first + nbytes - 1) / 4096 - first / 4096 + 1 : 0;

    return 16 + n_groups * (68 + 16 + 16) + nbytes + 2 * stream->choice.line_nbytes;
}

Test(line_range, gives_what_the_whole_stream_gives_and_takes_no_more_than_it_needs)
{
    static const size_t sizes[] = {1, 31, 128, 4096, 4097, 20001};
    struct test_random random = {5};
    uint8_t out[MAX_NBYTES];

    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++)
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            struct stream stream = make_stream(c, TEST_LINES_MIXED, sizes[s]);
            for (unsigned i = 0; i < 60; i++) {
                uint64_t first = test_random_below(&random, sizes[s] + 1);
                size_t n = test_random_below(&random, sizes[s] - first + 1), taken;
                n = i % 3 == 0 && n > 200 ? 200 : n;
                struct wharf_outcome outcome =
                    decode(stream.choice.codec, stream.bytes, stream.nbytes, first, out, n, &taken);
                cr_assert_eq(outcome.result, WHARF_OK, "choice %u, %zu bytes from %lu of %zu: %s",
                             c, n, (unsigned long)first, sizes[s],
                             test_outcome_text(&outcome).text);
                cr_assert_eq(outcome.out_nbytes, n);
                cr_assert_eq(memcmp(out, stream.plain + first, n), 0);
                cr_assert_leq(taken, most_taken(&stream, first, n));
            }
            free_stream(&stream);
        }
}

Test(line_range, outside_the_output_is_missing)
{
    struct stream stream = make_stream(0, TEST_LINES_MIXED, 5000);
    static const struct {
        uint64_t first;
        size_t n;
    } rows[] = {{5000, 1}, {5001, 0}, {0, 5001}, {4999, 2}, {UINT64_MAX, 2}, {UINT64_MAX, 0}};
    uint8_t out[MAX_NBYTES];
    size_t taken;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wharf_outcome outcome = decode(stream.choice.codec, stream.bytes, stream.nbytes,
                                              rows[i].first, out, rows[i].n, &taken);
        cr_assert_eq(outcome.result, WHARF_OUTPUT_SHORT, "row %zu", i);
        cr_assert_eq(outcome.reason, WHARF_REASON_OUTPUT_MISSING);
        cr_assert_eq(outcome.bit_offset, 64);
        cr_assert_eq(taken, 16);
    }
    free_stream(&stream);
}

/* A range of the last group, whose lines stand where the index says: anywhere. */
Test(line_range, forged_offsets_reach_nothing_outside)
{
    struct test_random random = {9};
    uint8_t out[MAX_NBYTES];
    size_t taken;

    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        struct stream stream = make_stream(c, TEST_LINES_MIXED, 20000);
        struct wharf_line_shape shape;
        wharf_line_shape_read(&shape, stream.choice.codec, stream.bytes, stream.nbytes, UINT64_MAX);
        for (unsigned i = 0; i < 400; i++) {
            uint64_t number = test_random_below(&random, shape.n_groups);
            uint64_t units = (stream.nbytes - shape.data_at) / 16;
            uint32_t offset = i % 4 == 0   ? (uint32_t)test_random_next(&random)
                              : i % 4 == 1 ? (uint32_t)(units - test_random_below(&random, 3))
                                           : (uint32_t)test_random_below(&random, units + 2);
            uint8_t *record = stream.bytes + 16 + number * shape.record_nbytes;
            uint8_t before[4];
            memcpy(before, record, 4);
            memcpy(record, &offset, 4);
            uint64_t first = number * 4096 + test_random_below(&random, 200);
            size_t n = 1 + test_random_below(&random, 20000 - first - 1);
            decode(stream.choice.codec, stream.bytes, stream.nbytes, first, out, n, &taken);
            cr_assert_leq(taken, most_taken(&stream, first, n));
            memcpy(record, before, 4);
        }
        free_stream(&stream);
    }
}

Test(line_range, damaged_streams_have_one_outcome)
{
    struct test_random random = {3};
    uint8_t out[MAX_NBYTES];
    size_t taken;

    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        struct stream stream = make_stream(c, TEST_LINES_MIXED, 9000);
        uint8_t *bytes = malloc(stream.nbytes);
        for (unsigned i = 0; i < 1500; i++) {
            size_t nbytes =
                i % 5 == 0 ? test_random_below(&random, stream.nbytes + 1) : stream.nbytes;
            memcpy(bytes, stream.bytes, stream.nbytes);
            for (unsigned k = 0; k < 1 + i % 4 && nbytes > 0; k++) {
                uint64_t limit = k % 2 && nbytes > 220 ? 220 : nbytes;
                bytes[test_random_below(&random, limit)] ^=
                    (uint8_t)(1 << test_random_below(&random, 8));
            }
            uint64_t first = test_random_below(&random, 9001);
            decode(stream.choice.codec, bytes, nbytes, first, out,
                   test_random_below(&random, 9001 - first), &taken);
        }
        free(bytes);
        free_stream(&stream);
    }
}

/* Every cut of a small stream, every single bit of it. */
Test(line_range, every_cut_and_every_bit)
{
    uint8_t out[MAX_NBYTES];
    size_t taken;

    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        struct stream stream = make_stream(c, TEST_LINES_MIXED, 4096 + 300);
        for (size_t cut = 0; cut < stream.nbytes; cut += cut < 200 ? 1 : 37)
            decode(stream.choice.codec, stream.bytes, cut, 4000, out, 250, &taken);
        for (size_t bit = 0; bit < 8 * (stream.nbytes < 260 ? stream.nbytes : 260); bit++) {
            stream.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            decode(stream.choice.codec, stream.bytes, stream.nbytes, 4000, out, 250, &taken);
            stream.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        free_stream(&stream);
    }
}
