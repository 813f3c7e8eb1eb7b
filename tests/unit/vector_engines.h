/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vector_engines.h: everything that can decode a vector, one row each.
 */
#ifndef WHARF_TESTS_VECTOR_ENGINES_H
#define WHARF_TESTS_VECTOR_ENGINES_H

#include <stdbool.h>

#include "encoders/codec.h"

enum vector_engine_kind {
    VECTOR_ENGINE_CPU,
    VECTOR_ENGINE_DEVICE,
    /* The code of one of kind DEVICE, its lanes in another order. */
    VECTOR_ENGINE_DEVICE_AGAIN,
};

struct vector_engine {
    const char *name;
    /* Whether the engine decodes this codec at all. */
    bool (*can_decode)(uint32_t codec);
    /* As wharf_decode_fn, for any codec that it can decode. */
    void (*decode)(uint32_t codec, uint32_t parameter, const uint8_t *in, size_t in_nbytes,
                   uint8_t *out, size_t out_avail, struct wharf_outcome *ret_outcome);
    /* Decodes into memory of its own, so that nothing is too large for it and a failure says how
     * far it came. */
    bool streams;
    /* It leaves out long vectors of ORC's run lengths, of which there is a beginning as well: it is
     * slow, or differs from another engine for other codecs only. */
    bool skips_long;
    enum vector_engine_kind kind;
};

/* The first row is the CPU engine, which every other one is compared with. */
extern const struct vector_engine vector_engines[];
extern const size_t n_vector_engines;

#endif
