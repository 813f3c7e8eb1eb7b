/* SPDX-License-Identifier: Apache-2.0 */
/* gzip_codec.c: the codec's row. */
#include "encoders/deflate/deflate_encode.h"
#include "encoders/gzip/gzip.h"
#include "encoders/gzip/gzip_format.h"

const struct wharf_codec_ops wharf_gzip_codec = {
    .decode = wharf_gzip_decode,
    .decode_reference = wharf_gzip_decode_reference,
    .encoder = &wharf_gzip_encoder,
    .encoder_rows = wharf_deflate_encoder_rows,
    .max_ratio = WHARF_GZIP_MAX_RATIO,
    .max_constant = WHARF_GZIP_MAX_CONSTANT,
};
