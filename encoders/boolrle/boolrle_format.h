/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boolrle_format.h: truth values in runs, "Boolean Run Length Encoding" of the ORC specification
 * v1.
 *
 * The values as bits, in bytes from the most significant bit down, and these bytes as
 * encoders/byterle/byterle_format.h has it.  Which of the last byte's bits are values the stream
 * does not say: only the count of values does, and that is the destination's size.
 *
 * The output has a byte for each value, 0 or 1, in the form that readers of columns hand on and
 * that masks take.  (Who wants the bits as they are packed asks for byterle.)  The destination of N
 * bytes has room for N / 8 bytes of bits, rounded up; of the last of these, bits beyond N are
 * skipped, whatever they are.  So a source of B such bytes gives N values for 8 * B - 7 <= N <= 8 *
 * B, 8 * B values for a larger N, and [OUTPUT_TOO_SMALL, OUTPUT_FULL] for a smaller one.
 *
 * All else is as with byterle.
 */
#ifndef WHARF_ENCODERS_BOOLRLE_BOOLRLE_FORMAT_H
#define WHARF_ENCODERS_BOOLRLE_BOOLRLE_FORMAT_H

enum {
    /* A run of 130 bytes of 8 values takes 2 bytes. */
    WHARF_BOOLRLE_MAX_RATIO = 520,
    WHARF_BOOLRLE_MAX_CONSTANT = 0,
};

#endif
