/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_codec.h: a codec of lines, which is this frame with the schemes that its number stands for.
 *
 * DEFINE_LINE_CODEC(ID, name) defines the object that encoders/codec.h wants of a folder.
 * Its encoders are those of a list `rows`, defined before, in threes of WHARF_LINE_ENCODER_ROWS:
 * lines of 128, 64 and 32 bytes of the first type, then of the next one.
 */
#ifndef WHARF_ENCODERS_LINE_LINE_CODEC_H
#define WHARF_ENCODERS_LINE_LINE_CODEC_H

#include "encoders/codec.h"
#include "encoders/line/line.h"

#define WHARF_LINE_ENCODER_ROWS(row_name)                                                          \
    {.name = (row_name)}, {.name = row_name "-64"},                                                \
    {                                                                                              \
        .name = row_name "-32"                                                                     \
    }

/* Members of struct wharf_encoder_ops, but for `new`, which takes the codec as well. */
int wharf_line_encoder_new(uint32_t codec, const struct wharf_encoder_options *options,
                           struct wharf_encoder **ret_encoder);
size_t wharf_line_encoder_bound(const struct wharf_encoder *encoder, size_t in_nbytes);
int wharf_line_encoder_encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                              uint8_t *out, size_t out_avail, size_t *ret_out_nbytes);
void wharf_line_encoder_free(struct wharf_encoder *encoder);

#define DEFINE_LINE_CODEC(ID, codec_name)                                                          \
    static void decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,        \
                       const struct wharf_codec_setting *setting,                                  \
                       struct wharf_outcome *ret_outcome)                                          \
    {                                                                                              \
        wharf_line_decode(WHARF_CODEC_##ID, in, in_nbytes, out, out_avail, setting, ret_outcome);  \
    }                                                                                              \
    static void decode_reference(const uint8_t *in, size_t in_nbytes, uint8_t *out,                \
                                 size_t out_avail, const struct wharf_codec_setting *setting,      \
                                 struct wharf_outcome *ret_outcome)                                \
    {                                                                                              \
        wharf_line_decode_reference(WHARF_CODEC_##ID, in, in_nbytes, out, out_avail, setting,      \
                                    ret_outcome);                                                  \
    }                                                                                              \
    static void decode_range(const uint8_t *in, size_t in_nbytes, uint64_t first, uint8_t *out,    \
                             size_t out_nbytes, const struct wharf_codec_setting *setting,         \
                             struct wharf_outcome *ret_outcome)                                    \
    {                                                                                              \
        wharf_line_decode_range(WHARF_CODEC_##ID, in, in_nbytes, first, out, out_nbytes, setting,  \
                                ret_outcome);                                                      \
    }                                                                                              \
    static void decode_range_reference(                                                            \
        const uint8_t *in, size_t in_nbytes, uint64_t first, uint8_t *out, size_t out_nbytes,      \
        const struct wharf_codec_setting *setting, struct wharf_outcome *ret_outcome)              \
    {                                                                                              \
        wharf_line_decode_range_reference(WHARF_CODEC_##ID, in, in_nbytes, first, out, out_nbytes, \
                                          setting, ret_outcome);                                   \
    }                                                                                              \
    static int encoder_new(const struct wharf_encoder_options *options,                            \
                           struct wharf_encoder **ret_encoder)                                     \
    {                                                                                              \
        return wharf_line_encoder_new(WHARF_CODEC_##ID, options, ret_encoder);                     \
    }                                                                                              \
    static const struct wharf_encoder_ops encoder = {                                              \
        .new = encoder_new,                                                                        \
        .bound = wharf_line_encoder_bound,                                                         \
        .encode = wharf_line_encoder_encode,                                                       \
        .free = wharf_line_encoder_free,                                                           \
    };                                                                                             \
    const struct wharf_codec_ops wharf_##codec_name##_codec = {                                    \
        .decode = decode,                                                                          \
        .decode_reference = decode_reference,                                                      \
        .decode_range = decode_range,                                                              \
        .decode_range_reference = decode_range_reference,                                          \
        .encoder = &encoder,                                                                       \
        .encoder_rows = rows,                                                                      \
        .max_ratio = WHARF_##ID##_MAX_RATIO,                                                       \
        .max_constant = WHARF_##ID##_MAX_CONSTANT,                                                 \
    };

#endif
