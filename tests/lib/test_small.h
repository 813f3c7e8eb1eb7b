/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_small.h: small jobs of test_core's clients.  They share one source, and each has its own
 * output, which the lowest byte of user_data selects.  So jobs in flight must differ there.
 *
 * Failures end the program.
 */
#ifndef WHARF_TESTS_TEST_SMALL_H
#define WHARF_TESTS_TEST_SMALL_H

#include "tests/lib/test_core.h"

/* The size of each output.  Outputs begin at TEST_SMALL_OUT of the arena and are TEST_SMALL_STEP
 * apart. */
enum { TEST_SMALL_NBYTES = 500, TEST_SMALL_STEP = 1024, TEST_SMALL_OUT = 4096 };

const uint8_t *test_small_plain(void);

/* Submits a job with its output in the arena. */
void test_small_submit(struct test_core_client *client, uint64_t user_data);

/* Takes the next completion, and checks its result and output. */
struct wharf_completion test_small_reap(struct test_core_client *client);

/* Submits a job and takes its completion. */
struct wharf_completion test_small_run(struct test_core_client *client, uint64_t user_data);

/* The same with outputs in GPU memory, which is region 1 (test_core_add_gpu_memory) and which the
 * test accesses at `memory`. */
void test_small_submit_to(struct test_core_client *client, uint8_t *memory, uint64_t user_data);
struct wharf_completion test_small_reap_from(struct test_core_client *client,
                                             const uint8_t *memory);

#endif
