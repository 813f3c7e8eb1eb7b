/* SPDX-License-Identifier: Apache-2.0 */
/* snappy_encode.c: compresses with libsnappy, which has no levels. */
#include <errno.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/snappy/snappy.h"

/* libsnappy needs room for its worst case.  This is the output if the caller has less. */
struct wharf_encoder {
    char *room;
    size_t room_nbytes;
};

const struct wharf_encoder_row wharf_snappy_encoder_rows[] = {
    {.name = "snappy"},
    {.name = NULL},
};

static int new_encoder(const struct wharf_encoder_options *options,
                       struct wharf_encoder **ret_encoder)
{
    const struct wharf_encoder_row *row;
    int level;
    int rc = wharf_encoder_choose(&wharf_snappy_codec, options, &row, &level);

    if (rc < 0)
        return rc;
    *ret_encoder = calloc(1, sizeof(**ret_encoder));
    return *ret_encoder ? 0 : -ENOMEM;
}

static size_t bound(const struct wharf_encoder *encoder, size_t in_nbytes)
{
    (void)encoder;
    return snappy_max_compressed_length(in_nbytes);
}

static int make_room(struct wharf_encoder *encoder, size_t nbytes)
{
    if (nbytes <= encoder->room_nbytes)
        return 0;
    char *room = realloc(encoder->room, nbytes);
    if (!room)
        return -ENOMEM;
    encoder->room = room;
    encoder->room_nbytes = nbytes;
    return 0;
}

static int encode(struct wharf_encoder *encoder, const uint8_t *in, size_t in_nbytes, uint8_t *out,
                  size_t out_avail, size_t *ret_out_nbytes)
{
    size_t nbytes = snappy_max_compressed_length(in_nbytes);
    int has_room = out_avail >= nbytes;

    if (in_nbytes > UINT32_MAX)
        return -EILSEQ;
    int rc = has_room ? 0 : make_room(encoder, nbytes);
    if (rc < 0)
        return rc;
    char *to = has_room ? (char *)out : encoder->room;
    if (snappy_compress((const char *)in, in_nbytes, to, &nbytes) != SNAPPY_OK ||
        nbytes > out_avail)
        return -ENOSPC;
    if (!has_room)
        memcpy(out, to, nbytes);
    *ret_out_nbytes = nbytes;
    return 0;
}

static void free_encoder(struct wharf_encoder *encoder)
{
    if (encoder)
        free(encoder->room);
    free(encoder);
}

const struct wharf_encoder_ops wharf_snappy_encoder = {
    .new = new_encoder,
    .bound = bound,
    .encode = encode,
    .free = free_encoder,
};
