/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders, chunks and parts: what all threads do with them. */
#include "encoders/inflate_parallel/parallel_parts.h"

#include <stdlib.h>
#include <string.h>

#include "encoders/checksum.h"

/* ---- decoders ----------------------------------------------------------------------------- */

uint32_t wharf_parallel_checksum(const struct wharf_parallel_inflate *stream, uint32_t checksum,
                                 const uint8_t *bytes, size_t nbytes)
{
    if (!bytes)
        return stream->format == WHARF_INFLATE_ZLIB ? WHARF_ADLER32_INIT : WHARF_CRC32_INIT;
    switch (stream->format) {
    case WHARF_INFLATE_GZIP:
        return wharf_crc32(checksum, bytes, nbytes);
    case WHARF_INFLATE_ZLIB:
        return wharf_adler32(checksum, bytes, nbytes);
    default:
        return checksum;
    }
}

void wharf_decoder_enter(struct wharf_decoder *decoder, struct wharf_part *part)
{
    struct wharf_inflate *inflate = &decoder->inflate;

    inflate->bit_pos = decoder->source ? wharf_decoder_bit(decoder) - wharf_part_base_bit(part)
                                       : 8 * (uint64_t)WHARF_PART_HEAD_NBYTES;
    inflate->in = part->in;
    inflate->in_nbytes = WHARF_PART_HEAD_NBYTES + part->nbytes;
    inflate->in_more = !part->is_last;
    decoder->source = part;
}

/* Takes the window along: matches reach back across chunks, which are not in one piece. */
void wharf_decoder_begin_chunk(struct wharf_decoder *decoder, struct wharf_chunk *chunk)
{
    struct wharf_inflate *inflate = &decoder->inflate;
    size_t kept = (size_t)(inflate->out_next - inflate->out_begin);
    uint8_t *out = chunk->bytes + WHARF_DEFLATE_WINDOW_NBYTES;

    if (kept > WHARF_DEFLATE_WINDOW_NBYTES)
        kept = WHARF_DEFLATE_WINDOW_NBYTES;
    if (kept)
        memcpy(out - kept, inflate->out_next - kept, kept);
    inflate->out_begin = out - kept;
    inflate->out_next = decoder->unchecked = out;
    inflate->out_end = out + WHARF_CHUNK_NBYTES;
    decoder->chunk = chunk;
}

/* Leaves a chunk to the consumer.  The window goes to the decoder's own memory, since the chunk may
 * be read, freed and written again while the decoder waits. */
void wharf_decoder_leave_chunk(struct wharf_decoder *decoder)
{
    struct wharf_inflate *inflate = &decoder->inflate;
    size_t kept = (size_t)(inflate->out_next - inflate->out_begin);

    if (kept > WHARF_DEFLATE_WINDOW_NBYTES)
        kept = WHARF_DEFLATE_WINDOW_NBYTES;
    memcpy(decoder->window, inflate->out_next - kept, kept);
    inflate->out_begin = decoder->window;
    inflate->out_next = inflate->out_end = decoder->unchecked = decoder->window + kept;
    decoder->chunk = NULL;
}

struct wharf_run *wharf_decoder_end_run(const struct wharf_parallel_inflate *stream,
                                        struct wharf_decoder *decoder)
{
    struct wharf_chunk *chunk = decoder->chunk;
    struct wharf_run *run = &chunk->runs[chunk->n_runs++];

    run->end = WHARF_RUN_OPEN;
    run->nbytes = (uint32_t)(decoder->inflate.out_next - decoder->unchecked);
    run->checksum = wharf_parallel_checksum(stream, wharf_parallel_checksum(stream, 0, NULL, 0),
                                            decoder->unchecked, run->nbytes);
    run->trailer_nbytes = 0;
    decoder->unchecked = decoder->inflate.out_next;
    return run;
}

/* ---- chunks ------------------------------------------------------------------------------- */

struct wharf_chunk *wharf_parallel_new_chunk(struct wharf_parallel_inflate *stream)
{
    struct wharf_chunk *chunk = stream->free_chunks;

    if (chunk) {
        stream->free_chunks = chunk->next;
    } else {
        chunk = malloc(sizeof(*chunk));
        if (!chunk)
            return NULL;
        chunk->bytes = malloc(WHARF_DEFLATE_WINDOW_NBYTES + WHARF_CHUNK_NBYTES);
        if (!chunk->bytes) {
            free(chunk);
            return NULL;
        }
    }
    chunk->next = chunk->next_task = NULL;
    chunk->part = NULL;
    chunk->is_ready = chunk->is_counted = chunk->has_point = false;
    chunk->out = chunk->bytes + WHARF_DEFLATE_WINDOW_NBYTES;
    chunk->nbytes = 0;
    chunk->n_runs = 0;
    return chunk;
}

void wharf_parallel_free_chunk(struct wharf_parallel_inflate *stream, struct wharf_chunk *chunk)
{
    chunk->next = stream->free_chunks;
    stream->free_chunks = chunk;
}

void wharf_parallel_free_wide(struct wharf_parallel_inflate *stream, struct wharf_part *part)
{
    if (part->wide)
        stream->free_wides[stream->n_free_wides++] = part->wide;
    part->wide = NULL;
}

void wharf_parallel_queue(struct wharf_parallel_inflate *stream, struct wharf_chunk *chunk)
{
    chunk->next = NULL;
    if (stream->last_chunk)
        stream->last_chunk->next = chunk;
    else
        stream->first_chunk = chunk;
    stream->last_chunk = chunk;
    if (chunk->is_ready) {
        pthread_cond_signal(&stream->has_output);
        return;
    }
    chunk->next_task = NULL;
    if (stream->last_task)
        stream->last_task->next_task = chunk;
    else
        stream->first_task = chunk;
    stream->last_task = chunk;
    pthread_cond_broadcast(&stream->has_work);
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Frees parts in order, up to the first that somebody still needs: the proven decoder, which is in
 * it, a thread that guesses, or the consumer, who has its wide output. */
void wharf_parallel_free_parts(struct wharf_parallel_inflate *stream)
{
    uint64_t n_freed = stream->n_freed;

    while (stream->n_freed < stream->n_begun && stream->proven->source &&
           stream->n_freed < stream->proven->source->index) {
        const struct wharf_part *part = wharf_part_at(stream, stream->n_freed);

        if (part->state != WHARF_PART_OVER || part->has_thread || part->is_queued)
            break;
        stream->n_freed++;
    }
    if (stream->n_freed != n_freed)
        pthread_cond_broadcast(&stream->has_work);
}
