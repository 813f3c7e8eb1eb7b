/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_data.h: data of several kinds, so that tests need no files from elsewhere.
 *
 * Each kind brings out another side of a codec: see the list in test_data.c.  The same kind, seed
 * and size always give the same bytes, and a longer run begins with the bytes of a shorter one
 * only by chance: ask for the size that you need.
 */
#ifndef WHARF_TESTS_TEST_DATA_H
#define WHARF_TESTS_TEST_DATA_H

#include <stddef.h>
#include <stdint.h>

struct test_data_kind {
    const char *name;
    const char *summary;
    void (*fill)(uint64_t seed, uint8_t *out, size_t out_nbytes);
};

extern const struct test_data_kind test_data_kinds[];
extern const size_t test_data_n_kinds;

/* The kind called `name`, or NULL. */
const struct test_data_kind *test_data_find(const char *name);

/* nbytes of a kind in memory for the caller to free (one byte for none); ends the program when
 * memory is out. */
uint8_t *test_data_new(const struct test_data_kind *kind, uint64_t seed, size_t nbytes);

/*
 * Makes nbytes of anything into what the codec can carry with this parameter: whole values, for
 * boolrle of 0 and 1.  Returns how many bytes that are, at most nbytes.
 */
size_t test_data_fit(uint32_t codec, uint32_t parameter, uint8_t *data, size_t nbytes);

#endif
