/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/zstd/zstd_walk.h"

#include <string.h>

#include "encoders/decode_poll.h"
#include "encoders/little_endian.h"
#include "encoders/outcome.h"
#include "encoders/zstd/zstd_block.h"

bool wharf_zstd_fail(struct wharf_zstd_walk *walk, enum wharf_reason reason, size_t at)
{
    walk->reason = reason;
    walk->bad_at = at;
    return false;
}

bool wharf_zstd_fail_room(struct wharf_zstd_walk *walk, enum wharf_reason reason, size_t at)
{
    return wharf_zstd_fail(walk, reason,
                           reason == WHARF_REASON_ZSTD_CONTENT_SIZE ? walk->frame_at : at);
}

struct wharf_zstd_room wharf_zstd_room_of_block(const struct wharf_zstd_walk *walk)
{
    struct wharf_zstd_room room = {walk->frame.block_max, WHARF_REASON_ZSTD_BLOCK_SIZE};
    uint64_t content = walk->frame.content_nbytes - (walk->n_out - walk->frame_out);

    if (content < room.nbytes)
        room = (struct wharf_zstd_room){(size_t)content, WHARF_REASON_ZSTD_CONTENT_SIZE};
    if (walk->out_avail - walk->n_out < room.nbytes)
        room = (struct wharf_zstd_room){walk->out_avail - walk->n_out, WHARF_REASON_OUTPUT_FULL};
    return room;
}

/* Asks, if it is time to; false: it has stopped. */
static bool poll(struct wharf_zstd_walk *walk)
{
    if (walk->at - walk->asked_at < WHARF_POLL_IN_NBYTES &&
        walk->n_out - walk->asked_out < WHARF_POLL_OUT_NBYTES)
        return true;
    walk->asked_at = walk->at;
    walk->asked_out = walk->n_out;
    walk->stopped = wharf_decode_poll(walk->setting);
    return walk->stopped == WHARF_OK;
}

/* Raw and RLE blocks. */
static bool fill_block(struct wharf_zstd_walk *walk, const struct wharf_zstd_block *block)
{
    struct wharf_zstd_room room = wharf_zstd_room_of_block(walk);

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

static bool walk_block(struct wharf_zstd_walk *walk, bool *ret_is_last)
{
    struct wharf_zstd_block block;
    enum wharf_reason reason = wharf_zstd_read_block(
        walk->in + walk->at, walk->in_nbytes - walk->at, walk->frame.block_max, &block);

    if (reason != WHARF_REASON_NONE)
        return wharf_zstd_fail(walk, reason, walk->at);
    walk->at += WHARF_ZSTD_BLOCK_HEADER_NBYTES;
    if (!(block.type == WHARF_ZSTD_COMPRESSED ? wharf_zstd_decode_block(walk, block.nbytes)
                                              : fill_block(walk, &block)))
        return false;
    walk->at += block.nbytes;
    if (walk->frame.has_checksum)
        wharf_xxh64_update(&walk->hash, walk->n_out - walk->frame_out);
    *ret_is_last = block.is_last;
    return poll(walk);
}

static bool end_frame(struct wharf_zstd_walk *walk)
{
    size_t nbytes = walk->n_out - walk->frame_out;

    if (walk->frame.has_content_size && nbytes != walk->frame.content_nbytes)
        return wharf_zstd_fail(walk, WHARF_REASON_ZSTD_CONTENT_SIZE, walk->frame_at);
    if (!walk->frame.has_checksum)
        return true;
    if (walk->in_nbytes - walk->at < WHARF_ZSTD_CHECKSUM_NBYTES)
        return wharf_zstd_fail(walk, WHARF_REASON_INPUT_TRUNCATED, walk->at);
    if (wharf_load_le32(walk->in + walk->at) != (uint32_t)wharf_xxh64_finish(&walk->hash, nbytes))
        return wharf_zstd_fail(walk, WHARF_REASON_ZSTD_CHECKSUM, walk->at);
    walk->at += WHARF_ZSTD_CHECKSUM_NBYTES;
    return true;
}

static bool walk_frame(struct wharf_zstd_walk *walk)
{
    enum wharf_reason reason =
        wharf_zstd_read_frame(walk->in + walk->at, walk->in_nbytes - walk->at, &walk->frame);
    bool is_last = false;

    if (reason != WHARF_REASON_NONE)
        return wharf_zstd_fail(walk, reason, walk->at);
    if (walk->frame.dictionary != 0)
        return wharf_zstd_fail(walk, WHARF_REASON_ZSTD_DICTIONARY, walk->at);
    if (walk->frame.window_nbytes > UINT64_C(1) << WHARF_ZSTD_WINDOW_MAX_LOG)
        return wharf_zstd_fail(walk, WHARF_REASON_ZSTD_WINDOW, walk->at);
    walk->frame_at = walk->at;
    walk->frame_out = walk->n_out;
    walk->at += walk->frame.header_nbytes;
    if (walk->frame.is_skippable)
        return poll(walk);
    walk->tables.has_sequence_tables = false;
    walk->tables.tree_log = 0;
    walk->offsets[0] = 1;
    walk->offsets[1] = 4;
    walk->offsets[2] = 8;
    wharf_xxh64_init(&walk->hash, walk->out + walk->n_out);
    while (!is_last)
        if (!walk_block(walk, &is_last))
            return false;
    return end_frame(walk);
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

    walk->in = in ? in : nothing;
    walk->in_nbytes = in_nbytes;
    walk->out = out ? out : nothing;
    walk->out_avail = out_avail;
    walk->setting = setting;
    walk->loops = NULL;
}

void wharf_zstd_walk_run(struct wharf_zstd_walk *walk, struct wharf_outcome *ret_outcome)
{
    walk->reason = WHARF_REASON_NONE;
    walk->stopped = WHARF_OK;
    walk->at = walk->n_out = 0;
    walk->asked_at = walk->asked_out = 0;
    do {
        if (!walk_frame(walk))
            break;
    } while (walk->at < walk->in_nbytes);
    if (walk->stopped != WHARF_OK)
        wharf_outcome_fail(ret_outcome, walk->stopped, WHARF_REASON_NONE, 0);
    else if (walk->reason != WHARF_REASON_NONE)
        wharf_outcome_fail(ret_outcome, result_of(walk->reason), walk->reason,
                           8 * (uint64_t)walk->bad_at);
    else
        wharf_outcome_ok(ret_outcome, walk->at, walk->n_out);
}
