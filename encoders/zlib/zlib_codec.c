/* SPDX-License-Identifier: Apache-2.0 */
/* zlib_codec.c: the codec's row. */
#include "encoders/deflate/deflate_encode.h"
#include "encoders/zlib/zlib.h"
#include "encoders/zlib/zlib_format.h"

const struct wharf_codec_ops wharf_zlib_codec = {
    .decode = wharf_zlib_decode,
    .decode_reference = wharf_zlib_decode_reference,
    .encoder = &wharf_zlib_encoder,
    .encoder_rows = wharf_deflate_encoder_rows,
    .max_ratio = WHARF_ZLIB_MAX_RATIO,
    .max_constant = WHARF_ZLIB_MAX_CONSTANT,
};
