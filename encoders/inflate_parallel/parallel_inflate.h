/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel_inflate.h: decodes one Deflate, zlib or gzip stream by several threads.
 *
 * The source is cut into parts of 128 to 256 KiB.  One decoder is *proven*: it started at the
 * stream's first bit and knows its window.  The others guess: each finds a block in its own part
 * and decodes from there, with markers for the unknown window (inflate_markers.h).
 *
 * When the proven decoder, between two blocks, reaches exactly the bit where a guess began, the
 * guess is right.  Its decoder becomes the proven one, even while it is still working, and any free
 * thread replaces its markers.  If the proven decoder passes that bit, the guess is dropped and the
 * proven decoder continues.
 *
 * Invariant: only output that a proven decoder reached, block by block, is delivered.  A wrong
 * guess costs time and nothing else, so the outcome equals that of inflate_stream.h for every
 * input.
 *
 * Threads: `n_workers` threads call wharf_parallel_inflate_work, one other thread calls _next.
 * Any thread may call _stop.  Call all other functions before the threads start or after they have
 * returned.
 *
 * Memory: WHARF_PARALLEL_INFLATE_NBYTES at most.
 */
#ifndef WHARF_ENCODERS_INFLATE_PARALLEL_PARALLEL_INFLATE_H
#define WHARF_ENCODERS_INFLATE_PARALLEL_PARALLEL_INFLATE_H

#include "encoders/deflate/inflate_stream.h"
#include "encoders/inflate_parallel/parallel_source.h"

struct wharf_parallel_inflate;

/* Shorter sources do not gain from several threads. */
enum { WHARF_PARALLEL_INFLATE_LEAST_NBYTES = 384 << 10 };

/* For each part in memory: its source, and a guess's output as 16-bit units and as bytes.  In
 * addition the chunks that wait for the consumer. */
#define WHARF_PARALLEL_INFLATE_NBYTES(n_workers) (((n_workers) + 3) * (13ull << 20) + (4ull << 20))

/* Creates a decoder for one stream.  Returns 0 or -ENOMEM. */
int wharf_parallel_inflate_new(enum wharf_inflate_format format, unsigned n_workers,
                               const struct wharf_parallel_source *source,
                               struct wharf_parallel_inflate **ret_stream);

/* Takes NULL.  All threads must have returned. */
void wharf_parallel_inflate_free(struct wharf_parallel_inflate *stream);

/* Works on the stream until it ends or is stopped. */
void wharf_parallel_inflate_work(struct wharf_parallel_inflate *stream);

/*
 * Waits for the next output in stream order.  Returns 1 with a span, which is valid until the next
 * call; 0 at the end, at an error in the data, or after _stop; or a negative errno: the source's
 * own, or -ENOMEM.
 */
int wharf_parallel_inflate_next(struct wharf_parallel_inflate *stream, const uint8_t **ret_span,
                                size_t *ret_nbytes);

/*
 * Makes spans begin at blocks, about 48 KiB of output apart where blocks allow it.  A later decode
 * can start at such a point.  Call before any thread works.
 */
void wharf_parallel_inflate_want_points(struct wharf_parallel_inflate *stream);

/* Whether the last span of _next begins with a block, and that block's position. */
bool wharf_parallel_inflate_point(const struct wharf_parallel_inflate *stream,
                                  struct wharf_parallel_point *ret_point);

/* Makes all threads return.  A thread inside the source's read returns when that read does. */
void wharf_parallel_inflate_stop(struct wharf_parallel_inflate *stream);

/* The outcome that inflate_stream.h defines. */
void wharf_parallel_inflate_outcome(const struct wharf_parallel_inflate *stream,
                                    struct wharf_outcome *ret_outcome);
uint64_t wharf_parallel_inflate_verified(const struct wharf_parallel_inflate *stream);
uint64_t wharf_parallel_inflate_member_start(const struct wharf_parallel_inflate *stream);

/* How far the source has been read, for progress. */
uint64_t wharf_parallel_inflate_n_read(struct wharf_parallel_inflate *stream);

/* The bytes that were read from the source behind the end of a good stream: their number, and a
 * copy of them. */
size_t wharf_parallel_inflate_rest_nbytes(const struct wharf_parallel_inflate *stream);
void wharf_parallel_inflate_copy_rest(const struct wharf_parallel_inflate *stream, uint8_t *rest);

/* For tests: streams created later use parts of part_nbytes, 1 to the largest part's size, and
 * queue up to max_queued chunks.  0 restores the default of each. */
void wharf_parallel_inflate_force(size_t part_nbytes, unsigned max_queued);

/* For tests. */
struct wharf_parallel_inflate_counts
wharf_parallel_inflate_counts(const struct wharf_parallel_inflate *stream);

#endif
