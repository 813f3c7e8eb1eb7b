/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_handle.h: structs and functions that the files of libwharf-cuda share. */
#ifndef WHARF_CLIENT_CUDA_HANDLE_H
#define WHARF_CLIENT_CUDA_HANDLE_H

#include <stdint.h>

#include "clientlib/cuda/wharf_cuda.h"
#include "kernels/cuda_batch.h"
#include "kernels/inflate_parts.h"

struct wharf_cuda {
    struct wharf_cuda_decoder *decoder;
    struct wharf_inflate_shape inflate;
};

struct wharf_cuda_model {
    const struct wharf_cuda *cuda;
    void *image; /* aligned to 16 */
    void *d_image;
    uint32_t codec;
    uint32_t kernel; /* the faster one for it */
};

/* Keeps the error text of a failed function of cuda_batch.h.  Returns rc. */
int wharf_cuda_note(int rc);

/* Copies a caller's batch and checks all of it but pointers; `cuda` may be NULL.  As the calls that
 * take one. */
int wharf_cuda_take_batch(const struct wharf_cuda *cuda, const struct wharf_cuda_batch *batch,
                          struct wharf_cuda_batch *ret_own);

/* Of a batch that was taken: how much scratch it needs; whether all arrays but those of sources are
 * there; and its start, after all checks. */
size_t wharf_cuda_scratch_of(const struct wharf_cuda *cuda, const struct wharf_cuda_batch *own);
int wharf_cuda_check_outputs(const struct wharf_cuda_batch *own);
int wharf_cuda_start_batch(const struct wharf_cuda *cuda, const struct wharf_cuda_batch *own,
                           struct CUstream_st *stream);

/* Checks that scratch is set, aligned, and has at least `needed` bytes.  0, -EINVAL or -ENOSPC. */
int wharf_cuda_check_scratch(const void *scratch, size_t nbytes, size_t needed);

#endif
