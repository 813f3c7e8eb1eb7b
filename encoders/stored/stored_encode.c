/* SPDX-License-Identifier: Apache-2.0 */
/* stored_encode.c: an encoder that copies. */
#include "encoders/stored/stored_encode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Nothing is kept between chunks, but an encoder is an object that can be freed. */
struct wharf_encoder {
    char unused;
};

const struct wharf_encoder_row wharf_stored_encoder_rows[] = {
    {.name = "stored"},
    {.name = NULL},
};

static int stored_new(const struct wharf_encoder_options *options,
                      struct wharf_encoder **ret_encoder)
{
    const struct wharf_encoder_row *row;
    int level;
    int rc = wharf_encoder_choose(&wharf_stored_codec, options, &row, &level);

    if (rc < 0)
        return rc;
    *ret_encoder = calloc(1, sizeof(**ret_encoder));
    return *ret_encoder ? 0 : -ENOMEM;
}

static size_t stored_bound(const struct wharf_encoder *encoder, size_t in_nbytes)
{
    (void)encoder;
    return in_nbytes;
}

static int stored_encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes,
                         uint8_t *out, size_t out_avail, size_t *ret_out_nbytes)
{
    (void)encoder;
    if (in_nbytes > out_avail)
        return -ENOSPC;
    if (in_nbytes > 0)
        memcpy(out, in, in_nbytes);
    *ret_out_nbytes = in_nbytes;
    return 0;
}

static void stored_free(struct wharf_encoder *encoder)
{
    free(encoder);
}

const struct wharf_encoder_ops wharf_stored_encoder = {
    .new = stored_new,
    .bound = stored_bound,
    .encode = stored_encode,
    .free = stored_free,
};
