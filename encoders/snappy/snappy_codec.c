/* SPDX-License-Identifier: Apache-2.0 */
/* snappy_codec.c: the codec's row. */
#include "encoders/snappy/snappy.h"
#include "encoders/snappy/snappy_format.h"

const struct wharf_codec_ops wharf_snappy_codec = {
    .decode = wharf_snappy_decode,
    .decode_reference = wharf_snappy_decode_reference,
    .encoder = &wharf_snappy_encoder,
    .encoder_rows = wharf_snappy_encoder_rows,
    .max_ratio = WHARF_SNAPPY_MAX_RATIO,
    .max_constant = WHARF_SNAPPY_MAX_CONSTANT,
};
