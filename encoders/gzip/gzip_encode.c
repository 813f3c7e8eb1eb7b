/* SPDX-License-Identifier: Apache-2.0 */
/* gzip_encode.c: the encoder of deflate with gzip's framing. */
#include "encoders/deflate/deflate_encode.h"

static int gzip_new(const struct wharf_encoder_options *options, struct wharf_encoder **ret_encoder)
{
    return wharf_deflate_encoder_new(WHARF_DEFLATE_FRAMING_GZIP, options, ret_encoder);
}

const struct wharf_encoder_ops wharf_gzip_encoder = {
    .new = gzip_new,
    .bound = wharf_deflate_encoder_bound,
    .encode = wharf_deflate_encoder_encode,
    .free = wharf_deflate_encoder_free,
};
