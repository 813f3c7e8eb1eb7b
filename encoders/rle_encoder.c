/* SPDX-License-Identifier: Apache-2.0 */
/* rle_encoder.c: makes and frees encoders of ORC's run lengths. */
#include "encoders/rle_encoder.h"

#include <errno.h>
#include <stdlib.h>

int wharf_rle_encoder_new(const struct wharf_codec_ops *codec,
                          const struct wharf_encoder_options *options,
                          struct wharf_encoder **ret_encoder)
{
    const struct wharf_encoder_row *row;
    struct wharf_encoder *encoder;
    int level;
    int rc = wharf_encoder_choose(codec, options, &row, &level);

    if (rc < 0)
        return rc;
    encoder = calloc(1, sizeof(*encoder));
    if (!encoder)
        return -ENOMEM;
    encoder->type = options ? options->parameter : 0;
    *ret_encoder = encoder;
    return 0;
}

void wharf_rle_encoder_free(struct wharf_encoder *encoder)
{
    if (!encoder)
        return;
    free(encoder->packed);
    free(encoder);
}
