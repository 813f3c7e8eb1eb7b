/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz4.h: the decoders of encoders/lz4/, as wharf_decode_fn in encoders/codec.h says; what they
 * decode is in lz4_format.h.
 */
#ifndef WHARF_ENCODERS_LZ4_LZ4_H
#define WHARF_ENCODERS_LZ4_LZ4_H

#include "encoders/codec.h"

wharf_decode_fn wharf_lz4_decode;
wharf_decode_fn wharf_lz4_decode_reference;

extern const struct wharf_encoder_row wharf_lz4_encoder_rows[];
extern const struct wharf_encoder_ops wharf_lz4_encoder;

#endif
