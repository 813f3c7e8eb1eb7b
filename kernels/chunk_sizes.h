/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunk_sizes.h: how large the outputs of a batch's chunks are, of codecs whose streams say it or
 * can be walked over without decoding; C and C++.
 *
 * Functions return 0 or -errno, as cuda_error.h says; wharf_cuda_error_text() has the words.
 */
#ifndef WHARF_KERNELS_CHUNK_SIZES_H
#define WHARF_KERNELS_CHUNK_SIZES_H

#include <stdbool.h>
#include <stdint.h>

#include "encoders/wharf_codec.h"
#include "kernels/device_arrays.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* Whether there is a walk for a codec.  Deflate has to be decoded. */
static inline bool wharf_cuda_has_sizes(uint32_t codec)
{
    return codec == WHARF_CODEC_STORED || codec == WHARF_CODEC_BLOSC ||
           (codec >= WHARF_CODEC_RLE1 && codec <= WHARF_CODEC_PALETTE);
}

/* Loads the kernel, so that no later call does. */
int wharf_cuda_load_sizes(void);

/* Starts finding sizes, of 1 chunk or more.  Of the arrays only sources are looked at. */
int wharf_cuda_start_sizes(const struct wharf_device_arrays *arrays, uint64_t *d_sizes,
                           struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif
