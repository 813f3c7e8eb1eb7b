/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip.h: the one-shot decoders of gzip, all members of it, as wharf_decode_fn in
 * encoders/codec.h says.  The rules are in encoders/gzip/gzip_format.h.
 */
#ifndef WHARF_ENCODERS_GZIP_GZIP_H
#define WHARF_ENCODERS_GZIP_GZIP_H

#include "encoders/codec.h"

/* The CPU engine. */
wharf_decode_fn wharf_gzip_decode;

/* The reference engine: the zlib library, and a plain walk over the bits that says where. */
wharf_decode_fn wharf_gzip_decode_reference;

#endif
