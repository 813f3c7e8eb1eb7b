/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salvage_container.c: decodes a damaged container, chunk by chunk.
 *
 * A bad chunk gives what decodes of it, and zeros for the rest.  Where a header is bad nothing that
 * follows can be read, so the next header is searched for.  It says where its chunk belongs: zeros
 * stand for what is missing, unless that is more than the bytes in between can have held.  Then the
 * file has lost them, or the header lies.
 *
 * A payload may hold a container itself, stored.  So a header counts only if it can follow in its
 * member, or begins another one; where another one began in a search, what the first one stands at
 * is kept, in case that other one was a payload.
 */
#include "clientlib/cli/salvage_container.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/salvage_find.h"
#include "encoders/deflate/deflate_format.h"
#include "encoders/deflate/inflate_stream.h"

struct container {
    struct wharf_cli_salvage *salvage;
    struct wharf_container_source source;
    struct wharf_container_reader reader;
    struct wharf_container_reader outer; /* before it went on at a file header it had found */
    bool has_outer;
    uint64_t resumed_at; /* the last header at which it went on, or UINT64_MAX */
    uint8_t *payload;    /* WHARF_CONTAINER_CHUNK_MAX_NBYTES each */
    uint8_t *out;
    bool is_done;
};

static int64_t read_input(void *context, uint64_t offset, void *buf, size_t nbytes)
{
    return wharf_cli_input_read_at(context, offset, buf, nbytes);
}

static int write_out(struct container *container, const void *bytes, size_t nbytes)
{
    struct wharf_cli_task *task = container->salvage->task;
    int status = wharf_cli_task_write(task, container->reader.offset, bytes, nbytes);

    container->is_done = container->is_done || wharf_cli_output_is_full(task->output);
    return status;
}

static int write_zeros(struct container *container, uint64_t nbytes)
{
    static const uint8_t zeros[64 << 10];
    int status = WHARF_CLI_GOOD;

    while (status == WHARF_CLI_GOOD && nbytes) {
        size_t n = nbytes < sizeof(zeros) ? (size_t)nbytes : sizeof(zeros);

        status = write_out(container, zeros, n);
        nbytes -= n;
    }
    return status;
}

static void note(struct container *container, const struct wharf_container_fault *from,
                 uint64_t n_doubtful, uint64_t n_zeros)
{
    struct wharf_cli_fault fault = {
        .result = from->result,
        .reason = from->reason,
        .bit_offset = 8 * from->file_offset + from->bit_offset,
        .chunk = from->chunk,
    };

    wharf_cli_salvage_note(container->salvage, &fault, n_doubtful, n_zeros);
}

/* ---- bad chunks ------------------------------------------------------------------------------ */

/* How much of a Deflate, zlib or gzip stream decodes. */
static size_t decode_stream(const struct wharf_container_chunk *chunk,
                            enum wharf_inflate_format format, const uint8_t *in, size_t in_nbytes,
                            uint8_t *out)
{
    struct wharf_stream *stream = wharf_inflate_stream_new(format);
    size_t out_nbytes = 0;
    bool is_done = !stream;

    while (!is_done && out_nbytes < chunk->raw_nbytes) {
        const uint8_t *span;
        uint8_t *space;
        size_t n;

        switch (wharf_stream_next(stream, &span, &n)) {
        case WHARF_STREAM_INPUT:
            space = wharf_stream_space(stream, &n);
            n = n < in_nbytes ? n : in_nbytes;
            memcpy(space, in, n);
            wharf_stream_fill(stream, n, n == in_nbytes);
            in += n;
            in_nbytes -= n;
            break;
        case WHARF_STREAM_OUTPUT:
            n = n < chunk->raw_nbytes - out_nbytes ? n : chunk->raw_nbytes - out_nbytes;
            memcpy(out + out_nbytes, span, n);
            out_nbytes += n;
            break;
        default:
            is_done = true;
        }
    }
    wharf_stream_free(stream);
    return out_nbytes;
}

/* How much of a chunk, of whose payload in_nbytes are there, can be had: all of it where only its
 * checksum is wrong, and of codecs that decode from front to back what stands before the error. */
static size_t decode_bad(const struct wharf_container_chunk *chunk, const uint8_t *in,
                         size_t in_nbytes, uint8_t *out)
{
    struct wharf_decode_job job = wharf_container_chunk_job(chunk, in, out);
    struct wharf_outcome outcome;

    job.flags &= ~(uint32_t)WHARF_JOB_CHECKSUM;
    job.in_nbytes = in_nbytes;
    wharf_decode_job_run(&job, 0, &outcome);
    if (outcome.result == WHARF_OK)
        return chunk->raw_nbytes;
    switch (chunk->codec) {
    case WHARF_CODEC_STORED:
        memcpy(out, in, in_nbytes);
        return in_nbytes;
    case WHARF_CODEC_DEFLATE:
        return decode_stream(chunk, WHARF_INFLATE_RAW, in, in_nbytes, out);
    case WHARF_CODEC_ZLIB:
        return decode_stream(chunk, WHARF_INFLATE_ZLIB, in, in_nbytes, out);
    case WHARF_CODEC_GZIP:
        return decode_stream(chunk, WHARF_INFLATE_GZIP, in, in_nbytes, out);
    default:
        return 0;
    }
}

static int write_bad(struct container *container, const struct wharf_container_chunk *chunk,
                     size_t in_nbytes, const struct wharf_container_fault *fault)
{
    size_t nbytes = decode_bad(chunk, container->payload, in_nbytes, container->out);
    /* Behind the end of what is cut off nothing has a place to keep. */
    uint64_t n_zeros = container->is_done ? 0 : chunk->raw_nbytes - nbytes;
    int status = write_out(container, container->out, nbytes);

    if (status == WHARF_CLI_GOOD)
        status = write_zeros(container, n_zeros);
    if (status == WHARF_CLI_GOOD)
        note(container, fault, nbytes, n_zeros);
    return status;
}

/* Bytes behind the payload that are not zero are no chunk's. */
static bool has_clean_padding(const struct container *container,
                              const struct wharf_container_chunk *chunk)
{
    for (uint32_t i = chunk->payload_nbytes; i < chunk->payload_avail; i++)
        if (container->payload[i])
            return false;
    return true;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static int take_cut_chunk(struct container *container, const struct wharf_container_chunk *chunk,
                          size_t nbytes)
{
    const struct wharf_container_fault fault = {
        .result = WHARF_BAD_DATA,
        .reason = WHARF_REASON_CONTAINER_TRUNCATED,
        .file_offset = chunk->file_offset,
        .chunk = chunk->number,
    };

    container->is_done = true;
    return write_bad(container, chunk,
                     nbytes < chunk->payload_nbytes ? nbytes : chunk->payload_nbytes, &fault);
}

static int take_whole_chunk(struct container *container, const struct wharf_container_chunk *chunk)
{
    const struct wharf_decode_job job =
        wharf_container_chunk_job(chunk, container->payload, container->out);
    struct wharf_container_fault fault;
    struct wharf_outcome outcome;

    wharf_decode_job_run(&job, 0, &outcome);
    fault = wharf_container_chunk_fault(chunk, &outcome);
    if (fault.result == WHARF_OK && !has_clean_padding(container, chunk))
        fault = (struct wharf_container_fault){
            .result = WHARF_BAD_DATA,
            .reason = WHARF_REASON_CONTAINER_CHUNK,
            .file_offset = chunk->payload_offset,
            .chunk = chunk->number,
        };
    if (fault.result == WHARF_OK)
        return write_out(container, container->out, chunk->raw_nbytes);
    return write_bad(container, chunk, chunk->payload_nbytes, &fault);
}

static int take_chunk(struct container *container, const struct wharf_container_chunk *chunk)
{
    struct wharf_cli_task *task = container->salvage->task;
    int64_t n = wharf_cli_input_read_at(task->input, chunk->payload_offset, container->payload,
                                        chunk->payload_avail);

    if (n < 0)
        return wharf_cli_task_read_error(task, (int)n);
    task->tally->in_nbytes += WHARF_CONTAINER_FRAME_HEADER_NBYTES + (uint64_t)n;
    task->tally->n_chunks++;
    task->tally->engines |= 1u << WHARF_ENGINE_CPU;
    return n < chunk->payload_avail ? take_cut_chunk(container, chunk, (size_t)n)
                                    : take_whole_chunk(container, chunk);
}

/* ---- bad headers ----------------------------------------------------------------------------- */

/* Whether the reader stands where a member should begin: whatever is found there is of another. */
static bool is_between(const struct container *container, const struct wharf_container_fault *fault)
{
    return fault->reason == WHARF_REASON_CONTAINER_MAGIC ||
           (fault->reason == WHARF_REASON_CONTAINER_HEADER &&
            fault->file_offset == container->reader.offset);
}

/* Where to search.  A header that is right in itself may only be in the wrong place, but at the
 * same one nobody goes on twice. */
static uint64_t search_start(const struct container *container)
{
    uint64_t at = container->reader.offset;

    return at == container->resumed_at ? at + 1 : at;
}

/* Goes on at what was found. */
static int resume(struct container *container, const struct wharf_cli_salvage_found *found,
                  const struct wharf_container_fault *fault, bool is_new)
{
    struct wharf_container_reader *reader = &container->reader;
    uint64_t n_lost = found->offset - reader->offset;
    uint64_t n_missing;
    int status = WHARF_CLI_GOOD;

    if (found->reader == &container->outer)
        *reader = container->outer;
    container->has_outer = found->frame.is_member && !is_new;
    if (container->has_outer)
        container->outer = *reader;
    container->resumed_at = found->offset;
    n_missing = wharf_container_resume(reader, &found->frame, is_new && !found->reader);
    if (n_missing / WHARF_DEFLATE_MAX_RATIO > n_lost)
        n_missing = 0;
    status = write_zeros(container, n_missing);
    if (status == WHARF_CLI_GOOD)
        note(container, fault, 0, n_missing);
    return status;
}

static int go_on_behind(struct container *container, const struct wharf_container_fault *fault)
{
    const struct wharf_container_reader *const readers[2] = {
        &container->reader, container->has_outer ? &container->outer : NULL};
    const struct wharf_container_reader *const outer[2] = {readers[1], NULL};
    bool is_new = is_between(container, fault);
    struct wharf_cli_salvage_found found;
    int status =
        wharf_cli_salvage_find(container->salvage, search_start(container), WHARF_CLI_WANTS_FRAME,
                               !is_new                ? readers
                               : container->has_outer ? outer
                                                      : NULL,
                               &found);

    if (status != WHARF_CLI_GOOD)
        return status;
    if (found.kind)
        return resume(container, &found, fault, is_new);
    note(container, fault, 0, 0);
    container->is_done = true;
    return WHARF_CLI_GOOD;
}

/* ---- all together ---------------------------------------------------------------------------- */

static int take_next(struct container *container)
{
    struct wharf_container_item item;
    int r = wharf_container_next(&container->reader, &item);

    if (r < 0)
        return wharf_cli_task_read_error(container->salvage->task, r);
    if (item.kind == WHARF_CONTAINER_CHUNK)
        return take_chunk(container, &item.chunk);
    if (item.kind == WHARF_CONTAINER_FAULT)
        return go_on_behind(container, &item.fault);
    container->is_done = true;
    return WHARF_CLI_GOOD;
}

static int run(struct container *container, const struct wharf_container_frame *first)
{
    int status = WHARF_CLI_GOOD;

    wharf_container_reader_init(&container->reader, &container->source);
    if (first) {
        const struct wharf_cli_salvage_found found = {
            .offset = first->file_offset, .kind = WHARF_CLI_WANTS_FRAME, .frame = *first};
        const struct wharf_container_fault fault = {.result = WHARF_BAD_DATA,
                                                    .reason = WHARF_REASON_CONTAINER_MAGIC};

        status = resume(container, &found, &fault, true);
    }
    while (status == WHARF_CLI_GOOD && !container->is_done)
        status = take_next(container);
    return status;
}

int wharf_cli_salvage_container(struct wharf_cli_salvage *salvage,
                                const struct wharf_container_frame *first)
{
    /* Of unknown size, so that of a chunk that is cut off what is there is had. */
    struct container container = {
        .salvage = salvage,
        .source = {read_input, salvage->task->input, WHARF_CONTAINER_SIZE_UNKNOWN},
        .resumed_at = UINT64_MAX,
        .payload = malloc(WHARF_CONTAINER_CHUNK_MAX_NBYTES),
        .out = malloc(WHARF_CONTAINER_CHUNK_MAX_NBYTES),
    };
    int status;

    if (container.payload && container.out)
        status = run(&container, first);
    else
        status = wharf_cli_task_error(salvage->task, "cannot decode", -ENOMEM);
    free(container.payload);
    free(container.out);
    return status;
}
