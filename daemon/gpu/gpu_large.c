/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_large.c: large chunks on the GPU: those in clients' GPU memory, and those of sessions that
 * want no other engine.
 *
 * These are chunks over [gpu] chunk, and chunks that the main kernel had for longer than [gpu]
 * longest.  The worker has a few places for them, with a queue and a kernel of their own, so that
 * no other job waits for them: the main kernel comes and goes as if they were not there.
 *
 * Of Deflate, zlib and gzip the whole GPU decodes a large chunk at once, as a stream, one after the
 * other.  These have a queue of their own; the main kernel has part of the GPU meanwhile.
 *
 * Memory can be unregistered only while neither kernel is on the GPU.  So while there are large
 * chunks no memory is unregistered, and while some waits for that no large chunk is begun.
 */
#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/piece.h"
#include "daemon/core/residency.h"
#include "daemon/core/session.h"
#include "daemon/dispatch/job_pieces.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/gpu/worker_message.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/gpu_models.h"
#include "daemon/placement/gpu_room.h"
#include "daemon/placement/place.h"
#include "daemon/placement/place_pick.h"
#include "kernels/device_batch.h"
#include "kernels/epoch_streams.h"
#include "proto/wharf_job.h"

/* Chunks that are visited under one hold of the core lock. */
#define MOST_LOOKS 64
/* The SIMT engine may take so much longer to notice that an item was withdrawn. */
#define SIMT_HEARS_NS (20 * (uint64_t)WHARF_NS_PER_S)

void wharf_gpu_large_init(struct wharf_gpu_backend *backend)
{
    wharf_list_init(&backend->large.waiting);
}

static void begin_queue(struct wharf_gpu_large_queue *queue, void *memory)
{
    wharf_work_submitter_init(&queue->submitter, memory, WHARF_WORKER_LARGE_ENTRIES);
    wharf_work_reaper_init(&queue->done, queue->submitter.queue.done, WHARF_WORKER_LARGE_ENTRIES);
}

void wharf_gpu_large_begin(struct wharf_gpu_backend *backend)
{
    struct wharf_gpu_large *large = &backend->large;
    void *memory = backend->queue.address;

    begin_queue(&large->warps, wharf_worker_large_queue(memory, WHARF_GPU_N_ENTRIES));
    begin_queue(&large->streams, wharf_worker_stream_queue(memory, WHARF_GPU_N_ENTRIES));
    large->n_places = large->n_taken = 0;
    large->least_stream = 0;
}

void wharf_gpu_large_ready(struct wharf_gpu_backend *backend,
                           const struct wharf_worker_ready *ready)
{
    struct wharf_gpu_large *large = &backend->large;
    uint64_t nbytes = wharf_worker_large_place_nbytes(backend->config.gpu_large_nbytes);

    large->n_places =
        ready->n_large < WHARF_WORKER_MOST_LARGE ? ready->n_large : WHARF_WORKER_MOST_LARGE;
    large->least_stream = large->n_places > 0 ? ready->least_stream : 0;
    for (uint32_t i = 0; i < large->n_places; i++)
        large->places[i] = (struct wharf_gpu_large_place){.address = ready->large + i * nbytes};
}

/* ---- back from the worker ------------------------------------------------------------------ */

static struct wharf_gpu_large_queue *queue_of(struct wharf_gpu_large *large, bool is_stream)
{
    return is_stream ? &large->streams : &large->warps;
}

static struct wharf_gpu_large_place *place_of(struct wharf_gpu_large *large, bool is_stream,
                                              const struct wharf_work_completion *completion)
{
    for (uint32_t i = 0; i < large->n_places; i++) {
        struct wharf_gpu_large_place *place = &large->places[i];
        if (place->piece && place->is_stream == is_stream && place->index == completion->item &&
            place->attempt == completion->attempt)
            return place;
    }
    return NULL;
}

/* The worker got no scratch for a stream. */
static bool lacks_memory(const struct wharf_gpu_large_place *place,
                         const struct wharf_work_completion *completion)
{
    return place->is_stream && completion->result == WHARF_NO_MEMORY;
}

static bool is_sane(const struct wharf_gpu_large_place *place,
                    const struct wharf_work_completion *completion)
{
    return place && completion->in_nbytes <= place->src_nbytes &&
           completion->out_nbytes <= place->dst_nbytes &&
           (wharf_gpu_results_can_be(completion->result, completion->out_nbytes) ||
            (lacks_memory(place, completion) && completion->out_nbytes == 0));
}

/* Decides about a chunk that took too long.  The CPU has it, if it is here by choice, or a
 * suspect's, since that ran alone and kept all others waiting.  Any other ends with the name of the
 * limit. */
static void end_for_time(const struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece)
{
    piece->is_recalled =
        !piece->has_device && (piece->is_alone || !wharf_gpu_is_forced(backend, piece));
    piece->outcome = (struct wharf_outcome){
        .result = WHARF_QUOTA,
        .reason = WHARF_REASON_GPU_LARGE_TIME,
    };
}

/* A stream is there no more: the next one begins. */
static void begin_next(struct wharf_gpu_large *large, uint64_t now_ns)
{
    struct wharf_gpu_large_place *next = NULL;

    for (uint32_t i = 0; i < large->n_places; i++) {
        struct wharf_gpu_large_place *place = &large->places[i];
        if (place->piece && place->is_stream &&
            (!next || (int32_t)(place->index - next->index) < 0))
            next = place;
    }
    if (next)
        next->begun_ns = now_ns;
}

static void take_completion(struct wharf_gpu_backend *backend, struct wharf_gpu_large_place *place,
                            const struct wharf_work_completion *completion, uint64_t now_ns)
{
    struct wharf_gpu_piece *piece = place->piece;
    bool is_stopped = __atomic_load_n(&piece->piece.job->stopped, __ATOMIC_RELAXED);

    place->piece = NULL;
    if (place->is_stream)
        begin_next(&backend->large, now_ns);
    /* Its tenant does not pay for the streams before it. */
    piece->stream_ns = place->begun_ns < now_ns ? now_ns - place->begun_ns : 0;
    backend->large.n_taken--;
    piece->is_told = piece->is_refused = piece->is_recalled = false;
    piece->engine = (uint8_t)backend->engine;
    piece->round.elapsed_ns = now_ns - piece->handed_ns;
    piece->outcome = (struct wharf_outcome){
        .result = completion->result,
        .reason = completion->reason,
        .bit_offset = completion->bit_offset,
        .in_nbytes = completion->in_nbytes,
        .out_nbytes = completion->out_nbytes,
    };
    if (completion->result == WHARF_CANCELLED && place->is_over && !is_stopped)
        end_for_time(backend, piece);
    if (lacks_memory(place, completion)) {
        backend->large.least_stream = 0;
        piece->is_recalled = !piece->has_device && !wharf_gpu_is_forced(backend, piece);
    }
    wharf_list_append(&backend->finished, &piece->link);
}

static bool reap(struct wharf_gpu_backend *backend, bool is_stream, uint64_t now_ns)
{
    struct wharf_gpu_large *large = &backend->large;
    struct wharf_work_reaper *done = &queue_of(large, is_stream)->done;
    struct wharf_work_completion completion;
    unsigned n = 0;

    while (n < WHARF_WORKER_MOST_LARGE && wharf_work_reap(done, &completion)) {
        struct wharf_gpu_large_place *place = place_of(large, is_stream, &completion);
        if (!is_sane(place, &completion)) {
            wharf_gpu_worker_kill(backend, "it completed what it did not have");
            break;
        }
        take_completion(backend, place, &completion, now_ns);
        backend->flight.active_ns = now_ns;
        n++;
    }
    return n > 0;
}

bool wharf_gpu_large_reap(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    if (!backend->queue.address)
        return false;
    bool is_any = reap(backend, false, now_ns);
    return reap(backend, true, now_ns) || is_any;
}

/* ---- taking back --------------------------------------------------------------------------- */

/* How long a chunk may have its place: less for a suspect's, beside which nothing else runs. */
static uint64_t most_ns(const struct wharf_gpu_backend *backend,
                        const struct wharf_gpu_large_place *place)
{
    const struct wharf_config *config = &backend->core->config;
    uint64_t most = config->gpu_large_longest_ns;

    if (place->piece->is_alone && config->gpu_longest_ns && config->gpu_longest_ns < most)
        most = config->gpu_longest_ns;
    return backend->engine == WHARF_ENGINE_SIMT ? most * WHARF_GPU_SIMT_TIMES : most;
}

static void take_back(struct wharf_gpu_backend *backend, struct wharf_gpu_large_place *place,
                      uint64_t now_ns)
{
    bool is_stopped = place->piece->piece.job->stopped;

    if (place->withdrawn_ns ||
        (!is_stopped &&
         (place->begun_ns == WHARF_NEVER || now_ns < place->begun_ns + most_ns(backend, place))))
        return;
    if (!wharf_work_withdraw(&queue_of(&backend->large, place->is_stream)->submitter, place->index,
                             place->attempt))
        return;
    place->withdrawn_ns = now_ns;
    place->patience_ns = backend->core->config.gpu_hang_timeout_ns +
                         (backend->engine == WHARF_ENGINE_SIMT ? SIMT_HEARS_NS : 0);
    place->is_over = !is_stopped;
}

bool wharf_gpu_large_hang(const struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    const struct wharf_gpu_large *large = &backend->large;

    for (uint32_t i = 0; i < large->n_places; i++) {
        const struct wharf_gpu_large_place *place = &large->places[i];
        /* A stream that waits for another one hears of nothing. */
        uint64_t since_ns =
            place->begun_ns > place->withdrawn_ns ? place->begun_ns : place->withdrawn_ns;
        if (place->piece && place->withdrawn_ns && since_ns != WHARF_NEVER &&
            now_ns > since_ns + place->patience_ns)
            return true;
    }
    return false;
}

/* ---- to the worker ------------------------------------------------------------------------- */

static struct wharf_gpu_large_place *free_place(struct wharf_gpu_large *large)
{
    for (uint32_t i = 0; i < large->n_places; i++)
        if (!large->places[i].piece)
            return &large->places[i];
    return NULL;
}

/* Streams are decoded one after the other: whether one is there. */
static bool is_decoding(const struct wharf_gpu_large *large)
{
    for (uint32_t i = 0; i < large->n_places; i++)
        if (large->places[i].piece && large->places[i].is_stream)
            return true;
    return false;
}

/* The item in flight that occupies the queue entry of the next one, or NULL. */
static const struct wharf_gpu_large_place *in_the_way(const struct wharf_gpu_large *large,
                                                      bool is_stream, uint32_t index)
{
    for (uint32_t i = 0; i < large->n_places; i++) {
        const struct wharf_gpu_large_place *place = &large->places[i];
        if (place->piece && place->is_stream == is_stream &&
            ((place->index ^ index) & (WHARF_WORKER_LARGE_ENTRIES - 1)) == 0)
            return place;
    }
    return NULL;
}

/* Skips queue entries of items in flight.  Returns whether the next entry is free. */
static bool find_entry(struct wharf_gpu_large *large, bool is_stream)
{
    struct wharf_work_submitter *submitter = &queue_of(large, is_stream)->submitter;
    const struct wharf_gpu_large_place *place;

    while (wharf_work_room(submitter) > 0) {
        if (!(place = in_the_way(large, is_stream, submitter->tail)))
            return true;
        if (!wharf_work_can_pass(submitter, submitter->tail, place->index))
            return false;
        wharf_work_pass(submitter);
    }
    return false;
}

/* Whether a large chunk can be begun now; memory that is to be unregistered comes first. */
static bool may_begin(struct wharf_gpu_backend *backend)
{
    return backend->state == WHARF_GPU_UP && !backend->stop && !backend->is_alone &&
           !backend->large.is_held && wharf_list_is_empty(&backend->told.forgotten) &&
           free_place(&backend->large) && find_entry(&backend->large, false) &&
           find_entry(&backend->large, true);
}

/* Whether the whole GPU decodes the chunk. */
static bool is_stream(const struct wharf_gpu_backend *backend, const struct wharf_piece *piece)
{
    const struct wharf_submission *submission = &piece->job->submission;

    return backend->large.least_stream > 0 && wharf_gpu_opcode(submission) == WHARF_WORK_DECODE &&
           wharf_place_can_stream(submission) &&
           wharf_piece_span_at(piece, 0).in_nbytes >= backend->large.least_stream;
}

static void submit(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece,
                   uint64_t now_ns)
{
    struct wharf_gpu_large_place *place = free_place(&backend->large);
    const struct wharf_job *job = gpu_piece->piece.job;
    const struct wharf_submission *submission = &job->submission;
    struct wharf_piece_span chunk = wharf_piece_span_at(&gpu_piece->piece, 0);
    uint32_t opcode = wharf_gpu_opcode(submission);
    bool as_stream = is_stream(backend, &gpu_piece->piece);
    bool has_stream = is_decoding(&backend->large);
    struct wharf_work_item item = {
        .src = wharf_gpu_device_address(backend, chunk.source, chunk.src_offset),
        .dst = wharf_gpu_device_address(backend, chunk.destination, chunk.dst_offset),
        .src_nbytes = (uint32_t)chunk.in_nbytes,
        .dst_nbytes = (uint32_t)chunk.out_avail,
        .staging = place->address,
        .attempt = wharf_gpu_next_attempt(backend),
        .checksum = chunk.checksum,
        .codec = submission->codec,
        .parameter = wharf_gpu_device_parameter(backend, job),
        .flags = (uint16_t)submission->flags,
        .opcode = (uint8_t)(opcode == WHARF_WORK_DECODE ? WHARF_WORK_DECODE_LARGE : opcode),
        .output = chunk.destination->is_device ? WHARF_WORK_TO_DEVICE : WHARF_WORK_TO_HOST,
    };
    if (wharf_job_discards(job)) {
        item.output = WHARF_WORK_TO_NOWHERE;
        item.dst = 0;
    }

    if (job->model)
        wharf_gpu_models_use(backend->view, &job->model->memory->on[backend->gpu], now_ns);
    wharf_gpu_room_use(backend->gpu, job, now_ns);
    gpu_piece->is_aside = true;
    gpu_piece->is_stream = as_stream;
    gpu_piece->has_places = gpu_piece->is_faulting = false;
    gpu_piece->has_device = wharf_regions_need_gpu(chunk.source, chunk.destination);
    gpu_piece->n_items = gpu_piece->n_left = 0;
    gpu_piece->handed_ns = backend->flight.active_ns = now_ns;
    gpu_piece->round = (struct wharf_gpu_round){.n_there = 1};
    *place = (struct wharf_gpu_large_place){
        .piece = gpu_piece,
        .address = place->address,
        .index = wharf_work_submit(&queue_of(&backend->large, as_stream)->submitter, &item),
        .attempt = item.attempt,
        .src_nbytes = item.src_nbytes,
        .dst_nbytes = item.dst_nbytes,
        .is_stream = as_stream,
        .begun_ns = as_stream && has_stream ? WHARF_NEVER : now_ns,
    };
    if (as_stream)
        backend->view->n_stream_free = 0;
    backend->large.n_taken++;
    gpu_piece->is_alone = backend->is_alone = job->session->tenant->gpu_trust.n_alone > 0;
}

static bool fits(const struct wharf_gpu_backend *backend, const struct wharf_piece *piece)
{
    struct wharf_piece_span chunk = wharf_piece_span_at(piece, 0);
    uint64_t most = backend->config.gpu_large_nbytes;
    bool as_stream = is_stream(backend, piece);
    uint64_t most_in = as_stream ? WHARF_STREAM_MAX_SRC_NBYTES : WHARF_DEVICE_CHUNK_MAX_NBYTES;
    uint64_t most_out = as_stream ? UINT32_MAX : WHARF_DEVICE_CHUNK_MAX_NBYTES;

    return chunk.in_nbytes <= most_in && chunk.out_avail <= most_out &&
           chunk.in_nbytes + chunk.out_avail <= most;
}

/* Why a chunk is ended instead of begun; OK: it is not. */
static struct wharf_outcome refusal_of(const struct wharf_gpu_backend *backend,
                                       const struct wharf_piece *piece)
{
    struct wharf_outcome outcome = {.result = piece->job->stopped};

    if (outcome.result != WHARF_OK)
        return outcome;
    if (wharf_job_discards(piece->job) && !is_stream(backend, piece))
        outcome =
            (struct wharf_outcome){.result = WHARF_BAD_REQUEST, .reason = WHARF_REASON_GPU_CODEC};
    else if (backend->large.n_places == 0 ||
             wharf_gpu_memory_of_job(piece->job, backend->gpu) == WHARF_GPU_MEMORY_REFUSED)
        outcome.result = WHARF_NO_MEMORY;
    else if (!fits(backend, piece))
        outcome = (struct wharf_outcome){.result = WHARF_QUOTA, .reason = WHARF_REASON_GPU_LARGE};
    return outcome;
}

/* Whether a suspect's large chunk must wait until it can run alone.  Items of the main kernel end
 * soon, so other large chunks wait with it; they do not wait for a large chunk, which takes
 * long. */
static bool has_to_wait(const struct wharf_gpu_backend *backend, const struct wharf_job *job,
                        bool *ret_others_wait)
{
    if (job->session->tenant->gpu_trust.n_alone == 0)
        return false;
    *ret_others_wait = backend->flight.n_items > 0 && backend->large.n_taken == 0;
    return backend->flight.n_items > 0 || backend->large.n_taken > 0;
}

void wharf_gpu_large_await(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece)
{
    backend->flight.n_without_places++;
    wharf_list_append(&backend->large.waiting, &piece->link);
}

/* Passes a banned tenant's chunk to the CPU, if that can decode it. */
static void leave_to_cpu(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece)
{
    const struct wharf_outcome fault = {.result = WHARF_DEVICE_FAULT};
    struct wharf_piece_span chunk = wharf_piece_span_at(&piece->piece, 0);

    if (wharf_regions_need_gpu(chunk.source, chunk.destination))
        wharf_gpu_results_end(backend, piece, WHARF_ENGINE_AUTO, &fault);
    else
        wharf_gpu_recovery_requeue(backend, piece);
}

/* Handles the first of the chunks that the main kernel gave up.  Returns whether to continue with
 * the next one. */
static bool see_to_first(struct wharf_gpu_backend *backend, uint64_t now_ns, bool *ret_others_wait)
{
    struct wharf_list *waiting = &backend->large.waiting;
    struct wharf_gpu_piece *piece = WHARF_LIST_FIRST(waiting, struct wharf_gpu_piece, link);
    const struct wharf_job *job = piece->piece.job;
    struct wharf_outcome refusal = refusal_of(backend, &piece->piece);

    if (refusal.result != WHARF_OK) {
        wharf_list_remove(&piece->link);
        backend->flight.n_without_places--;
        wharf_gpu_results_end(backend, piece, WHARF_ENGINE_AUTO, &refusal);
    } else if (job->session->tenant->gpu_trust.banned_until_ns > now_ns) {
        wharf_list_remove(&piece->link);
        backend->flight.n_without_places--;
        leave_to_cpu(backend, piece);
    } else if (wharf_gpu_memory_of_job(job, backend->gpu) != WHARF_GPU_MEMORY_READY) {
        wharf_gpu_room_want(backend->core, job, now_ns);
        wharf_list_rotate(waiting);
    } else if (has_to_wait(backend, job, ret_others_wait)) {
        return false;
    } else if (may_begin(backend)) {
        wharf_list_remove(&piece->link);
        submit(backend, piece, now_ns);
    } else {
        return false;
    }
    return true;
}

/* Takes a job's next chunk.  Returns whether there may be more. */
static bool take_one(struct wharf_gpu_backend *backend, uint64_t now_ns, bool *ret_others_wait)
{
    struct wharf_core *core = backend->core;
    struct wharf_job *job = wharf_place_first_large(core, backend->gpu);
    struct wharf_gpu_piece *gpu_piece;
    struct wharf_outcome refusal;

    if (!job || !wharf_gpu_may_keep(backend, 1))
        return false;
    if (has_to_wait(backend, job, ret_others_wait))
        return false;
    if (backend->large.n_places > 0 && !may_begin(backend))
        return false;
    gpu_piece = WHARF_LIST_FIRST(&backend->free_pieces, struct wharf_gpu_piece, link);
    wharf_list_remove(&gpu_piece->link);
    wharf_core_take_for_gpu(core, backend->gpu, job, 1, now_ns, &gpu_piece->piece);
    gpu_piece->piece.begun_ns = now_ns;
    refusal = refusal_of(backend, &gpu_piece->piece);
    /* As in the main kernel, a queued chunk has its memory here, or it is refused. */
    if (refusal.result == WHARF_OK &&
        wharf_gpu_memory_of_job(job, backend->gpu) != WHARF_GPU_MEMORY_READY)
        refusal.result = WHARF_NO_MEMORY;
    if (refusal.result != WHARF_OK) {
        wharf_gpu_results_end(backend, gpu_piece, WHARF_ENGINE_AUTO, &refusal);
        return true;
    }
    backend->flight.n_without_places++;
    submit(backend, gpu_piece, now_ns);
    return true;
}

/* What placement judges by.  `is_blocked`: the next chunk cannot be begun, and those behind it wait
 * for it. */
static void tell_place(struct wharf_gpu_backend *backend, bool is_blocked)
{
    const struct wharf_gpu_large *large = &backend->large;
    struct wharf_gpu_view *view = backend->view;
    struct wharf_core *core = backend->core;

    view->n_large = large->n_places;
    view->n_large_free = large->n_places - large->n_taken;
    view->has_streams = large->least_stream > 0;
    view->n_stream_free =
        view->has_streams && !is_blocked && !is_decoding(large) && may_begin(backend);
    if (wharf_place_n_streams_left(core) > 0)
        core->nothing_fits = false;
}

bool wharf_gpu_large_pump(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_gpu_large *large = &backend->large;
    const struct wharf_list *last = large->waiting.prev;
    bool is_last = wharf_list_is_empty(&large->waiting), others_wait = false, is_more = true;

    for (uint32_t i = 0; i < large->n_places; i++)
        if (large->places[i].piece)
            take_back(backend, &large->places[i], now_ns);
    for (unsigned n = 0; n < MOST_LOOKS && is_more && !is_last; n++) {
        is_last = large->waiting.next == last;
        is_more = see_to_first(backend, now_ns, &others_wait);
    }
    /* What waits for its memory is not in the way of others. */
    is_more &= !backend->stop;
    /* A chunk that is not to be taken any more, since the worker is another one or got no scratch,
     * is placed anew. */
    bool is_blocked = !is_more;
    tell_place(backend, is_blocked);
    for (unsigned n = 0; n < MOST_LOOKS && is_more; n++)
        is_more = take_one(backend, now_ns, &others_wait);
    tell_place(backend, is_blocked || wharf_place_first_large(backend->core, backend->gpu) != NULL);
    return !others_wait;
}

void wharf_gpu_large_publish(struct wharf_gpu_backend *backend)
{
    wharf_gpu_publish_queue(&backend->large.warps.submitter);
    wharf_gpu_publish_queue(&backend->large.streams.submitter);
}

/* ---- the end ------------------------------------------------------------------------------- */

struct wharf_gpu_piece *wharf_gpu_large_lose(struct wharf_gpu_backend *backend)
{
    struct wharf_gpu_large *large = &backend->large;
    struct wharf_gpu_piece *piece = NULL;

    for (uint32_t i = 0; i < large->n_places && !piece; i++) {
        piece = large->places[i].piece;
        large->places[i].piece = NULL;
    }
    if (piece) {
        large->n_taken--;
        wharf_gpu_end_use(backend, piece->piece.job);
    } else if ((piece = WHARF_LIST_FIRST(&large->waiting, struct wharf_gpu_piece, link))) {
        wharf_list_remove(&piece->link);
    }
    backend->flight.n_without_places -= piece != NULL;
    return piece;
}
