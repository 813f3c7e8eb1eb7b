/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_finder.h: finds places where a Deflate block may begin.  Internal to encoders/.
 *
 * A place is found if it looks like a dynamic or a stored block that is not the last one.  Of
 * random bits 1.3e-9 look like the first and 4.9e-7 like the second: a place is a guess, and the
 * caller has to prove it.  Fixed blocks and last blocks are not found: their few bits say nothing.
 */
#ifndef WHARF_ENCODERS_INFLATE_PARALLEL_BLOCK_FINDER_H
#define WHARF_ENCODERS_INFLATE_PARALLEL_BLOCK_FINDER_H

#include "encoders/deflate/inflate.h"

/* A block's header begins at one of these bits.  A dynamic block has one; zeros in front of a
 * stored block's length may be its own or those of the block before. */
struct wharf_block_start {
    uint64_t first;
    uint64_t last;
};

/*
 * Finds the first block that may begin in from_bit .. to_bit - 1 of a source.  The header has to be
 * in the in_nbytes that are there.  inflate is made ready to decode the block, but for the output.
 */
bool wharf_block_find(struct wharf_inflate *inflate, const uint8_t *in, size_t in_nbytes,
                      uint64_t from_bit, uint64_t to_bit, struct wharf_block_start *ret_start);

#endif
