/* SPDX-License-Identifier: Apache-2.0 */
/* test_chain.h: what a chain's chunk has to be decoded from, found one part after the other. */
#ifndef WHARF_TESTS_TEST_CHAIN_H
#define WHARF_TESTS_TEST_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clientlib/cuda/wharf_cuda.h"

/*
 * The source of a chunk by arrays that this processor can read; its bytes need not be.  False: it
 * has none, and *ret_outcome is what the chunk ends with.
 */
bool test_chain_source(const struct wharf_cuda_chain *chain, size_t chunk, const void **ret_in,
                       size_t *ret_nbytes, struct wharf_outcome *ret_outcome);

#endif
