/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_vector.h: compressed streams with their expected outcomes.
 *
 * An expectation consists of lines `key value`; tests/README.md explains the keys.  What is missing
 * is not checked, but every vector must have a result.
 *
 *     result bad_data
 *     reason deflate_block_type
 *     bit_offset 3
 *
 * A vector in the tree has its expectation in NAME.expect beside it.  A table holds many
 * expectations.  Each begins with a line `vector PATH` and a line `codec NAME`; `count N` ends the
 * table.
 */
#ifndef WHARF_TESTS_TEST_VECTOR_H
#define WHARF_TESTS_TEST_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { TEST_VECTOR_MAX_REASONS = 2 };

struct test_vector {
    char *path;
    uint32_t codec;
    uint32_t parameter;
    uint32_t result;
    /* Any of these is right; if there is none, the reason is not checked. */
    uint32_t reasons[TEST_VECTOR_MAX_REASONS];
    unsigned n_reasons;
    bool has_bit_offset, has_in_nbytes, has_out_nbytes, has_crc32;
    uint64_t bit_offset;
    uint64_t in_nbytes;
    uint64_t out_nbytes;
    uint32_t crc32;
    char sha256[65]; /* empty: not checked */
    uint64_t out_avail;
};

struct test_vector_list {
    struct test_vector *vectors;
    size_t n_vectors;
};

/*
 * Reads the vectors under `folder`, which is laid out as CODEC/{ok,bad}/NAME beside NAME.expect, or
 * those of a table, whose paths are relative to `folder`.  Any inconsistency ends the program with
 * a message (a file without expectation, an expectation without file, an unknown key): vectors that
 * are silently left out would pass.
 */
void test_vector_list_read_folder(struct test_vector_list *list, const char *folder);
void test_vector_list_read_table(struct test_vector_list *list, const char *table,
                                 const char *folder);
void test_vector_list_deinit(struct test_vector_list *list);

#endif
