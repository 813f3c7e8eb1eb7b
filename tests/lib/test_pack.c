/* SPDX-License-Identifier: Apache-2.0 */
/* test_pack.c: compresses chunks with the encoders. */
#include "tests/lib/test_pack.h"

#include <stdio.h>
#include <stdlib.h>

static _Noreturn void die(uint32_t codec, const char *what)
{
    fprintf(stderr, "packing with %s: %s\n", wharf_codec_find(codec)->name, what);
    exit(3);
}

static struct wharf_encoder *new_encoder(uint32_t codec,
                                         const struct wharf_encoder_options *options)
{
    struct wharf_encoder *encoder;

    if (wharf_codec_find(codec)->ops->encoder->new (options, &encoder) < 0)
        die(codec, "no encoder");
    return encoder;
}

uint8_t *test_pack(uint32_t codec, const struct wharf_encoder_options *options,
                   const uint8_t *plain, size_t plain_nbytes, size_t *ret_nbytes)
{
    const struct wharf_encoder_ops *ops = wharf_codec_find(codec)->ops->encoder;
    struct wharf_encoder *encoder = new_encoder(codec, options);
    size_t bound = ops->bound(encoder, plain_nbytes);
    uint8_t *packed = malloc(bound ? bound : 1);

    if (!packed)
        die(codec, "out of memory");
    if (ops->encode(encoder, plain, plain_nbytes, packed, bound, ret_nbytes) < 0)
        die(codec, "cannot encode");
    ops->free(encoder);
    return packed;
}

size_t test_pack_into(uint32_t codec, const uint8_t *plain, size_t plain_nbytes, uint8_t *out,
                      size_t out_avail)
{
    const struct wharf_encoder_ops *ops = wharf_codec_find(codec)->ops->encoder;
    struct wharf_encoder *encoder = new_encoder(codec, NULL);
    size_t nbytes;

    if (ops->encode(encoder, plain, plain_nbytes, out, out_avail, &nbytes) < 0)
        die(codec, "cannot encode");
    ops->free(encoder);
    return nbytes;
}
