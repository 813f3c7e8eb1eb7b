/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snappy_format.h: Snappy's raw format, without the framing of files.
 *
 * Source: format_description.txt of Snappy.
 *
 *   stream  = length, element, element, ...   until the output has the length
 *   length    of the output, below 2^32: seven bits a byte, lowest first, bit 7 set in all but the
 *             last
 *   element = tag, bytes; by the tag's low two bits:
 *     0  literals: n is the tag's high six bits; if these are 60 to 63, n is the number in the
 *        n - 59 bytes that follow, little-endian.  n + 1 literals follow
 *     1  a match of 4 + (bits 2 to 4) bytes at the distance (bits 5 to 7) * 256 + (the next byte)
 *     2  a match of 1 + (the high six bits) bytes at the distance in the next two bytes,
 *        little-endian
 *     3  the same with four bytes of distance
 *
 * The only parameter is 0.  Errors in the length are at the stream's first bit: bytes missing
 * [INPUT_TRUNCATED]; 2^32 or more, or more than five bytes [SNAPPY_LENGTH]; more than there is room
 * for [OUTPUT_TOO_SMALL, OUTPUT_FULL].  Errors in an element are at its tag, and are checked in
 * this order: the tag or bytes that belong to it are missing [INPUT_TRUNCATED]; a distance of 0, or
 * to before the first output byte [SNAPPY_OFFSET]; more output than the length [SNAPPY_PAST_END];
 * literals missing [INPUT_TRUNCATED].
 *
 * Bytes after the last element are ignored.  Apart from these, libsnappy accepts the same streams.
 */
#ifndef WHARF_ENCODERS_SNAPPY_SNAPPY_FORMAT_H
#define WHARF_ENCODERS_SNAPPY_SNAPPY_FORMAT_H

enum {
    WHARF_SNAPPY_LENGTH_NBYTES_MAX = 5,

    WHARF_SNAPPY_LITERALS = 0,
    WHARF_SNAPPY_NEAR_MATCH = 1,
    WHARF_SNAPPY_MATCH = 2,
    WHARF_SNAPPY_FAR_MATCH = 3,
    WHARF_SNAPPY_MORE = 60, /* from here on, bytes follow with the number of literals */

    /* A match of 64 bytes takes three bytes. */
    WHARF_SNAPPY_MAX_RATIO = 22,
    WHARF_SNAPPY_MAX_CONSTANT = 0,
};

#endif
