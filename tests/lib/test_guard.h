/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_guard.h: buffers between inaccessible pages.
 *
 * An access one byte past the guarded side raises SIGSEGV at once: in every build, from assembly,
 * and in system calls, which sanitizers do not check.
 */
#ifndef WHARF_TESTS_TEST_GUARD_H
#define WHARF_TESTS_TEST_GUARD_H

#include <stddef.h>
#include <stdint.h>

enum test_guard_side {
    TEST_GUARD_END,   /* the byte after the last one is inaccessible; any alignment */
    TEST_GUARD_START, /* the byte before the first one is inaccessible; page-aligned */
};

struct test_guard {
    uint8_t *data;
    size_t nbytes;
    void *mapping;
    size_t mapping_nbytes;
};

/* Makes a buffer of nbytes, or of none, filled with 0xa5.  Ends the program if out of memory. */
struct test_guard test_guard_new(size_t nbytes, enum test_guard_side side);

/* The same as a copy of `from`, and then read-only. */
struct test_guard test_guard_copy(const void *from, size_t nbytes, enum test_guard_side side);

/* A zeroed struct is allowed. */
void test_guard_free(struct test_guard *guard);

#endif
