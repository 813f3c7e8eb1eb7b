/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_environment.h: the GPU that tests of daemons are told to use.
 *
 * With WHARF_TEST_GPU=cuda or simt in the environment daemons have that GPU, and clients that
 * test_client_start makes want it alone: so tests of what clients may do are tests of the GPU's
 * part too.
 */
#ifndef WHARF_TESTS_TEST_ENVIRONMENT_H
#define WHARF_TESTS_TEST_ENVIRONMENT_H

#include <stdint.h>

/* The variable's value; NULL if it is not set. */
const char *test_environment_gpu(void);

/* That engine (enum wharf_engine); AUTO if it is not set. */
uint32_t test_environment_engine(void);

#endif
