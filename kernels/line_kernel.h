/* SPDX-License-Identifier: Apache-2.0 */
/* line_kernel.h: encoders of lines on a GPU, for batch_kernel.cu; as cuda_batch.h says. */
#ifndef WHARF_KERNELS_LINE_KERNEL_H
#define WHARF_KERNELS_LINE_KERNEL_H

#include "kernels/device_arrays.h"

struct CUstream_st;

/* Loads them; how many of their blocks a multiprocessor holds. */
int wharf_cuda_load_line_kernels(unsigned *ret_blocks_per_sm);

/* Starts one, of at most so many blocks. */
int wharf_cuda_launch_lines(const struct wharf_device_arrays *arrays,
                            const struct wharf_device_lines *lines, unsigned max_blocks,
                            struct CUstream_st *stream);

#endif
