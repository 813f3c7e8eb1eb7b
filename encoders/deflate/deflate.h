/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate.h: the one-shot decoders of raw Deflate, as wharf_decode_fn in encoders/codec.h says.
 * What each stream decodes to, or fails with, is in encoders/deflate/deflate_format.h.  For
 * streams too long to hold in memory see encoders/deflate/inflate_stream.h.
 */
#ifndef WHARF_ENCODERS_DEFLATE_DEFLATE_H
#define WHARF_ENCODERS_DEFLATE_DEFLATE_H

#include "encoders/codec.h"

/* The CPU engine: our own inflater. */
wharf_decode_fn wharf_deflate_decode;

/* The reference engine: zlib decodes and verifies; a plain walk over the bits says where. */
wharf_decode_fn wharf_deflate_decode_reference;

#endif
