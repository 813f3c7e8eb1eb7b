/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/cpu_run.h"

#include <stdbool.h>
#include <sys/mman.h>

#include "daemon/clock.h"
#include "daemon/session.h"
#include "encoders/decode_job.h"
#include "proto/ring_ops.h"

/* Chunks are mostly smaller.  A buffer for a larger one is not kept. */
#define KEPT_NBYTES ((size_t)4 << 20)

/* ---- buffers ------------------------------------------------------------------------------- */

void wharf_cpu_buffer_deinit(struct wharf_cpu_buffer *buffer)
{
    if (buffer->data)
        munmap(buffer->data, buffer->nbytes);
    *buffer = (struct wharf_cpu_buffer){NULL, 0};
}

static bool buffer_grow(struct wharf_cpu_buffer *buffer, size_t nbytes)
{
    size_t wanted = nbytes < KEPT_NBYTES ? KEPT_NBYTES : nbytes;
    void *data = mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (data == MAP_FAILED)
        return false;
    wharf_cpu_buffer_deinit(buffer);
    buffer->data = data;
    buffer->nbytes = wanted;
    return true;
}

/* ---- chunks -------------------------------------------------------------------------------- */

/* One chunk's decode: the job's, or an entry's of a batch. */
struct decode {
    const struct wharf_region *source;
    const struct wharf_region *destination;
    uint64_t src_offset;
    uint64_t dst_offset;
    struct wharf_decode_job job;
};

static uint32_t engine_of(const struct wharf_job *job)
{
    return job->session->engine == WHARF_ENGINE_REFERENCE ? WHARF_ENGINE_REFERENCE
                                                          : WHARF_ENGINE_CPU;
}

/* Ranges and regions were checked when the job was taken, on the copies that these are. */
static void run_decode(struct wharf_cpu_buffer *buffer, struct decode *decode, uint32_t engine,
                       struct wharf_outcome *ret_outcome)
{
    struct wharf_decode_job *job = &decode->job;

    if (job->in_nbytes > buffer->nbytes && !buffer_grow(buffer, job->in_nbytes)) {
        *ret_outcome = (struct wharf_outcome){.result = WHARF_NO_MEMORY};
        return;
    }
    wharf_ring_copy_in(buffer->data,
                       (const uint8_t *)decode->source->segment.address + decode->src_offset,
                       job->in_nbytes);
    job->in = buffer->data;
    job->out = (uint8_t *)decode->destination->segment.address + decode->dst_offset;
    wharf_decode_job_run(job, engine == WHARF_ENGINE_REFERENCE, ret_outcome);
    if (buffer->nbytes > KEPT_NBYTES)
        wharf_cpu_buffer_deinit(buffer);
}

static void count(struct wharf_piece *piece, const struct wharf_decode_job *job,
                  const struct wharf_outcome *outcome)
{
    piece->source_nbytes += job->in_nbytes;
    piece->capacity_nbytes += job->out_avail;
    piece->in_nbytes += outcome->in_nbytes;
    piece->out_nbytes += outcome->out_nbytes;
}

static void run_chunk(struct wharf_cpu_buffer *buffer, struct wharf_piece *piece)
{
    const struct wharf_job *job = piece->job;
    const struct wharf_submission *submission = &job->submission;
    struct decode decode = {
        .source = job->source,
        .destination = job->destination,
        .src_offset = submission->src_offset,
        .dst_offset = submission->dst_offset,
        .job =
            {
                .codec = submission->codec,
                .flags = submission->flags,
                .checksum = submission->checksum,
                .setting.parameter = submission->parameter,
                .in_nbytes = submission->src_nbytes,
                .out_avail = submission->dst_nbytes,
            },
    };

    piece->engine = engine_of(job);
    run_decode(buffer, &decode, piece->engine, &piece->outcome);
    count(piece, &decode.job, &piece->outcome);
}

/* ---- slices -------------------------------------------------------------------------------- */

static void run_entry(struct wharf_cpu_buffer *buffer, struct wharf_piece *piece,
                      const struct wharf_batch_entry *entry, struct wharf_outcome *ret_outcome)
{
    const struct wharf_submission *submission = &piece->job->submission;
    struct decode decode = {
        .source = entry->source,
        .destination = entry->destination,
        .src_offset = entry->chunk.src_offset,
        .dst_offset = entry->chunk.dst_offset,
        .job =
            {
                .codec = submission->codec,
                .flags = submission->flags,
                .checksum = entry->chunk.checksum,
                .setting.parameter = submission->parameter,
                .in_nbytes = entry->chunk.src_nbytes,
                .out_avail = entry->chunk.dst_nbytes,
            },
    };

    run_decode(buffer, &decode, engine_of(piece->job), ret_outcome);
    count(piece, &decode.job, ret_outcome);
}

/* The client's table of results, at any alignment. */
static void store_result(const struct wharf_piece *piece, uint32_t index, uint32_t engine,
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
    };

    if (job->destination)
        memcpy((uint8_t *)job->destination->segment.address + job->submission.dst_offset +
                   index * sizeof(result),
               &result, sizeof(result));
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

static void run_slice(struct wharf_cpu_buffer *buffer, struct wharf_piece *piece)
{
    const struct wharf_job *job = piece->job;

    for (uint32_t i = piece->first_chunk; i < piece->first_chunk + piece->n_chunks; i++) {
        struct wharf_outcome outcome = {
            .result = __atomic_load_n(&job->stopped, __ATOMIC_RELAXED),
        };
        uint32_t engine = WHARF_ENGINE_AUTO;
        if (outcome.result == WHARF_OK) {
            engine = engine_of(job);
            run_entry(buffer, piece, &job->batch->entries[i], &outcome);
        }
        store_result(piece, i, engine, &outcome);
        merge(piece, i, engine, &outcome);
    }
}

void wharf_cpu_run(struct wharf_cpu_buffer *buffer, struct wharf_piece *piece)
{
    piece->begun_ns = wharf_now_ns();
    if (piece->kind == WHARF_PIECE_CHUNK)
        run_chunk(buffer, piece);
    else
        run_slice(buffer, piece);
    piece->ended_ns = wharf_now_ns();
}
