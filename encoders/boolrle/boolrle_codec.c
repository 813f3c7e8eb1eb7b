/* SPDX-License-Identifier: Apache-2.0 */
/* boolrle_codec.c: the codec's row. */
#include "encoders/boolrle/boolrle.h"
#include "encoders/boolrle/boolrle_format.h"

const struct wharf_codec_ops wharf_boolrle_codec = {
    .decode = wharf_boolrle_decode,
    .decode_reference = wharf_boolrle_decode_reference,
    .encoder = &wharf_boolrle_encoder,
    .encoder_rows = wharf_boolrle_encoder_rows,
    .max_ratio = WHARF_BOOLRLE_MAX_RATIO,
    .max_constant = WHARF_BOOLRLE_MAX_CONSTANT,
};
