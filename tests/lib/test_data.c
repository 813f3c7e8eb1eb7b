/* SPDX-License-Identifier: Apache-2.0 */
/* test_data.c: generators of test data. */
#include "tests/lib/test_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/codec.h"
#include "tests/lib/test_random.h"

/* Writes into a buffer, and drops what does not fit. */
struct sink {
    uint8_t *out;
    size_t room;
};

static void put(struct sink *sink, const void *data, size_t nbytes)
{
    size_t n = nbytes < sink->room ? nbytes : sink->room;
    memcpy(sink->out, data, n);
    sink->out += n;
    sink->room -= n;
}

static void fill_zeros(uint64_t seed, uint8_t *out, size_t out_nbytes)
{
    (void)seed;
    if (out_nbytes > 0)
        memset(out, 0, out_nbytes);
}

static void fill_random(uint64_t seed, uint8_t *out, size_t out_nbytes)
{
    struct test_random random = {seed};
    test_random_fill(&random, out, out_nbytes);
}

/* Runs of 1 to 600 equal bytes: matches of distance 1, of all lengths and longer than any match. */
static void fill_runs(uint64_t seed, uint8_t *out, size_t out_nbytes)
{
    struct test_random random = {seed};
    size_t at = 0;
    while (at < out_nbytes) {
        size_t n = 1 + test_random_below(&random, test_random_one_in(&random, 4) ? 600 : 8);
        n = n < out_nbytes - at ? n : out_nbytes - at;
        memset(out + at, (int)test_random_below(&random, 256), n);
        at += n;
    }
}

/* Lines of words from an invented vocabulary, the n-th with a frequency of about 1 / n. */
static void fill_text(uint64_t seed, uint8_t *out, size_t out_nbytes)
{
    static const char letters[] = "eeeeeetttttaaaaoooiiinnnsssrrrhhllddccuummwfgypbvkxjqz";
    enum { N_WORDS = 2000, MAX_LETTERS = 11 };
    static _Thread_local char words[N_WORDS][MAX_LETTERS + 2];
    struct test_random random = {seed};
    for (size_t i = 0; i < N_WORDS; i++) {
        size_t n = 1 + test_random_below(&random, i < 20 ? 3 : MAX_LETTERS);
        for (size_t k = 0; k < n; k++)
            words[i][k] = letters[test_random_below(&random, sizeof(letters) - 1)];
        words[i][n] = 0;
    }
    struct sink sink = {out, out_nbytes};
    for (size_t n_in_line = 1; sink.room > 0; n_in_line++) {
        /* A uniform number below a uniform limit makes small numbers much more frequent. */
        size_t limit = 1 + test_random_below(&random, N_WORDS);
        const char *word = words[test_random_below(&random, 1 + test_random_below(&random, limit))];
        put(&sink, word, strlen(word));
        put(&sink, n_in_line % 13 == 0 ? ".\n" : " ", n_in_line % 13 == 0 ? 2 : 1);
    }
}

/* Lines of decimal fields, as in a CSV file. */
static void fill_numbers(uint64_t seed, uint8_t *out, size_t out_nbytes)
{
    struct test_random random = {seed};
    struct sink sink = {out, out_nbytes};
    for (unsigned id = 1000000; sink.room > 0; id += 1 + (unsigned)test_random_below(&random, 9)) {
        char line[80];
        int n = snprintf(
            line, sizeof(line), "%u,%02u:%02u,%u.%02u,%c\n", id,
            (unsigned)test_random_below(&random, 24), (unsigned)test_random_below(&random, 60),
            (unsigned)test_random_below(&random, 40), (unsigned)test_random_below(&random, 4) * 25,
            "NY"[test_random_one_in(&random, 3)]);
        put(&sink, line, (size_t)n);
    }
}

/* 32-bit little-endian numbers that grow in small steps, as in a column of ids or times. */
static void fill_column(uint64_t seed, uint8_t *out, size_t out_nbytes)
{
    struct test_random random = {seed};
    struct sink sink = {out, out_nbytes};
    uint32_t value = (uint32_t)test_random_next(&random);
    while (sink.room > 0) {
        uint8_t bytes[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
                            (uint8_t)(value >> 24)};
        put(&sink, bytes, sizeof(bytes));
        value += (uint32_t)test_random_below(&random, 50);
    }
}

/* Bytes whose frequencies halve from value to value: code words of every length up to 15. */
static void fill_skewed(uint64_t seed, uint8_t *out, size_t out_nbytes)
{
    struct test_random random = {seed};
    for (size_t i = 0; i < out_nbytes; i++)
        out[i] = (uint8_t)(__builtin_ctzll(test_random_next(&random) | (uint64_t)1 << 40) * 5);
}

/* Periods of 1 to 40 bytes: overlapping matches of every short distance. */
static void fill_periods(uint64_t seed, uint8_t *out, size_t out_nbytes)
{
    struct test_random random = {seed};
    size_t at = 0;
    while (at < out_nbytes) {
        size_t period = 1 + test_random_below(&random, 40);
        size_t end = at + period + test_random_below(&random, 500);
        end = end < out_nbytes ? end : out_nbytes;
        for (size_t first = at; at < end; at++)
            out[at] = at - first < period ? (uint8_t)test_random_next(&random) : out[at - period];
    }
}

/* Random bytes, and copies from distances up to and beyond Deflate's 32768. */
static void fill_far(uint64_t seed, uint8_t *out, size_t out_nbytes)
{
    struct test_random random = {seed};
    size_t at = 0;
    while (at < out_nbytes) {
        size_t n = 3 + test_random_below(&random, 270);
        size_t distance = test_random_one_in(&random, 4) ? 32768 - 2 + test_random_below(&random, 4)
                                                         : 1 + test_random_below(&random, 33000);
        n = n < out_nbytes - at ? n : out_nbytes - at;
        int copies = at >= distance && !test_random_one_in(&random, 5);
        for (size_t end = at + n; at < end; at++)
            out[at] = copies ? out[at - distance] : (uint8_t)test_random_next(&random);
    }
}

/* A, C, G and T: two bits of entropy a byte, and hardly a match that saves bits. */
static void fill_genome(uint64_t seed, uint8_t *out, size_t out_nbytes)
{
    struct test_random random = {seed};
    for (size_t i = 0; i < out_nbytes; i++)
        out[i] = (uint8_t) "ACGT"[test_random_below(&random, 4)];
}

/* Pieces of the other kinds: neighbouring blocks have different codes. */
static void fill_mixed(uint64_t seed, uint8_t *out, size_t out_nbytes)
{
    struct test_random random = {seed};
    size_t at = 0;
    while (at < out_nbytes) {
        const struct test_data_kind *kind =
            &test_data_kinds[test_random_below(&random, test_data_n_kinds)];
        if (kind->fill == fill_mixed)
            continue;
        size_t n = 1 + test_random_below(&random, 20000);
        n = n < out_nbytes - at ? n : out_nbytes - at;
        kind->fill(test_random_next(&random), out + at, n);
        at += n;
    }
}

const struct test_data_kind test_data_kinds[] = {
    {"zeros", "zero bytes", fill_zeros},
    {"random", "random bytes", fill_random},
    {"runs", "runs of equal bytes", fill_runs},
    {"text", "words in lines", fill_text},
    {"numbers", "lines of decimal fields", fill_numbers},
    {"column", "growing 32-bit numbers", fill_column},
    {"skewed", "bytes of steeply falling frequency", fill_skewed},
    {"periods", "short periods", fill_periods},
    {"far", "copies from far back", fill_far},
    {"genome", "four letters", fill_genome},
    {"mixed", "stretches of all kinds", fill_mixed},
};
const size_t test_data_n_kinds = sizeof(test_data_kinds) / sizeof(test_data_kinds[0]);

const struct test_data_kind *test_data_find(const char *name)
{
    for (size_t i = 0; i < test_data_n_kinds; i++)
        if (strcmp(test_data_kinds[i].name, name) == 0)
            return &test_data_kinds[i];
    return NULL;
}

uint8_t *test_data_new(const struct test_data_kind *kind, uint64_t seed, size_t nbytes)
{
    uint8_t *data = malloc(nbytes ? nbytes : 1);
    if (!data) {
        perror("malloc of test data");
        abort();
    }
    kind->fill(seed, data, nbytes);
    return data;
}

size_t test_data_fit(uint32_t codec, uint32_t parameter, uint8_t *data, size_t nbytes)
{
    if (codec == WHARF_CODEC_BOOLRLE)
        for (size_t i = 0; i < nbytes; i++)
            data[i] &= 1;
    return nbytes - nbytes % wharf_codec_unit_nbytes(wharf_codec_find(codec)->ops, parameter);
}
