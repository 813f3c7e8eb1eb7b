/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boolrle.h: the decoders of encoders/boolrle/, as wharf_decode_fn in encoders/codec.h says; what
 * they decode is in boolrle_format.h.
 */
#ifndef WHARF_ENCODERS_BOOLRLE_BOOLRLE_H
#define WHARF_ENCODERS_BOOLRLE_BOOLRLE_H

#include "encoders/codec.h"

wharf_decode_fn wharf_boolrle_decode;
wharf_decode_fn wharf_boolrle_decode_reference;

extern const struct wharf_encoder_row wharf_boolrle_encoder_rows[];
extern const struct wharf_encoder_ops wharf_boolrle_encoder;

#endif
