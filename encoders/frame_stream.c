/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_stream.c: a block at a time.  Its output stands behind the last 64 KiB of the frame's, into
 * which linked blocks reach back.
 */
#include "encoders/frame_stream.h"

#include <stdlib.h>
#include <string.h>

#include "encoders/crc32c.h"
#include "encoders/decode_job.h"
#include "encoders/lz4/lz4_frame.h"
#include "encoders/outcome.h"
#include "encoders/snappy/snappy_frame.h"
#include "encoders/xxh32.h"

/* What is asked for at once. */
enum { SPACE_NBYTES = 256 << 10 };

struct buffer {
    uint8_t *bytes;
    size_t avail;
};

struct frame_stream {
    struct wharf_stream base;
    wharf_frame_next_fn *split;
    struct wharf_frame_splitter splitter;

    struct buffer in;
    size_t in_nbytes;    /* filled in */
    size_t taken_nbytes; /* and used */
    uint64_t in_base;    /* of in.bytes in the source */
    uint64_t skip_nbytes;
    uint64_t skip_at; /* where what is passed over begins in the source */
    bool at_last;

    struct buffer out;
    size_t history_nbytes; /* at the front of `out`, up to where it ends */

    struct wharf_frame_header frame;
    struct wharf_xxh32 hash; /* of the frame's output */
    uint64_t frame_at;
    uint64_t frame_out_nbytes;
    uint64_t out_nbytes;
    uint64_t verified;
    bool has_unchecked; /* an earlier frame had no check at all */
    bool is_done;
    struct wharf_outcome outcome;
};

static struct frame_stream *stream_of(struct wharf_stream *base)
{
    return (struct frame_stream *)base;
}

static const struct frame_stream *const_stream_of(const struct wharf_stream *base)
{
    return (const struct frame_stream *)base;
}

static bool reserve(struct buffer *buffer, size_t nbytes)
{
    uint8_t *bytes = nbytes <= buffer->avail ? buffer->bytes : realloc(buffer->bytes, nbytes);

    if (!bytes)
        return false;
    buffer->bytes = bytes;
    buffer->avail = nbytes > buffer->avail ? nbytes : buffer->avail;
    return true;
}

/* ---- ends ------------------------------------------------------------------------------ */

static uint64_t position(const struct frame_stream *stream)
{
    return stream->in_base + stream->taken_nbytes;
}

static void fail(struct frame_stream *stream, uint32_t result, uint32_t reason, uint64_t bit_offset)
{
    wharf_outcome_fail(&stream->outcome, result, reason, bit_offset);
    stream->outcome.in_nbytes = position(stream);
    stream->outcome.out_nbytes = stream->out_nbytes;
    stream->is_done = true;
}

static void fail_for_memory(struct frame_stream *stream)
{
    fail(stream, WHARF_NO_MEMORY, WHARF_REASON_NONE, 8 * position(stream));
}

static void end_well(struct frame_stream *stream)
{
    wharf_outcome_ok(&stream->outcome, position(stream), stream->out_nbytes);
    stream->is_done = true;
}

/* ---- frames ---------------------------------------------------------------------------- */

static void vouch(struct frame_stream *stream)
{
    if (!stream->has_unchecked)
        stream->verified = stream->out_nbytes;
}

static void begin_frame(struct frame_stream *stream, const struct wharf_frame_piece *piece)
{
    stream->frame = piece->frame;
    stream->frame_at = position(stream);
    stream->frame_out_nbytes = 0;
    stream->history_nbytes = 0;
    wharf_xxh32_init(&stream->hash);
}

static void finish_frame(struct frame_stream *stream, const struct wharf_frame_piece *piece)
{
    const struct wharf_frame_header *frame = &stream->frame;
    uint64_t bit = 8 * position(stream);

    stream->history_nbytes = 0;
    if (frame->content_nbytes != WHARF_FRAME_SIZE_UNKNOWN &&
        stream->frame_out_nbytes != frame->content_nbytes)
        fail(stream, WHARF_BAD_DATA, WHARF_REASON_LZ4_FRAME_CONTENT_SIZE, bit);
    else if (frame->has_content_check && wharf_xxh32_value(&stream->hash) != piece->check_value)
        fail(stream, WHARF_BAD_CHECKSUM, WHARF_REASON_LZ4_FRAME_CHECKSUM,
             bit + 8 * (uint64_t)piece->check_offset);
    else if (frame->has_content_check)
        vouch(stream);
    else if (!frame->has_block_checks && stream->frame_out_nbytes)
        stream->has_unchecked = true;
}

/* ---- blocks ---------------------------------------------------------------------------- */

static bool check_is_right(const struct wharf_frame_piece *piece, const uint8_t *data,
                           size_t nbytes)
{
    if (piece->check == WHARF_FRAME_CHECK_CRC32C_OUT)
        return wharf_snappy_frame_mask(wharf_crc32c(data, nbytes)) == piece->check_value;
    return wharf_xxh32(data, nbytes) == piece->check_value;
}

/* How much a block can give. */
static size_t most_out_nbytes(const struct wharf_frame_piece *block)
{
    const struct wharf_codec_ops *ops = wharf_codec_find(block->codec)->ops;

    if (wharf_codec_may_yield(ops, block->data_nbytes, block->out_max_nbytes))
        return block->out_max_nbytes;
    return (size_t)block->data_nbytes * ops->max_ratio + ops->max_constant;
}

/* Room for a block behind what it may reach back into, which is moved to the front. */
static bool make_room(struct frame_stream *stream, size_t nbytes)
{
    size_t all = stream->history_nbytes;
    size_t kept = all < WHARF_LZ4_HISTORY_NBYTES ? all : WHARF_LZ4_HISTORY_NBYTES;

    if (!stream->frame.is_linked)
        kept = 0;
    if (kept)
        memmove(stream->out.bytes, stream->out.bytes + all - kept, kept);
    stream->history_nbytes = kept;
    return reserve(&stream->out, kept + nbytes + 1);
}

/* Decodes a block behind the history.  Its outcome's bit counts from the piece. */
static void decode(const struct frame_stream *stream, const struct wharf_frame_piece *piece,
                   size_t out_avail, struct wharf_outcome *ret_outcome)
{
    const uint8_t *at = stream->in.bytes + stream->taken_nbytes;
    const struct wharf_decode_job job = {
        .codec = piece->codec,
        .flags = WHARF_JOB_EXACT_INPUT,
        .setting.history_nbytes = stream->history_nbytes,
        .in = at + piece->data_offset,
        .in_nbytes = piece->data_nbytes,
        .out = stream->out.bytes + stream->history_nbytes,
        .out_avail = out_avail,
    };

    if (piece->check == WHARF_FRAME_CHECK_XXH32_IN &&
        !check_is_right(piece, job.in, job.in_nbytes)) {
        wharf_outcome_fail(ret_outcome, WHARF_BAD_CHECKSUM, WHARF_REASON_LZ4_FRAME_BLOCK_CHECKSUM,
                           8 * (uint64_t)piece->check_offset);
        return;
    }
    wharf_decode_job_run(&job, 0, ret_outcome);
    if (ret_outcome->result != WHARF_OK) {
        /* The format says how much there may be: it is no matter of room. */
        if (ret_outcome->result == WHARF_OUTPUT_TOO_SMALL)
            ret_outcome->result = WHARF_BAD_DATA;
        ret_outcome->bit_offset += 8 * (uint64_t)piece->data_offset;
    } else if (piece->check == WHARF_FRAME_CHECK_CRC32C_OUT &&
               !check_is_right(piece, job.out, (size_t)ret_outcome->out_nbytes)) {
        wharf_outcome_fail(ret_outcome, WHARF_BAD_CHECKSUM, WHARF_REASON_SNAPPY_FRAME_CHECKSUM,
                           8 * (uint64_t)piece->check_offset);
    }
}

/* Returns how many bytes there are behind the history, 0 after a failure. */
static size_t take_block(struct frame_stream *stream, const struct wharf_frame_piece *piece)
{
    size_t out_avail = most_out_nbytes(piece);
    struct wharf_outcome outcome;

    if (!make_room(stream, out_avail)) {
        fail_for_memory(stream);
        return 0;
    }
    decode(stream, piece, out_avail, &outcome);
    if (outcome.result == WHARF_OK &&
        outcome.out_nbytes > stream->frame.content_nbytes - stream->frame_out_nbytes)
        wharf_outcome_fail(&outcome, WHARF_BAD_DATA, WHARF_REASON_LZ4_FRAME_CONTENT_SIZE, 0);
    if (outcome.result != WHARF_OK) {
        fail(stream, outcome.result, outcome.reason, 8 * position(stream) + outcome.bit_offset);
        return 0;
    }
    if (stream->frame.has_content_check)
        wharf_xxh32_update(&stream->hash, stream->out.bytes + stream->history_nbytes,
                           (size_t)outcome.out_nbytes);
    stream->frame_out_nbytes += outcome.out_nbytes;
    stream->out_nbytes += outcome.out_nbytes;
    if (stream->frame.has_block_checks)
        vouch(stream);
    return (size_t)outcome.out_nbytes;
}

/* ---- input ----------------------------------------------------------------------------- */

/* Makes room for nbytes from the next piece on.  False: there is no memory. */
static bool want(struct frame_stream *stream, uint64_t nbytes)
{
    size_t left = stream->in_nbytes - stream->taken_nbytes;
    size_t wanted = nbytes > SPACE_NBYTES ? (size_t)nbytes : SPACE_NBYTES;

    if (left)
        memmove(stream->in.bytes, stream->in.bytes + stream->taken_nbytes, left);
    stream->in_base += stream->taken_nbytes;
    stream->in_nbytes = left;
    stream->taken_nbytes = 0;
    return reserve(&stream->in, wanted > left ? wanted : left + 1);
}

/* Passes over what is there of it.  False: more input is needed first. */
static bool skip(struct frame_stream *stream)
{
    uint64_t left = stream->in_nbytes - stream->taken_nbytes;
    uint64_t n = stream->skip_nbytes < left ? stream->skip_nbytes : left;

    stream->taken_nbytes += (size_t)n;
    stream->skip_nbytes -= n;
    if (stream->skip_nbytes && stream->at_last)
        fail(stream, WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED, 8 * stream->skip_at);
    return stream->skip_nbytes == 0 || stream->is_done;
}

/* The next piece.  Returns how much output it gave. */
static size_t take_piece(struct frame_stream *stream, const struct wharf_frame_piece *piece)
{
    size_t nbytes = 0;

    switch (piece->kind) {
    case WHARF_FRAME_BEGIN:
        begin_frame(stream, piece);
        break;
    case WHARF_FRAME_FINISH:
        finish_frame(stream, piece);
        break;
    case WHARF_FRAME_BLOCK:
        nbytes = take_block(stream, piece);
        break;
    case WHARF_FRAME_SKIP:
        stream->skip_at = position(stream);
        stream->skip_nbytes = piece->nbytes;
        return 0;
    case WHARF_FRAME_BAD:
        fail(stream, piece->result, piece->reason, 8 * position(stream));
        return 0;
    default:
        end_well(stream);
        return 0;
    }
    stream->taken_nbytes += (size_t)piece->nbytes;
    return nbytes;
}

/* ---- the stream ------------------------------------------------------------------------ */

static enum wharf_stream_event ask(struct frame_stream *stream, uint64_t nbytes)
{
    if (want(stream, nbytes))
        return WHARF_STREAM_INPUT;
    fail_for_memory(stream);
    return WHARF_STREAM_END;
}

static enum wharf_stream_event next(struct wharf_stream *base, const uint8_t **ret_span,
                                    size_t *ret_nbytes)
{
    struct frame_stream *stream = stream_of(base);
    struct wharf_frame_piece piece;

    while (!stream->is_done) {
        if (stream->skip_nbytes && !skip(stream))
            return ask(stream, 1);
        if (stream->is_done)
            break;
        stream->split(&stream->splitter, stream->in.bytes + stream->taken_nbytes,
                      stream->in_nbytes - stream->taken_nbytes, stream->at_last, &piece);
        if (piece.kind == WHARF_FRAME_MORE)
            return ask(stream, piece.nbytes);
        size_t nbytes = take_piece(stream, &piece);
        if (nbytes) {
            *ret_span = stream->out.bytes + stream->history_nbytes;
            *ret_nbytes = nbytes;
            stream->history_nbytes += nbytes;
            return WHARF_STREAM_OUTPUT;
        }
    }
    return WHARF_STREAM_END;
}

static uint8_t *space(struct wharf_stream *base, size_t *ret_nbytes)
{
    struct frame_stream *stream = stream_of(base);

    *ret_nbytes = stream->in.avail - stream->in_nbytes;
    return stream->in.bytes + stream->in_nbytes;
}

static void fill(struct wharf_stream *base, size_t nbytes, bool last)
{
    struct frame_stream *stream = stream_of(base);

    stream->in_nbytes += nbytes;
    stream->at_last = last;
}

static void outcome_of(const struct wharf_stream *base, struct wharf_outcome *ret_outcome)
{
    *ret_outcome = const_stream_of(base)->outcome;
}

static uint64_t verified(const struct wharf_stream *base)
{
    return const_stream_of(base)->verified;
}

static uint64_t member_start(const struct wharf_stream *base)
{
    return const_stream_of(base)->frame_at;
}

static const uint8_t *rest(const struct wharf_stream *base, size_t *ret_nbytes)
{
    const struct frame_stream *stream = const_stream_of(base);

    *ret_nbytes = stream->in_nbytes - stream->taken_nbytes;
    return stream->in.bytes + stream->taken_nbytes;
}

static void free_stream(struct wharf_stream *base)
{
    struct frame_stream *stream = stream_of(base);

    free(stream->in.bytes);
    free(stream->out.bytes);
    free(stream);
}

struct wharf_stream *wharf_frame_stream_new(wharf_frame_next_fn *split)
{
    static const struct wharf_stream_ops ops = {
        .free = free_stream,
        .next = next,
        .space = space,
        .fill = fill,
        .outcome = outcome_of,
        .verified = verified,
        .member_start = member_start,
        .rest = rest,
    };
    struct frame_stream *stream = calloc(1, sizeof(*stream));

    if (!stream)
        return NULL;
    stream->base.ops = &ops;
    stream->split = split;
    if (reserve(&stream->in, SPACE_NBYTES))
        return &stream->base;
    free(stream);
    return NULL;
}
