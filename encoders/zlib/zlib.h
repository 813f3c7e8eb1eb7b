/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib.h: the one-shot decoders of zlib streams, with the signature and rules of wharf_decode_fn
 * (encoders/codec.h).  The format is described in zlib_format.h.  (<zlib.h> is the library's
 * header.)
 */
#ifndef WHARF_ENCODERS_ZLIB_ZLIB_H
#define WHARF_ENCODERS_ZLIB_ZLIB_H

#include "encoders/codec.h"

/* The CPU engine. */
wharf_decode_fn wharf_zlib_decode;

/* The reference engine: the zlib library, and a simple bit-by-bit walk that finds where an error
 * is. */
wharf_decode_fn wharf_zlib_decode_reference;

#endif
