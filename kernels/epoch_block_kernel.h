/* SPDX-License-Identifier: Apache-2.0 */
/* epoch_block_kernel.h: the epoch kernels for few items, for lines to encode and for chunks that
 * are kept, as their launcher sees them. */
#ifndef WHARF_KERNELS_EPOCH_BLOCK_KERNEL_H
#define WHARF_KERNELS_EPOCH_BLOCK_KERNEL_H

#include <stddef.h>

/* Its parameter is struct epoch_params; a block is `n_threads` threads, with so much shared
 * memory. */
struct wharf_block_kernel {
    const void *function;
    unsigned n_threads;
    size_t shared_nbytes;
};

/* A block for each item, one of a multiprocessor's.  function is NULL where no codec has a decoder
 * for blocks. */
struct wharf_block_kernel wharf_epoch_block_kernel();

/* A warp for each item, as epoch_kernel.cu's, where decoded chunks are kept. */
struct wharf_block_kernel wharf_epoch_memo_kernel();

/* A warp for each item, WHARF_WORK_ENCODE. */
struct wharf_block_kernel wharf_epoch_encode_kernel();

#endif
