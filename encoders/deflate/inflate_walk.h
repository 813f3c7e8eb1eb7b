/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_walk.h: goes through Deflate data bit by bit, without decoding anything into memory.
 * Internal to encoders/.
 *
 * This is the plainest form of the rules in deflate_format.h.  The reference engine asks it where
 * an error stands, which the zlib library does not tell, and tests compare the fast decoder with
 * it, so it shares no code and no tables with that.
 */
#ifndef WHARF_ENCODERS_DEFLATE_INFLATE_WALK_H
#define WHARF_ENCODERS_DEFLATE_INFLATE_WALK_H

#include <stddef.h>
#include <stdint.h>

#include "encoders/codec.h"
#include "proto/wharf_result.h"

struct wharf_inflate_walk {
    uint32_t reason;     /* enum wharf_reason: NONE at the end of the final block */
    uint64_t bit_pos;    /* of the error, or of the first byte after the final block */
    uint64_t out_nbytes; /* what a decoder would have put out before */
    uint32_t stopped; /* the result to end with, if it was told to: the rest counts for nothing */
};

/* Walks from byte `at` of `in`, as if with room for out_avail bytes of output, and asks now and
 * then whether to go on. */
void wharf_inflate_walk(const uint8_t *in, size_t in_nbytes, size_t at, uint64_t out_avail,
                        const struct wharf_codec_setting *setting,
                        struct wharf_inflate_walk *ret_walk);

#endif
