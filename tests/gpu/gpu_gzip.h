/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_gzip.h: large gzip streams for measurements, packed by many threads. */
#ifndef WHARF_TESTS_GPU_GZIP_H
#define WHARF_TESTS_GPU_GZIP_H

#include <stddef.h>
#include <stdint.h>

/*
 * nbytes of stretches from anywhere in a sample, a file or a kind of test data, so that any size
 * has about the sample's statistics.  The caller frees them.
 */
uint8_t *gpu_gzip_plain(const char *sample_name, size_t nbytes);

/*
 * Packs at a level of zlib's, "0" to "9", or with the fixed codes, "fixed", as pigz does: in pieces
 * of piece_nbytes, each with the 32 KiB before it as its dictionary, with an empty stored block
 * between two of them.  The caller frees the stream.  Ends the program if that fails.
 */
uint8_t *gpu_gzip_pack(const uint8_t *plain, size_t nbytes, const char *level, size_t piece_nbytes,
                       size_t *ret_nbytes);

#endif
