/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_walk_state.h: where a walk through a stream's frames stands, and how it fails.
 */
#ifndef WHARF_ENCODERS_ZSTD_ZSTD_WALK_STATE_H
#define WHARF_ENCODERS_ZSTD_ZSTD_WALK_STATE_H

#include "encoders/codec.h"
#include "encoders/xxh64.h"
#include "encoders/zstd/zstd_frame.h"
#include "encoders/zstd/zstd_table.h"

struct wharf_zstd_loops;

/* What comes next. */
enum wharf_zstd_step {
    WHARF_ZSTD_STEP_FRAME, /* a frame's header, or the end */
    WHARF_ZSTD_STEP_SKIP,  /* what is left of a skippable frame */
    WHARF_ZSTD_STEP_BLOCK,
    WHARF_ZSTD_STEP_CHECK, /* the frame's size and checksum */
    WHARF_ZSTD_STEP_END,   /* it is over, or has failed */
};

struct wharf_zstd_walk {
    const uint8_t *in;
    size_t in_nbytes;
    bool in_more;     /* the source goes on behind them */
    uint64_t in_base; /* bytes of the source before in[0] */
    uint8_t *out;
    size_t out_avail;
    const struct wharf_codec_setting *setting;
    const struct wharf_zstd_loops *loops; /* zstd_block.h; NULL: none */

    /* What is wrong, and with which byte of the source. */
    enum wharf_reason reason;
    uint64_t bad_at;
    uint32_t stopped; /* WHARF_OK, or what the poll says */

    enum wharf_zstd_step step;
    bool is_one_frame;          /* it is over behind the first one that is not skippable */
    bool has_frame;             /* there was one */
    size_t at;                  /* in `in` */
    size_t n_out;               /* output so far, in `out` */
    size_t asked_at, asked_out; /* where they were when it last asked whether to go on */

    /* Of the frame. */
    struct wharf_zstd_frame frame;
    uint64_t frame_at;   /* in the source */
    uint64_t skip_left;  /* of a skippable one */
    size_t frame_out;    /* where in `out` its output begins, or what is left of it */
    uint64_t frame_gone; /* how much of its output is not there any more */
    uint32_t offsets[3]; /* the last ones */
    struct wharf_xxh64 hash;
    struct wharf_zstd_tables tables;
};

/* How much output a block may still have, and what it is if there is more. */
struct wharf_zstd_room {
    size_t nbytes;
    enum wharf_reason reason;
};
struct wharf_zstd_room wharf_zstd_room_of_block(const struct wharf_zstd_walk *walk);

/* The frame's output so far. */
static inline uint64_t wharf_zstd_frame_nbytes(const struct wharf_zstd_walk *walk)
{
    return walk->frame_gone + (walk->n_out - walk->frame_out);
}

/* How far back a match may begin: within the frame, and within its window. */
static inline size_t wharf_zstd_reach(const struct wharf_zstd_walk *walk)
{
    size_t nbytes = walk->n_out - walk->frame_out;

    return nbytes < walk->frame.window_nbytes ? nbytes : (size_t)walk->frame.window_nbytes;
}

/* Fails with `reason` at byte `at` of `in`: false. */
bool wharf_zstd_fail(struct wharf_zstd_walk *walk, enum wharf_reason reason, size_t at);

/* The same at the frame's first byte. */
bool wharf_zstd_fail_frame(struct wharf_zstd_walk *walk, enum wharf_reason reason);

/* Fails for want of room at that byte, or at the frame's first for a content size. */
bool wharf_zstd_fail_room(struct wharf_zstd_walk *walk, enum wharf_reason reason, size_t at);

/*
 * The offset that a sequence's offset value means, with as many of the last ones as it changes; 0
 * if it means none.  has_literals: the sequence has some.
 */
static inline uint32_t wharf_zstd_offset(uint32_t offsets[3], uint32_t value, bool has_literals)
{
    uint32_t offset;

    if (value > 3) {
        offset = value - 3;
        offsets[2] = offsets[1];
        offsets[1] = offsets[0];
        offsets[0] = offset;
        return offset;
    }
    uint32_t which = value - has_literals;
    offset = which == 3 ? offsets[0] - 1 : offsets[which];
    if (which > 1)
        offsets[2] = offsets[1];
    if (which > 0)
        offsets[1] = offsets[0];
    offsets[0] = offset;
    return offset;
}

#endif
