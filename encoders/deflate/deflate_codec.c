/* SPDX-License-Identifier: Apache-2.0 */
/* deflate_codec.c: the codec's row. */
#include "encoders/deflate/deflate.h"
#include "encoders/deflate/deflate_encode.h"
#include "encoders/deflate/deflate_format.h"

const struct wharf_codec_ops wharf_deflate_codec = {
    .decode = wharf_deflate_decode,
    .decode_reference = wharf_deflate_decode_reference,
    .encoder = &wharf_deflate_encoder,
    .encoder_rows = wharf_deflate_encoder_rows,
    .max_ratio = WHARF_DEFLATE_MAX_RATIO,
    .max_constant = WHARF_DEFLATE_MAX_CONSTANT,
};
