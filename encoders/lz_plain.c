/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_plain.c: matches by the last place of the same four bytes, found through a table of hashes.
 */
#include "encoders/lz_plain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t load_four(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

/* The top twelve bits of a product with 2^32 divided by the golden ratio. */
static uint32_t slot_of(uint32_t four)
{
    return four * 2654435769u >> 20;
}

static size_t match_length(const uint8_t *a, const uint8_t *b, const uint8_t *b_end)
{
    const uint8_t *begin = b;

    while (b < b_end && *a == *b) {
        a++;
        b++;
    }
    return (size_t)(b - begin);
}

bool wharf_lz_find_match(struct wharf_lz_finder *finder, struct wharf_lz_match *ret_match)
{
    const uint8_t *in = finder->in;

    for (size_t at = finder->done; at < finder->begin_limit; at++) {
        uint32_t four = load_four(in + at);
        uint32_t *slot = &finder->seen[slot_of(four)];
        size_t before = *slot;
        *slot = (uint32_t)at;
        if (before >= at || at - before > WHARF_LZ_PLAIN_DISTANCE_MAX ||
            load_four(in + before) != four)
            continue;
        *ret_match = (struct wharf_lz_match){
            .n_literals = at - finder->done,
            .length = match_length(in + before, in + at, in + finder->end_limit),
            .distance = at - before,
        };
        finder->done = at + ret_match->length;
        return true;
    }
    return false;
}

void wharf_lz_put_byte(struct wharf_lz_sink *sink, size_t byte)
{
    if (sink->nbytes < sink->avail)
        sink->out[sink->nbytes] = (uint8_t)byte;
    sink->nbytes++;
}

void wharf_lz_put_bytes(struct wharf_lz_sink *sink, const uint8_t *bytes, size_t nbytes)
{
    size_t room = sink->nbytes < sink->avail ? sink->avail - sink->nbytes : 0;

    if (nbytes > 0 && room > 0)
        memcpy(sink->out + sink->nbytes, bytes, nbytes < room ? nbytes : room);
    sink->nbytes += nbytes;
}

int wharf_lz_plain_new(const struct wharf_codec_ops *ops,
                       const struct wharf_encoder_options *options,
                       struct wharf_encoder **ret_encoder)
{
    const struct wharf_encoder_row *row;
    int level;
    int rc = wharf_encoder_choose(ops, options, &row, &level);

    if (rc < 0)
        return rc;
    *ret_encoder = calloc(1, sizeof(**ret_encoder));
    return *ret_encoder ? 0 : -ENOMEM;
}

void wharf_lz_plain_free(struct wharf_encoder *encoder)
{
    free(encoder);
}
