/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_batch_simt.h: what tests ask of the stand-in for a GPU, cuda_batch_simt.cc. */
#ifndef WHARF_TESTS_CUDA_BATCH_SIMT_H
#define WHARF_TESTS_CUDA_BATCH_SIMT_H

#ifdef __cplusplus
extern "C" {
#endif

extern struct cuda_batch_simt {
    int current;      /* the number of the current GPU */
    int failure;      /* what calls fail with; 0: they do not */
    unsigned n_calls; /* that came here */
} cuda_batch_simt;

#ifdef __cplusplus
}
#endif

#endif
