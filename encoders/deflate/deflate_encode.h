/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_encode.h: the encoders of raw Deflate, zlib and gzip, which differ only in what stands
 * around the Deflate data.  Two libraries do the work, chosen by name:
 *
 *   libdeflate   levels 1 to 12, default 6: whole chunks at once; the better and faster packer
 *   zlib         levels 0 to 9, default 6: what most files in the world were made with
 *
 * The same input, name and level give the same bytes: gzip headers have no time and no name.
 */
#ifndef WHARF_ENCODERS_DEFLATE_DEFLATE_ENCODE_H
#define WHARF_ENCODERS_DEFLATE_DEFLATE_ENCODE_H

#include "encoders/codec.h"

enum wharf_deflate_framing {
    WHARF_DEFLATE_FRAMING_RAW,
    WHARF_DEFLATE_FRAMING_ZLIB,
    WHARF_DEFLATE_FRAMING_GZIP,
};

extern const struct wharf_encoder_row wharf_deflate_encoder_rows[];

/* What struct wharf_encoder_ops asks for, for all three framings. */
int wharf_deflate_encoder_new(enum wharf_deflate_framing framing,
                              const struct wharf_encoder_options *options,
                              struct wharf_encoder **ret_encoder);
size_t wharf_deflate_encoder_bound(const struct wharf_encoder *encoder, size_t in_nbytes);
int wharf_deflate_encoder_encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                                 uint8_t *out, size_t out_avail, size_t *ret_out_nbytes);
void wharf_deflate_encoder_free(struct wharf_encoder *encoder);

/* The codecs' own. */
extern const struct wharf_encoder_ops wharf_deflate_encoder;
extern const struct wharf_encoder_ops wharf_zlib_encoder;
extern const struct wharf_encoder_ops wharf_gzip_encoder;

#endif
