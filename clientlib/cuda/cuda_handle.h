/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_handle.h: what the files of libwharf-cuda share. */
#ifndef WHARF_CLIENT_CUDA_HANDLE_H
#define WHARF_CLIENT_CUDA_HANDLE_H

#include <stdint.h>

#include "kernels/cuda_batch.h"

struct wharf_cuda {
    struct wharf_cuda_decoder *decoder;
};

struct wharf_cuda_model {
    const struct wharf_cuda *cuda;
    void *image; /* aligned to 16 */
    void *d_image;
    uint32_t codec;
    uint32_t kernel; /* the one that is faster for it */
};

/* Keeps the words of what a call of cuda_batch.h failed with; returns rc. */
int wharf_cuda_note(int rc);

/* That scratch is there, aligned, and at least `needed`: 0, -EINVAL or -ENOSPC. */
int wharf_cuda_check_scratch(const void *scratch, size_t nbytes, size_t needed);

#endif
