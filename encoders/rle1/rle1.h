/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle1.h: the decoders of encoders/rle1/, as wharf_decode_fn in encoders/codec.h says; what they
 * decode is in rle1_format.h.
 */
#ifndef WHARF_ENCODERS_RLE1_RLE1_H
#define WHARF_ENCODERS_RLE1_RLE1_H

#include "encoders/codec.h"

wharf_decode_fn wharf_rle1_decode;
wharf_decode_fn wharf_rle1_decode_reference;

/* The forms of which wharf_rle1_decode takes the best that the machine has: the other one is for
 * x86-64 with BMI2 and AVX2. */
wharf_decode_fn wharf_rle1_decode_plain;
wharf_decode_fn wharf_rle1_decode_bmi2;

extern const struct wharf_encoder_row wharf_rle1_encoder_rows[];
extern const struct wharf_encoder_ops wharf_rle1_encoder;

#endif
