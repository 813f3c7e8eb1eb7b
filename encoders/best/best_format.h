/* SPDX-License-Identifier: Apache-2.0 */
/*
 * best_format.h: bdi, fpc or cpack for each line, section 2 of encoders/line/LINES.md; the frame is
 * in section 1.
 */
#ifndef WHARF_ENCODERS_BEST_BEST_FORMAT_H
#define WHARF_ENCODERS_BEST_BEST_FORMAT_H

enum {
    /* A record of 36 bytes for 4096 of zeros. */
    WHARF_BEST_MAX_RATIO = 114,
    WHARF_BEST_MAX_CONSTANT = 0,
};

#endif
