/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bdi_format.h: base and delta, section 3 of encoders/line/LINES.md; the frame is in section 1.
 */
#ifndef WHARF_ENCODERS_BDI_BDI_FORMAT_H
#define WHARF_ENCODERS_BDI_BDI_FORMAT_H

enum {
    /* Variants: the sizes in bytes of bases and deltas. */
    WHARF_LINE_BDI_REPEAT = 1,
    WHARF_LINE_BDI_8_1 = 2,
    WHARF_LINE_BDI_8_2 = 3,
    WHARF_LINE_BDI_8_4 = 4,
    WHARF_LINE_BDI_4_1 = 5,
    WHARF_LINE_BDI_4_2 = 6,
    WHARF_LINE_BDI_2_1 = 7,
    WHARF_LINE_BDI_NCODES = 8,

    /* A record of 20 bytes for 4096 of zeros. */
    WHARF_BDI_MAX_RATIO = 205,
    WHARF_BDI_MAX_CONSTANT = 0,
};

#endif
