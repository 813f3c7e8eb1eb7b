/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends guesses: drops wrong ones, and makes the decoders of right ones the proven decoder.
 *
 * Nothing is decoded again and next to nothing is copied: the decoder changes hands, its chunks of
 * bytes go to the consumer as they are, and its wide output becomes a task for any worker.
 */
#include <string.h>

#include "encoders/inflate_parallel/parallel_parts.h"

enum { WINDOW = WHARF_DEFLATE_WINDOW_NBYTES };

/* Wide output ends here; its last 32 Ki units become the window of bytes. */
void wharf_part_end_wide(struct wharf_part *part, struct wharf_chunk *chunk)
{
    struct wharf_decoder *decoder = part->decoder;
    struct wharf_inflate *inflate = &decoder->inflate;
    const uint16_t *end = (const uint16_t *)(const void *)inflate->out_next;

    part->n_wide = (size_t)(end - part->wide) - WINDOW;
    wharf_markers_replace(end - WINDOW, WINDOW, &part->bytes, decoder->window);
    inflate->is_wide = false;
    inflate->out_begin = decoder->window;
    inflate->out_next = inflate->out_end = decoder->window + WINDOW;
    wharf_decoder_begin_chunk(decoder, chunk);
}

size_t wharf_part_n_wide(const struct wharf_part *part)
{
    const uint16_t *end = (const uint16_t *)(const void *)part->decoder->inflate.out_next;

    return (size_t)(end - part->wide) - WINDOW;
}

void wharf_parallel_free_output(struct wharf_parallel_inflate *stream, struct wharf_part *part)
{
    struct wharf_chunk *next;

    wharf_parallel_free_wide(stream, part);
    for (; part->first_chunk; part->first_chunk = next) {
        next = part->first_chunk->next;
        wharf_parallel_free_chunk(stream, part->first_chunk);
    }
    part->last_chunk = NULL;
    if (part->decoder->chunk)
        wharf_parallel_free_chunk(stream, part->decoder->chunk);
    part->decoder->chunk = NULL;
}

/* A thread that is at work on the guess keeps its memory until it looks at the state. */
void wharf_parallel_drop(struct wharf_parallel_inflate *stream, struct wharf_part *part)
{
    if (part->state == WHARF_PART_GUESS) {
        stream->counts.n_dropped++;
        stream->n_wrong++;
        if (!part->has_thread)
            wharf_parallel_free_output(stream, part);
    }
    part->state = WHARF_PART_OVER;
    wharf_parallel_free_parts(stream);
}

void wharf_parallel_take_over(struct wharf_parallel_inflate *stream, struct wharf_part *part)
{
    struct wharf_decoder *decoder = part->decoder;
    struct wharf_chunk *chunk = decoder->inflate.is_wide ? wharf_parallel_new_chunk(stream) : NULL;
    struct wharf_chunk *next;

    part->state = WHARF_PART_OVER;
    if (decoder->inflate.is_wide && !chunk) {
        /* The proven decoder stays what it is: at the guess's beginning. */
        wharf_parallel_free_output(stream, part);
        wharf_parallel_free_parts(stream);
        return;
    }
    if (chunk)
        wharf_part_end_wide(part, chunk);
    part->is_queued = part->n_wide > 0;
    if (part->is_queued) {
        part->wide_chunk = (struct wharf_chunk){.part = part,
                                                .has_point = true,
                                                .point_bit = part->met_bit,
                                                .out = (const uint8_t *)(part->wide + WINDOW),
                                                .nbytes = part->n_wide};
        wharf_parallel_queue(stream, &part->wide_chunk);
    } else {
        wharf_parallel_free_wide(stream, part);
    }
    for (; part->first_chunk; part->first_chunk = next) {
        next = part->first_chunk->next;
        wharf_parallel_queue(stream, part->first_chunk);
    }
    part->last_chunk = NULL;
    /* The part gets the old one for its next guess. */
    part->decoder = stream->proven;
    stream->proven = decoder;
    wharf_parallel_free_parts(stream);
}

void wharf_parallel_replace(const struct wharf_parallel_inflate *stream, struct wharf_part *part)
{
    /* In pieces small enough that the checksum reads them from the first-level cache. */
    enum { PIECE = 16 << 10 };
    const uint16_t *units = part->wide + WINDOW;
    /* In place: a byte is written where half a unit was read, or behind it. */
    uint8_t *out = (uint8_t *)(part->wide + WINDOW);
    struct wharf_run *run = &part->wide_chunk.runs[0];

    run->checksum = wharf_parallel_checksum(stream, 0, NULL, 0);
    for (size_t at = 0; at < part->n_wide; at += PIECE) {
        size_t n = part->n_wide - at < PIECE ? part->n_wide - at : PIECE;

        wharf_markers_replace(units + at, n, &part->bytes, out + at);
        run->checksum = wharf_parallel_checksum(stream, run->checksum, out + at, n);
    }
    run->end = WHARF_RUN_OPEN;
    run->nbytes = (uint32_t)part->n_wide;
    part->wide_chunk.n_runs = 1;
}
