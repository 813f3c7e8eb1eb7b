/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_format.h: bdi, fpc, cpack, best and palette, which compress line by line in one frame.
 *
 *   stream = header (16 bytes), index, heads (palette only), lines
 *
 * LINES.md beside this file is the format: layout, codes, the order in which a stream is verified
 * and the bit that each failure names.  Here are its numbers.
 */
#ifndef WHARF_ENCODERS_LINE_LINE_FORMAT_H
#define WHARF_ENCODERS_LINE_LINE_FORMAT_H

#include "encoders/bdi/bdi_format.h"
#include "encoders/best/best_format.h"
#include "encoders/cpack/cpack_format.h"
#include "encoders/fpc/fpc_format.h"
#include "encoders/palette/palette_format.h"

enum {
    WHARF_LINE_VERSION = 1,
    WHARF_LINE_HEADER_NBYTES = 16,
    WHARF_LINE_GROUP_NBYTES = 4096, /* of output, whatever the size of a line */
    WHARF_LINE_UNIT_NBYTES = 16,    /* of a group's offset, and what index and groups fill up to */
    WHARF_LINE_OFFSET_NBYTES = 4,   /* of a group's offset, in the packed layout's records */
    WHARF_LINE_HEAD_NBYTES = 16,    /* of a group's palette */
    WHARF_LINE_MIN_NBYTES = 32,
    WHARF_LINE_MAX_NBYTES = 128,
    WHARF_LINE_MAX_NLINES = WHARF_LINE_GROUP_NBYTES / WHARF_LINE_MIN_NBYTES,

    /* Where the header's members begin, in bytes. */
    WHARF_LINE_AT_CODEC = 1,
    WHARF_LINE_AT_SHIFT = 2, /* 2 to the power of this is a line's size */
    WHARF_LINE_AT_LAYOUT = 3,
    WHARF_LINE_AT_TYPE = 4,
    WHARF_LINE_AT_RESERVED = 5,
    WHARF_LINE_AT_RAW = 8,

    WHARF_LINE_MIN_SHIFT = 5,
    WHARF_LINE_MAX_SHIFT = 7,

    WHARF_LINE_PACKED = 0,
    WHARF_LINE_SLOTS = 1,
    WHARF_LINE_N_LAYOUTS = 2,

    /* Codes: of 4 bits, or of 8. */
    WHARF_LINE_CODE_ZEROS = 0,
    WHARF_LINE_NIBBLE_RAW = 15,
    WHARF_LINE_BYTE_RAW = 255,
};

/* How a line is stored. */
enum wharf_line_scheme {
    WHARF_LINE_IS_INVALID, /* nothing: the code is nobody's */
    WHARF_LINE_IS_ZEROS,
    WHARF_LINE_IS_RAW,
    WHARF_LINE_IS_BDI,
    WHARF_LINE_IS_FPC,
    WHARF_LINE_IS_CPACK,
    WHARF_LINE_IS_PALETTE,
};

/* The most output: what 32-bit offsets reach, with groups that do not shrink. */
#define WHARF_LINE_MAX_RAW_NBYTES (UINT64_C(1) << 35)

#endif
