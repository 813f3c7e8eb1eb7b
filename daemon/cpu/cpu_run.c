/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_run.c: decodes and compresses the chunks of a piece.
 *
 * The source is copied to a private buffer first, so that it cannot change while a decoder checks
 * it.  Decoders write their output directly to the client's memory.  They read it back only to copy
 * bytes, so a client that changes it spoils its own output at most.  The reference engine,
 * encoders, output for files and what is discarded use private memory, since libraries may rely on
 * what they have written.  All client memory is touched through touch.h, where a missing page ends
 * the chunk.
 */
#include "daemon/cpu/cpu_run.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/base/clock.h"
#include "daemon/base/touch.h"
#include "daemon/core/core.h"
#include "daemon/core/file_io.h"
#include "daemon/core/job.h"
#include "daemon/core/piece.h"
#include "daemon/core/session.h"
#include "daemon/cpu/slices.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/placement/place.h"
#include "encoders/decode_job.h"
#include "encoders/decode_poll.h"
#include "encoders/encode_job.h"
#include "proto/ring_ops.h"

/* Chunks are mostly smaller.  A buffer for a larger one is not kept. */
#define KEPT_NBYTES ((size_t)4 << 20)

/* Idle work gives way with chunks up to this.  On a machine that is busy with other programs it
 * then takes some hundred times as long, and whoever stops the daemon waits for it. */
#define GIVES_WAY_NBYTES ((size_t)1 << 20)

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
    /* Because of page faults, copying 10 MB to new 4 KiB pages takes five times as long as to
     * these. */
    if (wanted > KEPT_NBYTES)
        madvise(data, wanted, MADV_HUGEPAGE);
    wharf_cpu_buffer_deinit(buffer);
    buffer->data = data;
    buffer->nbytes = wanted;
    return true;
}

/* ---- chunks -------------------------------------------------------------------------------- */

/* Copies the source in steps, with polls between.  Returns the poll's answer. */
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

/* The encoder for the chunks of a piece, created for the first of them. */
struct encoding {
    struct wharf_encode_choice choice;
    struct wharf_encoder *encoder;
    bool is_idle_work; /* which gives way to all else */
};

/* A chunk on its way through a private buffer. */
struct passage {
    struct wharf_cpu_buffer *buffer;
    struct wharf_piece_chunk *chunk;
    const struct wharf_job *job; /* that it is of */
    const struct wharf_cpu_others *others;
    struct encoding *encoding; /* NULL: it is decoded */
    bool reference;
    size_t out_avail; /* the part of the chunk's capacity that the stream can need */
    uint32_t result;  /* the poll's answer before decoding */
    struct wharf_outcome outcome;
};

/*
 * The reference engine and encoders call libraries that allocate memory; steps that can fail by a
 * signal happen before and after.  Encoders also read what they have written.  Output for files is
 * built in the buffer too.
 */
static bool has_own_output(const struct passage *passage)
{
    return passage->reference || passage->encoding || passage->chunk->destination->is_file ||
           wharf_job_discards(passage->job);
}

static size_t buffer_nbytes(const struct passage *passage)
{
    return passage->chunk->job.in_nbytes + (has_own_output(passage) ? passage->out_avail : 0);
}

/* In private memory and without a lock, so that idle work can wait for its turn meanwhile. */
static void encode(const struct passage *passage, struct wharf_outcome *ret_outcome)
{
    const struct wharf_decode_job *job = &passage->chunk->job;
    const struct wharf_encode_chunk chunk = {job->in, job->in_nbytes, job->out, passage->out_avail};
    bool is_lowered = passage->encoding->is_idle_work && job->in_nbytes <= GIVES_WAY_NBYTES &&
                      wharf_slices_lower() == 0;

    wharf_encode_chunk(&passage->encoding->choice, passage->encoding->encoder, &chunk, ret_outcome);
    if (is_lowered)
        (void)wharf_slices_raise(WHARF_SLICE_WORKER_NS);
}

static void pass(void *context)
{
    struct passage *passage = context;
    struct wharf_decode_job *job = &passage->chunk->job;
    uint8_t *out = job->out;

    if (!passage->chunk->source->is_file)
        passage->result = copy_in(passage->buffer, passage->chunk);
    if (passage->result != WHARF_OK)
        return;
    job->in = passage->buffer->data;
    if (has_own_output(passage))
        job->out = passage->buffer->data + job->in_nbytes;
    if (passage->encoding)
        encode(passage, &passage->outcome);
    else
        wharf_decode_job_run(job, passage->reference, &passage->outcome);
    if (has_own_output(passage) && !passage->chunk->destination->is_file &&
        !wharf_job_discards(passage->job) && passage->outcome.out_nbytes > 0)
        memcpy(out, job->out, passage->outcome.out_nbytes);
}

/* ---- files --------------------------------------------------------------------------------- */

static void set_waits(const struct passage *passage, bool waits)
{
    if (passage->others->ret_waits_for_file)
        __atomic_store_n(passage->others->ret_waits_for_file, waits, __ATOMIC_RELAXED);
}

static struct wharf_outcome file_outcome(const struct passage *passage,
                                         const struct wharf_file_end *end, bool is_write)
{
    return wharf_piece_file_outcome(end, is_write,
                                    __atomic_load_n(&passage->job->stopped, __ATOMIC_RELAXED));
}

/* Reads the source into the buffer.  False: the outcome has the reason. */
static bool fetch(struct passage *passage)
{
    const struct wharf_piece_chunk *chunk = passage->chunk;

    set_waits(passage, true);
    struct wharf_file_end end = wharf_file_io_read(
        passage->job->session->file_io, chunk->source->file, chunk->src_offset,
        passage->buffer->data, chunk->job.in_nbytes, chunk->is_more, &passage->job->stopped);
    set_waits(passage, false);
    if (end.how == WHARF_FILE_DONE && end.nbytes == chunk->job.in_nbytes)
        return true;
    passage->outcome = file_outcome(passage, &end, false);
    return false;
}

/* Writes the output of a good chunk from the buffer. */
static void store(struct passage *passage)
{
    const struct wharf_piece_chunk *chunk = passage->chunk;

    set_waits(passage, true);
    struct wharf_file_end end =
        wharf_file_io_write(passage->job->session->file_io, chunk->destination->file,
                            chunk->dst_offset, passage->buffer->data + chunk->job.in_nbytes,
                            passage->outcome.out_nbytes, &passage->job->stopped);
    set_waits(passage, false);
    if (end.how != WHARF_FILE_DONE || end.nbytes < passage->outcome.out_nbytes)
        passage->outcome = file_outcome(passage, &end, true);
}

/* ---- a chunk ------------------------------------------------------------------------------- */

static uint32_t run_in_buffer(struct passage *passage)
{
    size_t nbytes = buffer_nbytes(passage);

    if (nbytes > passage->buffer->nbytes && !buffer_grow(passage->buffer, nbytes))
        return WHARF_NO_MEMORY;
    if (passage->chunk->source->is_file && !fetch(passage))
        return WHARF_OK;
    if (!wharf_touch(pass, passage))
        return WHARF_NO_MEMORY;
    if (passage->result == WHARF_OK && passage->outcome.result == WHARF_OK &&
        passage->chunk->destination->is_file)
        store(passage);
    return passage->result;
}

/* The same with a buffer that is charged to the tenant and not kept. */
static uint32_t run_in_large_buffer(struct wharf_core *core, struct wharf_tenant *tenant,
                                    struct passage *passage)
{
    struct wharf_use use = {.memory_nbytes = buffer_nbytes(passage)};

    if (wharf_core_charge(core, tenant, &use, NULL) < 0)
        return WHARF_QUOTA;
    uint32_t result = run_in_buffer(passage);
    wharf_cpu_buffer_deinit(passage->buffer);
    wharf_core_give_back(core, tenant, &use);
    return result;
}

/* The encoder exists.  The destination may have any size. */
static size_t most_of_stream(const struct encoding *encoding, const struct wharf_decode_job *job)
{
    const struct wharf_encoder_ops *ops = wharf_codec_find(encoding->choice.codec)->ops->encoder;
    size_t bound = ops->bound(encoding->encoder, job->in_nbytes);

    return bound < job->out_avail ? bound : job->out_avail;
}

static void run_chunk(struct wharf_core *core, struct wharf_cpu_buffer *buffer,
                      const struct wharf_job *job, struct wharf_piece_chunk *chunk,
                      struct encoding *encoding, const struct wharf_cpu_others *others,
                      struct wharf_outcome *ret_outcome)
{
    struct wharf_session *session = job->session;
    struct passage passage = {
        .buffer = buffer,
        .chunk = chunk,
        .job = job,
        .others = others,
        .encoding = encoding,
        .reference = session->engine == WHARF_ENGINE_REFERENCE,
        .out_avail = chunk->job.out_avail,
    };

    if (encoding)
        passage.out_avail = most_of_stream(encoding, &chunk->job);

    chunk->job.setting.poll = others->poll;
    chunk->job.setting.crew = others->crew;
    if (!chunk->destination->is_file)
        chunk->job.out = wharf_piece_chunk_destination(chunk);
    uint32_t result = buffer_nbytes(&passage) > KEPT_NBYTES
                          ? run_in_large_buffer(core, session->tenant, &passage)
                          : run_in_buffer(&passage);
    *ret_outcome = result == WHARF_OK ? passage.outcome : (struct wharf_outcome){.result = result};
}

/* ---- compressing --------------------------------------------------------------------------- */

static struct encoding encoding_of(const struct wharf_piece *piece)
{
    const struct wharf_submission *submission = &piece->job->submission;

    return (struct encoding){
        .choice = {submission->codec, submission->parameter, submission->encoder,
                   submission->level},
        .is_idle_work = piece->idle != NULL,
    };
}

/* The tenant is charged for an encoder's memory while a chunk is compressed. */
static void compress_chunk(struct wharf_core *core, struct wharf_cpu_buffer *buffer,
                           const struct wharf_job *job, struct wharf_piece_chunk *chunk,
                           struct encoding *encoding, const struct wharf_cpu_others *others,
                           struct wharf_outcome *ret_outcome)
{
    struct wharf_use use = {.memory_nbytes = wharf_encode_memory_nbytes(chunk->job.in_nbytes)};
    struct wharf_tenant *tenant = job->session->tenant;

    /* Encoders do not poll. */
    uint32_t result = others->poll->ask(others->poll);
    if (result == WHARF_OK && wharf_core_charge(core, tenant, &use, NULL) < 0)
        result = WHARF_QUOTA;
    if (result != WHARF_OK) {
        *ret_outcome = (struct wharf_outcome){.result = result};
        return;
    }
    if (encoding->encoder ||
        wharf_encode_begin(&encoding->choice, &encoding->encoder, ret_outcome) == WHARF_OK)
        run_chunk(core, buffer, job, chunk, encoding, others, ret_outcome);
    wharf_core_give_back(core, tenant, &use);
}

/* ---- pieces -------------------------------------------------------------------------------- */

/* The context of a piece. */
struct run {
    struct wharf_core *core;
    struct wharf_cpu_buffer *buffer;
    const struct wharf_cpu_others *others;
    struct encoding encoding;
};

/* Returns the engine; AUTO if none ran it. */
static uint32_t run_at(struct run *run, const struct wharf_piece *piece, uint32_t at,
                       struct wharf_outcome *ret_outcome)
{
    const struct wharf_job *job = piece->job;
    struct wharf_piece_chunk chunk = wharf_piece_chunk_at(piece, at);

    if (wharf_regions_need_gpu(chunk.source, chunk.destination) ||
        wharf_place_is_refused(run->core, job)) {
        *ret_outcome = wharf_place_refusal(run->core, job);
        return WHARF_ENGINE_AUTO;
    }
    if (wharf_job_compresses(job))
        compress_chunk(run->core, run->buffer, job, &chunk, &run->encoding, run->others,
                       ret_outcome);
    else
        run_chunk(run->core, run->buffer, job, &chunk, NULL, run->others, ret_outcome);
    return wharf_session_cpu_engine(job->session);
}

void wharf_cpu_run(struct wharf_core *core, struct wharf_cpu_buffer *buffer,
                   struct wharf_piece *piece, const struct wharf_cpu_others *others)
{
    const struct wharf_job *job = piece->job;
    struct run run = {core, buffer, others, encoding_of(piece)};

    piece->begun_ns = wharf_now_ns();
    for (uint32_t i = 0; i < piece->n_chunks; i++) {
        struct wharf_outcome outcome = {WHARF_OK, WHARF_REASON_NONE, 0, 0, 0};
        uint32_t engine = WHARF_ENGINE_AUTO;
        /* The rest of a stopped slice does not start. */
        if (piece->kind == WHARF_PIECE_SLICE)
            outcome.result = __atomic_load_n(&job->stopped, __ATOMIC_RELAXED);
        if (outcome.result == WHARF_OK)
            engine = run_at(&run, piece, i, &outcome);
        wharf_piece_take_outcome(piece, i, engine, &outcome);
    }
    if (run.encoding.encoder)
        wharf_encode_free(&run.encoding.choice, run.encoding.encoder);
    piece->ended_ns = wharf_now_ns();
}
