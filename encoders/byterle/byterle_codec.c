/* SPDX-License-Identifier: Apache-2.0 */
/* byterle_codec.c: the codec's row. */
#include "encoders/byterle/byterle.h"
#include "encoders/byterle/byterle_format.h"

const struct wharf_codec_ops wharf_byterle_codec = {
    .decode = wharf_byterle_decode,
    .decode_reference = wharf_byterle_decode_reference,
    .encoder = &wharf_byterle_encoder,
    .encoder_rows = wharf_byterle_encoder_rows,
    .max_ratio = WHARF_BYTERLE_MAX_RATIO,
    .max_constant = WHARF_BYTERLE_MAX_CONSTANT,
};
