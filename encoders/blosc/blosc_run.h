/* SPDX-License-Identifier: Apache-2.0 */
/* blosc_run.h: decodes with the parts of an engine. */
#ifndef WHARF_ENCODERS_BLOSC_BLOSC_RUN_H
#define WHARF_ENCODERS_BLOSC_BLOSC_RUN_H

#include "encoders/blosc/blosc_walk.h"

/* Decodes what the parameter says.  `in` and `out` are as for wharf_decode_fn; `scratch` has
 * WHARF_BLOSC_SCRATCH_NBYTES. */
void wharf_blosc_run(const struct wharf_blosc_parts *parts, const uint8_t *in, size_t in_nbytes,
                     uint8_t *out, size_t out_avail, const struct wharf_codec_setting *setting,
                     uint8_t *scratch, struct wharf_outcome *ret_outcome);

#endif
