/* SPDX-License-Identifier: Apache-2.0 */
/* By libzstd: one frame with its content's size.  Without a checksum, unless it is asked for:
 * containers have their own. */
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#include "encoders/zstd/zstd.h"
#include "encoders/zstd/zstd_encode.h"

enum { LEVEL_MAX = 22, LEVEL_DEFAULT = 3 };

struct wharf_encoder {
    ZSTD_CCtx *context;
};

const struct wharf_encoder_row wharf_zstd_encoder_rows[] = {
    {.name = "zstd", .level_min = 1, .level_max = LEVEL_MAX, .level_default = LEVEL_DEFAULT},
    {.name = NULL},
};

static void zstd_free(struct wharf_encoder *encoder)
{
    if (encoder)
        ZSTD_freeCCtx(encoder->context);
    free(encoder);
}

static int zstd_new(const struct wharf_encoder_options *options, struct wharf_encoder **ret_encoder)
{
    const struct wharf_encoder_row *row;
    int level;
    int rc = wharf_encoder_choose(&wharf_zstd_codec, options, &row, &level);

    if (rc < 0)
        return rc;
    struct wharf_encoder *encoder = calloc(1, sizeof(*encoder));
    if (!encoder)
        return -ENOMEM;
    encoder->context = ZSTD_createCCtx();
    if (!encoder->context ||
        ZSTD_isError(ZSTD_CCtx_setParameter(encoder->context, ZSTD_c_compressionLevel, level))) {
        zstd_free(encoder);
        return -ENOMEM;
    }
    *ret_encoder = encoder;
    return 0;
}

void wharf_zstd_encode_checksums(struct wharf_encoder *encoder)
{
    /* Cannot fail between two frames. */
    (void)ZSTD_CCtx_setParameter(encoder->context, ZSTD_c_checksumFlag, 1);
}

static size_t zstd_bound(const struct wharf_encoder *encoder, size_t in_nbytes)
{
    (void)encoder;
    return ZSTD_compressBound(in_nbytes);
}

static int zstd_encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                       uint8_t *out, size_t out_avail, size_t *ret_out_nbytes)
{
    size_t n = ZSTD_compress2(encoder->context, out, out_avail, in, in_nbytes);

    if (ZSTD_isError(n))
        return out_avail < ZSTD_compressBound(in_nbytes) ? -ENOSPC : -ENOMEM;
    *ret_out_nbytes = n;
    return 0;
}

const struct wharf_encoder_ops wharf_zstd_encoder = {
    .new = zstd_new,
    .bound = zstd_bound,
    .encode = zstd_encode,
    .free = zstd_free,
};
