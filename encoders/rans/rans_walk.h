/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_walk.h: the plain decoder of a rans body: one decoder that runs through, coder by coder, and
 * looks at every rule.  It is the judge: what tuned decoders cannot vouch for, they leave to it.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_WALK_H
#define WHARF_ENCODERS_RANS_RANS_WALK_H

#include "encoders/rans/rans_body.h"
#include "encoders/rans/rans_model.h"

/*
 * Rules 6 to 8.
 *   indexes  n_symbols numbers of distributions, each below n_distributions; NULL if there is one.
 *   out      n_symbols symbols, of the model's size.
 * Returns WHARF_REASON_NONE, or the reason, of BAD_DATA, and in *ret_bit where in the body it
 * stands.
 */
enum wharf_reason wharf_rans_walk(const struct wharf_rans_body *body,
                                  const struct wharf_rans_model *model, const uint8_t *indexes,
                                  uint8_t *out, uint64_t *ret_bit);

#endif
