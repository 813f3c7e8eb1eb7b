/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_walk.h: goes through a stream's frames and their blocks.
 */
#ifndef WHARF_ENCODERS_ZSTD_ZSTD_WALK_H
#define WHARF_ENCODERS_ZSTD_ZSTD_WALK_H

#include "encoders/codec.h"
#include "encoders/xxh64.h"
#include "encoders/zstd/zstd_frame.h"
#include "encoders/zstd/zstd_table.h"

struct wharf_zstd_loops;

struct wharf_zstd_walk {
    const uint8_t *in;
    size_t in_nbytes;
    uint8_t *out;
    size_t out_avail;
    const struct wharf_codec_setting *setting;
    const struct wharf_zstd_loops *loops; /* zstd_block.h; NULL: none */

    /* What is wrong, and with which byte of the source. */
    enum wharf_reason reason;
    size_t bad_at;
    uint32_t stopped; /* WHARF_OK, or what the poll says */

    size_t at;                  /* in the source */
    size_t n_out;               /* output so far */
    size_t asked_at, asked_out; /* where they were when it last asked whether to go on */

    /* Of the frame. */
    struct wharf_zstd_frame frame;
    size_t frame_at;     /* in the source */
    size_t frame_out;    /* where its output begins */
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

/* Fails with `reason` at byte `at` of the source: false. */
bool wharf_zstd_fail(struct wharf_zstd_walk *walk, enum wharf_reason reason, size_t at);

/* Fails for want of room at that byte, or at the frame's first for a content size. */
bool wharf_zstd_fail_room(struct wharf_zstd_walk *walk, enum wharf_reason reason, size_t at);

/* Goes through all of it; fills *ret_outcome. */
void wharf_zstd_walk_run(struct wharf_zstd_walk *walk, struct wharf_outcome *ret_outcome);

/* To be called before. */
void wharf_zstd_walk_init(struct wharf_zstd_walk *walk, const uint8_t *in, size_t in_nbytes,
                          uint8_t *out, size_t out_avail,
                          const struct wharf_codec_setting *setting);

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
