/* SPDX-License-Identifier: Apache-2.0 */
/*
 * palette_format.h: exponents by a palette, section 6 of encoders/line/LINES.md; the frame is in
 * section 1.
 */
#ifndef WHARF_ENCODERS_PALETTE_PALETTE_FORMAT_H
#define WHARF_ENCODERS_PALETTE_PALETTE_FORMAT_H

enum {
    /* Types of palette, the header's member. */
    WHARF_LINE_BF16 = 0,
    WHARF_LINE_F16 = 1,
    WHARF_LINE_E4M3 = 2,
    WHARF_LINE_E5M2 = 3,
    WHARF_LINE_N_TYPES = 4,
    WHARF_LINE_PALETTE_AT_WIDTH = 15, /* in a group's head */

    /* A record of 20 bytes and a head of 16 for 4096 of zeros. */
    WHARF_PALETTE_MAX_RATIO = 114,
    WHARF_PALETTE_MAX_CONSTANT = 0,
};

#endif
