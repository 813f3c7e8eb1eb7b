/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_data.h: generated data of several kinds, so that tests need no files.
 *
 * Each kind exercises another part of a codec: see test_data.c.  The same kind, seed and size
 * always give the same bytes.  A larger size need not begin with the bytes of a smaller one, so ask
 * for the size that you need.
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

/* The kind with this name, or NULL. */
const struct test_data_kind *test_data_find(const char *name);

/* nbytes of a kind, in memory that the caller frees (one byte if nbytes is 0).  Ends the program if
 * out of memory. */
uint8_t *test_data_new(const struct test_data_kind *kind, uint64_t seed, size_t nbytes);

/*
 * Changes any nbytes into data that the codec accepts with this parameter: whole values, and for
 * boolrle only 0 and 1.  Returns its size, at most nbytes.
 */
size_t test_data_fit(uint32_t codec, uint32_t parameter, uint8_t *data, size_t nbytes);

#endif
