/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_kernel.h: the kernels of Blosc's batches, and their launch; for batch_kernel.cu.
 *
 * Functions return 0 or -errno, as cuda_error.h says.
 */
#ifndef WHARF_KERNELS_BLOSC_KERNEL_H
#define WHARF_KERNELS_BLOSC_KERNEL_H

#include <stddef.h>

#include "kernels/cuda_batch.h"

/* How many blocks of each kernel the current GPU holds, and how large a stage it has. */
struct wharf_blosc_shape {
    unsigned n_plan_blocks, n_light_blocks, n_zlib_blocks, n_zstd_blocks, n_order_blocks;
    unsigned stage_nbytes;
};

/* Loads the kernels into the current GPU. */
int wharf_cuda_load_blosc(struct wharf_blosc_shape *ret_shape);

/* As wharf_cuda_scratch_nbytes. */
size_t wharf_cuda_blosc_scratch_nbytes(const struct wharf_blosc_shape *shape, uint32_t n_chunks);

/* Starts decoding more than 0 chunks: those of a program's arrays, or of a batch.  The other one is
 * NULL. */
int wharf_cuda_launch_blosc(const struct wharf_blosc_shape *shape,
                            const struct wharf_device_arrays *arrays,
                            const struct wharf_device_batch *batch, void *d_scratch,
                            struct CUstream_st *stream);

/* What the kernel takes that decodes most streams. */
int wharf_cuda_get_blosc_info(const struct wharf_blosc_shape *shape, unsigned n_sms,
                              struct wharf_cuda_kernel_info *ret_info);

#endif
