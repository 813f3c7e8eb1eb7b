/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guesses: a worker finds a block in its part and decodes from there to the next part's first
 * block.
 *
 * Output is wide (inflate_markers.h) until the last 32 KiB contain no marker, or until the guess is
 * proven; then it is bytes.  A guess pauses at its end, at an error, and at its limit of output.
 * When the proven decoder arrives, it either continues from there or drops the guess.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/inflate_parallel/parallel_parts.h"

enum {
    WINDOW = WHARF_DEFLATE_WINDOW_NBYTES,
    /* Searched between two checks whether the guess is still wanted. */
    SEARCH_NBYTES = 64 << 10,
    STRETCH_UNITS = 64 << 10,
    /* If an error follows within so many bits, the start was wrong: search for another one. */
    WRONG_NBITS = 8 * (64 << 10),
    MAX_TRIES = 8,
    /* After so many wrong guesses in a row only every eighth part is tried. */
    MAX_WRONG = 4,
    TRIED_PARTS = 8,
};

struct wharf_part *wharf_parallel_guessable(struct wharf_parallel_inflate *stream)
{
    uint64_t i = stream->proven->source ? stream->proven->source->index + 1 : 1;

    if (stream->n_stored >= WHARF_MANY_STORED)
        return NULL;
    for (i = i < stream->n_freed ? stream->n_freed : i; i < stream->n_begun; i++) {
        struct wharf_part *part = wharf_part_at(stream, i);
        bool has_next =
            part->is_last || (i + 1 < stream->n_begun && wharf_part_at(stream, i + 1)->is_complete);

        /* The next part must be there: a guess ends at the first block of that one, and its last
         * unit may reach into it. */
        if (part->state != WHARF_PART_READ || !part->is_complete || !has_next)
            continue;
        if (part->nbytes >= stream->min_part_nbytes / 8 &&
            (stream->n_wrong < MAX_WRONG || i % TRIED_PARTS == 0))
            return part;
        part->state = WHARF_PART_OVER;
    }
    return NULL;
}

/* ---- searching, without the lock but where said ------------------------------------------- */

/* A search takes milliseconds, in which the proven decoder may have come by. */
static bool still_counts(struct wharf_parallel_inflate *stream, const struct wharf_part *part)
{
    bool counts;

    pthread_mutex_lock(&stream->lock);
    counts = part->state != WHARF_PART_OVER && !stream->is_stopped;
    pthread_mutex_unlock(&stream->lock);
    return counts;
}

static bool find_start(struct wharf_parallel_inflate *stream, struct wharf_part *part,
                       uint64_t from_bit, struct wharf_block_start *ret_start)
{
    const size_t in_nbytes = WHARF_PART_HEAD_NBYTES + part->nbytes;
    const uint64_t end = 8 * (uint64_t)in_nbytes;

    for (uint64_t at = from_bit; at < end; at += 8 * SEARCH_NBYTES) {
        uint64_t to = at + 8 * SEARCH_NBYTES < end ? at + 8 * SEARCH_NBYTES : end;

        if (!still_counts(stream, part))
            return false;
        if (wharf_block_find(&part->decoder->inflate, part->in, in_nbytes, at, to, ret_start))
            return true;
    }
    return false;
}

/* Publishes where the guess begins, so that the proven decoder can meet it.  A stored block's first
 * bit is one of several (block_finder.h), and the decoder may come to any of them. */
static bool tell_start(struct wharf_parallel_inflate *stream, struct wharf_part *part,
                       const struct wharf_block_start *start)
{
    bool counts;

    pthread_mutex_lock(&stream->lock);
    counts = part->state != WHARF_PART_OVER;
    part->has_start = true;
    part->is_stored = part->decoder->inflate.phase == WHARF_INFLATE_STORED;
    part->start.first = start->first + wharf_part_base_bit(part);
    part->start.last = start->last + wharf_part_base_bit(part);
    pthread_mutex_unlock(&stream->lock);
    return counts;
}

static void begin_decoder(struct wharf_part *part)
{
    struct wharf_decoder *decoder = part->decoder;

    decoder->source = part;
    decoder->chunk = NULL;
    decoder->inflate.in_more = !part->is_last;
    decoder->inflate.is_wide = true;
    decoder->inflate.out_begin = (uint8_t *)part->wide;
    decoder->inflate.out_next = decoder->inflate.out_end = (uint8_t *)(part->wide + WINDOW);
}

/* ---- decoding ----------------------------------------------------------------------------- */

/* Once a whole window has no marker, no later unit can have one: all are literals, or copies from
 * within a window before them.  Bytes take half the memory, and the faster loop. */
static bool may_end_wide(const struct wharf_part *part)
{
    return !wharf_markers_any(part->wide + wharf_part_n_wide(part), WINDOW);
}

/* With the lock held: appends a full chunk to those of the guess. */
static void keep_chunk(struct wharf_parallel_inflate *stream, struct wharf_part *part)
{
    struct wharf_decoder *decoder = part->decoder;
    struct wharf_chunk *chunk = decoder->chunk;

    (void)stream;
    chunk->nbytes = (size_t)(decoder->inflate.out_next - chunk->out);
    chunk->is_ready = true;
    part->n_units += chunk->nbytes;
    if (part->last_chunk)
        part->last_chunk->next = chunk;
    else
        part->first_chunk = chunk;
    part->last_chunk = chunk;
}

/* Makes room for the next stretch.  False: the guess must pause. */
static bool make_room(struct wharf_parallel_inflate *stream, struct wharf_part *part)
{
    struct wharf_decoder *decoder = part->decoder;
    struct wharf_inflate *inflate = &decoder->inflate;
    struct wharf_chunk *chunk;
    bool ends_wide = inflate->is_wide && may_end_wide(part);

    if (inflate->is_wide && !ends_wide) {
        size_t left = stream->max_units - wharf_part_n_wide(part);

        if (left > STRETCH_UNITS)
            left = STRETCH_UNITS;
        inflate->out_end = inflate->out_next + left * sizeof(uint16_t);
        /* With less room the next match may not fit, and the stretch would make no progress. */
        return left >= WHARF_DEFLATE_MAX_MATCH;
    }
    if (!ends_wide)
        wharf_decoder_end_run(stream, decoder);
    /* If it was proven meanwhile, the proven decoder goes on with the chunk as it is. */
    pthread_mutex_lock(&stream->lock);
    if (part->state == WHARF_PART_GUESS && !ends_wide) {
        keep_chunk(stream, part);
        decoder->chunk = NULL;
    }
    chunk = part->state == WHARF_PART_GUESS && part->n_units < stream->max_units
                ? wharf_parallel_new_chunk(stream)
                : NULL;
    pthread_mutex_unlock(&stream->lock);
    if (!chunk) {
        if (!ends_wide && !decoder->chunk)
            wharf_decoder_leave_chunk(decoder);
        return false;
    }
    if (ends_wide) {
        wharf_part_end_wide(part, chunk);
        part->n_units = part->n_wide;
    } else {
        wharf_decoder_begin_chunk(decoder, chunk);
    }
    return true;
}

/* Moves on to the next part's source.  A guess never goes further than that part. */
static bool enter_next(struct wharf_parallel_inflate *stream, struct wharf_part *part)
{
    if (part->decoder->source != part || part->is_last)
        return false;
    /* Its source is complete: wharf_parallel_guessable checked it. */
    wharf_decoder_enter(part->decoder, wharf_part_at(stream, part->index + 1));
    return true;
}

/* Decodes one stretch.  False: the guess must pause.  Sets *ret_wrong if the start was wrong. */
static bool run_stretch(struct wharf_parallel_inflate *stream, struct wharf_part *part,
                        bool *ret_wrong)
{
    struct wharf_decoder *decoder = part->decoder;
    const uint64_t end_bit = 8 * (part->offset + part->nbytes);
    uint32_t reason =
        wharf_inflate_run_until(&decoder->inflate, end_bit - wharf_part_base_bit(decoder->source));

    /* An error is not reported: if the guess is right, the proven decoder goes on from here and
     * finds it again, with the stream's checksum and position. */
    switch (reason) {
    case WHARF_REASON_NONE:
        return false;
    case WHARF_REASON_OUTPUT_FULL:
        return make_room(stream, part);
    case WHARF_REASON_INPUT_TRUNCATED:
        return enter_next(stream, part);
    default:
        *ret_wrong = wharf_decoder_bit(decoder) - part->start.last < WRONG_NBITS;
        return false;
    }
}

/* Decodes until the guess pauses, is dropped or is proven. */
static void decode(struct wharf_parallel_inflate *stream, struct wharf_part *part, bool *ret_wrong)
{
    enum wharf_part_state state;
    bool goes_on = make_room(stream, part);

    while (goes_on) {
        goes_on = run_stretch(stream, part, ret_wrong);
        pthread_mutex_lock(&stream->lock);
        state = stream->is_stopped ? WHARF_PART_OVER : part->state;
        pthread_mutex_unlock(&stream->lock);
        goes_on = goes_on && state == WHARF_PART_GUESS;
    }
}

/* With the lock held: whether to search for another start after a wrong one. */
static bool tries_again(struct wharf_parallel_inflate *stream, struct wharf_part *part,
                        bool is_wrong)
{
    if (!is_wrong || part->state != WHARF_PART_GUESS || stream->is_stopped)
        return false;
    part->has_start = false;
    return true;
}

static void search_and_decode(struct wharf_parallel_inflate *stream, struct wharf_part *part)
{
    uint64_t from_bit = 8 * WHARF_PART_HEAD_NBYTES;
    struct wharf_block_start start;

    for (unsigned i = 0; i < MAX_TRIES; i++) {
        bool is_wrong = false;
        bool again;

        if (!find_start(stream, part, from_bit, &start) || !tell_start(stream, part, &start))
            return;
        begin_decoder(part);
        decode(stream, part, &is_wrong);
        /* A guess that came as far as bytes has decoded a whole window: its start was right. */
        if (i + 1 == MAX_TRIES || !part->decoder->inflate.is_wide)
            return;
        pthread_mutex_lock(&stream->lock);
        again = tries_again(stream, part, is_wrong);
        pthread_mutex_unlock(&stream->lock);
        if (!again)
            return;
        from_bit = start.last + 1;
    }
}

/* ---- with the lock ------------------------------------------------------------------------ */

static void take_wide(struct wharf_parallel_inflate *stream, struct wharf_part *part)
{
    if (stream->n_free_wides) {
        part->wide = stream->free_wides[--stream->n_free_wides];
        return;
    }
    part->wide = malloc(sizeof(uint16_t) * (WINDOW + stream->max_units));
    if (part->wide)
        wharf_markers_init(part->wide);
}

void wharf_parallel_guess(struct wharf_parallel_inflate *stream, struct wharf_part *part)
{
    part->state = WHARF_PART_GUESS;
    part->has_thread = true;
    part->has_start = false;
    part->n_wide = part->n_units = 0;
    take_wide(stream, part);
    if (part->wide) {
        pthread_mutex_unlock(&stream->lock);
        search_and_decode(stream, part);
        pthread_mutex_lock(&stream->lock);
    }
    part->has_thread = false;
    if (part->state == WHARF_PART_PROVEN) {
        wharf_parallel_take_over(stream, part);
        wharf_parallel_prove(stream);
        return;
    }
    if (part->state == WHARF_PART_OVER)
        wharf_parallel_free_output(stream, part);
    wharf_parallel_free_parts(stream);
}
