/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_stream.c: streams of any length through two buffers.
 *
 * Input moves to its buffer's front when the decoder needs more.  Output is decoded behind the last
 * 32 KiB, to which matches refer; when the buffer is full, these move to its front.  A state says
 * what comes next: a header, Deflate data or a trailer.  A step takes a header or trailer as a
 * whole, or waits for more input.
 */
#include "encoders/deflate/inflate_stream.h"

#include <stdlib.h>
#include <string.h>

#include "encoders/checksum.h"
#include "encoders/deflate/deflate_format.h"
#include "encoders/deflate/inflate.h"
#include "encoders/gzip/gzip_format.h"
#include "encoders/gzip/gzip_header.h"
#include "encoders/outcome.h"
#include "encoders/zlib/zlib_header.h"

/* Room for input.  What is left in it when more is asked for is less than a block header. */
#define IN_NBYTES (128 * 1024)
/* Room for output behind the window: a span is as long as that, but for the one that meets the
 * end of the buffer.  Window and span together stay in the second-level cache. */
#define SPAN_NBYTES (256 * 1024)
#define OUT_NBYTES (WHARF_DEFLATE_WINDOW_NBYTES + SPAN_NBYTES)
/* The window is moved to the front when less than this is free behind it. */
#define MIN_FREE_NBYTES (32 * 1024)

enum step {
    STEP_PLACE,   /* of a stream that does not begin at its beginning: its first bits */
    STEP_HEADER,  /* of a zlib stream or gzip member */
    STEP_DATA,    /* Deflate */
    STEP_TRAILER, /* its checksum */
    STEP_NEXT,    /* behind a gzip member: another one, or not */
    STEP_END,     /* the outcome stands */
};

struct inflate_stream {
    struct wharf_stream base;
    enum wharf_inflate_format format;
    enum step step;

    /* inflate.in is `in`, and inflate.bit_pos, the position in it, is moved by all steps. */
    struct wharf_inflate inflate;
    struct wharf_gzip_header gzip_header;
    uint64_t in_base; /* bytes of the source before in[0] */
    bool in_last;     /* no more will come */
    bool is_partial;  /* the member began before the first byte */
    unsigned first_bit;
    uint64_t member_start; /* offset in the source */

    uint64_t out_base;  /* bytes of output before out[0] */
    uint8_t *span;      /* output from here on has not been handed out */
    uint8_t *unchecked; /* nor is it in the checksum from here on */
    uint32_t checksum;
    uint64_t member_out_start; /* offset in the output */
    uint64_t verified;

    struct wharf_outcome outcome;
    uint8_t in[IN_NBYTES];
    uint8_t out[OUT_NBYTES];
};

_Static_assert(sizeof(struct inflate_stream) <= WHARF_INFLATE_STREAM_NBYTES,
               "the header states the memory that a stream takes");

static struct inflate_stream *stream_of(struct wharf_stream *base)
{
    return (struct inflate_stream *)base;
}

static const struct inflate_stream *const_stream_of(const struct wharf_stream *base)
{
    return (const struct inflate_stream *)base;
}

/* ---- input --------------------------------------------------------------------------------- */

static size_t in_at(const struct inflate_stream *stream)
{
    return stream->inflate.bit_pos / 8;
}

/* The input that is there and not taken yet, at in[in_at()]. */
static size_t in_left(const struct inflate_stream *stream)
{
    return stream->inflate.in_nbytes - in_at(stream);
}

static uint8_t *space(struct wharf_stream *base, size_t *ret_nbytes)
{
    struct inflate_stream *stream = stream_of(base);
    struct wharf_inflate *inflate = &stream->inflate;
    size_t taken = in_at(stream);

    /* The bits of a byte that is taken in part stay. */
    memmove(stream->in, stream->in + taken, inflate->in_nbytes - taken);
    inflate->in_nbytes -= taken;
    inflate->bit_pos -= 8 * (uint64_t)taken;
    stream->in_base += taken;
    *ret_nbytes = IN_NBYTES - inflate->in_nbytes;
    return stream->in + inflate->in_nbytes;
}

static void fill(struct wharf_stream *base, size_t nbytes, bool last)
{
    struct inflate_stream *stream = stream_of(base);

    stream->inflate.in_nbytes += nbytes;
    stream->in_last = last;
    stream->inflate.in_more = !last;
}

static const uint8_t *rest(const struct wharf_stream *base, size_t *ret_nbytes)
{
    const struct inflate_stream *stream = const_stream_of(base);

    *ret_nbytes = in_left(stream);
    return stream->in + in_at(stream);
}

/* ---- output -------------------------------------------------------------------------------- */

static uint64_t out_total(const struct inflate_stream *stream)
{
    return stream->out_base + (uint64_t)(stream->inflate.out_next - stream->out);
}

/* Brings the checksum up to date. */
static void check_output(struct inflate_stream *stream)
{
    size_t nbytes = (size_t)(stream->inflate.out_next - stream->unchecked);

    if (stream->format == WHARF_INFLATE_GZIP)
        stream->checksum = wharf_crc32(stream->checksum, stream->unchecked, nbytes);
    else if (stream->format == WHARF_INFLATE_ZLIB)
        stream->checksum = wharf_adler32(stream->checksum, stream->unchecked, nbytes);
    stream->unchecked = stream->inflate.out_next;
}

/* Makes room for output, everything before it having been handed out: keeps the last 32 KiB. */
static void slide_window(struct inflate_stream *stream)
{
    struct wharf_inflate *inflate = &stream->inflate;
    size_t kept = (size_t)(inflate->out_next - inflate->out_begin);

    if (inflate->out_end - inflate->out_next >= MIN_FREE_NBYTES)
        return;
    if (kept > WHARF_DEFLATE_WINDOW_NBYTES)
        kept = WHARF_DEFLATE_WINDOW_NBYTES;
    stream->out_base += (uint64_t)(inflate->out_next - stream->out) - kept;
    memmove(stream->out, inflate->out_next - kept, kept);
    inflate->out_begin = stream->out;
    inflate->out_next = stream->out + kept;
    stream->span = stream->unchecked = inflate->out_next;
}

static uint64_t verified(const struct wharf_stream *base)
{
    return const_stream_of(base)->verified;
}

static uint64_t member_start(const struct wharf_stream *base)
{
    return const_stream_of(base)->member_start;
}

/* ---- steps --------------------------------------------------------------------------------- */

/* A step ends in one of these: with PROGRESS the next step can be taken at once. */
enum verdict { PROGRESS, WANTS_INPUT, WANTS_ROOM };

static enum verdict finish(struct inflate_stream *stream)
{
    stream->verified = out_total(stream);
    wharf_outcome_ok(&stream->outcome, stream->in_base + in_at(stream), out_total(stream));
    stream->step = STEP_END;
    return PROGRESS;
}

static enum verdict fail(struct inflate_stream *stream, uint32_t result, uint32_t reason,
                         uint64_t bit_offset)
{
    wharf_outcome_fail(&stream->outcome, result, reason, bit_offset);
    stream->outcome.in_nbytes = bit_offset / 8;
    stream->outcome.out_nbytes = out_total(stream);
    stream->step = STEP_END;
    return PROGRESS;
}

static uint64_t bit_offset(const struct inflate_stream *stream)
{
    return 8 * stream->in_base + stream->inflate.bit_pos;
}

static enum verdict read_place(struct inflate_stream *stream)
{
    if (in_left(stream) == 0 && !stream->in_last)
        return WANTS_INPUT;
    if (in_left(stream) == 0)
        return fail(stream, WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED, 0);
    stream->inflate.bit_pos = stream->first_bit;
    stream->step = STEP_DATA;
    return PROGRESS;
}

static enum verdict read_header(struct inflate_stream *stream)
{
    const uint8_t *in = stream->in + in_at(stream);
    size_t taken = WHARF_ZLIB_HEADER_NBYTES;
    uint32_t reason;

    if (stream->format == WHARF_INFLATE_ZLIB) {
        reason = wharf_zlib_header(in, in_left(stream));
    } else {
        taken = in_left(stream);
        reason = wharf_gzip_header_read(&stream->gzip_header, in, in_left(stream), &taken);
        if (reason == WHARF_REASON_INPUT_TRUNCATED)
            stream->inflate.bit_pos += 8 * (uint64_t)taken;
    }
    if (reason == WHARF_REASON_INPUT_TRUNCATED && !stream->in_last)
        return WANTS_INPUT;
    if (reason != WHARF_REASON_NONE)
        return fail(stream,
                    stream->format == WHARF_INFLATE_ZLIB ? wharf_zlib_result(reason)
                                                         : wharf_gzip_result(reason),
                    reason, 8 * stream->member_start);
    stream->inflate.bit_pos += 8 * (uint64_t)taken;
    stream->step = STEP_DATA;
    return PROGRESS;
}

static enum verdict read_data(struct inflate_stream *stream)
{
    uint32_t reason = wharf_inflate_run(&stream->inflate);

    if (reason == WHARF_REASON_OUTPUT_FULL)
        return WANTS_ROOM;
    if (reason == WHARF_REASON_INPUT_TRUNCATED && !stream->in_last)
        return WANTS_INPUT;
    if (reason != WHARF_REASON_NONE)
        return fail(stream, wharf_inflate_result(reason), reason, bit_offset(stream));
    if (stream->format == WHARF_INFLATE_RAW)
        return finish(stream);
    check_output(stream);
    stream->step = STEP_TRAILER;
    return PROGRESS;
}

static enum verdict read_trailer(struct inflate_stream *stream)
{
    const uint8_t *in = stream->in + in_at(stream);
    bool gzip = stream->format == WHARF_INFLATE_GZIP;
    uint32_t reason;

    if (gzip)
        reason = wharf_gzip_trailer(in, in_left(stream), stream->checksum,
                                    (uint32_t)(out_total(stream) - stream->member_out_start));
    else
        reason = wharf_zlib_trailer(in, in_left(stream), stream->checksum);
    if (reason == WHARF_REASON_INPUT_TRUNCATED && !stream->in_last)
        return WANTS_INPUT;
    if (stream->is_partial && reason != WHARF_REASON_INPUT_TRUNCATED)
        reason = WHARF_REASON_NONE;
    if (reason != WHARF_REASON_NONE)
        return fail(stream, gzip ? wharf_gzip_result(reason) : wharf_zlib_result(reason), reason,
                    bit_offset(stream));
    stream->inflate.bit_pos +=
        8 * (uint64_t)(gzip ? WHARF_GZIP_TRAILER_NBYTES : WHARF_ZLIB_TRAILER_NBYTES);
    if (!gzip)
        return finish(stream);
    stream->verified = out_total(stream);
    stream->step = STEP_NEXT;
    return PROGRESS;
}

static enum verdict read_next(struct inflate_stream *stream)
{
    if (in_left(stream) < 2 && !stream->in_last)
        return WANTS_INPUT;
    if (!wharf_gzip_member_follows(stream->in + in_at(stream), in_left(stream)))
        return finish(stream);
    wharf_gzip_header_init(&stream->gzip_header);
    wharf_inflate_restart(&stream->inflate);
    stream->is_partial = false;
    stream->member_start = stream->in_base + in_at(stream);
    stream->member_out_start = out_total(stream);
    stream->checksum = WHARF_CRC32_INIT;
    stream->step = STEP_HEADER;
    return PROGRESS;
}

static enum verdict take_step(struct inflate_stream *stream)
{
    switch (stream->step) {
    case STEP_PLACE:
        return read_place(stream);
    case STEP_HEADER:
        return read_header(stream);
    case STEP_DATA:
        return read_data(stream);
    case STEP_TRAILER:
        return read_trailer(stream);
    default:
        return read_next(stream);
    }
}

static enum wharf_stream_event next(struct wharf_stream *base, const uint8_t **ret_span,
                                    size_t *ret_nbytes)
{
    struct inflate_stream *stream = stream_of(base);
    struct wharf_inflate *inflate = &stream->inflate;
    enum verdict verdict;

    do {
        if (stream->span == inflate->out_next)
            slide_window(stream);
        verdict = stream->step == STEP_END ? WANTS_INPUT : take_step(stream);
    } while (verdict == PROGRESS);
    if (stream->span != inflate->out_next) {
        check_output(stream);
        *ret_span = stream->span;
        *ret_nbytes = (size_t)(inflate->out_next - stream->span);
        stream->span = inflate->out_next;
        return WHARF_STREAM_OUTPUT;
    }
    return stream->step == STEP_END ? WHARF_STREAM_END : WHARF_STREAM_INPUT;
}

static void outcome(const struct wharf_stream *base, struct wharf_outcome *ret_outcome)
{
    *ret_outcome = const_stream_of(base)->outcome;
}

static void free_stream(struct wharf_stream *base)
{
    free(stream_of(base));
}

static const struct wharf_stream_ops ops = {
    .free = free_stream,
    .next = next,
    .space = space,
    .fill = fill,
    .outcome = outcome,
    .verified = verified,
    .member_start = member_start,
    .rest = rest,
};

struct wharf_stream *wharf_inflate_stream_new(enum wharf_inflate_format format)
{
    struct inflate_stream *stream = malloc(sizeof(*stream));

    if (!stream)
        return NULL;
    /* Everything but the buffers and the tables, which are written before they are read. */
    stream->base.ops = &ops;
    stream->format = format;
    stream->step = format == WHARF_INFLATE_RAW ? STEP_DATA : STEP_HEADER;
    stream->in[0] = 0; /* for GCC, which warns, at -O0, of bytes not written that might be read */
    wharf_inflate_init(&stream->inflate, stream->in, 0, 0, stream->out, OUT_NBYTES);
    wharf_gzip_header_init(&stream->gzip_header);
    stream->in_base = stream->member_start = 0;
    stream->in_last = stream->is_partial = false;
    stream->inflate.in_more = true;
    stream->out_base = stream->member_out_start = stream->verified = 0;
    stream->span = stream->unchecked = stream->out;
    stream->checksum = format == WHARF_INFLATE_ZLIB ? WHARF_ADLER32_INIT : WHARF_CRC32_INIT;
    wharf_outcome_ok(&stream->outcome, 0, 0);
    return &stream->base;
}

struct wharf_stream *wharf_inflate_stream_resume(enum wharf_inflate_format format,
                                                 const struct wharf_inflate_place *place)
{
    struct wharf_stream *base = wharf_inflate_stream_new(format);
    struct inflate_stream *stream;

    if (!base)
        return NULL;
    stream = stream_of(base);
    stream->step = STEP_PLACE;
    stream->first_bit = place->bit;
    stream->is_partial = true;
    if (place->window_nbytes)
        memcpy(stream->out, place->window, place->window_nbytes);
    stream->inflate.out_next = stream->span = stream->unchecked =
        stream->out + place->window_nbytes;
    stream->out_base = 0 - (uint64_t)place->window_nbytes; /* output counts from behind it */
    return base;
}
