/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle1_format.h: integers in runs, "Run Length Encoding version 1" of the ORC specification v1.
 *
 *   stream  = group, group, ...      up to the last byte of the source; none is good
 *   group   = control byte, body
 *   control 0 to 127    a run of control + 3 values: one byte, the difference from value to value
 *                       (-128 to 127), and the first value as a varint
 *   control 128 to 255  256 - control literals, a varint each
 *   varint  = bytes of 7 bits, least significant first, bit 7 set in all but the last
 *
 * A varint is the value itself for unsigned types, and its zigzag form (0, -1, 1, -2, ... as 0, 1,
 * 2, 3, ...) for signed ones.  It may be longer than it need be, but not have bits above the 64th.
 * Values are computed modulo 2^64 (encoders/rle_values.h) and must be of the job's type.
 *
 * PARAMETER.  The type of the values, enum wharf_rle_type.
 *
 * The stream has no end of its own: it is all of the source, and where it ends a group must end.
 * The destination has room for out_avail / size of the type values, rounded down.  What is wrong
 * with a group stands at its control byte, in this order:
 *
 *   1. bytes that are missing [INPUT_TRUNCATED], a varint of more than 64 bits [RLE_VARINT],
 *      whichever comes first in the source
 *   2. more values than there is room left for [OUTPUT_TOO_SMALL, OUTPUT_FULL]
 *   3. a value that is not of the type [RLE_VALUE]
 *
 * A source with fewer values than there is room for is good, unless the job has
 * WHARF_JOB_EXACT_OUTPUT [OUTPUT_SHORT].
 */
#ifndef WHARF_ENCODERS_RLE1_RLE1_FORMAT_H
#define WHARF_ENCODERS_RLE1_RLE1_FORMAT_H

enum {
    WHARF_RLE1_RUN_MIN = 3,
    WHARF_RLE1_RUN_MAX = 127 + WHARF_RLE1_RUN_MIN,
    WHARF_RLE1_LITERALS_MAX = 128,

    /* A run of 130 values of 8 bytes takes 3 bytes. */
    WHARF_RLE1_MAX_RATIO = 347,
    WHARF_RLE1_MAX_CONSTANT = 0,
};

#endif
