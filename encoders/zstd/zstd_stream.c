/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk of zstd_walk.h over two buffers.  Output goes on behind what there is, so that a match
 * finds all bytes before it in one piece; where the room for a block ends, the last bytes, as many
 * as matches may reach back for, move to the beginning.  The buffer is so long that this costs less
 * than half a byte's copy for a byte of output, and nothing for frames that it holds as a whole.
 */
#include "encoders/zstd/zstd_stream.h"

#include <stdlib.h>
#include <string.h>

#include "encoders/outcome.h"
#include "encoders/zstd/zstd_block.h"
#include "encoders/zstd/zstd_loops.h"
#include "encoders/zstd/zstd_walk.h"

enum {
    /* A block and its header, and then some, so that reads are long. */
    IN_NBYTES = WHARF_ZSTD_BLOCK_HEADER_NBYTES + WHARF_ZSTD_BLOCK_MAX_NBYTES + (384 << 10),
    SPAN_NBYTES = 256 << 10,
    /* How much output goes between two moves of the window, at least. */
    MIN_STRIDE_NBYTES = 4 << 20,
};

struct zstd_stream {
    struct wharf_stream base;
    struct wharf_zstd_walk walk;
    uint8_t *out;      /* walk.out, unless there is none yet */
    size_t span;       /* output from here on has not been handed out */
    uint64_t out_base; /* bytes of output before out[0] */
    uint64_t verified;
    bool has_no_memory;
    uint8_t in[IN_NBYTES];
};

static struct zstd_stream *stream_of(struct wharf_stream *base)
{
    return (struct zstd_stream *)base;
}

static const struct zstd_stream *const_stream_of(const struct wharf_stream *base)
{
    return (const struct zstd_stream *)base;
}

/* ---- input --------------------------------------------------------------------------------- */

static uint8_t *space(struct wharf_stream *base, size_t *ret_nbytes)
{
    struct zstd_stream *stream = stream_of(base);
    struct wharf_zstd_walk *walk = &stream->walk;
    size_t left = walk->in_nbytes - walk->at;

    memmove(stream->in, stream->in + walk->at, left);
    walk->in_base += walk->at;
    walk->at = walk->asked_at = 0;
    walk->in_nbytes = left;
    *ret_nbytes = IN_NBYTES - left;
    return stream->in + left;
}

static void fill(struct wharf_stream *base, size_t nbytes, bool last)
{
    struct wharf_zstd_walk *walk = &stream_of(base)->walk;

    walk->in_nbytes += nbytes;
    walk->in_more = !last;
}

static const uint8_t *rest(const struct wharf_stream *base, size_t *ret_nbytes)
{
    const struct zstd_stream *stream = const_stream_of(base);

    *ret_nbytes = stream->walk.in_nbytes - stream->walk.at;
    return stream->in + stream->walk.at;
}

/* ---- output -------------------------------------------------------------------------------- */

static uint64_t out_total(const struct zstd_stream *stream)
{
    return stream->out_base + stream->walk.n_out;
}

/* The output for which the frame needs a buffer. */
static size_t wanted_nbytes(const struct wharf_zstd_frame *frame)
{
    size_t window = (size_t)frame->window_nbytes;
    size_t nbytes = window + (window > MIN_STRIDE_NBYTES ? window : MIN_STRIDE_NBYTES);

    if (frame->content_nbytes < nbytes)
        nbytes = (size_t)frame->content_nbytes;
    return nbytes + frame->block_max;
}

/* Moves what matches may reach to the beginning, all output having been handed out. */
static void slide(struct zstd_stream *stream)
{
    struct wharf_zstd_walk *walk = &stream->walk;
    size_t reach = wharf_zstd_reach(walk);
    size_t gone = walk->n_out - reach;

    memmove(stream->out, stream->out + gone, reach);
    wharf_xxh64_move(&walk->hash, gone);
    stream->out_base += gone;
    walk->frame_gone += walk->n_out - walk->frame_out - reach;
    walk->frame_out = 0;
    walk->n_out = walk->asked_out = stream->span = reach;
}

/* A longer buffer, of which the frame has no output yet. */
static bool grow(struct zstd_stream *stream, size_t nbytes)
{
    struct wharf_zstd_walk *walk = &stream->walk;

    free(stream->out);
    stream->out = malloc(nbytes);
    if (!stream->out) {
        stream->has_no_memory = true;
        walk->step = WHARF_ZSTD_STEP_END;
        return false;
    }
    stream->out_base += walk->n_out;
    walk->out = stream->out;
    walk->out_avail = nbytes;
    walk->n_out = walk->frame_out = walk->asked_out = stream->span = 0;
    wharf_xxh64_init(&walk->hash, walk->out);
    return true;
}

static bool begins_frame(const struct wharf_zstd_walk *walk)
{
    return walk->frame_gone == 0 && walk->n_out == walk->frame_out;
}

/* Whether the buffer has no room for the next block of the frame, which may be its first. */
static bool lacks_room(const struct zstd_stream *stream)
{
    const struct wharf_zstd_walk *walk = &stream->walk;

    return walk->step == WHARF_ZSTD_STEP_BLOCK &&
           (walk->out_avail - walk->n_out < walk->frame.block_max ||
            (begins_frame(walk) && walk->out_avail < wanted_nbytes(&walk->frame)));
}

/* All output has been handed out. */
static void make_room(struct zstd_stream *stream)
{
    const struct wharf_zstd_walk *walk = &stream->walk;
    size_t wanted = wanted_nbytes(&walk->frame);

    if (!begins_frame(walk) || walk->out_avail >= wanted || grow(stream, wanted))
        slide(stream);
}

/* ---- all together -------------------------------------------------------------------------- */

static enum wharf_stream_event hand_out(struct zstd_stream *stream, const uint8_t **ret_span,
                                        size_t *ret_nbytes)
{
    *ret_span = stream->out + stream->span;
    *ret_nbytes = stream->walk.n_out - stream->span;
    stream->span = stream->walk.n_out;
    return WHARF_STREAM_OUTPUT;
}

static enum wharf_stream_event next(struct wharf_stream *base, const uint8_t **ret_span,
                                    size_t *ret_nbytes)
{
    struct zstd_stream *stream = stream_of(base);
    struct wharf_zstd_walk *walk = &stream->walk;
    bool goes_on = true;

    while (goes_on && walk->step != WHARF_ZSTD_STEP_END &&
           walk->n_out - stream->span < SPAN_NBYTES) {
        if (lacks_room(stream)) {
            if (walk->n_out != stream->span)
                break;
            make_room(stream);
            continue;
        }
        goes_on = wharf_zstd_walk_step(walk);
        if (walk->step == WHARF_ZSTD_STEP_FRAME)
            stream->verified = out_total(stream);
    }
    if (walk->n_out != stream->span)
        return hand_out(stream, ret_span, ret_nbytes);
    return walk->step == WHARF_ZSTD_STEP_END ? WHARF_STREAM_END : WHARF_STREAM_INPUT;
}

static void outcome(const struct wharf_stream *base, struct wharf_outcome *ret_outcome)
{
    const struct zstd_stream *stream = const_stream_of(base);

    wharf_zstd_walk_outcome(&stream->walk, ret_outcome);
    if (stream->has_no_memory)
        wharf_outcome_fail(ret_outcome, WHARF_NO_MEMORY, WHARF_REASON_NONE, 0);
    if (ret_outcome->result != WHARF_OK)
        ret_outcome->in_nbytes = ret_outcome->bit_offset / 8;
    ret_outcome->out_nbytes = out_total(stream);
}

static uint64_t verified(const struct wharf_stream *base)
{
    const struct zstd_stream *stream = const_stream_of(base);
    struct wharf_outcome what;

    outcome(base, &what);
    return stream->walk.step == WHARF_ZSTD_STEP_END && what.result == WHARF_OK ? out_total(stream)
                                                                               : stream->verified;
}

static uint64_t member_start(const struct wharf_stream *base)
{
    return const_stream_of(base)->walk.frame_at;
}

static void free_stream(struct wharf_stream *base)
{
    free(stream_of(base)->out);
    free(base);
}

static const struct wharf_stream_ops ops = {
    .free = free_stream,
    .next = next,
    .space = space,
    .fill = fill,
    .outcome = outcome,
    .verified = verified,
    .member_start = member_start,
    .rest = rest,
};

struct wharf_stream *wharf_zstd_stream_new(enum wharf_zstd_extent extent)
{
    struct zstd_stream *stream = malloc(sizeof(*stream));

    if (!stream)
        return NULL;
    /* Everything but the buffers, which are written before they are read. */
    stream->base.ops = &ops;
    stream->out = NULL;
    stream->span = 0;
    stream->out_base = stream->verified = 0;
    stream->has_no_memory = false;
    stream->in[0] = 0; /* for GCC, which warns of bytes not written that might be read */
    wharf_zstd_walk_init(&stream->walk, stream->in, 0, NULL, 0, NULL);
    stream->walk.in_more = true;
    stream->walk.is_one_frame = extent == WHARF_ZSTD_ONE_FRAME;
    stream->walk.loops = wharf_zstd_best_loops();
    return &stream->base;
}
