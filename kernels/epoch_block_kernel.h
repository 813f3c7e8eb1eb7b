/* SPDX-License-Identifier: Apache-2.0 */
/* epoch_block_kernel.h: the epoch kernel for few items, as its launcher sees it. */
#ifndef WHARF_KERNELS_EPOCH_BLOCK_KERNEL_H
#define WHARF_KERNELS_EPOCH_BLOCK_KERNEL_H

#include <stddef.h>

/* Its parameter is struct epoch_params; a block is `n_threads` threads, with so much shared
 * memory, and one of a multiprocessor's. */
struct wharf_block_kernel {
    const void *function;
    unsigned n_threads;
    size_t shared_nbytes;
};

/* function is NULL where no codec has a decoder for blocks. */
struct wharf_block_kernel wharf_epoch_block_kernel();

#endif
