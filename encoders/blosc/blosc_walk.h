/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_walk.h: the state of a decode, for chunks and for bitshuffle's framing.
 *
 * Decoding allocates no memory.  A block of up to WHARF_BLOSC_SCRATCH_NBYTES is decompressed into
 * scratch, which is on the stack, and unshuffled from there into the output.  A larger block is
 * decompressed into the output, and unshuffled in place (blosc_filter.c).
 */
#ifndef WHARF_ENCODERS_BLOSC_BLOSC_WALK_H
#define WHARF_ENCODERS_BLOSC_BLOSC_WALK_H

#include <stdbool.h>

#include "encoders/blosc/blosc_header.h"
#include "encoders/blosc/blosc_order.h"
#include "encoders/codec.h"

enum { WHARF_BLOSC_SCRATCH_NBYTES = 256 * 1024 };

/* The decoders and the unshuffler of an engine. */
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

    struct wharf_outcome failure; /* its result is OK while there is none */
    size_t in_since, out_since;   /* work since the last poll */
    uint64_t left_nbytes; /* bytes of the chunk that streams, with their sizes, may still take */

    struct wharf_blosc_header header;
    uint32_t streams_at; /* no stream begins before this offset */
};

/* One stream.  `at` is the offset of its size; decoding it moves `at` to its end. */
struct wharf_blosc_stream {
    size_t at;
    size_t end; /* the stream ends here at the latest */
    uint8_t *out;
    size_t out_nbytes; /* exactly so many bytes come out */
    enum wharf_blosc_inside inside;
};

/* Records a failure at byte `at` of the source.  Returns false. */
bool wharf_blosc_fail(struct wharf_blosc_walk *walk, enum wharf_reason reason, size_t at);

/* Counts work, and polls if it is time.  False: the caller must stop. */
bool wharf_blosc_spend(struct wharf_blosc_walk *walk, size_t in_nbytes, size_t out_nbytes);

/* Decompresses nbytes of the source at stream->at by the codec inside.  Their size field is at
 * size_at, where errors of the stream are reported. */
bool wharf_blosc_inside(struct wharf_blosc_walk *walk, const struct wharf_blosc_stream *stream,
                        size_t size_at, size_t nbytes);

#endif
