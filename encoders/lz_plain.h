/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_plain.h: what the plain encoders of lz4 and snappy share: they need no library, so they are
 * what libwharf has, of which most programs only want that it decodes.  They find the last place
 * where the same four bytes stood and look no further, so their output is larger than that of
 * liblz4 and libsnappy, which the command and wharfd have.
 */
#ifndef WHARF_ENCODERS_LZ_PLAIN_H
#define WHARF_ENCODERS_LZ_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/codec.h"

enum {
    WHARF_LZ_PLAIN_SLOTS = 4096,
    WHARF_LZ_PLAIN_MATCH_MIN = 4,
    WHARF_LZ_PLAIN_DISTANCE_MAX = 65535,
};

/* Input of less than 2^32 bytes on its way to sequences of literals and a match. */
struct wharf_lz_finder {
    const uint8_t *in;
    size_t begin_limit;                  /* matches begin before it */
    size_t end_limit;                    /* and end at it or before; begin_limit + 4 at least */
    size_t done;                         /* what the sequences so far have taken */
    uint32_t seen[WHARF_LZ_PLAIN_SLOTS]; /* where four bytes stood, by their hash; 0 before that */
};

struct wharf_lz_match {
    size_t n_literals; /* from `done`, as it was before, on */
    size_t length;     /* of the match that follows */
    size_t distance;
};

/* The next match: false if there is none, and the rest is literals. */
bool wharf_lz_find_match(struct wharf_lz_finder *finder, struct wharf_lz_match *ret_match);

/* What both encoders are. */
struct wharf_encoder {
    struct wharf_lz_finder finder;
};

/* Their new, for a codec, and their free. */
int wharf_lz_plain_new(const struct wharf_codec_ops *ops,
                       const struct wharf_encoder_options *options,
                       struct wharf_encoder **ret_encoder);
void wharf_lz_plain_free(struct wharf_encoder *encoder);

/* Output that may not fit: nbytes goes on, beyond avail too, and nothing is written there. */
struct wharf_lz_sink {
    uint8_t *out;
    size_t avail;
    size_t nbytes;
};

void wharf_lz_put_byte(struct wharf_lz_sink *sink, size_t byte);
void wharf_lz_put_bytes(struct wharf_lz_sink *sink, const uint8_t *bytes, size_t nbytes);

#endif
