/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sha256.h: SHA-256 (FIPS 180-4), for vectors that name their expected output by its hash.
 */
#ifndef WHARF_TESTS_TEST_SHA256_H
#define WHARF_TESTS_TEST_SHA256_H

#include <stddef.h>

/* Writes the hash of nbytes at `data` as 64 lower-case hexadecimal digits and a zero byte. */
void test_sha256_hex(const void *data, size_t nbytes, char ret_hex[static 65]);

#endif
