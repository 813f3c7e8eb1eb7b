/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.h: what encodes and decodes lines (LINES.md), for the five codecs that are made of it: bdi,
 * fpc, cpack, best and palette.
 */
#ifndef WHARF_ENCODERS_LINE_LINE_H
#define WHARF_ENCODERS_LINE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/line/line_format.h"
#include "encoders/wharf_codec.h"
#include "proto/wharf_result.h"

struct wharf_codec_setting;

/* As wharf_decode_fn in codec.h says, for one of these codecs. */
void wharf_line_decode(uint32_t codec, const uint8_t *in, size_t in_nbytes, uint8_t *out,
                       size_t out_avail, const struct wharf_codec_setting *setting,
                       struct wharf_outcome *ret_outcome);
void wharf_line_decode_reference(uint32_t codec, const uint8_t *in, size_t in_nbytes, uint8_t *out,
                                 size_t out_avail, const struct wharf_codec_setting *setting,
                                 struct wharf_outcome *ret_outcome);

/*
 * wharf_line_decode_range: decodes bytes `first` to first + out_nbytes - 1 of a stream's output. It
 * reads the stream's header, the records and heads of the groups that hold these bytes, and the
 * content of their lines (LINES.md, section 9).  The outcome's in_nbytes is the end of the last
 * content.  wharf_line_decode_range_reference: the same by the reference decoder.
 */
void wharf_line_decode_range(uint32_t codec, const uint8_t *in, size_t in_nbytes, uint64_t first,
                             uint8_t *out, size_t out_nbytes,
                             const struct wharf_codec_setting *setting,
                             struct wharf_outcome *ret_outcome);
void wharf_line_decode_range_reference(uint32_t codec, const uint8_t *in, size_t in_nbytes,
                                       uint64_t first, uint8_t *out, size_t out_nbytes,
                                       const struct wharf_codec_setting *setting,
                                       struct wharf_outcome *ret_outcome);

/*
 * The parts of a stream that this call reads, for callers that read them from a file.  Read each
 * part to its place before asking for the next.
 *
 *     struct wharf_line_parts parts = {codec, in_nbytes, first, out_nbytes};
 *     while (wharf_line_parts_next(&parts, in, &offset, &nbytes))
 *         ... read nbytes at `offset` of the stream to in + offset ...
 *     wharf_line_decode_range(codec, in, in_nbytes, first, out, out_nbytes, NULL, &outcome);
 *
 * `in` has in_nbytes.  Bytes outside these parts may have any value: the outcome is that of the
 * whole stream.  There are at most four parts, all within the stream.
 */
struct wharf_line_parts {
    uint32_t codec;
    uint64_t in_nbytes;
    uint64_t first;
    uint64_t out_nbytes;
    unsigned n_given; /* 0 at first */
};
bool wharf_line_parts_next(struct wharf_line_parts *parts, const uint8_t *in, uint64_t *ret_offset,
                           uint64_t *ret_nbytes);

/* What an encoder can choose.  The stream says it, so decoders need none of it. */
struct wharf_line_choice {
    uint32_t codec;
    uint32_t line_nbytes; /* 32, 64 or 128 */
    uint32_t layout;      /* WHARF_LINE_PACKED or WHARF_LINE_SLOTS */
    uint32_t type;        /* palette: what the values are; others 0 */
};

/* What the encoder in row `number` of the codec's encoder_rows chooses. */
struct wharf_line_choice wharf_line_choice_of(uint32_t codec, uint32_t number);

/*
 * wharf_line_bound: the most bytes that encoding in_nbytes can give.
 * wharf_line_encode: 0 and *ret_out_nbytes; -ENOSPC when out_avail is too little, never with that
 * bound; -EILSEQ for more than WHARF_LINE_MAX_RAW_NBYTES.  The bytes follow from choice and input
 * alone, on every machine.  `in` may be NULL when in_nbytes is 0.
 */
size_t wharf_line_bound(const struct wharf_line_choice *choice, size_t in_nbytes);
int wharf_line_encode(const struct wharf_line_choice *choice, const uint8_t *in, size_t in_nbytes,
                      uint8_t *out, size_t out_avail, size_t *ret_out_nbytes);

/*
 * Which instructions wharf_line_decode uses: "plain", "avx2" or "avx512"; NULL: the best that the
 * machine has, as when nobody asked.  Returns 0, -ENOENT, or -ENOTSUP when the machine lacks them.
 * For tests and benchmarks; from any thread.
 */
int wharf_line_force(const char *name);

#endif
