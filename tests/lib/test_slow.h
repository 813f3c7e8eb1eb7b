/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_slow.h: a client's memory that keeps the daemon waiting.  Where the kernel would wait for a
 * hole that the client punches, whoever touches it waits for the test.
 */
#ifndef WHARF_TESTS_TEST_SLOW_H
#define WHARF_TESTS_TEST_SLOW_H

#include "tests/lib/test_core.h"

/* From now on so much of the arena from `offset` on, until it is released, for the daemon: not for
 * the client, nor for a worker that is a process of its own.  One piece at a time. */
void test_slow_begin(const struct test_core_client *client, uint64_t offset, size_t nbytes);

/* How many have touched it since then. */
uint32_t test_slow_n_reached(void);

void test_slow_release(void);

#endif
