/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/cpu_run.h"

#include <stdbool.h>
#include <sys/mman.h>

#include "daemon/clock.h"
#include "daemon/front.h"
#include "daemon/session.h"
#include "encoders/decode_job.h"
#include "encoders/decode_poll.h"
#include "proto/ring_ops.h"

/* Chunks are mostly smaller.  A buffer for a larger one is not kept. */
#define KEPT_NBYTES ((size_t)4 << 20)

/* ---- buffers ------------------------------------------------------------------------------- */

void wharf_cpu_buffer_deinit(struct wharf_cpu_buffer *buffer)
{
    if (buffer->data) {
        /* Page faults of other threads wait for unmapping, but not for this. */
        madvise(buffer->data, buffer->nbytes, MADV_DONTNEED);
        munmap(buffer->data, buffer->nbytes);
    }
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

/* One piece, and what running it needs. */
struct run {
    struct wharf_front *front;
    struct wharf_cpu_buffer *buffer;
    struct wharf_piece *piece;
    struct wharf_decode_poll *poll;
};

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

/* Copies the source: in steps, since a long one takes long.  Returns what the poll said. */
static uint32_t copy_in(const struct run *run, struct decode *decode)
{
    const uint8_t *source = (const uint8_t *)decode->source->segment.address + decode->src_offset;
    size_t nbytes = decode->job.in_nbytes;
    uint32_t result = WHARF_OK;
    size_t at = 0;

    for (; nbytes - at > WHARF_POLL_COPY_NBYTES && result == WHARF_OK;
         at += WHARF_POLL_COPY_NBYTES) {
        wharf_ring_copy_in(run->buffer->data + at, source + at, WHARF_POLL_COPY_NBYTES);
        result = wharf_decode_poll(&decode->job.setting);
    }
    wharf_ring_copy_in(run->buffer->data + at, source + at, result == WHARF_OK ? nbytes - at : 0);
    return result;
}

/* Ranges and regions were checked when the job was taken, on the copies that these are. */
static uint32_t run_in_buffer(const struct run *run, struct decode *decode,
                              struct wharf_outcome *ret_outcome)
{
    struct wharf_decode_job *job = &decode->job;

    if (job->in_nbytes > run->buffer->nbytes && !buffer_grow(run->buffer, job->in_nbytes))
        return WHARF_NO_MEMORY;
    uint32_t result = copy_in(run, decode);
    if (result != WHARF_OK)
        return result;
    job->in = run->buffer->data;
    job->out = (uint8_t *)decode->destination->segment.address + decode->dst_offset;
    wharf_decode_job_run(job, engine_of(run->piece->job) == WHARF_ENGINE_REFERENCE, ret_outcome);
    return WHARF_OK;
}

/* As above, with a buffer that the tenant pays for and that is not kept. */
static uint32_t run_in_large_buffer(const struct run *run, struct decode *decode,
                                    struct wharf_outcome *ret_outcome)
{
    struct wharf_tenant *tenant = run->piece->job->session->tenant;
    struct wharf_use use = {.memory_nbytes = decode->job.in_nbytes};

    wharf_front_enter(run->front);
    int r = wharf_tenant_charge(tenant, &use, NULL);
    wharf_front_leave(run->front);
    if (r < 0)
        return WHARF_QUOTA;
    uint32_t result = run_in_buffer(run, decode, ret_outcome);
    wharf_cpu_buffer_deinit(run->buffer);
    wharf_front_enter(run->front);
    wharf_tenant_give_back(tenant, &use);
    wharf_front_leave(run->front);
    return result;
}

static void run_decode(const struct run *run, struct decode *decode,
                       struct wharf_outcome *ret_outcome)
{
    struct wharf_piece *piece = run->piece;
    const struct wharf_decode_job *job = &decode->job;

    decode->job.setting.poll = run->poll;
    uint32_t result = job->in_nbytes > KEPT_NBYTES ? run_in_large_buffer(run, decode, ret_outcome)
                                                   : run_in_buffer(run, decode, ret_outcome);
    if (result != WHARF_OK)
        *ret_outcome = (struct wharf_outcome){.result = result};
    piece->source_nbytes += job->in_nbytes;
    piece->capacity_nbytes += job->out_avail;
    piece->in_nbytes += ret_outcome->in_nbytes;
    piece->out_nbytes += ret_outcome->out_nbytes;
}

static void run_chunk(const struct run *run)
{
    struct wharf_piece *piece = run->piece;
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
    run_decode(run, &decode, &piece->outcome);
}

/* ---- slices -------------------------------------------------------------------------------- */

static void run_entry(const struct run *run, const struct wharf_batch_entry *entry,
                      struct wharf_outcome *ret_outcome)
{
    const struct wharf_submission *submission = &run->piece->job->submission;
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

    run_decode(run, &decode, ret_outcome);
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

static void run_slice(const struct run *run)
{
    struct wharf_piece *piece = run->piece;
    const struct wharf_job *job = piece->job;

    for (uint32_t i = piece->first_chunk; i < piece->first_chunk + piece->n_chunks; i++) {
        struct wharf_outcome outcome = {
            .result = __atomic_load_n(&job->stopped, __ATOMIC_RELAXED),
        };
        uint32_t engine = WHARF_ENGINE_AUTO;
        if (outcome.result == WHARF_OK) {
            engine = engine_of(job);
            run_entry(run, &job->batch->entries[i], &outcome);
        }
        store_result(piece, i, engine, &outcome);
        merge(piece, i, engine, &outcome);
    }
}

void wharf_cpu_run(struct wharf_front *front, struct wharf_cpu_buffer *buffer,
                   struct wharf_piece *piece, struct wharf_decode_poll *poll)
{
    const struct run run = {front, buffer, piece, poll};

    piece->begun_ns = wharf_now_ns();
    if (piece->kind == WHARF_PIECE_CHUNK)
        run_chunk(&run);
    else
        run_slice(&run);
    piece->ended_ns = wharf_now_ns();
}
