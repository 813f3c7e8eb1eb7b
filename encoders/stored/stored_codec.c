/* SPDX-License-Identifier: Apache-2.0 */
/* stored_codec.c: the codec's row. */
#include "encoders/stored/stored.h"
#include "encoders/stored/stored_encode.h"
#include "encoders/stored/stored_format.h"

const struct wharf_codec_ops wharf_stored_codec = {
    .decode = wharf_stored_decode,
    .decode_reference = wharf_stored_decode,
    .encoder = &wharf_stored_encoder,
    .encoder_rows = wharf_stored_encoder_rows,
    .max_ratio = WHARF_STORED_MAX_RATIO,
    .max_constant = WHARF_STORED_MAX_CONSTANT,
};
