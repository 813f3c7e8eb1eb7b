/* SPDX-License-Identifier: Apache-2.0 */
/* line_encoder.c: the encoder of the line codecs, with its options. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/line/line_codec.h"

struct wharf_encoder {
    struct wharf_line_choice choice;
};

struct wharf_line_choice wharf_line_choice_of(uint32_t codec, uint32_t number)
{
    return (struct wharf_line_choice){
        .codec = codec,
        .line_nbytes = (uint32_t)WHARF_LINE_MAX_NBYTES >> number % 3,
        .layout = WHARF_LINE_PACKED,
        .type = number / 3,
    };
}

int wharf_line_encoder_new(uint32_t codec, const struct wharf_encoder_options *options,
                           struct wharf_encoder **ret_encoder)
{
    const struct wharf_codec_ops *ops = wharf_codec_find(codec)->ops;
    const struct wharf_encoder_row *row;
    int level;
    int rc = wharf_encoder_choose(ops, options, &row, &level);

    if (rc < 0)
        return rc;
    struct wharf_encoder *encoder = calloc(1, sizeof(*encoder));
    if (!encoder)
        return -ENOMEM;
    encoder->choice = wharf_line_choice_of(codec, (uint32_t)(row - ops->encoder_rows));
    *ret_encoder = encoder;
    return 0;
}

size_t wharf_line_encoder_bound(const struct wharf_encoder *encoder, size_t in_nbytes)
{
    return wharf_line_bound(&encoder->choice, in_nbytes);
}

int wharf_line_encoder_encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                              uint8_t *out, size_t out_avail, size_t *ret_out_nbytes)
{
    return wharf_line_encode(&encoder->choice, in, in_nbytes, out, out_avail, ret_out_nbytes);
}

void wharf_line_encoder_free(struct wharf_encoder *encoder)
{
    free(encoder);
}
