/* SPDX-License-Identifier: Apache-2.0 */
/* rle_encoder.h: what the encoders of ORC's run lengths keep from chunk to chunk. */
#ifndef WHARF_ENCODERS_RLE_ENCODER_H
#define WHARF_ENCODERS_RLE_ENCODER_H

#include "encoders/codec.h"

struct wharf_encoder {
    uint32_t type;   /* the parameter */
    uint8_t *packed; /* boolrle's: room for bits, packed_avail bytes of it */
    size_t packed_avail;
};

/* struct wharf_encoder_ops.new for a codec, and free. */
int wharf_rle_encoder_new(const struct wharf_codec_ops *codec,
                          const struct wharf_encoder_options *options,
                          struct wharf_encoder **ret_encoder);
void wharf_rle_encoder_free(struct wharf_encoder *encoder);

#endif
