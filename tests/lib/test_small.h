/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_small.h: small jobs of test_core's clients, all of one source, each with an output of its
 * own.  A job's lowest byte of user_data says which: so two that are under way differ there.
 *
 * What does not work ends the program.
 */
#ifndef WHARF_TESTS_TEST_SMALL_H
#define WHARF_TESTS_TEST_SMALL_H

#include "tests/lib/test_core.h"

/* What each decodes to; outputs are TEST_SMALL_STEP apart, in an arena from TEST_SMALL_OUT on. */
enum { TEST_SMALL_NBYTES = 500, TEST_SMALL_STEP = 1024, TEST_SMALL_OUT = 4096 };

const uint8_t *test_small_plain(void);

/* Into the arena, whose beginning the source has. */
void test_small_submit(struct test_core_client *client, uint64_t user_data);

/* The next completion, which has to be good, and its output as well. */
struct wharf_completion test_small_reap(struct test_core_client *client);

/* Both. */
struct wharf_completion test_small_run(struct test_core_client *client, uint64_t user_data);

/* The first two for outputs in GPU memory, which is region 1 (test_core_add_gpu_memory) and lies
 * here for the test. */
void test_small_submit_to(struct test_core_client *client, uint8_t *memory, uint64_t user_data);
struct wharf_completion test_small_reap_from(struct test_core_client *client,
                                             const uint8_t *memory);

#endif
