/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snappy.h: the decoders of encoders/snappy/, with the signature and rules of wharf_decode_fn
 * (encoders/codec.h).  The format is described in snappy_format.h.
 */
#ifndef WHARF_ENCODERS_SNAPPY_SNAPPY_H
#define WHARF_ENCODERS_SNAPPY_SNAPPY_H

#include "encoders/codec.h"

wharf_decode_fn wharf_snappy_decode;
wharf_decode_fn wharf_snappy_decode_reference;

extern const struct wharf_encoder_row wharf_snappy_encoder_rows[];
extern const struct wharf_encoder_ops wharf_snappy_encoder;

#endif
