/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_write.h: writes a rans stream from its parts, for the encoder and for thinning.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_WRITE_H
#define WHARF_ENCODERS_RANS_RANS_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "encoders/rans/rans_format.h"
#include "encoders/rans/rans_model.h"

/* Where a decoder can begin. */
struct wharf_rans_mark {
    int64_t first_word;
    uint32_t first_group;                      /* the smallest start */
    uint16_t start_offset[WHARF_RANS_N_LANES]; /* start - first_group */
    uint16_t state[WHARF_RANS_N_LANES];
};

/* All of a body but its words. */
struct wharf_rans_plan {
    uint32_t n_symbols;
    uint64_t n_words;
    uint32_t final_state[WHARF_RANS_N_LANES];
    const struct wharf_rans_mark *marks; /* of splits 1 to n_splits - 1 */
    uint32_t n_splits;
};

/* Bytes of items 1 to 10: what comes before the words. */
size_t wharf_rans_fields_nbytes(const struct wharf_rans_plan *plan);

/* Writes them; `out` has room for as many bytes as wharf_rans_fields_nbytes says. */
void wharf_rans_write_fields(const struct wharf_rans_plan *plan, uint8_t *out);

/* Writes a stream's first WHARF_RANS_HEADER_NBYTES bytes. */
void wharf_rans_write_header(const struct wharf_rans_shape *shape, uint32_t model_nbytes,
                             uint32_t indexes_nbytes, uint8_t *out);

#endif
