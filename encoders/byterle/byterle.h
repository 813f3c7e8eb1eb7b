/* SPDX-License-Identifier: Apache-2.0 */
/*
 * byterle.h: the decoders of encoders/byterle/, as wharf_decode_fn in encoders/codec.h says; what
 * they decode is in byterle_format.h.
 */
#ifndef WHARF_ENCODERS_BYTERLE_BYTERLE_H
#define WHARF_ENCODERS_BYTERLE_BYTERLE_H

#include "encoders/codec.h"

wharf_decode_fn wharf_byterle_decode;
wharf_decode_fn wharf_byterle_decode_reference;

extern const struct wharf_encoder_row wharf_byterle_encoder_rows[];
extern const struct wharf_encoder_ops wharf_byterle_encoder;

/* Encodes in_nbytes as struct wharf_encoder_ops says. */
int wharf_byterle_encode_bytes(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                               size_t *ret_out_nbytes);

/* The most that they take: all of them as literals. */
size_t wharf_byterle_bound_bytes(size_t in_nbytes);

#endif
