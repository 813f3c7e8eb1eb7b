/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_walk.c: walks through frames and blocks, a step at a time.
 *
 * RFC 8878, section 3.1.  A step is a frame's header, a block or a checksum, and is taken whole or
 * not at all: where the source ends in the middle of one and more will come, nothing has changed,
 * and the caller tries it again with more.  So no step needs to remember how far it was, and the
 * walk through a source in pieces fails with the same reason at the same byte as through a whole
 * one.  The outcome does not depend on where the pieces end.
 */
#include "encoders/zstd/zstd_walk.h"

#include <string.h>

#include "encoders/decode_poll.h"
#include "encoders/little_endian.h"
#include "encoders/outcome.h"
#include "encoders/zstd/zstd_block.h"

/* Asks whether to go on, if it is time to.  By source as well as output, since a skippable frame
 * has no output, and an RLE block of 4 bytes can have 128 KiB. */
static void poll(struct wharf_zstd_walk *walk)
{
    if (walk->at - walk->asked_at < WHARF_POLL_IN_NBYTES &&
        walk->n_out - walk->asked_out < WHARF_POLL_OUT_NBYTES)
        return;
    walk->asked_at = walk->at;
    walk->asked_out = walk->n_out;
    walk->stopped = wharf_decode_poll(walk->setting);
    if (walk->stopped != WHARF_OK)
        walk->step = WHARF_ZSTD_STEP_END;
}

/* Raw and RLE blocks. */
static bool fill_block(struct wharf_zstd_walk *walk, const struct wharf_zstd_block *block)
{
    struct wharf_zstd_room room = wharf_zstd_room_of_block(walk);

    /* Before anything is written.  The block's own first byte is at fault. */
    if (block->out_nbytes > room.nbytes)
        return wharf_zstd_fail_room(walk, room.reason, walk->at - WHARF_ZSTD_BLOCK_HEADER_NBYTES);
    if (block->out_nbytes == 0)
        return true;
    if (block->type == WHARF_ZSTD_RAW)
        memcpy(walk->out + walk->n_out, walk->in + walk->at, block->out_nbytes);
    else
        memset(walk->out + walk->n_out, walk->in[walk->at], block->out_nbytes);
    walk->n_out += block->out_nbytes;
    return true;
}

/* The steps.  Each returns false where it needs more of the source than there is, of which it has
 * taken nothing then but what is skipped. */

static bool needs_more(const struct wharf_zstd_walk *walk, enum wharf_reason reason)
{
    return reason == WHARF_REASON_INPUT_TRUNCATED && walk->in_more;
}

/* What a good header asks for that this decoder does not have, or NONE.  A larger window would let
 * a few bytes of header claim any amount of memory from a reader that streams. */
static enum wharf_reason refuse(const struct wharf_zstd_frame *frame)
{
    if (frame->dictionary != 0)
        return WHARF_REASON_ZSTD_DICTIONARY;
    if (frame->window_nbytes > UINT64_C(1) << WHARF_ZSTD_WINDOW_MAX_LOG)
        return WHARF_REASON_ZSTD_WINDOW;
    return WHARF_REASON_NONE;
}

static void begin_frame(struct wharf_zstd_walk *walk)
{
    walk->has_frame = true;
    walk->frame_out = walk->n_out;
    walk->frame_gone = 0;
    /* A frame stands alone: it repeats no table of an earlier one, and begins with these three
     * offsets (section 3.1.1.5). */
    walk->tables.has_sequence_tables = false;
    walk->tables.tree_log = 0;
    walk->offsets[0] = 1;
    walk->offsets[1] = 4;
    walk->offsets[2] = 8;
    wharf_xxh64_init(&walk->hash, walk->out + walk->n_out);
    walk->at += walk->frame.header_nbytes;
    walk->step = WHARF_ZSTD_STEP_BLOCK;
}

static bool walk_frame(struct wharf_zstd_walk *walk)
{
    size_t left = walk->in_nbytes - walk->at;
    /* Of the first bytes of something else more tell what it is. */
    enum wharf_reason reason = left < WHARF_ZSTD_MAGIC_NBYTES && walk->in_more
                                   ? WHARF_REASON_INPUT_TRUNCATED
                                   : wharf_zstd_read_frame(walk->in + walk->at, left, &walk->frame);

    /* Nothing at all is no stream; nothing behind a frame is its end. */
    if (walk->has_frame && left == 0 && !walk->in_more) {
        walk->step = WHARF_ZSTD_STEP_END;
        return true;
    }
    if (needs_more(walk, reason))
        return false;
    walk->frame_at = walk->in_base + walk->at;
    if (reason == WHARF_REASON_NONE)
        reason = refuse(&walk->frame);
    if (reason != WHARF_REASON_NONE) {
        wharf_zstd_fail(walk, reason, walk->at);
    } else if (walk->frame.is_skippable) {
        walk->has_frame = true;
        walk->skip_left = walk->frame.header_nbytes;
        walk->step = WHARF_ZSTD_STEP_SKIP;
    } else {
        begin_frame(walk);
    }
    return true;
}

static bool walk_skippable(struct wharf_zstd_walk *walk)
{
    size_t left = walk->in_nbytes - walk->at;

    if (walk->skip_left > left && !walk->in_more) {
        wharf_zstd_fail_frame(walk, WHARF_REASON_INPUT_TRUNCATED);
        return true;
    }
    /* The one step that takes a part: a skippable frame has up to 4 GiB, which no buffer holds. */
    if (walk->skip_left > left) {
        walk->at += left;
        walk->skip_left -= left;
        return false;
    }
    walk->at += (size_t)walk->skip_left;
    walk->step = WHARF_ZSTD_STEP_FRAME;
    poll(walk);
    return true;
}

static bool walk_block(struct wharf_zstd_walk *walk)
{
    struct wharf_zstd_block block;
    enum wharf_reason reason = wharf_zstd_read_block(
        walk->in + walk->at, walk->in_nbytes - walk->at, walk->frame.block_max, &block);

    if (needs_more(walk, reason))
        return false;
    if (reason != WHARF_REASON_NONE) {
        wharf_zstd_fail(walk, reason, walk->at);
        return true;
    }
    walk->at += WHARF_ZSTD_BLOCK_HEADER_NBYTES;
    if (!(block.type == WHARF_ZSTD_COMPRESSED ? wharf_zstd_decode_block(walk, block.nbytes)
                                              : fill_block(walk, &block)))
        return true;
    walk->at += block.nbytes;
    /* Block by block, while the output is still in the cache. */
    if (walk->frame.has_checksum)
        wharf_xxh64_update(&walk->hash, walk->out + walk->n_out);
    if (block.is_last)
        walk->step = WHARF_ZSTD_STEP_CHECK;
    poll(walk);
    return true;
}

/* Compares the checksum, which is there. */
static void check_sum(struct wharf_zstd_walk *walk)
{
    uint32_t sum = (uint32_t)wharf_xxh64_finish(&walk->hash, walk->out + walk->n_out);

    if (wharf_load_le32(walk->in + walk->at) != sum)
        wharf_zstd_fail(walk, WHARF_REASON_ZSTD_CHECKSUM, walk->at);
    else
        walk->at += WHARF_ZSTD_CHECKSUM_NBYTES;
}

static bool walk_check(struct wharf_zstd_walk *walk)
{
    bool has_sum = walk->in_nbytes - walk->at >= WHARF_ZSTD_CHECKSUM_NBYTES;

    /* Too much is found by each block (wharf_zstd_room_of_block), too little only here.  Before the
     * checksum, so that the reason does not depend on whether that is there already. */
    if (walk->frame.has_content_size &&
        wharf_zstd_frame_nbytes(walk) != walk->frame.content_nbytes) {
        wharf_zstd_fail_frame(walk, WHARF_REASON_ZSTD_CONTENT_SIZE);
        return true;
    }
    if (walk->frame.has_checksum && !has_sum && walk->in_more)
        return false;
    walk->step = walk->is_one_frame ? WHARF_ZSTD_STEP_END : WHARF_ZSTD_STEP_FRAME;
    if (walk->frame.has_checksum && !has_sum)
        wharf_zstd_fail(walk, WHARF_REASON_INPUT_TRUNCATED, walk->at);
    else if (walk->frame.has_checksum)
        check_sum(walk);
    return true;
}

bool wharf_zstd_walk_step(struct wharf_zstd_walk *walk)
{
    switch (walk->step) {
    case WHARF_ZSTD_STEP_FRAME:
        return walk_frame(walk);
    case WHARF_ZSTD_STEP_SKIP:
        return walk_skippable(walk);
    case WHARF_ZSTD_STEP_BLOCK:
        return walk_block(walk);
    case WHARF_ZSTD_STEP_CHECK:
        return walk_check(walk);
    default:
        return true;
    }
}

static uint32_t result_of(enum wharf_reason reason)
{
    switch (reason) {
    case WHARF_REASON_OUTPUT_FULL:
        return WHARF_OUTPUT_TOO_SMALL;
    case WHARF_REASON_ZSTD_CHECKSUM:
        return WHARF_BAD_CHECKSUM;
    case WHARF_REASON_ZSTD_VERSION:
    case WHARF_REASON_ZSTD_RESERVED:
    case WHARF_REASON_ZSTD_WINDOW:
    case WHARF_REASON_ZSTD_DICTIONARY:
        return WHARF_UNSUPPORTED;
    default:
        return WHARF_BAD_DATA;
    }
}

void wharf_zstd_walk_init(struct wharf_zstd_walk *walk, const uint8_t *in, size_t in_nbytes,
                          uint8_t *out, size_t out_avail, const struct wharf_codec_setting *setting)
{
    /* Nothing may be added to NULL, not even 0: that of an empty buffer stands for this byte. */
    static uint8_t nothing[1];

    /* Everything but the tables, which are written before they are read. */
    walk->in = in ? in : nothing;
    walk->in_nbytes = in_nbytes;
    walk->in_more = false;
    walk->in_base = 0;
    walk->out = out ? out : nothing;
    walk->out_avail = out_avail;
    walk->setting = setting;
    walk->loops = NULL;
    walk->reason = WHARF_REASON_NONE;
    walk->bad_at = 0;
    walk->stopped = WHARF_OK;
    walk->step = WHARF_ZSTD_STEP_FRAME;
    walk->is_one_frame = walk->has_frame = false;
    walk->at = walk->n_out = 0;
    walk->asked_at = walk->asked_out = 0;
    walk->frame_at = walk->frame_gone = walk->skip_left = 0;
    walk->frame_out = 0;
}

void wharf_zstd_walk_outcome(const struct wharf_zstd_walk *walk, struct wharf_outcome *ret_outcome)
{
    if (walk->stopped != WHARF_OK)
        wharf_outcome_fail(ret_outcome, walk->stopped, WHARF_REASON_NONE, 0);
    else if (walk->reason != WHARF_REASON_NONE)
        wharf_outcome_fail(ret_outcome, result_of(walk->reason), walk->reason, 8 * walk->bad_at);
    else
        wharf_outcome_ok(ret_outcome, walk->in_base + walk->at, walk->n_out);
}

void wharf_zstd_walk_run(struct wharf_zstd_walk *walk, struct wharf_outcome *ret_outcome)
{
    while (walk->step != WHARF_ZSTD_STEP_END)
        wharf_zstd_walk_step(walk);
    wharf_zstd_walk_outcome(walk, ret_outcome);
}
