/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc.h: the decoders of encoders/blosc/, with the signature and rules of wharf_decode_fn
 * (encoders/codec.h).  The format is described in blosc_format.h.
 */
#ifndef WHARF_ENCODERS_BLOSC_BLOSC_H
#define WHARF_ENCODERS_BLOSC_BLOSC_H

#include "encoders/codec.h"

/* The CPU engine and the reference.  They use up to 300 KiB of stack: for a block whose filters are
 * being undone, and for the tables of the codec inside. */
wharf_decode_fn wharf_blosc_decode;
wharf_decode_fn wharf_blosc_decode_reference;

extern const struct wharf_encoder_row wharf_blosc_encoder_rows[];
extern const struct wharf_encoder_ops wharf_blosc_encoder;

/* 1 for the parameter 0, which is a chunk, and for each parameter of bitshuffle's framing; 0 for
 * any other. */
uint32_t wharf_blosc_unit_nbytes(uint32_t parameter);

#endif
