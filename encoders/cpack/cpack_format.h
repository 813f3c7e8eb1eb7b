/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpack_format.h: a dictionary of four words, section 5 of encoders/line/LINES.md; the frame is in
 * section 1.
 */
#ifndef WHARF_ENCODERS_CPACK_CPACK_FORMAT_H
#define WHARF_ENCODERS_CPACK_CPACK_FORMAT_H

enum {
    WHARF_LINE_CPACK_MAX_NWORDS = 4, /* of the dictionary */
    WHARF_LINE_CPACK_HAS_BYTE = 8,   /* in a word's nibble; the other bits are its source */

    /* A record of 36 bytes for 4096 of zeros. */
    WHARF_CPACK_MAX_RATIO = 114,
    WHARF_CPACK_MAX_CONSTANT = 0,
};

#endif
