/* SPDX-License-Identifier: Apache-2.0 */
/* lz4_codec.c: the codec's row. */
#include "encoders/lz4/lz4.h"
#include "encoders/lz4/lz4_format.h"

const struct wharf_codec_ops wharf_lz4_codec = {
    .decode = wharf_lz4_decode,
    .decode_reference = wharf_lz4_decode_reference,
    .encoder = &wharf_lz4_encoder,
    .encoder_rows = wharf_lz4_encoder_rows,
    .max_ratio = WHARF_LZ4_MAX_RATIO,
    .max_constant = WHARF_LZ4_MAX_CONSTANT,
};
