/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_forge.h: Deflate streams that no packer writes.
 *
 * Packers choose codes that fit their data, so a decoder that is tried on what they write never
 * meets most codes: words of 15 bits beside words of one, lengths that cost less than literals,
 * distance codes of one word.  A forge draws codes at random, complete ones of any shape, and then
 * symbols by the weight that their words give them.
 */
#ifndef WHARF_TESTS_TEST_FORGE_H
#define WHARF_TESTS_TEST_FORGE_H

#include <stddef.h>
#include <stdint.h>

#include "tests/lib/test_random.h"

enum { TEST_FORGE_MAX_SYMBOLS = 288 };

struct test_forge_code {
    unsigned n_symbols; /* lengths that the header gives */
    uint8_t nbits[TEST_FORGE_MAX_SYMBOLS];
    uint16_t words[TEST_FORGE_MAX_SYMBOLS]; /* their first bit is the highest of nbits */
};

struct test_forge {
    uint8_t *data; /* the stream as far as it is written */
    size_t nbits;
    size_t capacity;               /* bytes */
    size_t out_nbytes;             /* what it decodes to */
    struct test_forge_code litlen; /* of the block that is open */
    struct test_forge_code distance;
    struct test_random random;
};

void test_forge_init(struct test_forge *forge, uint64_t seed);
void test_forge_deinit(struct test_forge *forge);

/* The size so far, the last byte begun being counted. */
size_t test_forge_nbytes(const struct test_forge *forge);

/* Writes the lowest nbits (at most 32) of value, the lowest first. */
void test_forge_field(struct test_forge *forge, uint32_t value, unsigned nbits);

/* Zeros, or with `ones` ones, up to the next byte. */
void test_forge_align(struct test_forge *forge, int ones);

/*
 * Opens a dynamic block whose code lengths are those of forge->litlen and forge->distance, which
 * the caller has set (n_symbols and nbits).  They need not make good codes: words that do not fit
 * their length are cut.  How the header writes the lengths is drawn at random.
 */
void test_forge_dynamic(struct test_forge *forge, int is_final);

/*
 * A literal, a match or the end, in the codes of the open block.  A symbol without a word writes
 * nothing, and nothing is checked, so that streams can be wrong.
 */
void test_forge_literal(struct test_forge *forge, uint8_t literal);
void test_forge_match(struct test_forge *forge, unsigned length, unsigned distance);
void test_forge_end(struct test_forge *forge);

/* A stored block of nbytes (at most 65535) random bytes. */
void test_forge_stored(struct test_forge *forge, unsigned nbytes, int is_final);

/*
 * A good block of about n_symbols symbols that are drawn at random, end of block included: stored,
 * fixed (of which every third or so) or dynamic.  Distances stay within the output so far.
 */
void test_forge_block(struct test_forge *forge, unsigned n_symbols, int is_final);

/* A whole stream of n_blocks such blocks. */
void test_forge_stream(struct test_forge *forge, unsigned n_blocks, unsigned n_symbols);

#endif
