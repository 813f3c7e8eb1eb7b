/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_lines.h: data for the codecs of lines, in which every encoding of every scheme occurs, alone
 * and mixed.
 */
#ifndef WHARF_TESTS_TEST_LINES_H
#define WHARF_TESTS_TEST_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/line/line.h"

enum test_lines_kind {
    TEST_LINES_ZEROS,
    TEST_LINES_BASES,   /* values near a base or near zero, of all sizes: bdi */
    TEST_LINES_WORDS,   /* words of all fpc patterns */
    TEST_LINES_NEAR,    /* words of a few dictionaries: cpack */
    TEST_LINES_WEIGHTS, /* bf16 of a normal distribution, with outliers */
    TEST_LINES_BYTES,   /* the same as fp8 */
    TEST_LINES_RANDOM,
    TEST_LINES_MIXED, /* pieces of all kinds */
    TEST_LINES_N_KINDS,
};

/* Fills nbytes with data of this kind, in pieces of 32 bytes and more. */
void test_lines_fill(enum test_lines_kind kind, uint64_t seed, uint8_t *out, size_t nbytes);

/* Choice number i of all codecs, line sizes, layouts and types. */
enum { TEST_LINES_N_CHOICES = 4 * 3 * 2 + 4 * 3 * 2 };
struct wharf_line_choice test_lines_choice(unsigned i);

/* Encodes into memory that the caller frees.  Ends the program on failure. */
uint8_t *test_lines_encode(const struct wharf_line_choice *choice, const uint8_t *in,
                           size_t in_nbytes, size_t *ret_nbytes);

#endif
