/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip.h: the one-shot decoders of gzip, which decode all members, with the signature and rules of
 * wharf_decode_fn (encoders/codec.h).  The format is described in gzip_format.h.
 */
#ifndef WHARF_ENCODERS_GZIP_GZIP_H
#define WHARF_ENCODERS_GZIP_GZIP_H

#include "encoders/codec.h"

/* The CPU engine. */
wharf_decode_fn wharf_gzip_decode;

/* The reference engine: the zlib library, and a simple bit-by-bit walk that finds where an error
 * is. */
wharf_decode_fn wharf_gzip_decode_reference;

#endif
