/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd.h: the decoders of encoders/zstd/, as wharf_decode_fn in encoders/codec.h says; what they
 * decode is in zstd_format.h.  (The library's header is <zstd.h>.)
 */
#ifndef WHARF_ENCODERS_ZSTD_ZSTD_H
#define WHARF_ENCODERS_ZSTD_ZSTD_H

#include "encoders/codec.h"

wharf_decode_fn wharf_zstd_decode;
wharf_decode_fn wharf_zstd_decode_reference;

extern const struct wharf_encoder_row wharf_zstd_encoder_rows[];
extern const struct wharf_encoder_ops wharf_zstd_encoder;

#endif
