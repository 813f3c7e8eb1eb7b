/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip_span.c: decodes one span of an indexed file (gzip_span.h).
 *
 * The stream decoder starts at the span's point, with its window, and the span ends when it has
 * given the span's output or when it needs bytes past the next point.
 */
#include "encoders/gzip_index/gzip_span.h"

#include <errno.h>

#include "encoders/checksum.h"
#include "encoders/outcome.h"

struct span {
    const struct wharf_gzip_index *index;
    const struct wharf_gzip_point *point;
    const struct wharf_gzip_span_io *io;
    struct wharf_stream *stream;
    uint64_t start;  /* where the stream begins in the file */
    uint64_t offset; /* how far the file was read */
    uint64_t end;    /* the span's bytes end here */
    uint64_t left;   /* output still to come */
    uint64_t out_nbytes;
    uint32_t checksum;
};

/* NULL without memory, or if the window does not decode; *ret_is_bad tells them apart. */
static struct wharf_stream *open_stream(const struct wharf_gzip_index *index,
                                        const struct wharf_gzip_point *point, bool *ret_is_bad)
{
    uint8_t window[WHARF_DEFLATE_WINDOW_NBYTES];
    const struct wharf_inflate_place place = {
        .bit = point->bit_offset % 8,
        .window = window,
        .window_nbytes = point->window_nbytes,
    };

    *ret_is_bad = false;
    if (point->is_member)
        return wharf_inflate_stream_new(index->format);
    if (wharf_gzip_index_window(index, point, window))
        return wharf_inflate_stream_resume(index->format, &place);
    *ret_is_bad = true;
    return NULL;
}

static void fail(const struct span *span, uint32_t result, uint32_t reason, uint64_t bit_offset,
                 struct wharf_outcome *outcome)
{
    wharf_outcome_fail(outcome, result, reason, bit_offset);
    outcome->in_nbytes = span->offset - span->start;
    outcome->out_nbytes = span->out_nbytes;
}

/* Returns 1 after reading, 0 if the span has no more bytes, or -errno. */
static int feed(struct span *span)
{
    size_t avail;
    uint8_t *space = wharf_stream_space(span->stream, &avail);
    int64_t n;

    if (avail > span->end - span->offset)
        avail = (size_t)(span->end - span->offset);
    n = avail ? span->io->read(span->io->context, span->offset, space, avail) : 0;
    if (n <= 0)
        return (int)n;
    span->offset += (uint64_t)n;
    wharf_stream_fill(span->stream, (size_t)n, false);
    return 1;
}

static int take(struct span *span, const uint8_t *bytes, size_t nbytes)
{
    if (nbytes > span->left)
        nbytes = (size_t)span->left;
    if (span->index->is_own)
        span->checksum = wharf_crc32(span->checksum, bytes, nbytes);
    span->out_nbytes += nbytes;
    if (span->left != WHARF_GZIP_INDEX_UNKNOWN)
        span->left -= nbytes;
    return span->io->put(span->io->context, bytes, nbytes);
}

/* The stream has ended, before the span's output was complete. */
static void end_early(const struct span *span, struct wharf_outcome *outcome)
{
    wharf_stream_outcome(span->stream, outcome);
    if (outcome->result != WHARF_OK)
        fail(span, outcome->result, outcome->reason, 8 * span->start + outcome->bit_offset,
             outcome);
    else if (span->left != WHARF_GZIP_INDEX_UNKNOWN)
        fail(span, WHARF_BAD_DATA, WHARF_REASON_OUTPUT_MISSING,
             8 * (span->start + outcome->in_nbytes), outcome);
}

static void end_full(const struct span *span, struct wharf_outcome *outcome)
{
    wharf_outcome_ok(outcome, span->offset - span->start, span->out_nbytes);
    if (span->index->is_own && span->checksum != span->point->checksum)
        fail(span, WHARF_BAD_CHECKSUM, WHARF_REASON_GZIP_CHECKSUM, span->point->bit_offset,
             outcome);
}

static int run(struct span *span, struct wharf_outcome *outcome)
{
    const uint8_t *bytes;
    size_t nbytes;
    int r = 0;

    while (span->left && r >= 0) {
        switch (wharf_stream_next(span->stream, &bytes, &nbytes)) {
        case WHARF_STREAM_INPUT:
            r = feed(span);
            if (r == 0 && span->offset < span->end)
                span->end = span->offset; /* the file is shorter than the index says */
            if (r == 0 && span->left != WHARF_GZIP_INDEX_UNKNOWN) {
                fail(span, WHARF_BAD_DATA, WHARF_REASON_OUTPUT_MISSING, 8 * span->offset, outcome);
                return 0;
            }
            if (r == 0)
                wharf_stream_fill(span->stream, 0, true);
            break;
        case WHARF_STREAM_OUTPUT:
            r = take(span, bytes, nbytes);
            if (r != 0)
                return r;
            break;
        case WHARF_STREAM_END:
            end_early(span, outcome);
            return 0;
        }
    }
    if (r >= 0)
        end_full(span, outcome);
    return r < 0 ? r : 0;
}

int wharf_gzip_span_decode(const struct wharf_gzip_index *index, uint32_t number,
                           const struct wharf_gzip_span_io *io, struct wharf_outcome *ret_outcome)
{
    const struct wharf_gzip_point *point = &index->points[number];
    struct span span = {
        .index = index,
        .point = point,
        .io = io,
        .start = point->bit_offset / 8,
        .offset = point->bit_offset / 8,
        .end = number + 1 < index->n_points ? (point[1].bit_offset + 7) / 8 : index->in_nbytes,
        .left = wharf_gzip_index_span_nbytes(index, number),
        .checksum = WHARF_CRC32_INIT,
    };
    bool is_bad;
    int r;

    span.stream = open_stream(index, point, &is_bad);
    if (!span.stream && !is_bad)
        return -ENOMEM;
    if (is_bad) {
        fail(&span, WHARF_BAD_CHECKSUM, WHARF_REASON_GZIP_CHECKSUM, point->bit_offset, ret_outcome);
        return 0;
    }
    r = run(&span, ret_outcome);
    wharf_stream_free(span.stream);
    return r;
}
