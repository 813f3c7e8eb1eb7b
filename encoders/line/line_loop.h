/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_loop.h: the inner loop of the lines' decoder, the lines of a group whose codes are all
 * valid, in a form for each of several sets of instructions.
 *
 * All forms give the same bytes and find the same line wrong.  Where a line's content begins at p,
 * a form may read p[0] to p[WHARF_LINE_READ_NBYTES - 1], whatever the content says; it writes a
 * whole line.
 */
#ifndef WHARF_ENCODERS_LINE_LINE_LOOP_H
#define WHARF_ENCODERS_LINE_LINE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "encoders/line/line_shape.h"

/* A line's longest content, an escape for each of 128 values, and a whole vector of them. */
enum { WHARF_LINE_READ_NBYTES = 128 + 128 + 64 };

/* What lines of a group have in common. */
struct wharf_line_group {
    uint32_t line_nbytes;
    uint32_t type;  /* palette's */
    uint32_t width; /* of its codes */
    uint8_t palette[WHARF_LINE_HEAD_NBYTES];
    struct wharf_line_code codes[256];
};

/*
 * Decodes n lines, one behind the other in `out`: line i has the code numbers[i], and its content
 * begins at content + starts[i].  Returns the first that contradicts its code, or n.
 */
typedef uint32_t wharf_line_loop_fn(const struct wharf_line_group *group, const uint8_t *numbers,
                                    const uint16_t *starts, uint32_t n, const uint8_t *content,
                                    uint8_t *out);

wharf_line_loop_fn wharf_line_loop_plain;
#if defined(__x86_64__)
wharf_line_loop_fn wharf_line_loop_avx2;
wharf_line_loop_fn wharf_line_loop_avx512;
#endif

/* The form in use. */
wharf_line_loop_fn *wharf_line_loop(void);

#endif
