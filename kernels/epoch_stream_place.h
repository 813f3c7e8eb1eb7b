/* SPDX-License-Identifier: Apache-2.0 */
/* epoch_stream_place.h: what epoch_kernel.cu tells those that run other kernels beside its own. */
#ifndef WHARF_KERNELS_EPOCH_STREAM_PLACE_H
#define WHARF_KERNELS_EPOCH_STREAM_PLACE_H

#include <stddef.h>

struct CUstream_st;
struct wharf_epoch;

/* The number of an epoch's device. */
int wharf_cuda_epoch_device(const struct wharf_epoch *epoch);

/* Makes a stream, not blocking, whose kernels run on the epoch's part of the device. */
int wharf_cuda_epoch_stream(const struct wharf_epoch *epoch, struct CUstream_st **ret_stream);

/* How many of the nbytes from an address on a copy may have at most: memory of the host is
 * registered in pieces. */
size_t wharf_cuda_host_piece(const void *at, size_t nbytes);

#endif
