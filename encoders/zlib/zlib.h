/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib.h: the one-shot decoders of zlib streams, as wharf_decode_fn in encoders/codec.h says.
 * The rules are in encoders/zlib/zlib_format.h.  (The library's header is <zlib.h>.)
 */
#ifndef WHARF_ENCODERS_ZLIB_ZLIB_H
#define WHARF_ENCODERS_ZLIB_ZLIB_H

#include "encoders/codec.h"

/* The CPU engine. */
wharf_decode_fn wharf_zlib_decode;

/* The reference engine: the zlib library, and a plain walk over the bits that says where. */
wharf_decode_fn wharf_zlib_decode_reference;

#endif
