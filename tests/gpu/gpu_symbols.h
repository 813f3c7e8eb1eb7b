/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_symbols.h: chunks of 16-bit symbols, each symbol with one of several distributions, for the
 * GPU's benchmarks: what learned image codecs give to an entropy coder.
 */
#ifndef WHARF_TESTS_GPU_SYMBOLS_H
#define WHARF_TESTS_GPU_SYMBOLS_H

#include "tests/gpu/gpu_pack.h"

struct gpu_symbols {
    uint32_t n_bits;
    uint32_t n_distributions;
    bool is_registered; /* the model, and not in each chunk */
    char name[32];      /* of such data */
    /* What gpu_symbols_pack adds. */
    uint32_t alphabet;
    uint8_t *plain; /* of all chunks */
    void *image;    /* of a registered model */
    size_t image_nbytes;
};

/*
 * Normal distributions, rounded, whose scales go from 0.11 to 2^(n_bits - 8) by equal factors, one
 * of a quarter of that if there is only one; each symbol's is chosen at random.  At most n_wanted
 * different chunks of `chunk` bytes, a multiple of 64, with splits of 8192 symbols.  Ends the
 * program if that fails.
 */
void gpu_symbols_pack(struct gpu_symbols *symbols, struct gpu_source *source, size_t chunk,
                      size_t n_wanted);
void gpu_symbols_free(struct gpu_symbols *symbols);

#endif
