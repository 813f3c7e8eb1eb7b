/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_coder.h: codes symbols into words, and finds the places where decoders can begin.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_CODER_H
#define WHARF_ENCODERS_RANS_RANS_CODER_H

#include "encoders/rans/rans_code.h"

/* The codes of a model; frequencies and codes are of n_ranges symbols. */
void wharf_rans_make_codes(const struct wharf_rans_shape *shape, const uint32_t *frequencies,
                           struct wharf_rans_code *codes);

/*
 * Codes all symbols, each of which has a frequency.
 *   words   room for n_symbols words, of which each symbol gives one at most, and for 32 more.
 *   marks   room for max_splits - 1; as many are found as do not lie too close to each other, and
 *           as have a place within the symbols: an equal share of these, rounded up, from one to
 *           the next.  Those found are the last ones.
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
