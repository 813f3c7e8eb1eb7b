/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/cpu/cpu_run.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/base/clock.h"
#include "daemon/base/touch.h"
#include "daemon/core/front.h"
#include "daemon/core/job.h"
#include "daemon/core/piece.h"
#include "daemon/core/session.h"
#include "daemon/dispatch/front_lock.h"
#include "daemon/placement/place.h"
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
    /* Copying 10 MB to new pages of 4 KiB takes five times as long as to such: page faults. */
    if (wanted > KEPT_NBYTES)
        madvise(data, wanted, MADV_HUGEPAGE);
    wharf_cpu_buffer_deinit(buffer);
    buffer->data = data;
    buffer->nbytes = wanted;
    return true;
}

/* ---- chunks -------------------------------------------------------------------------------- */

/* Copies the source: in steps, since a long one takes long.  Returns what the poll said. */
static uint32_t copy_in(struct wharf_cpu_buffer *buffer, const struct wharf_piece_chunk *chunk)
{
    const uint8_t *source = wharf_piece_chunk_source(chunk);
    size_t nbytes = chunk->job.in_nbytes;
    uint32_t result = WHARF_OK;
    size_t at = 0;

    for (; nbytes - at > WHARF_POLL_COPY_NBYTES && result == WHARF_OK;
         at += WHARF_POLL_COPY_NBYTES) {
        wharf_ring_copy_in(buffer->data + at, source + at, WHARF_POLL_COPY_NBYTES);
        result = wharf_decode_poll(&chunk->job.setting);
    }
    wharf_ring_copy_in(buffer->data + at, source + at, result == WHARF_OK ? nbytes - at : 0);
    return result;
}

/* A chunk on its way through a private buffer. */
struct passage {
    struct wharf_cpu_buffer *buffer;
    struct wharf_piece_chunk *chunk;
    bool reference;
    uint32_t result; /* what the poll said before it was decoded */
    struct wharf_outcome outcome;
};

/* The reference engine calls libraries, which have memory of their own while they decode: what can
 * fail is done before and after that. */
static size_t buffer_nbytes(const struct passage *passage)
{
    const struct wharf_decode_job *job = &passage->chunk->job;

    return job->in_nbytes + (passage->reference ? job->out_avail : 0);
}

static void pass(void *context)
{
    struct passage *passage = context;
    struct wharf_decode_job *job = &passage->chunk->job;
    uint8_t *out = job->out;

    passage->result = copy_in(passage->buffer, passage->chunk);
    if (passage->result != WHARF_OK)
        return;
    job->in = passage->buffer->data;
    if (passage->reference)
        job->out = passage->buffer->data + job->in_nbytes;
    wharf_decode_job_run(job, passage->reference, &passage->outcome);
    if (passage->reference)
        memcpy(out, job->out, passage->outcome.out_nbytes);
}

static uint32_t run_in_buffer(struct passage *passage)
{
    size_t nbytes = buffer_nbytes(passage);

    if (nbytes > passage->buffer->nbytes && !buffer_grow(passage->buffer, nbytes))
        return WHARF_NO_MEMORY;
    return wharf_touch(pass, passage) ? passage->result : WHARF_NO_MEMORY;
}

/* As above, with a buffer that the tenant pays for and that is not kept. */
static uint32_t run_in_large_buffer(struct wharf_front *front, struct wharf_tenant *tenant,
                                    struct passage *passage)
{
    struct wharf_use use = {.memory_nbytes = buffer_nbytes(passage)};

    if (wharf_front_charge(front, tenant, &use, NULL) < 0)
        return WHARF_QUOTA;
    uint32_t result = run_in_buffer(passage);
    wharf_cpu_buffer_deinit(passage->buffer);
    wharf_front_give_back(front, tenant, &use);
    return result;
}

static void run_chunk(struct wharf_front *front, struct wharf_cpu_buffer *buffer,
                      struct wharf_session *session, struct wharf_piece_chunk *chunk,
                      const struct wharf_cpu_others *others, struct wharf_outcome *ret_outcome)
{
    struct passage passage = {
        .buffer = buffer,
        .chunk = chunk,
        .reference = session->engine == WHARF_ENGINE_REFERENCE,
    };

    chunk->job.setting.poll = others->poll;
    chunk->job.setting.crew = others->crew;
    chunk->job.out = wharf_piece_chunk_destination(chunk);
    uint32_t result = buffer_nbytes(&passage) > KEPT_NBYTES
                          ? run_in_large_buffer(front, session->tenant, &passage)
                          : run_in_buffer(&passage);
    *ret_outcome = result == WHARF_OK ? passage.outcome : (struct wharf_outcome){.result = result};
}

/* ---- pieces -------------------------------------------------------------------------------- */

void wharf_cpu_run(struct wharf_front *front, struct wharf_cpu_buffer *buffer,
                   struct wharf_piece *piece, const struct wharf_cpu_others *others)
{
    const struct wharf_job *job = piece->job;
    uint32_t own = wharf_session_cpu_engine(job->session);

    piece->begun_ns = wharf_now_ns();
    for (uint32_t i = 0; i < piece->n_chunks; i++) {
        struct wharf_outcome outcome = {WHARF_OK, WHARF_REASON_NONE, 0, 0, 0};
        uint32_t engine = WHARF_ENGINE_AUTO;
        /* What is left of a slice that was stopped is not begun. */
        if (piece->kind == WHARF_PIECE_SLICE)
            outcome.result = __atomic_load_n(&job->stopped, __ATOMIC_RELAXED);
        if (outcome.result == WHARF_OK) {
            struct wharf_piece_chunk chunk = wharf_piece_chunk_at(piece, i);
            if (wharf_regions_need_gpu(chunk.source, chunk.destination) ||
                wharf_place_is_refused(front, job)) {
                outcome = wharf_place_refusal(front, job);
            } else {
                engine = own;
                run_chunk(front, buffer, job->session, &chunk, others, &outcome);
            }
        }
        wharf_piece_take_outcome(piece, i, engine, &outcome);
    }
    piece->ended_ns = wharf_now_ns();
}
