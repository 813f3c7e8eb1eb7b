/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fpc_format.h: frequent patterns, section 4 of encoders/line/LINES.md; the frame is in section 1.
 */
#ifndef WHARF_ENCODERS_FPC_FPC_FORMAT_H
#define WHARF_ENCODERS_FPC_FPC_FORMAT_H

enum {
    /* Patterns of an fpc segment. */
    WHARF_LINE_FPC_ZEROS = 0,
    WHARF_LINE_FPC_SIGNED_4 = 1,
    WHARF_LINE_FPC_SIGNED_8 = 2,
    WHARF_LINE_FPC_SIGNED_16 = 3,
    WHARF_LINE_FPC_HIGH_HALF = 4,
    WHARF_LINE_FPC_TWO_BYTES = 5,
    WHARF_LINE_FPC_REPEATED = 6,
    WHARF_LINE_FPC_RAW = 7,
    WHARF_LINE_FPC_SEGMENT_NBYTES = 16,

    /* A record of 36 bytes for 4096 of zeros. */
    WHARF_FPC_MAX_RATIO = 114,
    WHARF_FPC_MAX_CONSTANT = 0,
};

#endif
