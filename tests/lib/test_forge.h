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

struct test_forge {
    uint8_t *data; /* the stream as far as it is written */
    size_t nbits;
    size_t capacity;   /* bytes */
    size_t out_nbytes; /* what it decodes to */
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
 * A good block of about n_symbols symbols that are drawn at random, end of block included: stored,
 * fixed (of which every third or so) or dynamic.  Distances stay within the output so far.
 */
void test_forge_block(struct test_forge *forge, unsigned n_symbols, int is_final);

/* A whole stream of n_blocks such blocks. */
void test_forge_stream(struct test_forge *forge, unsigned n_blocks, unsigned n_symbols);

#endif
