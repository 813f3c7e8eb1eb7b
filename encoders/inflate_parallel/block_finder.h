/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_finder.h: finds places where a Deflate block may begin.  Internal to encoders/.
 *
 * The finder looks for dynamic and stored blocks that are not final.  At a random bit position the
 * test for dynamic blocks passes with probability 1.3e-9, the one for stored blocks with 4.9e-7.
 * A result is therefore a guess, which the caller must prove.  Fixed and final blocks are not
 * searched for: their headers have too few bits to recognise.
 */
#ifndef WHARF_ENCODERS_INFLATE_PARALLEL_BLOCK_FINDER_H
#define WHARF_ENCODERS_INFLATE_PARALLEL_BLOCK_FINDER_H

#include "encoders/deflate/inflate.h"

/* The header begins at one of these bits.  A dynamic block has one candidate.  A stored block has
 * several: zero bits before its length may be padding or the end of the previous block. */
struct wharf_block_start {
    uint64_t first;
    uint64_t last;
};

/*
 * Finds the first block that may begin in from_bit .. to_bit - 1 of a source.  The whole header
 * must lie within in_nbytes.  Prepares `inflate` to decode the block; the caller sets the output.
 */
bool wharf_block_find(struct wharf_inflate *inflate, const uint8_t *in, size_t in_nbytes,
                      uint64_t from_bit, uint64_t to_bit, struct wharf_block_start *ret_start);

#endif
