/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_shape.h: where everything stands in a stream of lines (LINES.md), from its header, and what
 * the codes of its index mean.
 */
#ifndef WHARF_ENCODERS_LINE_LINE_SHAPE_H
#define WHARF_ENCODERS_LINE_LINE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/line/line_format.h"
#include "proto/wharf_result.h"

/* What a code means.  How many bytes of the line's are for what its scheme has no fixed number of:
 * pairs of an fpc line's segments, low bytes of a cpack line, escapes of a palette line. */
struct wharf_line_code {
    uint8_t scheme;  /* enum wharf_line_scheme */
    uint8_t variant; /* bdi: the code among bdi's; cpack: how many dictionary words */
    uint8_t n_given; /* fpc, cpack, palette: how many of them there are, or fewer */
    uint8_t nbytes;  /* of the line's content */
};

/* Of all lines of a stream. */
struct wharf_line_shape {
    uint32_t codec;        /* enum wharf_codec */
    uint32_t line_nbytes;  /* 32, 64 or 128 */
    uint32_t layout;       /* WHARF_LINE_PACKED or SLOTS */
    uint32_t type;         /* of palette */
    uint32_t group_nlines; /* in a whole group */
    uint32_t code_nbits;   /* 4 or 8 */
    uint32_t codes_at;     /* in a record */
    uint32_t record_nbytes;
    uint32_t head_nbytes; /* of a group, 0 or 16 */
    uint64_t raw_nbytes;
    uint64_t n_lines;
    uint64_t n_groups;
    uint64_t heads_at; /* in the stream; the index ends there or a little before */
    uint64_t data_at;
};

/* All that follows from these.  line_nbytes, layout and type are as the format has them. */
void wharf_line_shape_set(struct wharf_line_shape *shape, uint32_t codec, uint32_t line_nbytes,
                          uint32_t layout, uint32_t type, uint64_t raw_nbytes);

/* Why a stream begins badly, or NONE. */
struct wharf_line_failure {
    uint32_t result;
    uint32_t reason;
    uint64_t bit_offset;
};

/* From a stream's first bytes: all that can be wrong with it before its first group. */
struct wharf_line_failure wharf_line_shape_read(struct wharf_line_shape *shape, uint32_t codec,
                                                const uint8_t *in, uint64_t in_nbytes,
                                                uint64_t out_avail);

/* Writes the header, of 16 bytes. */
void wharf_line_shape_write(const struct wharf_line_shape *shape, uint8_t *out);

/* The meanings of all codes: 16 or 256 of them, by the shape's code_nbits.  Those of palette depend
 * on the width of a group's palette, 3 or 4; others get 0. */
void wharf_line_codes_fill(const struct wharf_line_shape *shape, uint32_t width,
                           struct wharf_line_code *codes);

/* In how many bits a type's fields stand: what is neither exponent nor low byte. */
uint32_t wharf_line_field_nbits(uint32_t type);

/* Whether a group's palette may have codes of that many bits. */
bool wharf_line_is_width(uint32_t type, uint32_t width);

/* Bytes of a palette line before its escapes. */
uint32_t wharf_line_palette_nbytes(uint32_t type, uint32_t width, uint32_t line_nbytes);

/* How many values a line has, of one or two bytes each. */
static inline uint32_t wharf_line_n_values(uint32_t type, uint32_t line_nbytes)
{
    return type <= WHARF_LINE_F16 ? line_nbytes / 2 : line_nbytes;
}

/* Bytes in front of an fpc line's segments, and of a cpack line's dictionary. */
static inline uint32_t wharf_line_fpc_head_nbytes(uint32_t line_nbytes)
{
    return (3 * (line_nbytes / WHARF_LINE_FPC_SEGMENT_NBYTES) + 7) / 8;
}

static inline uint32_t wharf_line_cpack_head_nbytes(uint32_t line_nbytes)
{
    return line_nbytes / 8;
}

/* How many pairs of bytes an fpc segment of that pattern takes. */
static inline uint32_t wharf_line_fpc_npairs(uint32_t pattern)
{
    return 0x82444210u >> 4 * pattern & 15;
}

#endif
