/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece.c: the chunks of a piece, and the joining of their outcomes.
 */
#include "daemon/core/piece.h"

#include "daemon/base/touch.h"
#include "daemon/core/job.h"
#include "daemon/core/session.h"

static struct wharf_codec_setting setting_of(const struct wharf_job *job)
{
    if (job->model)
        return (struct wharf_codec_setting){.model = job->model->segment.address};
    return (struct wharf_codec_setting){.parameter = job->submission.parameter};
}

struct wharf_piece_chunk wharf_piece_chunk_at(const struct wharf_piece *piece, uint32_t at)
{
    const struct wharf_job *job = piece->job;
    struct wharf_piece_span span = wharf_piece_span_at(piece, at);

    return (struct wharf_piece_chunk){
        .source = span.source,
        .destination = span.destination,
        .src_offset = span.src_offset,
        .dst_offset = span.dst_offset,
        .is_more = piece->kind == WHARF_PIECE_SLICE && piece->first_chunk + at > 0,
        .job =
            {
                .codec = job->submission.codec,
                .flags = job->submission.flags & ~(uint32_t)WHARF_JOB_DISCARD,
                .checksum = span.checksum,
                .setting = setting_of(job),
                .in_nbytes = span.in_nbytes,
                .out_avail = span.out_avail,
            },
    };
}

const uint8_t *wharf_piece_chunk_source(const struct wharf_piece_chunk *chunk)
{
    return (const uint8_t *)chunk->source->segment.address + chunk->src_offset;
}

uint8_t *wharf_piece_chunk_destination(const struct wharf_piece_chunk *chunk)
{
    return (uint8_t *)chunk->destination->segment.address + chunk->dst_offset;
}

/* In the client's table of results, at any alignment.  Whether there was memory for it. */
static bool store_result(const struct wharf_piece *piece, uint32_t index, uint32_t engine,
                         const struct wharf_outcome *outcome)
{
    const struct wharf_job *job = piece->job;
    struct wharf_chunk_result result = {
        .bit_offset = outcome->bit_offset,
        .in_nbytes = (uint32_t)outcome->in_nbytes,
        .out_nbytes = (uint32_t)outcome->out_nbytes,
        .result = (uint16_t)outcome->result,
        .reason = (uint16_t)outcome->reason,
        .engine = (uint8_t)engine,
        .attempt = piece->attempt,
    };

    if (!job->destination)
        return true;
    uint8_t *table = (uint8_t *)job->destination->segment.address + job->submission.dst_offset;
    return wharf_touch_copy(table + index * sizeof(result), &result, sizeof(result));
}

/* The first bad outcome is the piece's; while all are good, their sums. */
static void merge(struct wharf_piece *piece, uint32_t index, uint32_t engine,
                  const struct wharf_outcome *outcome)
{
    if (piece->outcome.result != WHARF_OK)
        return;
    piece->engine = engine;
    if (outcome->result != WHARF_OK) {
        piece->outcome = *outcome;
        piece->bad_chunk = index;
        return;
    }
    piece->outcome.in_nbytes += outcome->in_nbytes;
    piece->outcome.out_nbytes += outcome->out_nbytes;
}

void wharf_piece_take_outcome(struct wharf_piece *piece, uint32_t at, uint32_t engine,
                              const struct wharf_outcome *outcome)
{
    static const struct wharf_outcome no_memory = {.result = WHARF_NO_MEMORY};

    if (outcome->result == WHARF_PIECE_LOST) {
        piece->is_lost = true;
        return;
    }
    if (engine != WHARF_ENGINE_AUTO) {
        struct wharf_piece_span span = wharf_piece_span_at(piece, at);
        piece->source_nbytes += span.in_nbytes;
        piece->capacity_nbytes += span.out_avail;
        piece->in_nbytes += outcome->in_nbytes;
        piece->out_nbytes += outcome->out_nbytes;
        if (span.source->is_file)
            piece->file_in_nbytes += outcome->in_nbytes;
        if (span.destination && span.destination->is_file)
            piece->file_out_nbytes += outcome->out_nbytes;
    }
    if (piece->kind == WHARF_PIECE_SLICE) {
        uint32_t index = piece->first_chunk + at;
        bool is_stored = store_result(piece, index, engine, outcome);
        merge(piece, index, engine, is_stored ? outcome : &no_memory);
    } else {
        piece->engine = engine;
        piece->outcome = *outcome;
    }
}

struct wharf_outcome wharf_piece_file_outcome(const struct wharf_file_end *end, bool is_write,
                                              uint32_t stopped)
{
    struct wharf_outcome outcome = {.result = WHARF_FILE_ERROR, .bit_offset = 8 * end->nbytes};

    switch (end->how) {
    case WHARF_FILE_DONE:
        outcome.reason = is_write     ? WHARF_REASON_FILE_WRITE + (uint32_t)end->error
                         : end->error ? WHARF_REASON_FILE_READ + (uint32_t)end->error
                                      : WHARF_REASON_FILE_SHORT;
        return outcome;
    case WHARF_FILE_LATE:
        outcome.reason = is_write ? WHARF_REASON_FILE_ABANDONED : WHARF_REASON_FILE_TIME;
        return outcome;
    case WHARF_FILE_UNKNOWN:
        outcome.reason = WHARF_REASON_FILE_ABANDONED;
        return outcome;
    case WHARF_FILE_STOPPED:
        return (struct wharf_outcome){.result = stopped};
    default:
        return (struct wharf_outcome){.result = WHARF_PIECE_LOST};
    }
}
