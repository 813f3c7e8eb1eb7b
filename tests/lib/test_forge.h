/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_forge.h: Deflate streams that no encoder writes.
 *
 * Encoders choose codes that suit their data, so their streams leave most codes untested: words of
 * 15 bits beside words of one bit, lengths cheaper than literals, distance codes of one word.  A
 * forge draws complete codes of any shape at random, and then symbols by the weights of their
 * words.
 */
#ifndef WHARF_TESTS_TEST_FORGE_H
#define WHARF_TESTS_TEST_FORGE_H

#include <stddef.h>
#include <stdint.h>

#include "tests/lib/test_random.h"

enum { TEST_FORGE_MAX_SYMBOLS = 288 };

struct test_forge_code {
    unsigned n_symbols; /* number of lengths in the header */
    uint8_t nbits[TEST_FORGE_MAX_SYMBOLS];
    uint16_t words[TEST_FORGE_MAX_SYMBOLS]; /* their first bit is the highest of nbits */
};

struct test_forge {
    uint8_t *data; /* the stream so far */
    size_t nbits;
    size_t capacity;               /* in bytes */
    size_t out_nbytes;             /* size of the decoded output */
    struct test_forge_code litlen; /* of the open block */
    struct test_forge_code distance;
    struct test_random random;
};

void test_forge_init(struct test_forge *forge, uint64_t seed);
void test_forge_deinit(struct test_forge *forge);

/* The stream's size so far, with the last, incomplete byte. */
size_t test_forge_nbytes(const struct test_forge *forge);

/* Writes the lowest nbits (at most 32) of value, lowest first. */
void test_forge_field(struct test_forge *forge, uint32_t value, unsigned nbits);

/* Pads to a byte with zeros, or with ones. */
void test_forge_align(struct test_forge *forge, int ones);

/*
 * Opens a dynamic block with the code lengths of forge->litlen and forge->distance, which the
 * caller has set (n_symbols and nbits).  They may be bad codes: words too long for their length are
 * truncated.  How the header encodes the lengths is random.
 */
void test_forge_dynamic(struct test_forge *forge, int is_final);

/*
 * Write a literal, a match or the end of block in the open block's codes.  A symbol without a word
 * writes nothing, and nothing is checked, so that streams can be wrong.
 */
void test_forge_literal(struct test_forge *forge, uint8_t literal);
void test_forge_match(struct test_forge *forge, unsigned length, unsigned distance);
void test_forge_end(struct test_forge *forge);

/* Writes a stored block of nbytes (at most 65535) random bytes. */
void test_forge_stored(struct test_forge *forge, unsigned nbytes, int is_final);

/*
 * Writes a good block of about n_symbols random symbols, with the end of block: a stored one, one
 * with the fixed codes (about a third), or a dynamic one.  Distances stay within the output so far.
 */
void test_forge_block(struct test_forge *forge, unsigned n_symbols, int is_final);

/* Writes a whole stream of n_blocks such blocks. */
void test_forge_stream(struct test_forge *forge, unsigned n_blocks, unsigned n_symbols);

#endif
