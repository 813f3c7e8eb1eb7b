/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_batch.h: batches on a GPU by kernels launched for them; C and C++.
 *
 * What libwharf-cuda stands on.  No call here synchronises or allocates but those that make and end
 * things.  Several threads may use one decoder.
 *
 * Functions return 0 or -errno, as cuda_error.h says; wharf_cuda_error_text() has the words.
 */
#ifndef WHARF_KERNELS_CUDA_BATCH_H
#define WHARF_KERNELS_CUDA_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/cuda_error.h"
#include "kernels/device_arrays.h"
#include "kernels/device_batch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* CUDA's stream: cudaStream_t is a pointer to it.  NULL is the default stream. */
struct CUstream_st;

/* The kernels, loaded into the memory of the GPU that was current. */
struct wharf_cuda_decoder;

/*
 * Loads all kernels into the current context's GPU, so that no later call does.  Also -ENODEV for a
 * GPU below compute capability 8.0, of which wharf_cuda_error_text() speaks too.
 */
int wharf_cuda_decoder_new(struct wharf_cuda_decoder **ret_decoder);

/* Takes NULL.  Kernels under way are not hurt. */
void wharf_cuda_decoder_free(struct wharf_cuda_decoder *decoder);

/* 0 when the calling thread's current GPU is the decoder's, or -EINVAL. */
int wharf_cuda_check_current(const struct wharf_cuda_decoder *decoder);

/* Whether there is a decoder for a codec. */
bool wharf_cuda_has_decoder(uint32_t codec);

/*
 * How much scratch a batch of n_chunks by this kernel takes, a multiple of 256; with has_models, of
 * chunks that all have a registered model.  It is aligned to 256, in the GPU's memory, and one
 * batch's alone until that is done.  Without such a kernel 0.
 */
size_t wharf_cuda_scratch_nbytes(const struct wharf_cuda_decoder *decoder, uint32_t kernel,
                                 uint32_t n_chunks, bool has_models);

/*
 * Starts decoding a batch and returns; the outcomes are there when the stream has come so far.
 * batch.chunks, batch.outcomes and the memory that the chunks name must be reachable by the GPU
 * and stay as they are until then; *batch itself need not.
 * -EINVAL for a batch.codec that has no device decoder.
 */
int wharf_cuda_decode_batch(const struct wharf_cuda_decoder *decoder,
                            const struct wharf_device_batch *batch, void *d_scratch,
                            struct CUstream_st *stream);

/* The same for a program's arrays, of more than 0 chunks, by this kernel. */
int wharf_cuda_decode_arrays(const struct wharf_cuda_decoder *decoder, uint32_t kernel,
                             const struct wharf_device_arrays *arrays, void *d_scratch,
                             struct CUstream_st *stream);

/* Starts encoding with one of the line codecs; takes no scratch. */
int wharf_cuda_encode_lines(const struct wharf_cuda_decoder *decoder,
                            const struct wharf_device_arrays *arrays,
                            const struct wharf_device_lines *lines, struct CUstream_st *stream);

/*
 * What to give as a batch's codec for n_chunks chunks of `codec` so that they are decoded soonest:
 * WHARF_DEVICE_BLOCK | codec for few of a codec that has such a kernel, WHARF_DEVICE_CREW | codec
 * for any of one that has that, or else `codec`.
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
int wharf_cuda_get_kernel_info(const struct wharf_cuda_decoder *decoder, uint32_t codec,
                               struct wharf_cuda_kernel_info *ret_info);

/* A copy of nbytes in the GPU's memory.  These two allocate, and wait for the GPU. */
int wharf_cuda_copy_in(const struct wharf_cuda_decoder *decoder, const void *from, size_t nbytes,
                       void **ret_d_copy);
void wharf_cuda_copy_free(void *d_copy);

#ifdef __cplusplus
}
#endif

#endif
