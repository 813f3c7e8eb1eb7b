/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses a worker's next task, in this order: the proven decoder, output, source, a guess.
 *
 * The order is that of what others wait for.  Nothing is delivered but by the proven decoder; the
 * consumer waits for output; guesses need source; and a guess is worth most when all that is done.
 */
#include <stdlib.h>
#include <string.h>

#include "encoders/inflate_parallel/parallel_inflate.h"
#include "encoders/inflate_parallel/parallel_parts.h"

static void run_task(struct wharf_parallel_inflate *stream)
{
    struct wharf_chunk *chunk = stream->first_task;

    stream->first_task = chunk->next_task;
    if (!stream->first_task)
        stream->last_task = NULL;
    pthread_mutex_unlock(&stream->lock);
    wharf_parallel_replace(stream, chunk->part);
    pthread_mutex_lock(&stream->lock);
    chunk->is_ready = true;
    pthread_cond_signal(&stream->has_output);
}

/* ---- source ---------------------------------------------------------------------------------- */

static bool can_read(const struct wharf_parallel_inflate *stream)
{
    return !stream->is_reading && !stream->at_end &&
           stream->n_begun - stream->n_freed < stream->n_slots;
}

/* Parts start small, so that all threads soon have one. */
static size_t part_nbytes(const struct wharf_parallel_inflate *stream)
{
    uint64_t nbytes = stream->n_read / (2 * stream->n_workers);

    if (nbytes < stream->min_part_nbytes)
        return stream->min_part_nbytes;
    return nbytes < stream->max_part_nbytes ? (size_t)nbytes : stream->max_part_nbytes;
}

/* The end of the part before, so that a unit, a header or a trailer that spans the two can be
 * decoded from one buffer. */
static void copy_head(const struct wharf_parallel_inflate *stream, struct wharf_part *part)
{
    const struct wharf_part *before = wharf_part_at(stream, part->index - 1);

    if (part->index == 0)
        memset(part->in, 0, WHARF_PART_HEAD_NBYTES);
    else
        memcpy(part->in, before->in + before->nbytes, WHARF_PART_HEAD_NBYTES);
}

/* Fills the part, without the lock.  Nobody looks at it: it is not complete yet. */
static int fill_part(struct wharf_parallel_inflate *stream, struct wharf_part *part, size_t wanted,
                     bool *ret_at_end)
{
    *ret_at_end = false;
    while (part->nbytes < wanted) {
        int64_t n = stream->source.read(stream->source.context,
                                        part->in + WHARF_PART_HEAD_NBYTES + part->nbytes,
                                        wanted - part->nbytes);

        if (n < 0)
            return (int)n;
        *ret_at_end = n == 0;
        if (n == 0)
            break;
        part->nbytes += (size_t)n;
    }
    return 0;
}

static void read_part(struct wharf_parallel_inflate *stream)
{
    struct wharf_part *part = wharf_part_at(stream, stream->n_begun);
    size_t wanted = part_nbytes(stream);
    bool at_end;
    int error;

    part->index = stream->n_begun;
    part->offset = stream->n_read;
    part->nbytes = 0;
    part->is_complete = part->is_last = part->has_start = false;
    part->state = WHARF_PART_READ;
    copy_head(stream, part);
    stream->is_reading = true;
    stream->n_begun++;
    pthread_mutex_unlock(&stream->lock);
    error = fill_part(stream, part, wanted, &at_end);
    pthread_mutex_lock(&stream->lock);
    stream->is_reading = false;
    stream->n_read += part->nbytes;
    stream->at_end = at_end || error;
    part->is_last = at_end;
    part->error = error;
    part->is_complete = true;
    pthread_cond_broadcast(&stream->has_work);
}

/* ---- all together ------------------------------------------------------------------------- */

void wharf_parallel_inflate_work(struct wharf_parallel_inflate *stream)
{
    struct wharf_part *part;

    pthread_mutex_lock(&stream->lock);
    while (!stream->is_stopped) {
        if (!stream->proven_busy && !stream->is_over && wharf_parallel_can_prove(stream))
            wharf_parallel_prove(stream);
        else if (stream->first_task)
            run_task(stream);
        else if (stream->is_over)
            break;
        else if (can_read(stream))
            read_part(stream);
        else if ((part = wharf_parallel_guessable(stream)))
            wharf_parallel_guess(stream, part);
        else
            pthread_cond_wait(&stream->has_work, &stream->lock);
    }
    pthread_mutex_unlock(&stream->lock);
}
