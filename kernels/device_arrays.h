/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_arrays.h: a batch as a program in GPU memory has it: an array for each member of a chunk;
 * C and C++.
 *
 * All pointers are the device's.  The host has looked at what is not in an array: codec, flags,
 * parameter and model are good.
 */
#ifndef WHARF_KERNELS_DEVICE_ARRAYS_H
#define WHARF_KERNELS_DEVICE_ARRAYS_H

#include <stdint.h>

#include "proto/wharf_result.h"

/* n_chunks entries each. */
struct wharf_device_arrays {
    const uint8_t *const *in;
    const uint64_t *in_nbytes;
    uint8_t *const *out;
    const uint64_t *out_avail;
    const uint32_t *checksums; /* NULL: none */
    struct wharf_outcome *outcomes;
    const uint8_t *model; /* the image of a registered one, of all chunks; or NULL */
    uint32_t n_chunks;
    uint32_t codec;
    uint32_t flags;
    uint32_t parameter;
};

/* Where the sources of a chain's chunks are: outputs of earlier batches, the parts. */
struct wharf_device_chain {
    uint8_t *const *parts; /* n_parts entries, as those of parts_avail, outcomes and order */
    const uint64_t *parts_avail;
    const struct wharf_outcome *outcomes;
    const uint32_t *order;   /* the parts' numbers in the order of sources; NULL: 0, 1, 2 ... */
    const uint32_t *offsets; /* n_chunks + 1 entries, of `order`: where each chunk's begin */
    uint32_t n_parts;
};

/* What encoders of lines choose, of all chunks. */
struct wharf_device_lines {
    uint32_t shift; /* 2 to the power of it is the size of a line */
    uint32_t layout;
    uint32_t type;
};

#endif
