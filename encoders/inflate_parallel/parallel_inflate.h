/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel_inflate.h: decodes one Deflate, zlib or gzip stream by several threads.
 *
 * The source is cut into parts of 128 to 256 KiB.  One decoder is *proven*: it began at the
 * stream's beginning and knows its window.  Others guess: each looks for a block in its own part
 * and decodes from there with markers for the window that it does not know (inflate_markers.h).
 * When the proven decoder comes to the very bit where a guess began, between two blocks, the guess
 * is right: its decoder becomes the proven one, even in the middle of its work, and its markers are
 * replaced by whichever thread is free.  Where the bits differ the guess is dropped, and the
 * proven decoder just goes on.  So nothing is ever decoded from a place that is not proven but on
 * trial, and the outcome is that of inflate_stream.h on every input.
 *
 * Threads: `n_workers` threads call wharf_parallel_inflate_work, one other thread calls _next.
 * _stop may be called from anywhere.  All else is for before and after.
 *
 * Memory: WHARF_PARALLEL_INFLATE_NBYTES at most.
 */
#ifndef WHARF_ENCODERS_INFLATE_PARALLEL_PARALLEL_INFLATE_H
#define WHARF_ENCODERS_INFLATE_PARALLEL_PARALLEL_INFLATE_H

#include "encoders/deflate/inflate_stream.h"
#include "encoders/inflate_parallel/parallel_source.h"

struct wharf_parallel_inflate;

/* Shorter sources gain nothing. */
enum { WHARF_PARALLEL_INFLATE_LEAST_NBYTES = 384 << 10 };

/* For each part that is at hand its source and what a guess puts out, as units of 16 bits and as
 * bytes; and the chunks that wait for the consumer. */
#define WHARF_PARALLEL_INFLATE_NBYTES(n_workers) (((n_workers) + 3) * (13ull << 20) + (4ull << 20))

/* A stream at its beginning.  0 or -ENOMEM. */
int wharf_parallel_inflate_new(enum wharf_inflate_format format, unsigned n_workers,
                               const struct wharf_parallel_source *source,
                               struct wharf_parallel_inflate **ret_stream);

/* Takes NULL.  All threads have returned. */
void wharf_parallel_inflate_free(struct wharf_parallel_inflate *stream);

/* Works on the stream until it ends or is stopped. */
void wharf_parallel_inflate_work(struct wharf_parallel_inflate *stream);

/*
 * Waits for output, in order.  Returns 1 with a span, valid until the next call; 0 at the end, good
 * or bad, or when it was stopped; or -errno, of the source's or -ENOMEM.
 */
int wharf_parallel_inflate_next(struct wharf_parallel_inflate *stream, const uint8_t **ret_span,
                                size_t *ret_nbytes);

/*
 * Makes spans begin with blocks where they can, some 48 KiB of output apart: such a beginning is a
 * point where a later decode can begin.  Before any thread works.
 */
void wharf_parallel_inflate_want_points(struct wharf_parallel_inflate *stream);

/* Whether the span that _next gave last begins with a block, and where that stands. */
bool wharf_parallel_inflate_point(const struct wharf_parallel_inflate *stream,
                                  struct wharf_parallel_point *ret_point);

/* Makes all threads return; one that reads does so when its read does. */
void wharf_parallel_inflate_stop(struct wharf_parallel_inflate *stream);

/* As of inflate_stream.h. */
void wharf_parallel_inflate_outcome(const struct wharf_parallel_inflate *stream,
                                    struct wharf_outcome *ret_outcome);
uint64_t wharf_parallel_inflate_verified(const struct wharf_parallel_inflate *stream);
uint64_t wharf_parallel_inflate_member_start(const struct wharf_parallel_inflate *stream);

/* How far the source has been read, for progress. */
uint64_t wharf_parallel_inflate_n_read(struct wharf_parallel_inflate *stream);

/* What was read of the source behind the good stream's end: its size, and a copy. */
size_t wharf_parallel_inflate_rest_nbytes(const struct wharf_parallel_inflate *stream);
void wharf_parallel_inflate_copy_rest(const struct wharf_parallel_inflate *stream, uint8_t *rest);

/* For tests: makes all streams from now on cut their sources into parts of so many bytes, from 1 on
 * and at most those of the largest part, and hold so many chunks back.  0 gives both back. */
void wharf_parallel_inflate_force(size_t part_nbytes, unsigned max_queued);

/* For tests. */
struct wharf_parallel_inflate_counts
wharf_parallel_inflate_counts(const struct wharf_parallel_inflate *stream);

#endif
