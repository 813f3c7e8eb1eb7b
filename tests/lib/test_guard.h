/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_guard.h: buffers between pages that cannot be touched.
 *
 * A read or write of one byte past the guarded side is a SIGSEGV at the instruction that does
 * it, in every build, from assembly and through system calls too: what sanitizers do not see.
 */
#ifndef WHARF_TESTS_TEST_GUARD_H
#define WHARF_TESTS_TEST_GUARD_H

#include <stddef.h>
#include <stdint.h>

enum test_guard_side {
    TEST_GUARD_END,   /* the byte after the last one cannot be touched; any alignment */
    TEST_GUARD_START, /* the byte before the first one cannot be touched; page-aligned */
};

struct test_guard {
    uint8_t *data;
    size_t nbytes;
    void *mapping;
    size_t mapping_nbytes;
};

/* Makes a buffer of nbytes (0 too), filled with 0xa5.  Ends the program when memory is out. */
struct test_guard test_guard_new(size_t nbytes, enum test_guard_side side);

/* The same with a copy of `from`, after which the buffer is read-only. */
struct test_guard test_guard_copy(const void *from, size_t nbytes, enum test_guard_side side);

/* Takes a zeroed struct too. */
void test_guard_free(struct test_guard *guard);

#endif
