/* SPDX-License-Identifier: Apache-2.0 */
/* test_lines.c: generators of data for the codecs of lines. */
#include "tests/lib/test_lines.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/test_random.h"

static void put(uint8_t *out, unsigned nbytes, uint64_t value)
{
    memcpy(out, &value, nbytes);
}

/* A signed number of up to nbits bits. */
static uint64_t some_signed(struct test_random *random, unsigned nbits)
{
    return test_random_below(random, UINT64_C(1) << nbits) - (UINT64_C(1) << (nbits - 1));
}

/* Values near one base or near zero, or all equal. */
static void fill_bases(struct test_random *random, uint8_t *out, size_t nbytes)
{
    unsigned b = 2u << test_random_below(random, 3);
    unsigned d = b == 2 ? 1 : 1u << test_random_below(random, b == 4 ? 2 : 3);
    uint64_t base = test_random_next(random);
    unsigned kind = (unsigned)test_random_below(random, 8);

    for (size_t at = 0; at < nbytes; at += b) {
        bool is_near_zero = kind == 1 || (kind > 1 && test_random_one_in(random, kind));
        put(out + at, b, (is_near_zero ? 0 : base) + (kind == 0 ? 0 : some_signed(random, 8 * d)));
    }
}

static uint64_t some_word(struct test_random *random, unsigned pattern)
{
    switch (pattern) {
    case 0:
        return 0;
    case 1:
        return some_signed(random, 4);
    case 2:
        return some_signed(random, 8);
    case 3:
        return some_signed(random, 16);
    case 4:
        return test_random_next(random) << 16;
    case 5:
        return (some_signed(random, 8) & 0xffff) | some_signed(random, 8) << 16;
    case 6:
        return test_random_below(random, 256) * 0x01010101u;
    default:
        return test_random_next(random);
    }
}

static void fill_words(struct test_random *random, uint8_t *out, size_t nbytes)
{
    for (size_t at = 0; at < nbytes; at += 16) {
        unsigned pattern = (unsigned)test_random_below(random, 9);
        for (size_t k = 0; k < 16; k += 4)
            put(out + at + k, 4, some_word(random, pattern));
    }
}

static void fill_near(struct test_random *random, uint8_t *out, size_t nbytes)
{
    uint32_t words[5] = {0};
    size_t n = 1 + test_random_below(random, test_random_one_in(random, 20) ? 5 : 4);

    for (unsigned i = 0; i < n; i++)
        words[i] = (uint32_t)test_random_next(random);
    for (size_t at = 0; at < nbytes; at += 4) {
        uint64_t word = test_random_one_in(random, 4) ? 0 : words[test_random_below(random, n)];
        if (test_random_one_in(random, 3))
            word ^= test_random_below(random, 256);
        put(out + at, 4, word);
    }
}

/* Approximately normal: a sum of uniform numbers. */
static float some_weight(struct test_random *random)
{
    double sum = 0;

    for (unsigned i = 0; i < 6; i++)
        sum += (double)test_random_below(random, 1 << 20) / (1 << 20) - 0.5;
    return (float)(test_random_one_in(random, 300) ? sum * 1e6 : sum * 0.02);
}

static void fill_weights(struct test_random *random, uint8_t *out, size_t nbytes)
{
    for (size_t at = 0; at < nbytes; at += 2) {
        float weight = some_weight(random);
        uint32_t bits;
        memcpy(&bits, &weight, 4);
        put(out + at, 2, bits >> 16);
    }
}

/* The exponent's low bits and some bits of the mantissa. */
static void fill_bytes(struct test_random *random, uint8_t *out, size_t nbytes)
{
    for (size_t at = 0; at < nbytes; at++) {
        float weight = some_weight(random);
        uint32_t bits;
        memcpy(&bits, &weight, 4);
        out[at] = (uint8_t)((bits >> 24 & 0x80) | (bits >> 20 & 0x7f));
    }
}

static void fill_piece(enum test_lines_kind kind, struct test_random *random, uint8_t *out,
                       size_t nbytes)
{
    switch (kind) {
    case TEST_LINES_ZEROS:
        memset(out, 0, nbytes);
        break;
    case TEST_LINES_BASES:
        fill_bases(random, out, nbytes);
        break;
    case TEST_LINES_WORDS:
        fill_words(random, out, nbytes);
        break;
    case TEST_LINES_NEAR:
        fill_near(random, out, nbytes);
        break;
    case TEST_LINES_WEIGHTS:
        fill_weights(random, out, nbytes);
        break;
    case TEST_LINES_BYTES:
        fill_bytes(random, out, nbytes);
        break;
    case TEST_LINES_MIXED:
        fill_piece((enum test_lines_kind)test_random_below(random, TEST_LINES_MIXED), random, out,
                   nbytes);
        break;
    default:
        for (size_t at = 0; at < nbytes; at += 8)
            put(out + at, 8, test_random_next(random));
    }
}

void test_lines_fill(enum test_lines_kind kind, uint64_t seed, uint8_t *out, size_t nbytes)
{
    struct test_random random = {seed + 1};
    uint8_t piece[256];

    for (size_t done = 0; done < nbytes;) {
        size_t n = (size_t)32 << test_random_below(&random, 4);
        fill_piece(kind, &random, piece, n);
        n = n < nbytes - done ? n : nbytes - done;
        memcpy(out + done, piece, n);
        done += n;
    }
}

struct wharf_line_choice test_lines_choice(unsigned i)
{
    struct wharf_line_choice choice = {
        .line_nbytes = 32u << i % 3,
        .layout = i / 3 % 2,
    };

    i /= 6;
    choice.codec = i < 4 ? WHARF_CODEC_BDI + i : WHARF_CODEC_PALETTE;
    choice.type = i < 4 ? 0 : i - 4;
    return choice;
}

uint8_t *test_lines_encode(const struct wharf_line_choice *choice, const uint8_t *in,
                           size_t in_nbytes, size_t *ret_nbytes)
{
    size_t bound = wharf_line_bound(choice, in_nbytes);
    uint8_t *out = malloc(bound);

    if (!out || wharf_line_encode(choice, in, in_nbytes, out, bound, ret_nbytes) < 0)
        abort();
    return out;
}
