/* SPDX-License-Identifier: Apache-2.0 */
/* boolrle_encode.c: values packed eight a byte, and those bytes as byterle's groups. */
#include <errno.h>
#include <stdlib.h>

#include "encoders/boolrle/boolrle.h"
#include "encoders/byterle/byterle.h"
#include "encoders/rle_encoder.h"

const struct wharf_encoder_row wharf_boolrle_encoder_rows[] = {
    {.name = "boolrle"},
    {.name = NULL},
};

static int boolrle_new(const struct wharf_encoder_options *options,
                       struct wharf_encoder **ret_encoder)
{
    return wharf_rle_encoder_new(&wharf_boolrle_codec, options, ret_encoder);
}

static size_t packed_nbytes(size_t n_values)
{
    return n_values / 8 + (n_values % 8 != 0);
}

static size_t boolrle_bound(const struct wharf_encoder *encoder, size_t in_nbytes)
{
    (void)encoder;
    return wharf_byterle_bound_bytes(packed_nbytes(in_nbytes));
}

static int grow(struct wharf_encoder *encoder, size_t nbytes)
{
    uint8_t *packed;

    if (nbytes <= encoder->packed_avail)
        return 0;
    packed = realloc(encoder->packed, nbytes);
    if (!packed)
        return -ENOMEM;
    encoder->packed = packed;
    encoder->packed_avail = nbytes;
    return 0;
}

/* Returns 0, or -EILSEQ for a byte that is neither 0 nor 1. */
static int pack_bits(uint8_t *packed, const uint8_t *in, size_t in_nbytes)
{
    for (size_t i = 0; i < in_nbytes; i++) {
        if (in[i] > 1)
            return -EILSEQ;
        packed[i / 8] = (uint8_t)((i % 8 ? packed[i / 8] : 0) | in[i] << (7 - i % 8));
    }
    return 0;
}

static int boolrle_encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                          uint8_t *out, size_t out_avail, size_t *ret_out_nbytes)
{
    size_t nbytes = packed_nbytes(in_nbytes);
    int rc = grow(encoder, nbytes);

    if (rc == 0)
        rc = pack_bits(encoder->packed, in, in_nbytes);
    if (rc == 0)
        rc = wharf_byterle_encode_bytes(encoder->packed, nbytes, out, out_avail, ret_out_nbytes);
    return rc;
}

const struct wharf_encoder_ops wharf_boolrle_encoder = {
    .new = boolrle_new,
    .bound = boolrle_bound,
    .encode = boolrle_encode,
    .free = wharf_rle_encoder_free,
};
