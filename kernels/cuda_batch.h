/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_batch.h: a batch on a GPU by a kernel launched for it; C and C++.
 *
 * Functions return 0 or -errno, as cuda_error.h says; wharf_cuda_error_text() has the words.
 */
#ifndef WHARF_KERNELS_CUDA_BATCH_H
#define WHARF_KERNELS_CUDA_BATCH_H

#include <stddef.h>

#include "kernels/cuda_error.h"
#include "kernels/device_batch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* CUDA's stream: cudaStream_t is a pointer to it.  NULL is the default stream. */
struct CUstream_st;

/* A GPU made ready: the decoders' scratch in its memory. */
struct wharf_cuda_decoder;

/*
 * Makes GPU number `device` ready, and it becomes the calling thread's current one, which it has to
 * be in every thread that calls one of the functions below for this decoder.  Also
 * -ENODEV for a GPU below compute capability 8.0, of which wharf_cuda_error_text() speaks too.
 */
int wharf_cuda_decoder_new(int device, struct wharf_cuda_decoder **ret_decoder);

/* Takes NULL.  No batch may be under way. */
void wharf_cuda_decoder_free(struct wharf_cuda_decoder *decoder);

/*
 * Starts decoding a batch and returns; the outcomes are there when the stream has come so far.
 * batch.chunks, batch.outcomes and the memory that the chunks name must be reachable by the GPU
 * and stay as they are until then; *batch itself need not.  Does not synchronise or allocate.
 * -EINVAL for a batch.codec that has no device decoder.
 *
 * A decoder decodes one batch at a time: give its batches to one stream, or order the streams.
 */
int wharf_cuda_decode_batch(struct wharf_cuda_decoder *decoder,
                            const struct wharf_device_batch *batch, struct CUstream_st *stream);

/*
 * What to give as a batch's codec for n_chunks chunks of `codec` so that they are decoded soonest:
 * WHARF_DEVICE_BLOCK | codec for few of a codec that has such a kernel, or else `codec`.
 */
uint32_t wharf_cuda_choose_kernel(const struct wharf_cuda_decoder *decoder, uint32_t codec,
                                  size_t n_chunks);

/* What a codec's kernel takes; for reports. */
struct wharf_cuda_kernel_info {
    unsigned n_registers;     /* a thread */
    unsigned n_local_nbytes;  /* of local memory, a thread: spilled registers and arrays */
    unsigned n_shared_nbytes; /* a warp */
    size_t n_scratch_nbytes;  /* a warp */
    unsigned n_warps_per_sm;  /* that are resident at once */
};
int wharf_cuda_kernel_info(struct wharf_cuda_decoder *decoder, uint32_t codec,
                           struct wharf_cuda_kernel_info *ret_info);

#ifdef __cplusplus
}
#endif

#endif
