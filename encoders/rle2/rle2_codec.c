/* SPDX-License-Identifier: Apache-2.0 */
/* rle2_codec.c: the codec's row. */
#include "encoders/rle2/rle2.h"
#include "encoders/rle2/rle2_format.h"
#include "encoders/rle_values.h"

const struct wharf_codec_ops wharf_rle2_codec = {
    .decode = wharf_rle2_decode,
    .decode_reference = wharf_rle2_decode_reference,
    .encoder = &wharf_rle2_encoder,
    .encoder_rows = wharf_rle2_encoder_rows,
    .max_ratio = WHARF_RLE2_MAX_RATIO,
    .max_constant = WHARF_RLE2_MAX_CONSTANT,
    .unit_nbytes = wharf_rle_unit_nbytes,
};
