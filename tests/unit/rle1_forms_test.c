/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle1: all forms of the decoder say what the reference says, of streams whose numbers are of all
 * lengths, in all orders, near both ends of their memory, whole, cut off and damaged.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/rle1/rle1.h"
#include "encoders/rle_values.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_random.h"

enum { MAX_NBYTES = 6000, MAX_NVALUES = 3000 };

static struct form {
    const char *name;
    wharf_decode_fn *decode;
} forms[2] = {{"plain", wharf_rle1_decode_plain}};
static size_t n_forms = 1;

static void find_forms(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("bmi2") && __builtin_cpu_supports("avx2"))
        forms[n_forms++] = (struct form){"bmi2", wharf_rle1_decode_bmi2};
#endif
}

/* A stream, and the values that it is of if all goes well. */
struct stream {
    uint8_t bytes[MAX_NBYTES];
    size_t nbytes;
    size_t n_values;
};

/* Of the lengths of a group's numbers. */
enum kind { ALL_OF_ONE, ALL_OF_TWO, ONE_AND_TWO, UP_TO_FIVE, UP_TO_TEN, N_KINDS };

static unsigned choose_length(struct test_random *random, enum kind kind)
{
    switch (kind) {
    case ALL_OF_ONE:
        return 1;
    case ALL_OF_TWO:
        return 2;
    case ONE_AND_TWO:
        return 1 + (unsigned)test_random_below(random, 2);
    case UP_TO_FIVE:
        return 1 + (unsigned)test_random_below(random, 5);
    default:
        return 1 + (unsigned)test_random_below(random, 10);
    }
}

/* Mostly numbers that the type has; the last bits of one of ten bytes may be too many. */
static void put_number(struct stream *stream, struct test_random *random, enum kind kind)
{
    unsigned length = choose_length(random, kind);
    uint64_t bits = test_random_next(random);

    for (unsigned i = 0; i < length; i++) {
        uint8_t more = i + 1 < length ? 0x80 : 0;
        uint8_t byte = i == 9 ? bits % 50 == 0 ? 2 : 1 : (uint8_t)(bits >> (6 * i)) & 0x7f;
        stream->bytes[stream->nbytes++] = byte | more;
    }
}

static void put_group(struct stream *stream, struct test_random *random, enum kind kind)
{
    if (test_random_below(random, 3) == 0) {
        unsigned control =
            (unsigned)test_random_below(random, test_random_below(random, 2) ? 128 : 8);
        stream->bytes[stream->nbytes++] = (uint8_t)control;
        stream->bytes[stream->nbytes++] = (uint8_t)test_random_next(random);
        put_number(stream, random, kind);
        stream->n_values += control + 3;
        return;
    }
    unsigned n = 1 + (unsigned)test_random_below(random, test_random_below(random, 2) ? 128 : 12);
    stream->bytes[stream->nbytes++] = (uint8_t)(256 - n);
    for (unsigned i = 0; i < n; i++)
        put_number(stream, random, kind);
    stream->n_values += n;
}

static void make_stream(struct stream *stream, struct test_random *random, unsigned n_groups)
{
    enum kind mixed = (enum kind)test_random_below(random, N_KINDS + 1);

    stream->nbytes = 0;
    stream->n_values = 0;
    for (unsigned i = 0;
         i < n_groups && stream->nbytes + 1300 < MAX_NBYTES && stream->n_values + 130 < MAX_NVALUES;
         i++) {
        enum kind kind =
            mixed < N_KINDS ? mixed : (enum kind)test_random_below(random, (uint64_t)N_KINDS - 1);
        put_group(stream, random, kind);
    }
}

/* Returns what it came to. */
static uint32_t check(const uint8_t *bytes, size_t nbytes, uint32_t type, size_t out_avail)
{
    static uint8_t want_out[8 * MAX_NVALUES];
    const struct wharf_codec_setting setting = {.parameter = type};
    struct test_guard in = test_guard_copy(bytes, nbytes, TEST_GUARD_END);
    struct wharf_outcome want;

    wharf_rle1_decode_reference(in.data, nbytes, want_out, out_avail, &setting, &want);
    for (size_t f = 0; f < n_forms; f++) {
        struct test_guard out = test_guard_new(out_avail, TEST_GUARD_END);
        struct wharf_outcome got;

        forms[f].decode(in.data, nbytes, out.data, out_avail, &setting, &got);
        cr_assert(test_outcome_same(&got, &want), "%s, type %u: reason %u, not %u at bit %llu",
                  forms[f].name, (unsigned)type, (unsigned)got.reason, (unsigned)want.reason,
                  (unsigned long long)want.bit_offset);
        cr_assert(want.result != WHARF_OK || want.out_nbytes == 0 ||
                      memcmp(out.data, want_out, want.out_nbytes) == 0,
                  "%s, type %u: other values", forms[f].name, (unsigned)type);
        test_guard_free(&out);
    }
    test_guard_free(&in);
    return want.result;
}

Test(rle1_forms, streams_of_all_lengths_have_one_outcome, .init = find_forms)
{
    struct test_random random = {1};
    struct stream stream;
    unsigned n_good = 0, n_bad = 0;

    for (unsigned i = 0; i < 1500; i++) {
        uint32_t type = i % 8;
        size_t value_nbytes = (size_t)1 << type % 4;

        make_stream(&stream, &random, 1 + i % 30);
        size_t out_nbytes = stream.n_values * value_nbytes;
        uint32_t result = check(stream.bytes, stream.nbytes, type, out_nbytes);
        n_good += result == WHARF_OK;
        n_bad += result == WHARF_BAD_DATA;
        check(stream.bytes, stream.nbytes, type, 8 * MAX_NVALUES);
        check(stream.bytes, stream.nbytes, type, test_random_below(&random, out_nbytes + 1));
        check(stream.bytes, test_random_below(&random, stream.nbytes + 1), type, out_nbytes);
        stream.bytes[test_random_below(&random, stream.nbytes)] ^=
            (uint8_t)(1u << test_random_below(&random, 8));
        check(stream.bytes, stream.nbytes, type, 8 * MAX_NVALUES);
    }
    cr_assert_gt(n_good, 200);
    cr_assert_gt(n_bad, 200);
}

/* One group of each size, with nothing behind it but the end of the memory. */
Test(rle1_forms, literals_at_the_end_have_one_outcome, .init = find_forms)
{
    for (unsigned length = 1; length <= 10; length++)
        for (unsigned n = 1; n <= 128; n += 1 + n / 9) {
            uint8_t bytes[1 + 128 * 10] = {(uint8_t)(256 - n)};
            size_t nbytes = 1 + (size_t)n * length;

            for (size_t i = 1; i < nbytes; i++)
                bytes[i] = (uint8_t)((i % length ? 0x80 : 0) | (i % 5 == 1));
            for (uint32_t type = 0; type < 8; type++) {
                size_t value_nbytes = (size_t)1 << type % 4;
                check(bytes, nbytes, type, n * value_nbytes);
                check(bytes, nbytes, type, n * value_nbytes - 1);
                check(bytes, nbytes - 1, type, n * value_nbytes);
            }
        }
}
