/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_frame.c: decodes the framing of bitshuffle's HDF5 filter (blosc_format.h).
 *
 * Each block goes through the codec inside into scratch, and its bits are unshuffled into the
 * output.  A block larger than scratch is decoded into the output and unshuffled in place.
 */
#include "encoders/blosc/blosc_frame.h"

#include <string.h>

#include "encoders/blosc/blosc_filter.h"
#include "encoders/outcome.h"

enum { SIZE_NBYTES = 4 };

static uint32_t load_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

struct frame {
    unsigned element_nbytes;
    uint64_t out_nbytes;
    uint32_t block_nbytes;
    size_t at; /* offset in the source */
    enum wharf_blosc_inside inside;
};

static bool read_frame(struct wharf_blosc_walk *walk, struct frame *frame)
{
    uint32_t eight = 8 * frame->element_nbytes;

    if (walk->in_nbytes < WHARF_BLOSC_FRAME_NBYTES)
        return wharf_blosc_fail(walk, WHARF_REASON_INPUT_TRUNCATED, 0);
    frame->out_nbytes = (uint64_t)load_be32(walk->in) << 32 | load_be32(walk->in + 4);
    frame->block_nbytes = load_be32(walk->in + 8);
    if (frame->out_nbytes > UINT64_C(1) << 62 || frame->out_nbytes % frame->element_nbytes ||
        frame->block_nbytes == 0 || frame->block_nbytes > INT32_MAX || frame->block_nbytes % eight)
        return wharf_blosc_fail(walk, WHARF_REASON_BLOSC_HEADER, 0);
    if (frame->out_nbytes > walk->out_avail)
        return wharf_blosc_fail(walk, WHARF_REASON_OUTPUT_FULL, 0);
    frame->at = WHARF_BLOSC_FRAME_NBYTES;
    return true;
}

static bool take_block(struct wharf_blosc_walk *walk, struct frame *frame, uint8_t *out,
                       size_t nbytes)
{
    bool is_small = nbytes <= WHARF_BLOSC_SCRATCH_NBYTES;
    size_t size_at = frame->at;

    if (walk->in_nbytes - frame->at < SIZE_NBYTES)
        return wharf_blosc_fail(walk, WHARF_REASON_INPUT_TRUNCATED, size_at);
    uint32_t size = load_be32(walk->in + frame->at);
    frame->at += SIZE_NBYTES;
    if (size > walk->in_nbytes - frame->at)
        return wharf_blosc_fail(walk, WHARF_REASON_BLOSC_STREAM, size_at);
    struct wharf_blosc_stream stream = {
        .at = frame->at,
        .out = is_small ? walk->scratch : out,
        .out_nbytes = nbytes,
        .inside = frame->inside,
    };
    if (!wharf_blosc_inside(walk, &stream, size_at, size))
        return false;
    frame->at += size;
    struct wharf_blosc_shuffle shuffle =
        wharf_blosc_shuffle_of(&walk->parts, true, frame->element_nbytes, nbytes);
    if (!is_small)
        return wharf_blosc_unshuffle_there(walk, &shuffle, out);
    wharf_blosc_unshuffle(walk, &shuffle, out, nbytes);
    return true;
}

static bool take_frame(struct wharf_blosc_walk *walk, struct frame *frame)
{
    if (!read_frame(walk, frame))
        return false;
    size_t nbytes = (size_t)frame->out_nbytes, done = 0;
    size_t rest = nbytes % (8 * frame->element_nbytes);
    while (done < nbytes - rest) {
        size_t left = nbytes - rest - done;
        size_t n = left < frame->block_nbytes ? left : frame->block_nbytes;
        if (!take_block(walk, frame, walk->out + done, n))
            return false;
        done += n;
    }
    if (walk->in_nbytes - frame->at < rest)
        return wharf_blosc_fail(walk, WHARF_REASON_INPUT_TRUNCATED, frame->at);
    memcpy(walk->out + done, walk->in + frame->at, rest);
    frame->at += rest;
    return true;
}

void wharf_blosc_walk_frame(struct wharf_blosc_walk *walk, struct wharf_outcome *ret_outcome)
{
    uint32_t parameter = walk->setting->parameter;
    struct frame frame = {
        .element_nbytes = parameter % WHARF_BLOSC_PARAMETER_LZ4,
        .inside = parameter < WHARF_BLOSC_PARAMETER_ZSTD ? WHARF_BLOSC_LZ4 : WHARF_BLOSC_ZSTD,
    };

    if (take_frame(walk, &frame))
        wharf_outcome_ok(ret_outcome, frame.at, frame.out_nbytes);
}
