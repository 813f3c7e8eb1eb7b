/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_rans_stream.h: one large rans stream of the symbols that gpu_symbols.h makes; C and C++.
 */
#ifndef WHARF_TESTS_GPU_RANS_STREAM_H
#define WHARF_TESTS_GPU_RANS_STREAM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Allocated; for as long as the program runs. */
struct gpu_rans_stream {
    char name[32];
    uint8_t *plain, *stream, *image;
    size_t plain_nbytes, stream_nbytes, image_nbytes;
};

/* total bytes, a multiple of 64, with a registered model of n_distributions and splits of 8192
 * symbols.  Ends the program if that fails. */
struct gpu_rans_stream gpu_rans_stream_of_symbols(uint32_t n_distributions, uint32_t n_bits,
                                                  size_t total);

#ifdef __cplusplus
}
#endif

#endif
