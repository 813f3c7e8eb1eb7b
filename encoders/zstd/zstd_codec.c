/* SPDX-License-Identifier: Apache-2.0 */
/* zstd_codec.c: the codec's row. */
#include "encoders/zstd/zstd.h"
#include "encoders/zstd/zstd_format.h"

const struct wharf_codec_ops wharf_zstd_codec = {
    .decode = wharf_zstd_decode,
    .decode_reference = wharf_zstd_decode_reference,
    .encoder = &wharf_zstd_encoder,
    .encoder_rows = wharf_zstd_encoder_rows,
    .max_ratio = WHARF_ZSTD_MAX_RATIO,
    .max_constant = WHARF_ZSTD_MAX_CONSTANT,
};
