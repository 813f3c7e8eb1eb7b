/* SPDX-License-Identifier: Apache-2.0 */
/* zlib_encode.c: the encoder of deflate with zlib's framing. */
#include "encoders/deflate/deflate_encode.h"

static int zlib_new(const struct wharf_encoder_options *options, struct wharf_encoder **ret_encoder)
{
    return wharf_deflate_encoder_new(WHARF_DEFLATE_FRAMING_ZLIB, options, ret_encoder);
}

const struct wharf_encoder_ops wharf_zlib_encoder = {
    .new = zlib_new,
    .bound = wharf_deflate_encoder_bound,
    .encode = wharf_deflate_encoder_encode,
    .free = wharf_deflate_encoder_free,
};
