/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain_sources.h: sources of chunks from outputs of earlier batches; C and C++.
 *
 * In a stream, between the earlier batches and the one that decodes the sources:
 * wharf_cuda_start_sources; and behind that one: wharf_cuda_start_failures.
 *
 * Functions return 0 or -errno, as cuda_error.h says; wharf_cuda_error_text() has the words.
 */
#ifndef WHARF_KERNELS_CHAIN_SOURCES_H
#define WHARF_KERNELS_CHAIN_SOURCES_H

#include <stdint.h>

#include "kernels/device_arrays.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* Loads the kernels, so that no later call does. */
int wharf_cuda_load_chain(void);

/* Starts finding the sources of n_chunks chunks, 1 or more. */
int wharf_cuda_start_sources(const struct wharf_device_chain *chain, uint32_t n_chunks,
                             const uint8_t **d_in, uint64_t *d_in_nbytes,
                             struct CUstream_st *stream);

/* Starts setting the outcomes of those that have none, by the arrays that start_sources filled. */
int wharf_cuda_start_failures(const uint8_t *const *d_in, const uint64_t *d_in_nbytes,
                              struct wharf_outcome *d_outcomes, uint32_t n_chunks,
                              struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
