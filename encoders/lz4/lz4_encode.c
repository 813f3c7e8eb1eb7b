/* SPDX-License-Identifier: Apache-2.0 */
/* By liblz4: levels 1 and 2 with its quick compressor, from 3 on with the thorough one. */
#include <errno.h>
#include <limits.h>
#include <lz4.h>
#include <lz4hc.h>
#include <stdlib.h>

#include "encoders/lz4/lz4.h"

struct wharf_encoder {
    int level;
    union {
        LZ4_stream_t quick;
        LZ4_streamHC_t thorough;
    } memory;
};

const struct wharf_encoder_row wharf_lz4_encoder_rows[] = {
    {.name = "lz4", .level_min = 1, .level_max = LZ4HC_CLEVEL_MAX, .level_default = 1},
    {.name = NULL},
};

static int lz4_new(const struct wharf_encoder_options *options, struct wharf_encoder **ret_encoder)
{
    const struct wharf_encoder_row *row;
    int level;
    int rc = wharf_encoder_choose(&wharf_lz4_codec, options, &row, &level);

    if (rc < 0)
        return rc;
    struct wharf_encoder *encoder = calloc(1, sizeof(*encoder));
    if (!encoder)
        return -ENOMEM;
    encoder->level = level;
    *ret_encoder = encoder;
    return 0;
}

/* A literal length byte for 255 of them, and room for a token and what rounding takes. */
static size_t lz4_bound(const struct wharf_encoder *encoder, size_t in_nbytes)
{
    (void)encoder;
    return in_nbytes + in_nbytes / 255 + 16;
}

static int lz4_encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                      uint8_t *out, size_t out_avail, size_t *ret_out_nbytes)
{
    int avail = out_avail < INT_MAX ? (int)out_avail : INT_MAX;
    int n;

    if (in_nbytes > LZ4_MAX_INPUT_SIZE)
        return -EILSEQ; /* none that liblz4 makes */
    /* The thorough one looks at a source of no bytes. */
    if (in_nbytes == 0)
        in = (const uint8_t *)"";
    if (encoder->level < LZ4HC_CLEVEL_MIN)
        n = LZ4_compress_fast_extState(&encoder->memory, (const char *)in, (char *)out,
                                       (int)in_nbytes, avail, 1);
    else
        n = LZ4_compress_HC_extStateHC(&encoder->memory, (const char *)in, (char *)out,
                                       (int)in_nbytes, avail, encoder->level);
    if (n <= 0)
        return -ENOSPC;
    *ret_out_nbytes = (size_t)n;
    return 0;
}

static void lz4_free(struct wharf_encoder *encoder)
{
    free(encoder);
}

const struct wharf_encoder_ops wharf_lz4_encoder = {
    .new = lz4_new,
    .bound = lz4_bound,
    .encode = lz4_encode,
    .free = lz4_free,
};
