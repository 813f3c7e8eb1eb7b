/* SPDX-License-Identifier: Apache-2.0 */
/* blosc_codec.c: the codec's row. */
#include "encoders/blosc/blosc.h"
#include "encoders/blosc/blosc_format.h"

const struct wharf_codec_ops wharf_blosc_codec = {
    .decode = wharf_blosc_decode,
    .decode_reference = wharf_blosc_decode_reference,
    .encoder = &wharf_blosc_encoder,
    .encoder_rows = wharf_blosc_encoder_rows,
    .max_ratio = WHARF_BLOSC_MAX_RATIO,
    .max_constant = WHARF_BLOSC_MAX_CONSTANT,
    .unit_nbytes = wharf_blosc_unit_nbytes,
};
