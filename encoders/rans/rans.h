/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans.h: the one-shot decoders of rans streams, as wharf_decode_fn in encoders/codec.h says.  The
 * rules are in encoders/rans/rans_format.h.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_H
#define WHARF_ENCODERS_RANS_RANS_H

#include "encoders/codec.h"

/* The codec's parameters: what the symbols are.  The stream must say the same. */
#define WHARF_RANS_PARAMETER_BYTES 0
#define WHARF_RANS_PARAMETER_U16 1

/* With less output than this, waking helpers does not pay: it takes as long as 50 KiB. */
#define WHARF_RANS_LEAST_SHARED_NBYTES (512u << 10)

/* The CPU engine.  Takes up to 450 KiB of stack, for a model's tables. */
wharf_decode_fn wharf_rans_decode;

/* The reference engine: one plain walk through all symbols. */
wharf_decode_fn wharf_rans_decode_reference;

/* As wharf_codec_ops.unit_nbytes. */
uint32_t wharf_rans_unit_nbytes(uint32_t parameter);

#endif
