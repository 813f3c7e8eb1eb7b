/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stored.h: the decoders of encoders/stored/, as wharf_decode_fn in encoders/codec.h says.
 */
#ifndef WHARF_ENCODERS_STORED_STORED_H
#define WHARF_ENCODERS_STORED_STORED_H

#include "encoders/codec.h"

/* A copy of the whole source; the reference is the same function. */
wharf_decode_fn wharf_stored_decode;

#endif
