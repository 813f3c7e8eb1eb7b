/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_header.h: reads a chunk's header and checks it as blosc_format.h says.
 *
 * Every byte of the source is read once, so that data that changes meanwhile cannot pass a check
 * and then differ.
 */
#ifndef WHARF_ENCODERS_BLOSC_BLOSC_HEADER_H
#define WHARF_ENCODERS_BLOSC_BLOSC_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/blosc/blosc_format.h"
#include "proto/wharf_result.h"

struct wharf_blosc_header {
    uint8_t version;
    uint8_t flags;
    uint8_t element_nbytes;
    uint8_t inside; /* enum wharf_blosc_inside */
    bool is_extended;
    bool is_copy;
    bool has_dictionary;
    enum wharf_blosc_special special;
    uint32_t header_nbytes;
    uint32_t out_nbytes;
    uint32_t block_nbytes; /* at most out_nbytes */
    uint32_t n_blocks;
    uint32_t chunk_nbytes;
    uint8_t filters[WHARF_BLOSC_N_FILTERS]; /* enum wharf_blosc_filter, in the order of packing */
    uint8_t metas[WHARF_BLOSC_N_FILTERS];
};

/* Steps 1 to 5 of HEADER.  Returns WHARF_REASON_NONE or the reason of the error. */
enum wharf_reason wharf_blosc_read_header(const uint8_t *in, size_t in_nbytes,
                                          struct wharf_blosc_header *ret_header);

#endif
