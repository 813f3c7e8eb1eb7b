/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_coder.h: codes symbols into words, and finds the places where decoders can begin.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_CODER_H
#define WHARF_ENCODERS_RANS_RANS_CODER_H

#include "encoders/rans/rans_write.h"

/* How a symbol is coded: state becomes state + bias + quotient * (2^n - f). */
struct wharf_rans_code {
    uint64_t reciprocal; /* of f, for the quotient: ceil(2^64 / f) */
    uint64_t limit;      /* a word is written while the state is at least this: f * 2^(32 - n) */
    uint32_t bias;
    uint32_t complement; /* 2^n - f */
};

/* What is coded. */
struct wharf_rans_source {
    struct wharf_rans_shape shape;
    const struct wharf_rans_code *codes; /* distribution d's from d * alphabet on */
    const uint8_t *symbols;              /* n_symbols of symbol_nbytes each, little-endian */
    const uint8_t *indexes; /* n_symbols numbers of distributions; NULL if there is one */
    uint32_t n_symbols;
    uint32_t max_splits; /* at least 1 */
};

/* The codes of a model; frequencies and codes are of n_ranges symbols. */
void wharf_rans_make_codes(const struct wharf_rans_shape *shape, const uint32_t *frequencies,
                           struct wharf_rans_code *codes);

/*
 * Codes all symbols, each of which has a frequency.
 *   words   room for n_symbols words: each symbol gives one at most.
 *   marks   room for max_splits - 1; as many are found as do not lie too close to each other;
 *           those found are the last ones.
 * Fills in the plan, which points into `marks`.
 *
 * A split is to begin at its share of the symbols.  Of all groups around that place the one is
 * taken that least misses it with its window's two ends together: the paper's equation 7, with t
 * counted from where the split before should end rather than from where it does, so that what one
 * split misses does not move those after it.
 */
void wharf_rans_code_symbols(const struct wharf_rans_source *source, uint16_t *words,
                             struct wharf_rans_mark *marks, struct wharf_rans_plan *ret_plan);

#endif
