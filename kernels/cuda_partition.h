/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_partition.h: a part of a GPU's multiprocessors for kernels, and no others: a green context.
 */
#ifndef WHARF_KERNELS_CUDA_PARTITION_H
#define WHARF_KERNELS_CUDA_PARTITION_H

#include <cuda_runtime_api.h>

struct wharf_cuda_partition;

/*
 * At least so many percent of the multiprocessors, in the driver's steps (eight on compute
 * capability 9.0).  *ret_n_sms are that many.  Fails, with a text, where the driver has no green
 * contexts or cannot make this one; CUDA is as usable as before then.
 */
int wharf_cuda_partition_new(int device, unsigned percent,
                             struct wharf_cuda_partition **ret_partition, unsigned *ret_n_sms);

/* A stream, not blocking, whose kernels run on these multiprocessors. */
int wharf_cuda_partition_stream(struct wharf_cuda_partition *partition, cudaStream_t *ret_stream);

/* Takes NULL.  Its streams were destroyed before. */
void wharf_cuda_partition_free(struct wharf_cuda_partition *partition);

#endif
