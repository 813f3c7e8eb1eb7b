/* SPDX-License-Identifier: Apache-2.0 */
/* test_forge.c: writes random Deflate streams (test_forge.h). */
#include "tests/lib/test_forge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/deflate/deflate_format.h"

enum { MAX_SYMBOLS = TEST_FORGE_MAX_SYMBOLS, MAX_NBITS = WHARF_DEFLATE_MAX_CODE_NBITS };

void test_forge_init(struct test_forge *forge, uint64_t seed)
{
    *forge = (struct test_forge){.random = {seed}};
}

void test_forge_deinit(struct test_forge *forge)
{
    free(forge->data);
    forge->data = NULL;
}

size_t test_forge_nbytes(const struct test_forge *forge)
{
    return (forge->nbits + 7) / 8;
}

/* ---- bits ---------------------------------------------------------------------------------- */

static void put_bit(struct test_forge *forge, unsigned bit)
{
    if (forge->nbits / 8 == forge->capacity) {
        forge->capacity = 2 * forge->capacity + 1024;
        forge->data = realloc(forge->data, forge->capacity);
        if (!forge->data) {
            fprintf(stderr, "forge: out of memory\n");
            exit(4);
        }
    }
    if (forge->nbits % 8 == 0)
        forge->data[forge->nbits / 8] = 0;
    forge->data[forge->nbits / 8] |= (uint8_t)(bit << forge->nbits % 8);
    forge->nbits++;
}

void test_forge_field(struct test_forge *forge, uint32_t value, unsigned nbits)
{
    for (unsigned i = 0; i < nbits; i++)
        put_bit(forge, value >> i & 1);
}

void test_forge_align(struct test_forge *forge, int ones)
{
    while (forge->nbits % 8)
        put_bit(forge, ones != 0);
}

static void put_symbol(struct test_forge *forge, const struct test_forge_code *code,
                       unsigned symbol)
{
    for (unsigned i = code->nbits[symbol]; i-- > 0;)
        put_bit(forge, code->words[symbol] >> i & 1);
}

/* ---- codes --------------------------------------------------------------------------------- */

static unsigned below(struct test_forge *forge, unsigned limit)
{
    return (unsigned)test_random_below(&forge->random, limit);
}

/* RFC 1951, section 3.2.2. */
static void make_words(struct test_forge_code *code)
{
    unsigned word = 0;

    for (unsigned nbits = 1; nbits <= MAX_NBITS; nbits++, word <<= 1)
        for (unsigned symbol = 0; symbol < code->n_symbols; symbol++)
            if (code->nbits[symbol] == nbits)
                code->words[symbol] = (uint16_t)(word++ & ((1u << nbits) - 1));
}

/*
 * The depths of n leaves of a random full binary tree, at most max_nbits.  Leaves are split one by
 * one.  With probability skew / 8, the next one is one that was split last, so that trees are bushy
 * or degenerate.
 */
static void draw_depths(struct test_forge *forge, uint8_t *depths, unsigned n, unsigned max_nbits,
                        unsigned skew)
{
    depths[0] = 0;
    for (unsigned n_leaves = 1; n_leaves < n; n_leaves++) {
        unsigned leaf = below(forge, 8) < skew ? n_leaves - 1 : below(forge, n_leaves);
        while (depths[leaf] == max_nbits)
            leaf = (leaf + 1) % n_leaves;
        depths[n_leaves] = ++depths[leaf];
    }
}

/* A complete code for n of the code's symbols, among them `always`; a single symbol gets one
 * bit. */
static void draw_code(struct test_forge *forge, struct test_forge_code *code, unsigned n,
                      unsigned always, unsigned max_nbits)
{
    uint8_t depths[MAX_SYMBOLS];
    unsigned symbol = always;

    memset(code->nbits, 0, sizeof(code->nbits));
    draw_depths(forge, depths, n, max_nbits, below(forge, 8));
    if (n == 1)
        depths[0] = 1;
    for (unsigned i = 0; i < n; i++) {
        unsigned k = i + below(forge, n - i);
        code->nbits[symbol] = depths[k];
        depths[k] = depths[i];
        while (i + 1 < n && code->nbits[symbol])
            symbol = below(forge, code->n_symbols);
    }
    make_words(code);
}

/* Draws a symbol by the weight of its word: the one to which random bits lead. */
static unsigned draw_symbol(struct test_forge *forge, const struct test_forge_code *code)
{
    unsigned bits = below(forge, 1u << MAX_NBITS);

    for (unsigned symbol = 0; symbol < code->n_symbols; symbol++) {
        unsigned nbits = code->nbits[symbol];
        if (nbits && bits >> (MAX_NBITS - nbits) == code->words[symbol])
            return symbol;
    }
    /* A code of one word lacks the other word: draws again. */
    for (unsigned symbol = 0; symbol < code->n_symbols; symbol++)
        if (code->nbits[symbol])
            return symbol;
    return MAX_SYMBOLS;
}

/* ---- headers ------------------------------------------------------------------------------- */

static unsigned run_length(const uint8_t *lengths, unsigned n)
{
    unsigned run = 1;

    while (run < n && lengths[run] == lengths[0])
        run++;
    return run;
}

/* Writes code lengths, at random with or without repeats. */
static void put_lengths(struct test_forge *forge, const struct test_forge_code *precode,
                        const uint8_t *lengths, unsigned n)
{
    for (unsigned i = 0; i < n;) {
        unsigned run = run_length(lengths + i, n - i);
        if (i && lengths[i] == lengths[i - 1] && run >= 3 && below(forge, 3)) {
            run = run < 6 ? run : 6;
            put_symbol(forge, precode, 16);
            test_forge_field(forge, run - 3, 2);
        } else if (lengths[i] == 0 && run >= 11 && below(forge, 8)) {
            run = run < 138 ? run : 138;
            put_symbol(forge, precode, 18);
            test_forge_field(forge, run - 11, 7);
        } else if (lengths[i] == 0 && run >= 3 && below(forge, 3)) {
            run = run < 10 ? run : 10;
            put_symbol(forge, precode, 17);
            test_forge_field(forge, run - 3, 3);
        } else {
            put_symbol(forge, precode, lengths[i]);
            run = 1;
        }
        i += run;
    }
}

void test_forge_dynamic(struct test_forge *forge, int is_final)
{
    static const uint8_t order[WHARF_DEFLATE_N_PRECODE] = {WHARF_DEFLATE_PRECODE_ORDER};
    struct test_forge_code precode = {.n_symbols = WHARF_DEFLATE_N_PRECODE};
    uint8_t lengths[2 * MAX_SYMBOLS];

    make_words(&forge->litlen);
    make_words(&forge->distance);
    draw_code(forge, &precode, WHARF_DEFLATE_N_PRECODE, 0, WHARF_DEFLATE_MAX_PRECODE_NBITS);
    test_forge_field(forge, is_final != 0, 1);
    test_forge_field(forge, WHARF_DEFLATE_DYNAMIC, 2);
    test_forge_field(forge, forge->litlen.n_symbols - 257, 5);
    test_forge_field(forge, forge->distance.n_symbols - 1, 5);
    test_forge_field(forge, WHARF_DEFLATE_N_PRECODE - 4, 4);
    for (unsigned i = 0; i < WHARF_DEFLATE_N_PRECODE; i++)
        test_forge_field(forge, precode.nbits[order[i]], 3);
    memcpy(lengths, forge->litlen.nbits, forge->litlen.n_symbols);
    memcpy(lengths + forge->litlen.n_symbols, forge->distance.nbits, forge->distance.n_symbols);
    put_lengths(forge, &precode, lengths, forge->litlen.n_symbols + forge->distance.n_symbols);
}

static void draw_codes(struct test_forge *forge)
{
    struct test_forge_code *litlen = &forge->litlen;
    struct test_forge_code *distance = &forge->distance;

    litlen->n_symbols = 257 + below(forge, WHARF_DEFLATE_N_LITLEN - 257 + 1);
    distance->n_symbols = 1 + below(forge, WHARF_DEFLATE_N_DISTANCE);
    unsigned n_litlen = 1 + below(forge, below(forge, 2) ? 12 : litlen->n_symbols);
    unsigned n_distance = below(forge, distance->n_symbols + 1);
    draw_code(forge, litlen, n_litlen, WHARF_DEFLATE_END_OF_BLOCK, MAX_NBITS);
    memset(distance->nbits, 0, sizeof(distance->nbits));
    if (n_distance)
        draw_code(forge, distance, n_distance, below(forge, distance->n_symbols), MAX_NBITS);
}

static void make_fixed(struct test_forge *forge)
{
    forge->litlen.n_symbols = WHARF_DEFLATE_N_LITLEN_FIXED;
    for (unsigned i = 0; i < WHARF_DEFLATE_N_LITLEN_FIXED; i++)
        forge->litlen.nbits[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    forge->distance.n_symbols = WHARF_DEFLATE_N_DISTANCE_FIXED;
    memset(forge->distance.nbits, 5, WHARF_DEFLATE_N_DISTANCE_FIXED);
    make_words(&forge->litlen);
    make_words(&forge->distance);
}

/* ---- bodies -------------------------------------------------------------------------------- */

static const uint16_t length_bases[] = {WHARF_DEFLATE_LENGTH_BASES};
static const uint8_t length_extras[] = {WHARF_DEFLATE_LENGTH_EXTRAS};
static const uint16_t distance_bases[] = {WHARF_DEFLATE_DISTANCE_BASES};
static const uint8_t distance_extras[] = {WHARF_DEFLATE_DISTANCE_EXTRAS};

void test_forge_literal(struct test_forge *forge, uint8_t literal)
{
    put_symbol(forge, &forge->litlen, literal);
    forge->out_nbytes++;
}

void test_forge_end(struct test_forge *forge)
{
    put_symbol(forge, &forge->litlen, WHARF_DEFLATE_END_OF_BLOCK);
}

static void put_match(struct test_forge *forge, unsigned length_symbol, unsigned length,
                      unsigned distance_symbol, unsigned distance)
{
    put_symbol(forge, &forge->litlen, WHARF_DEFLATE_FIRST_LENGTH + length_symbol);
    test_forge_field(forge, length - length_bases[length_symbol], length_extras[length_symbol]);
    put_symbol(forge, &forge->distance, distance_symbol);
    test_forge_field(forge, distance - distance_bases[distance_symbol],
                     distance_extras[distance_symbol]);
    forge->out_nbytes += length;
}

/* The last base that is at most the value. */
static unsigned find_base(const uint16_t *bases, unsigned n, unsigned value)
{
    while (bases[n - 1] > value)
        n--;
    return n - 1;
}

void test_forge_match(struct test_forge *forge, unsigned length, unsigned distance)
{
    put_match(forge, find_base(length_bases, sizeof(length_extras), length), length,
              find_base(distance_bases, sizeof(distance_extras), distance), distance);
}

/* Draws a match of the length symbol, with a distance that is possible. */
static void draw_match(struct test_forge *forge, unsigned length_symbol)
{
    unsigned symbol = draw_symbol(forge, &forge->distance);

    if (symbol >= WHARF_DEFLATE_N_DISTANCE || distance_bases[symbol] > forge->out_nbytes)
        return;
    size_t distance = distance_bases[symbol] + below(forge, 1u << distance_extras[symbol]);
    if (distance > forge->out_nbytes)
        distance = forge->out_nbytes;
    put_match(forge, length_symbol,
              length_bases[length_symbol] + below(forge, 1u << length_extras[length_symbol]),
              symbol, (unsigned)distance);
}

/* Draws that write nothing count too, since a code may consist of its end only. */
static void draw_body(struct test_forge *forge, unsigned n_symbols)
{
    while (n_symbols--) {
        unsigned symbol = draw_symbol(forge, &forge->litlen);
        if (symbol < WHARF_DEFLATE_END_OF_BLOCK)
            test_forge_literal(forge, (uint8_t)symbol);
        else if (symbol > WHARF_DEFLATE_END_OF_BLOCK && symbol < WHARF_DEFLATE_N_LITLEN)
            draw_match(forge, symbol - WHARF_DEFLATE_FIRST_LENGTH);
    }
    test_forge_end(forge);
}

void test_forge_stored(struct test_forge *forge, unsigned nbytes, int is_final)
{
    test_forge_field(forge, is_final != 0, 1);
    test_forge_field(forge, WHARF_DEFLATE_STORED, 2);
    test_forge_align(forge, (int)below(forge, 2));
    test_forge_field(forge, nbytes, 16);
    test_forge_field(forge, ~nbytes, 16);
    for (unsigned i = 0; i < nbytes; i++)
        test_forge_field(forge, below(forge, 256), 8);
    forge->out_nbytes += nbytes;
}

void test_forge_block(struct test_forge *forge, unsigned n_symbols, int is_final)
{
    unsigned kind = below(forge, 8);

    if (kind == 0) {
        test_forge_stored(forge, below(forge, n_symbols + 1) & 0xffff, is_final);
        return;
    }
    if (kind < 3) {
        test_forge_field(forge, is_final != 0, 1);
        test_forge_field(forge, WHARF_DEFLATE_FIXED, 2);
        make_fixed(forge);
    } else {
        draw_codes(forge);
        test_forge_dynamic(forge, is_final);
    }
    draw_body(forge, n_symbols);
}

void test_forge_stream(struct test_forge *forge, unsigned n_blocks, unsigned n_symbols)
{
    for (unsigned i = 1; i <= n_blocks; i++)
        test_forge_block(forge, n_symbols, i == n_blocks);
}
