/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel_parts.h: what the threads of a parallel decode share.  Internal to this folder.
 *
 * One lock guards everything here except the memory of a decoder while a thread runs it, a part's
 * source once it is complete and thus constant, and a chunk's bytes.  The thread that runs the
 * proven decoder has set `proven_busy`; one that searches or decodes a part has set `has_thread`.
 */
#ifndef WHARF_ENCODERS_INFLATE_PARALLEL_PARALLEL_PARTS_H
#define WHARF_ENCODERS_INFLATE_PARALLEL_PARALLEL_PARTS_H

#include <pthread.h>

#include "encoders/deflate/inflate.h"
#include "encoders/deflate/inflate_stream.h"
#include "encoders/gzip/gzip_format.h"
#include "encoders/gzip/gzip_header.h"
#include "encoders/inflate_parallel/block_finder.h"
#include "encoders/inflate_parallel/inflate_markers.h"
#include "encoders/inflate_parallel/parallel_source.h"

enum {
    /* A copy of the previous part's end, in front of each part's own bytes.  A unit, header or
     * trailer that spans two parts is decoded in the second one. */
    WHARF_PART_HEAD_NBYTES = 1 << 10,
    WHARF_PART_MIN_NBYTES = 128 << 10,
    WHARF_PART_MAX_NBYTES = 256 << 10,
    WHARF_CHUNK_NBYTES = 256 << 10,
    WHARF_CHUNK_N_RUNS = 64,
    /* The proven decoder's output between two points, if points are wanted. */
    WHARF_POINT_NBYTES = 48 << 10,
    /* The most chunks of the proven decoder that wait for the consumer. */
    WHARF_CHUNKS_MAX_QUEUED = 12,
    /* The most output of a guess, as a multiple of the largest part. */
    WHARF_GUESS_MAX_RATIO = 16,
    /* After so many consecutive stretches that ended in stored blocks, no part is guessed: copying
     * takes a tenth of the time that the search for the next block takes. */
    WHARF_MANY_STORED = 2,
};

/* What follows a run of output. */
enum wharf_run_end {
    WHARF_RUN_OPEN,    /* more of the same member */
    WHARF_RUN_TRAILER, /* a checksum, that of the member or stream */
    WHARF_RUN_FINISH,  /* the stream's good end */
    WHARF_RUN_FAIL,    /* an error */
};

struct wharf_run {
    enum wharf_run_end end;
    uint32_t nbytes;
    uint32_t checksum; /* of these bytes alone */
    uint64_t bit_pos;  /* in the source, of what stands behind */
    uint64_t member_start;
    uint32_t result; /* FAIL */
    uint32_t reason;
    uint8_t trailer[WHARF_GZIP_TRAILER_NBYTES];
    uint8_t trailer_nbytes;
};

/* Output: the window, then bytes.  The chunk of a guess with markers has no bytes of its own. */
struct wharf_chunk {
    struct wharf_chunk *next;
    struct wharf_chunk *next_task;
    struct wharf_part *part; /* whose markers are to be replaced, or NULL */
    bool is_ready;
    bool is_counted; /* in n_queued */
    bool has_point;  /* it begins with a block, at this bit of the source */
    uint64_t point_bit;
    const uint8_t *out;
    size_t nbytes;
    unsigned n_runs;
    struct wharf_run runs[WHARF_CHUNK_N_RUNS];
    uint8_t *bytes;
};

struct wharf_decoder {
    struct wharf_inflate inflate;
    struct wharf_part *source;                   /* the part that inflate.in is of */
    struct wharf_chunk *chunk;                   /* that it writes, or NULL */
    uint8_t *unchecked;                          /* no run has the output from here on */
    uint8_t window[WHARF_DEFLATE_WINDOW_NBYTES]; /* without a chunk: the last output */
};

enum wharf_part_state {
    WHARF_PART_READ,   /* complete, or on its way */
    WHARF_PART_GUESS,  /* searched or decoded */
    WHARF_PART_PROVEN, /* the guess was right, and its thread is to know it */
    WHARF_PART_OVER,   /* no guess, or a wrong one, or one whose decoder is the proven one */
};

struct wharf_part {
    uint64_t index;
    uint64_t offset; /* in the source */
    size_t nbytes;
    bool is_complete;
    bool is_last; /* the source ends with it */
    int error;    /* its source could not be read, -errno */
    uint8_t *in;  /* head and bytes */

    enum wharf_part_state state;
    bool has_thread;
    bool has_start;
    bool is_stored; /* a stored block stands there */
    struct wharf_block_start start;
    struct wharf_decoder *decoder;

    uint16_t *wide; /* a window of markers, and output; NULL without a guess */
    size_t n_wide;
    struct wharf_chunk wide_chunk;   /* of that output, once it is proven */
    uint64_t met_bit;                /* where the proven decoder met the guess */
    bool is_queued;                  /* until the consumer has had it */
    struct wharf_marker_bytes bytes; /* of its markers, once it is proven */
    struct wharf_chunk *first_chunk; /* bytes behind that */
    struct wharf_chunk *last_chunk;
    size_t n_units; /* of all output */
};

/* What the proven decoder does next. */
enum wharf_proven_step {
    WHARF_PROVEN_HEADER,
    WHARF_PROVEN_DATA,
    WHARF_PROVEN_TRAILER,
    WHARF_PROVEN_NEXT,
    WHARF_PROVEN_END,
};

/* What it waits for. */
enum wharf_proven_want { WHARF_WANTS_NOTHING, WHARF_WANTS_SOURCE, WHARF_WANTS_ROOM };

struct wharf_parallel_inflate {
    enum wharf_inflate_format format;
    struct wharf_parallel_source source;

    pthread_mutex_t lock;
    pthread_cond_t has_work;
    pthread_cond_t has_output;
    bool is_stopped;
    bool is_over; /* the last chunk is in the queue */
    int error;    /* -errno: behind that, the source could not be read, or there was no memory */

    /* Part number i is parts[i % n_slots]; n_freed <= i < n_begun. */
    struct wharf_part *parts;
    unsigned n_slots;
    unsigned n_workers;
    size_t min_part_nbytes;
    size_t max_part_nbytes;
    size_t max_units; /* that a guess may put out */
    unsigned max_queued;
    bool wants_points;
    uint64_t n_freed;
    uint64_t n_begun;
    uint64_t n_read; /* bytes */
    bool is_reading;
    bool at_end;
    unsigned n_wrong;  /* guesses in a row */
    unsigned n_stored; /* stretches in a row that the proven decoder ended in a stored block */
    struct wharf_parallel_inflate_counts counts;

    bool proven_busy;
    enum wharf_proven_want proven_want;
    enum wharf_proven_step step;
    struct wharf_decoder *proven;
    struct wharf_gzip_header gzip_header;
    uint64_t member_start; /* offset in the source */
    uint64_t next_part;    /* the first one whose guess may still be met */

    uint16_t **free_wides; /* the last used first: it is in the caches */
    unsigned n_free_wides;
    struct wharf_chunk *free_chunks;
    struct wharf_chunk *first_chunk; /* the queue */
    struct wharf_chunk *last_chunk;
    unsigned n_queued; /* of the proven decoder's own */
    struct wharf_chunk *first_task;
    struct wharf_chunk *last_task;

    /* The consumer's. */
    struct wharf_chunk *taken;
    bool is_ended;
    uint32_t checksum;
    uint64_t out_nbytes;
    uint64_t out_of_member;
    uint64_t verified;
    uint64_t told_member_start;
    struct wharf_parallel_point point; /* of the last span; bit_offset UINT64_MAX: none */
    struct wharf_outcome outcome;
};

static inline struct wharf_part *wharf_part_at(const struct wharf_parallel_inflate *stream,
                                               uint64_t index)
{
    return &stream->parts[index % stream->n_slots];
}

/* Where a decoder's inflate.bit_pos is 0; modulo 2^64 in front of the first part. */
static inline uint64_t wharf_part_base_bit(const struct wharf_part *part)
{
    return 8 * (part->offset - WHARF_PART_HEAD_NBYTES);
}

static inline uint64_t wharf_decoder_bit(const struct wharf_decoder *decoder)
{
    return wharf_part_base_bit(decoder->source) + decoder->inflate.bit_pos;
}

/* Moves on to a part.  The decoder's position must lie within the part's head or its own bytes. */
void wharf_decoder_enter(struct wharf_decoder *decoder, struct wharf_part *part);

/* Gives the decoder a new chunk, with its last output as the window. */
void wharf_decoder_begin_chunk(struct wharf_decoder *decoder, struct wharf_chunk *chunk);

/* Keeps the window for the next chunk: this chunk now belongs to another owner. */
void wharf_decoder_leave_chunk(struct wharf_decoder *decoder);

/* Makes a run of the output that is in no run yet.  Returns it, with end WHARF_RUN_OPEN. */
struct wharf_run *wharf_decoder_end_run(const struct wharf_parallel_inflate *stream,
                                        struct wharf_decoder *decoder);

/* With the lock held: a chunk with no output, or NULL. */
struct wharf_chunk *wharf_parallel_new_chunk(struct wharf_parallel_inflate *stream);
void wharf_parallel_free_wide(struct wharf_parallel_inflate *stream, struct wharf_part *part);
void wharf_parallel_free_chunk(struct wharf_parallel_inflate *stream, struct wharf_chunk *chunk);
void wharf_parallel_queue(struct wharf_parallel_inflate *stream, struct wharf_chunk *chunk);

/* With the lock held: frees the slots of parts that nothing uses. */
void wharf_parallel_free_parts(struct wharf_parallel_inflate *stream);

/* Called and returning with the lock held: run the proven decoder until it must wait or another
 * thread has it; guess in a part. */
bool wharf_parallel_can_prove(const struct wharf_parallel_inflate *stream);
void wharf_parallel_prove(struct wharf_parallel_inflate *stream);
struct wharf_part *wharf_parallel_guessable(struct wharf_parallel_inflate *stream);
void wharf_parallel_guess(struct wharf_parallel_inflate *stream, struct wharf_part *part);

/* With the lock held: drops a guess. */
void wharf_parallel_drop(struct wharf_parallel_inflate *stream, struct wharf_part *part);

/* With the lock held: makes the decoder of a right guess the proven one.  The window is in
 * part->bytes. */
void wharf_parallel_take_over(struct wharf_parallel_inflate *stream, struct wharf_part *part);

/* Continues the format's checksum over more bytes; without bytes, its initial value. */
uint32_t wharf_parallel_checksum(const struct wharf_parallel_inflate *stream, uint32_t checksum,
                                 const uint8_t *bytes, size_t nbytes);

/* With the lock held: frees what a guess has put out. */
void wharf_parallel_free_output(struct wharf_parallel_inflate *stream, struct wharf_part *part);

/* The number of units of wide output.  And: ends wide output; its last 32 Ki units become the
 * chunk's window. */
size_t wharf_part_n_wide(const struct wharf_part *part);
void wharf_part_end_wide(struct wharf_part *part, struct wharf_chunk *chunk);

/* Replaces a part's markers and ends the run of its chunk. */
void wharf_parallel_replace(const struct wharf_parallel_inflate *stream, struct wharf_part *part);

#endif
