/* SPDX-License-Identifier: Apache-2.0 */
/*
 * byterle_format.h: bytes in runs, "Byte Run Length Encoding" of the ORC specification v1.
 *
 *   stream  = group, group, ...      up to the last byte of the source; none is good
 *   control 0 to 127    a run: the byte that follows, control + 3 times
 *   control 128 to 255  256 - control literals: that many bytes follow
 *
 * The only parameter is 0.  What is wrong with a group stands at its control byte: bytes that are
 * missing [INPUT_TRUNCATED], then more output than there is room left for [OUTPUT_TOO_SMALL,
 * OUTPUT_FULL].  A source with less output than there is room for is good, unless the job has
 * WHARF_JOB_EXACT_OUTPUT [OUTPUT_SHORT].
 */
#ifndef WHARF_ENCODERS_BYTERLE_BYTERLE_FORMAT_H
#define WHARF_ENCODERS_BYTERLE_BYTERLE_FORMAT_H

enum {
    WHARF_BYTERLE_RUN_MIN = 3,
    WHARF_BYTERLE_RUN_MAX = 127 + WHARF_BYTERLE_RUN_MIN,
    WHARF_BYTERLE_LITERALS_MAX = 128,

    /* A run of 130 takes 2 bytes. */
    WHARF_BYTERLE_MAX_RATIO = 65,
    WHARF_BYTERLE_MAX_CONSTANT = 0,
};

#endif
