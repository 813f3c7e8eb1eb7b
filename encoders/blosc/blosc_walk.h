/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_walk.h: goes through the blocks of a chunk or of bitshuffle's framing.
 *
 * No memory is taken for a block: one of up to WHARF_BLOSC_SCRATCH_NBYTES is decoded into scratch
 * on the stack, from which its bytes are put in order into the output.  A larger one is decoded
 * into its place in the output, and put in order there (blosc_filter.h).
 */
#ifndef WHARF_ENCODERS_BLOSC_BLOSC_WALK_H
#define WHARF_ENCODERS_BLOSC_BLOSC_WALK_H

#include <stdbool.h>

#include "encoders/blosc/blosc_header.h"
#include "encoders/blosc/blosc_order.h"
#include "encoders/codec.h"

enum { WHARF_BLOSC_SCRATCH_NBYTES = 256 * 1024 };

/* What does the work: the engine's. */
struct wharf_blosc_parts {
    wharf_decode_fn *inside[WHARF_BLOSC_N_INSIDE];
    const struct wharf_blosc_order *order;
};

struct wharf_blosc_walk {
    const uint8_t *in;
    size_t in_nbytes;
    uint8_t *out;
    size_t out_avail;
    const struct wharf_codec_setting *setting;
    struct wharf_blosc_parts parts;
    uint8_t *scratch; /* WHARF_BLOSC_SCRATCH_NBYTES */

    struct wharf_outcome failure; /* result OK: there is none */
    size_t in_since, out_since;   /* done since it last asked whether to go on */
    uint64_t left_nbytes;         /* what streams may still have, with their sizes */

    struct wharf_blosc_header header;
    uint32_t streams_at; /* none begins before */
};

/* One stream, from the byte of its size on; moves *at behind it. */
struct wharf_blosc_stream {
    size_t at;
    size_t end; /* nothing of it lies behind */
    uint8_t *out;
    size_t out_nbytes; /* exactly so much */
    enum wharf_blosc_inside inside;
};

/* Fails at a byte of the source: false. */
bool wharf_blosc_fail(struct wharf_blosc_walk *walk, enum wharf_reason reason, size_t at);

/* So much was done: asks whether to go on, if it is time to.  False: it has stopped. */
bool wharf_blosc_spend(struct wharf_blosc_walk *walk, size_t in_nbytes, size_t out_nbytes);

/* Decodes by the codec inside: nbytes of the source at `at`, behind a size at size_at. */
bool wharf_blosc_inside(struct wharf_blosc_walk *walk, const struct wharf_blosc_stream *stream,
                        size_t size_at, size_t nbytes);

#endif
