/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_vector.h: compressed streams with what must become of them.
 *
 * An expectation is lines of `key value`; tests/README.md explains the keys.  What is not given is
 * not looked at, except that every vector has a result.
 *
 *     result bad_data
 *     reason deflate_block_type
 *     bit_offset 3
 *
 * The vectors in the tree have theirs beside them, in NAME.expect; a table holds many, each
 * beginning with a line `vector PATH` and a line `codec NAME`, and ends with `count N`.
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
    /* Any of these is right; none given: not looked at. */
    uint32_t reasons[TEST_VECTOR_MAX_REASONS];
    unsigned n_reasons;
    bool has_bit_offset, has_in_nbytes, has_out_nbytes, has_crc32;
    uint64_t bit_offset;
    uint64_t in_nbytes;
    uint64_t out_nbytes;
    uint32_t crc32;
    char sha256[65]; /* empty: not given */
    uint64_t out_avail;
};

struct test_vector_list {
    struct test_vector *vectors;
    size_t n_vectors;
};

/*
 * Reads the vectors under `folder`, laid out as CODEC/{ok,bad}/NAME beside NAME.expect, or those
 * of a table, whose paths stand in `folder`.  Anything that is not as it should be (a file without
 * its expectation, an expectation without its file, an unknown key) ends the program with a
 * message: vectors that are silently left out would pass.
 */
void test_vector_list_read_folder(struct test_vector_list *list, const char *folder);
void test_vector_list_read_table(struct test_vector_list *list, const char *table,
                                 const char *folder);
void test_vector_list_deinit(struct test_vector_list *list);

#endif
