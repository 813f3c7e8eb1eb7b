/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_reference.h: one stream by the zlib library, which decides what is good.
 * Internal to encoders/.
 */
#ifndef WHARF_ENCODERS_DEFLATE_INFLATE_REFERENCE_H
#define WHARF_ENCODERS_DEFLATE_INFLATE_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "encoders/codec.h"
#include "proto/wharf_result.h"

/* What inflateInit2 calls windowBits, by what wraps the Deflate data. */
#define WHARF_REFERENCE_RAW (-15)
#define WHARF_REFERENCE_ZLIB 15
#define WHARF_REFERENCE_GZIP (15 + 16)

/*
 * Decodes one stream (for gzip, one member) as wharf_decode_fn does.  zlib says what comes of it;
 * for an error, a walk over the bits that must find the same error says where.  When the two
 * disagree the result is WHARF_INTERNAL.  Allocates: WHARF_NO_MEMORY when there is none.
 */
void wharf_inflate_reference(int window_bits, const uint8_t *in, size_t in_nbytes, uint8_t *out,
                             size_t out_avail, const struct wharf_codec_setting *setting,
                             struct wharf_outcome *ret_outcome);

#endif
