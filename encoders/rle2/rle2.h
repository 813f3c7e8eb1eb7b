/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle2.h: the decoders of encoders/rle2/, as wharf_decode_fn in encoders/codec.h says; what they
 * decode is in rle2_format.h.
 */
#ifndef WHARF_ENCODERS_RLE2_RLE2_H
#define WHARF_ENCODERS_RLE2_RLE2_H

#include "encoders/codec.h"

wharf_decode_fn wharf_rle2_decode;
wharf_decode_fn wharf_rle2_decode_reference;

extern const struct wharf_encoder_row wharf_rle2_encoder_rows[];
extern const struct wharf_encoder_ops wharf_rle2_encoder;

#endif
