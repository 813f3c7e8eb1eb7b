/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proven decoder: runs the format's steps (header, blocks, trailer), and meets guesses.
 *
 * It stops between two blocks at the next guess's first bit.  If its position equals that bit, it
 * continues with the guess's decoder, which is proven by this.  If it has passed the bit, it drops
 * the guess.
 *
 * Why this proves it: between two blocks a Deflate decoder's state is its bit position and its
 * window.  The guess had the same bits from the same position, and markers in the place of the
 * window; so with the window in the place of the markers it has what the proven decoder would have
 * written.  How the finder came to that position does not matter.
 *
 * The steps themselves are those of inflate_stream.c, and fail with the same reasons at the same
 * bits.
 */
#include <errno.h>
#include <string.h>

#include "encoders/inflate_parallel/parallel_parts.h"
#include "encoders/zlib/zlib_header.h"

/* What a step says.  For want of input or room nothing is lost: the step is taken again. */
enum verdict { GOES_ON, WANTS_INPUT, WANTS_CHUNK };

/* ---- ends of runs ------------------------------------------------------------------------- */

static struct wharf_run *end_run(struct wharf_parallel_inflate *stream, enum wharf_run_end end)
{
    struct wharf_decoder *decoder = stream->proven;
    struct wharf_run *run = wharf_decoder_end_run(stream, decoder);

    run->end = end;
    run->member_start = stream->member_start;
    run->bit_pos = wharf_decoder_bit(decoder);
    return run;
}

static enum verdict fail(struct wharf_parallel_inflate *stream, uint32_t result, uint32_t reason,
                         uint64_t bit_pos)
{
    struct wharf_run *run = end_run(stream, WHARF_RUN_FAIL);

    run->result = result;
    run->reason = reason;
    run->bit_pos = bit_pos;
    stream->step = WHARF_PROVEN_END;
    return GOES_ON;
}

static enum verdict finish(struct wharf_parallel_inflate *stream)
{
    end_run(stream, WHARF_RUN_FINISH);
    stream->step = WHARF_PROVEN_END;
    return GOES_ON;
}

/* ---- steps, without the lock -------------------------------------------------------------- */

static const uint8_t *in_at(const struct wharf_parallel_inflate *stream, size_t *ret_nbytes)
{
    const struct wharf_inflate *inflate = &stream->proven->inflate;

    *ret_nbytes = inflate->in_nbytes - (size_t)(inflate->bit_pos >> 3);
    return inflate->in + (inflate->bit_pos >> 3);
}

static bool is_last(const struct wharf_parallel_inflate *stream)
{
    return !stream->proven->inflate.in_more;
}

static enum verdict read_header(struct wharf_parallel_inflate *stream)
{
    bool is_zlib = stream->format == WHARF_INFLATE_ZLIB;
    size_t in_nbytes;
    const uint8_t *in = in_at(stream, &in_nbytes);
    size_t taken = is_zlib ? WHARF_ZLIB_HEADER_NBYTES : in_nbytes;
    uint32_t reason = is_zlib ? wharf_zlib_header(in, in_nbytes)
                              : wharf_gzip_header_read(&stream->gzip_header, in, in_nbytes, &taken);

    /* A gzip header may be longer than a part's head, so what was read of it is taken. */
    if (reason == WHARF_REASON_INPUT_TRUNCATED && !is_last(stream)) {
        stream->proven->inflate.bit_pos += is_zlib ? 0 : 8 * (uint64_t)taken;
        return WANTS_INPUT;
    }
    if (reason != WHARF_REASON_NONE)
        return fail(stream, is_zlib ? wharf_zlib_result(reason) : wharf_gzip_result(reason), reason,
                    8 * stream->member_start);
    stream->proven->inflate.bit_pos += 8 * (uint64_t)taken;
    stream->step = WHARF_PROVEN_DATA;
    return GOES_ON;
}

static enum verdict read_data(struct wharf_parallel_inflate *stream, uint64_t stop_bit)
{
    struct wharf_inflate *inflate = &stream->proven->inflate;
    uint32_t reason = wharf_inflate_run_until(inflate, stop_bit);

    if (reason == WHARF_REASON_OUTPUT_FULL)
        return WANTS_CHUNK;
    if (reason == WHARF_REASON_INPUT_TRUNCATED && !is_last(stream))
        return WANTS_INPUT;
    if (reason != WHARF_REASON_NONE)
        return fail(stream, wharf_inflate_result(reason), reason,
                    wharf_decoder_bit(stream->proven));
    if (inflate->phase != WHARF_INFLATE_DONE)
        return GOES_ON;
    if (stream->format == WHARF_INFLATE_RAW)
        return finish(stream);
    stream->step = WHARF_PROVEN_TRAILER;
    return GOES_ON;
}

/* Reads the trailer.  The consumer verifies it, because it computes the checksum. */
static enum verdict read_trailer(struct wharf_parallel_inflate *stream)
{
    bool is_gzip = stream->format == WHARF_INFLATE_GZIP;
    size_t wanted = is_gzip ? WHARF_GZIP_TRAILER_NBYTES : WHARF_ZLIB_TRAILER_NBYTES;
    size_t in_nbytes;
    const uint8_t *in = in_at(stream, &in_nbytes);
    struct wharf_run *run;

    if (in_nbytes < wanted && !is_last(stream))
        return WANTS_INPUT;
    run = end_run(stream, WHARF_RUN_TRAILER);
    run->trailer_nbytes = (uint8_t)(in_nbytes < wanted ? in_nbytes : wanted);
    memcpy(run->trailer, in, run->trailer_nbytes);
    stream->proven->inflate.bit_pos += 8 * (uint64_t)run->trailer_nbytes;
    /* A short trailer ends the stream; the consumer reports the error. */
    if (in_nbytes < wanted)
        stream->step = WHARF_PROVEN_END;
    else if (is_gzip)
        stream->step = WHARF_PROVEN_NEXT;
    else
        return finish(stream);
    return GOES_ON;
}

static enum verdict read_next(struct wharf_parallel_inflate *stream)
{
    size_t in_nbytes;
    const uint8_t *in = in_at(stream, &in_nbytes);

    /* Two bytes say whether a member follows; fewer only at the source's end. */
    if (in_nbytes < 2 && !is_last(stream))
        return WANTS_INPUT;
    if (!wharf_gzip_member_follows(in, in_nbytes))
        return finish(stream);
    wharf_gzip_header_init(&stream->gzip_header);
    wharf_inflate_restart(&stream->proven->inflate);
    stream->member_start = wharf_decoder_bit(stream->proven) / 8;
    stream->step = WHARF_PROVEN_HEADER;
    return GOES_ON;
}

static enum verdict take_step(struct wharf_parallel_inflate *stream, uint64_t stop_bit)
{
    switch (stream->step) {
    case WHARF_PROVEN_HEADER:
        return read_header(stream);
    case WHARF_PROVEN_DATA:
        return read_data(stream, stop_bit);
    case WHARF_PROVEN_TRAILER:
        return read_trailer(stream);
    default:
        return read_next(stream);
    }
}

/* Whether the chunk has room for the runs of one step, at most two. */
static bool has_runs(const struct wharf_decoder *decoder)
{
    return decoder->chunk->n_runs + 2 < WHARF_CHUNK_N_RUNS;
}

/* Runs steps until one needs input or a chunk, or a guess's position is reached. */
static enum verdict run_steps(struct wharf_parallel_inflate *stream, uint64_t stop_bit)
{
    struct wharf_decoder *decoder = stream->proven;
    enum verdict verdict = GOES_ON;

    while (verdict == GOES_ON && stream->step != WHARF_PROVEN_END) {
        if (!has_runs(decoder))
            return WANTS_CHUNK;
        verdict = take_step(stream, stop_bit);
        if (stream->step == WHARF_PROVEN_DATA && decoder->inflate.bit_pos >= stop_bit)
            break;
    }
    return verdict;
}

/* ---- meeting guesses ---------------------------------------------------------------------- */

static bool is_between_blocks(const struct wharf_parallel_inflate *stream)
{
    const struct wharf_inflate *inflate = &stream->proven->inflate;

    return stream->step == WHARF_PROVEN_DATA && inflate->phase == WHARF_INFLATE_HEADER &&
           !inflate->final_block;
}

/* Returns the guess that begins at the decoder's position, or NULL.  Drops those it has passed. */
static struct wharf_part *meet(struct wharf_parallel_inflate *stream)
{
    uint64_t bit_pos = wharf_decoder_bit(stream->proven);

    if (stream->next_part < stream->n_freed)
        stream->next_part = stream->n_freed;
    for (; stream->next_part < stream->n_begun; stream->next_part++) {
        struct wharf_part *part = wharf_part_at(stream, stream->next_part);

        if (part->state == WHARF_PART_OVER)
            continue;
        if (!part->has_start) {
            /* A part without a guess may still get one until the decoder has passed it. */
            if (!part->is_complete || bit_pos < 8 * (part->offset + part->nbytes))
                return NULL;
        } else if (bit_pos < part->start.first) {
            return NULL;
        } else if (bit_pos <= part->start.last) {
            if (!is_between_blocks(stream))
                return NULL;
            return part;
        }
        wharf_parallel_drop(stream, part);
    }
    return NULL;
}

/* Whether a whole window precedes: if not, a marker may stand for a byte that does not exist, and
 * the guess has not failed where the stream does. */
static bool has_window(const struct wharf_parallel_inflate *stream)
{
    const struct wharf_inflate *inflate = &stream->proven->inflate;

    return inflate->out_next - inflate->out_begin >= WHARF_DEFLATE_WINDOW_NBYTES;
}

/* Hands its chunk to the consumer. */
static void queue_chunk(struct wharf_parallel_inflate *stream)
{
    struct wharf_decoder *decoder = stream->proven;
    struct wharf_chunk *chunk = decoder->chunk;

    if (!chunk)
        return;
    if (decoder->unchecked != decoder->inflate.out_next)
        end_run(stream, WHARF_RUN_OPEN);
    chunk->nbytes = (size_t)(decoder->inflate.out_next - chunk->out);
    chunk->is_ready = chunk->is_counted = true;
    stream->n_queued++;
    wharf_decoder_leave_chunk(decoder);
    wharf_parallel_queue(stream, chunk);
}

/* Continues with the guess's decoder.  False: another thread runs it and continues. */
static bool go_over(struct wharf_parallel_inflate *stream, struct wharf_part *part)
{
    /* What the guess's markers stand for. */
    memcpy(part->bytes.window, stream->proven->inflate.out_next - WHARF_DEFLATE_WINDOW_NBYTES,
           sizeof(part->bytes.window));
    part->met_bit = wharf_decoder_bit(stream->proven);
    queue_chunk(stream);
    stream->next_part = part->index + 1;
    stream->counts.n_right++;
    stream->n_wrong = 0;
    if (part->is_stored)
        stream->n_stored = WHARF_MANY_STORED;
    /* Its decoder is in use without the lock: the thread that uses it sees the state at its next
     * look, and goes on as the proven decoder. */
    if (part->has_thread) {
        part->state = WHARF_PART_PROVEN;
        return false;
    }
    wharf_parallel_take_over(stream, part);
    return true;
}

/* ---- with the lock ------------------------------------------------------------------------ */

/* The decoder's bit position from which to stop between blocks: the next guess, or, if points are
 * wanted, the next block. */
static uint64_t stop_bit(const struct wharf_parallel_inflate *stream)
{
    const struct wharf_part *part = wharf_part_at(stream, stream->next_part);

    if (stream->wants_points)
        return stream->proven->inflate.bit_pos + 1;
    if (stream->next_part >= stream->n_begun)
        return UINT64_MAX;
    if (part->has_start && part->state != WHARF_PART_OVER)
        return part->start.first - wharf_part_base_bit(stream->proven->source);
    return UINT64_MAX;
}

/* Ends a chunk of sufficient size at a block, so that the next one begins with a point. */
static void make_point(struct wharf_parallel_inflate *stream)
{
    const struct wharf_decoder *decoder = stream->proven;

    if (decoder->chunk && is_between_blocks(stream) &&
        decoder->inflate.out_next - decoder->chunk->out >= WHARF_POINT_NBYTES)
        queue_chunk(stream);
}

static void tell_error(struct wharf_parallel_inflate *stream, int error)
{
    stream->error = error;
    stream->step = WHARF_PROVEN_END;
}

/* Makes sure of a chunk with room.  False: notes what the decoder waits for, so that any worker can
 * go on with it as soon as that is there. */
static bool ensure_chunk(struct wharf_parallel_inflate *stream)
{
    struct wharf_decoder *decoder = stream->proven;
    struct wharf_chunk *chunk;

    if (decoder->chunk)
        return true;
    stream->proven_want = WHARF_WANTS_ROOM;
    if (!wharf_parallel_can_prove(stream))
        return false;
    chunk = wharf_parallel_new_chunk(stream);
    if (!chunk) {
        tell_error(stream, -ENOMEM);
        return false;
    }
    wharf_decoder_begin_chunk(decoder, chunk);
    chunk->has_point = decoder->source && is_between_blocks(stream);
    if (chunk->has_point)
        chunk->point_bit = wharf_decoder_bit(decoder);
    stream->proven_want = WHARF_WANTS_NOTHING;
    return true;
}

/* Moves on to the next part's source.  False: it has not been read yet. */
static bool enter_next(struct wharf_parallel_inflate *stream)
{
    struct wharf_decoder *decoder = stream->proven;
    struct wharf_part *next;

    if (decoder->source && decoder->source->error) {
        tell_error(stream, decoder->source->error);
        return false;
    }
    stream->proven_want = WHARF_WANTS_SOURCE;
    if (!wharf_parallel_can_prove(stream))
        return false;
    next = wharf_part_at(stream, decoder->source ? decoder->source->index + 1 : 0);
    stream->proven_want = WHARF_WANTS_NOTHING;
    wharf_decoder_enter(decoder, next);
    /* Nobody has begun to guess in it, and it would be too late. */
    if (next->state == WHARF_PART_READ)
        next->state = WHARF_PART_OVER;
    wharf_parallel_free_parts(stream);
    return true;
}

bool wharf_parallel_can_prove(const struct wharf_parallel_inflate *stream)
{
    const struct wharf_part *source = stream->proven->source;
    uint64_t next = source ? source->index + 1 : 0;

    switch (stream->proven_want) {
    case WHARF_WANTS_SOURCE:
        return next < stream->n_begun && wharf_part_at(stream, next)->is_complete;
    case WHARF_WANTS_ROOM:
        return stream->n_queued < stream->max_queued;
    default:
        return true;
    }
}

/* Counts consecutive stretches that ended in a stored block.  When coded ones are back, workers
 * that slept for want of parts to guess are called. */
static void count_stored(struct wharf_parallel_inflate *stream)
{
    enum wharf_inflate_phase phase = stream->proven->inflate.phase;

    if (phase == WHARF_INFLATE_STORED) {
        stream->n_stored++;
    } else if (phase == WHARF_INFLATE_CODED) {
        if (stream->n_stored >= WHARF_MANY_STORED)
            pthread_cond_broadcast(&stream->has_work);
        stream->n_stored = 0;
    }
}

/* Decodes one stretch without the lock.  False: this thread stops running the proven decoder. */
static bool run_stretch(struct wharf_parallel_inflate *stream)
{
    struct wharf_decoder *decoder = stream->proven;
    enum verdict verdict;
    uint64_t stop;

    if (!ensure_chunk(stream))
        return false;
    if (!decoder->source && !enter_next(stream))
        return false;
    stop = stop_bit(stream);
    pthread_mutex_unlock(&stream->lock);
    verdict = run_steps(stream, stop);
    pthread_mutex_lock(&stream->lock);
    count_stored(stream);
    if (verdict == WANTS_CHUNK)
        queue_chunk(stream);
    return verdict != WANTS_INPUT || enter_next(stream);
}

static void end_stream(struct wharf_parallel_inflate *stream)
{
    queue_chunk(stream);
    stream->is_over = true;
    pthread_cond_broadcast(&stream->has_work);
    pthread_cond_broadcast(&stream->has_output);
}

/* Runs the proven decoder until it waits for something, has ended, or belongs to the thread of a
 * guess that it met.  That thread has proven_busy to itself from then on. */
void wharf_parallel_prove(struct wharf_parallel_inflate *stream)
{
    bool goes_on = true;

    stream->proven_busy = true;
    while (goes_on && !stream->is_stopped) {
        struct wharf_part *part = stream->proven->source ? meet(stream) : NULL;

        if (part && has_window(stream)) {
            if (!go_over(stream, part))
                return; /* the thread that has the guess */
            continue;
        }
        if (part)
            wharf_parallel_drop(stream, part);
        if (stream->wants_points)
            make_point(stream);
        goes_on = run_stretch(stream);
        if (stream->step == WHARF_PROVEN_END) {
            end_stream(stream);
            return;
        }
    }
    stream->proven_busy = false;
}
