/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_lines_mix.h: arrays for benchmarks of the codecs of lines: half as large when compressed, by
 * several encodings, without many lines of zeros.
 */
#ifndef WHARF_TESTS_TEST_LINES_MIX_H
#define WHARF_TESTS_TEST_LINES_MIX_H

#include <stddef.h>
#include <stdint.h>

enum test_lines_mix {
    TEST_LINES_MIX_LINES,  /* each line of 128 bytes is of another kind than its neighbours */
    TEST_LINES_MIX_RUNS,   /* bdi, best: 16 KiB of one kind after the other */
    TEST_LINES_MIX_RANDOM, /* nothing to compress */
    TEST_LINES_MIX_N,
};

/* Fills nbytes with what suits a codec: 4 MiB, again and again. */
void test_lines_mix_fill(uint32_t codec, enum test_lines_mix mix, uint8_t *out, size_t nbytes);

#endif
