/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_slow.h: a client's memory that blocks the daemon.  It simulates a page for which the kernel
 * waits because the client punches a hole: whoever touches it waits for the test.
 */
#ifndef WHARF_TESTS_TEST_SLOW_H
#define WHARF_TESTS_TEST_SLOW_H

#include "tests/lib/test_core.h"

/* From now on, `nbytes` at `offset` of the arena block the daemon until they are released; but not
 * the client, nor a worker process.  One piece at a time. */
void test_slow_begin(const struct test_core_client *client, uint64_t offset, size_t nbytes);

/* How many threads have touched it since. */
uint32_t test_slow_n_reached(void);

void test_slow_release(void);

#endif
