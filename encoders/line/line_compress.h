/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_compress.h: one line's smallest form in each scheme, for the encoder.  Nothing here depends
 * on the machine, so that encoders elsewhere can give the same bytes.
 */
#ifndef WHARF_ENCODERS_LINE_LINE_COMPRESS_H
#define WHARF_ENCODERS_LINE_LINE_COMPRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "encoders/line/line_shape.h"

/* bdi: the variant whose content is smallest, the first of equals, with its base; 0 if there is
 * none. */
struct wharf_line_bdi {
    uint32_t variant;
    uint64_t base;
};
struct wharf_line_bdi wharf_line_find_bdi(const uint8_t *line, uint32_t line_nbytes);
void wharf_line_put_bdi(const struct wharf_line_bdi *bdi, const uint8_t *line, uint32_t line_nbytes,
                        uint8_t *out);

/* fpc: each segment's pattern, and how many pairs of bytes they take. */
struct wharf_line_fpc {
    uint32_t n_pairs;
    uint8_t patterns[WHARF_LINE_MAX_NBYTES / WHARF_LINE_FPC_SEGMENT_NBYTES];
};
struct wharf_line_fpc wharf_line_find_fpc(const uint8_t *line, uint32_t line_nbytes);
void wharf_line_put_fpc(const struct wharf_line_fpc *fpc, const uint8_t *line, uint32_t line_nbytes,
                        uint8_t *out);

/* cpack: the dictionary, and each word's nibble.  is_good: four words were enough. */
struct wharf_line_cpack {
    bool is_good;
    uint32_t n_words;
    uint32_t n_bytes;
    uint32_t words[WHARF_LINE_CPACK_MAX_NWORDS];
    uint8_t nibbles[WHARF_LINE_MAX_NBYTES / 4];
};
struct wharf_line_cpack wharf_line_find_cpack(const uint8_t *line, uint32_t line_nbytes);
/* `n_words` and `n_bytes` of them are the code's, and perhaps more than are needed. */
void wharf_line_put_cpack(const struct wharf_line_cpack *cpack, uint32_t n_words,
                          const uint8_t *line, uint32_t line_nbytes, uint8_t *out);

/* palette: a group's, and how many of a line's exponents are not in it. */
struct wharf_line_palette {
    uint32_t type;
    uint32_t width;
    uint8_t exponents[WHARF_LINE_HEAD_NBYTES];
    uint8_t indexes[256]; /* of each exponent; 2^width - 1 for those outside */
};
/* From a group's output, which ends anywhere; what is behind it counts as zeros to `nbytes`, a
 * whole number of lines. */
void wharf_line_make_palette(struct wharf_line_palette *palette, uint32_t type,
                             uint32_t line_nbytes, const uint8_t *group, uint32_t nbytes);
uint32_t wharf_line_count_escapes(const struct wharf_line_palette *palette, const uint8_t *line,
                                  uint32_t line_nbytes);
void wharf_line_put_palette(const struct wharf_line_palette *palette, const uint8_t *line,
                            uint32_t line_nbytes, uint8_t *out);

#endif
