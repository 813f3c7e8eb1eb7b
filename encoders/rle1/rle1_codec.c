/* SPDX-License-Identifier: Apache-2.0 */
/* rle1_codec.c: the codec's row. */
#include "encoders/rle1/rle1.h"
#include "encoders/rle1/rle1_format.h"
#include "encoders/rle_values.h"

const struct wharf_codec_ops wharf_rle1_codec = {
    .decode = wharf_rle1_decode,
    .decode_reference = wharf_rle1_decode_reference,
    .encoder = &wharf_rle1_encoder,
    .encoder_rows = wharf_rle1_encoder_rows,
    .max_ratio = WHARF_RLE1_MAX_RATIO,
    .max_constant = WHARF_RLE1_MAX_CONSTANT,
    .unit_nbytes = wharf_rle_unit_nbytes,
};
