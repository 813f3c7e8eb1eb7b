/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snappy_format.h: Snappy's raw format, without the frame that files have around it.
 *
 *   stream  = length, element, element, ...   until there are so many bytes of output
 *   length    of the output, below 2^32: seven bits a byte, the lowest first, bit 7 set in all but
 *             the last
 *   element = tag, bytes; by the tag's low two bits
 *     0  literals: the tag's high six bits n; 60 to 63: n is the number of n - 59 bytes that
 *        follow, little-endian.  n + 1 literals follow
 *     1  a match of 4 + (bits 2 to 4) bytes, (bits 5 to 7) * 256 + (the byte that follows) back
 *     2  a match of 1 + (the high six bits) bytes, as far back as the two bytes that follow say,
 *        little-endian
 *     3  the same with four bytes
 *
 * The only parameter is 0.  Errors in the length stand at the stream's first bit: bytes missing
 * [INPUT_TRUNCATED]; 2^32 or more, or more than five bytes [SNAPPY_LENGTH]; more than there is room
 * for [OUTPUT_TOO_SMALL, OUTPUT_FULL].  What is wrong with an element stands at its tag, and is
 * looked for in this order: the tag missing, or bytes that belong to it [INPUT_TRUNCATED]; a
 * distance of 0, or from before the first output byte [SNAPPY_OFFSET]; more output than the length
 * said [SNAPPY_PAST_END]; literals missing [INPUT_TRUNCATED].
 *
 * Bytes behind the last element are left alone; libsnappy's decoder agrees in all else.
 */
#ifndef WHARF_ENCODERS_SNAPPY_SNAPPY_FORMAT_H
#define WHARF_ENCODERS_SNAPPY_SNAPPY_FORMAT_H

enum {
    WHARF_SNAPPY_LENGTH_NBYTES_MAX = 5,

    WHARF_SNAPPY_LITERALS = 0,
    WHARF_SNAPPY_NEAR_MATCH = 1,
    WHARF_SNAPPY_MATCH = 2,
    WHARF_SNAPPY_FAR_MATCH = 3,
    WHARF_SNAPPY_MORE = 60, /* from here on bytes follow that say how many literals */

    /* A match of 64 bytes takes three. */
    WHARF_SNAPPY_MAX_RATIO = 22,
    WHARF_SNAPPY_MAX_CONSTANT = 0,
};

#endif
