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
    /* Of large streams, when a handle is opened: the least part of a source, what one may be
     * measured over, and what is looked at at once; 0: as on a GPU. */
    unsigned part_nbytes, most_nbytes, slice_nbytes;
    unsigned n_links; /* of the last stream, all of which the GPU would decode at once */
} cuda_batch_simt;

#ifdef __cplusplus
}
#endif

#endif
