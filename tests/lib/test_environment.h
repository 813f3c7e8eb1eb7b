/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_environment.h: the GPU that tests of daemons use.
 *
 * With WHARF_TEST_GPU=cuda or simt in the environment, daemons have that GPU, and clients of
 * test_client_start ask for it alone.  So tests of clients' rights also test the GPU's part.
 */
#ifndef WHARF_TESTS_TEST_ENVIRONMENT_H
#define WHARF_TESTS_TEST_ENVIRONMENT_H

#include <stdint.h>

/* The value of WHARF_TEST_GPU, or NULL. */
const char *test_environment_gpu(void);

/* Its enum wharf_engine; AUTO if it is not set. */
uint32_t test_environment_engine(void);

#endif
