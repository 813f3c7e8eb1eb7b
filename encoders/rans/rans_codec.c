/* SPDX-License-Identifier: Apache-2.0 */
/* rans_codec.c: the codec's row. */
#include "encoders/rans/rans.h"
#include "encoders/rans/rans_encode.h"
#include "encoders/rans/rans_format.h"
#include "encoders/rans/rans_image.h"

static const struct wharf_model_ops rans_models = {
    .image_nbytes = wharf_rans_image_nbytes,
    .make_image = wharf_rans_image_make,
};

const struct wharf_codec_ops wharf_rans_codec = {
    .decode = wharf_rans_decode,
    .decode_reference = wharf_rans_decode_reference,
    .encoder = &wharf_rans_encoder,
    .encoder_rows = wharf_rans_encoder_rows,
    .max_ratio = WHARF_RANS_MAX_RATIO,
    .max_constant = WHARF_RANS_MAX_CONSTANT,
    .unit_nbytes = wharf_rans_unit_nbytes,
    .models = &rans_models,
    .least_shared_nbytes = WHARF_RANS_LEAST_SHARED_NBYTES,
};
