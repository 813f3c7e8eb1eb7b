/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_encode.c: compresses on the GPU: chunks for codecs of lines.
 *
 * The worker has a queue and a kernel of few warps for that, beside those that decode.  Each warp
 * has one chunk at a time, so a chunk that is taken is begun.  Background jobs are idle work
 * (idle_work.h): none begins while the GPU has as much to decode as it should have, and when they
 * delay decoding, the youngest are put off: withdrawn, and begun again later.
 *
 * As for large chunks, no memory is unregistered meanwhile.
 */
#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/piece.h"
#include "daemon/core/residency.h"
#include "daemon/core/session.h"
#include "daemon/dispatch/job_pieces.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/gpu/worker_message.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/gpu_room.h"
#include "daemon/placement/place_cost.h"
#include "daemon/placement/place_pick.h"
#include "daemon/schedule/idle_work.h"
#include "encoders/encode_job.h"
#include "kernels/device_batch.h"
#include "proto/wharf_job.h"

/* Chunks that are visited or begun under one hold of the core lock. */
#define MOST_LOOKS 64
/* The longest that a chunk takes, for each byte: a warp reaches 100 MB/s with the slowest codec,
 * and others may delay it. */
#define LONGEST_NS_PER_BYTE 200u
/* On the SIMT layer, which other programs keep waiting. */
#define SIMT_LONGEST_NS (20 * (uint64_t)WHARF_NS_PER_S)

void wharf_gpu_encode_init(struct wharf_gpu_backend *backend)
{
    wharf_list_init(&backend->encode.running);
    wharf_list_init(&backend->encode.waiting);
}

void wharf_gpu_encode_begin(struct wharf_gpu_backend *backend)
{
    struct wharf_gpu_encode *encode = &backend->encode;
    void *queue = wharf_worker_encode_queue(backend->queue.address, WHARF_GPU_N_ENTRIES);

    wharf_work_submitter_init(&encode->submitter, queue, WHARF_WORKER_ENCODE_ENTRIES);
    wharf_work_reaper_init(&encode->done, encode->submitter.queue.done,
                           WHARF_WORKER_ENCODE_ENTRIES);
    encode->n_warps = encode->n_taken = 0;
}

void wharf_gpu_encode_ready(struct wharf_gpu_backend *backend,
                            const struct wharf_worker_ready *ready)
{
    backend->encode.n_warps = ready->n_encode < WHARF_WORKER_ENCODE_ENTRIES
                                  ? ready->n_encode
                                  : WHARF_WORKER_ENCODE_ENTRIES;
}

static struct wharf_gpu_encode_place *place_at(struct wharf_gpu_encode *encode, uint32_t index)
{
    return &encode->places[index & (WHARF_WORKER_ENCODE_ENTRIES - 1)];
}

/* A running piece keeps its item's index. */
static struct wharf_gpu_encode_place *place_of(struct wharf_gpu_encode *encode,
                                               const struct wharf_gpu_piece *piece)
{
    return place_at(encode, piece->first);
}

/* ---- back from the worker ------------------------------------------------------------------ */

static bool is_sane(const struct wharf_gpu_encode_place *place,
                    const struct wharf_work_completion *completion)
{
    return place->piece && place->index == completion->item &&
           place->attempt == completion->attempt && completion->in_nbytes <= place->src_nbytes &&
           completion->out_nbytes <= place->dst_nbytes &&
           wharf_gpu_results_can_be(completion->result, completion->out_nbytes);
}

static void take_completion(struct wharf_gpu_backend *backend, struct wharf_gpu_encode_place *place,
                            const struct wharf_work_completion *completion, uint64_t now_ns)
{
    struct wharf_gpu_piece *piece = place->piece;
    bool is_stopped = __atomic_load_n(&piece->piece.job->stopped, __ATOMIC_RELAXED);

    place->piece = NULL;
    backend->encode.n_taken--;
    wharf_list_remove(&piece->link);
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
    bool is_to_wait = completion->result == WHARF_CANCELLED && place->is_put_off && !is_stopped;
    wharf_list_append(is_to_wait ? &backend->encode.waiting : &backend->finished, &piece->link);
}

bool wharf_gpu_encode_reap(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_gpu_encode *encode = &backend->encode;
    struct wharf_work_completion completion;
    unsigned n = 0;

    if (!backend->queue.address)
        return false;
    while (n < WHARF_WORKER_ENCODE_ENTRIES && wharf_work_reap(&encode->done, &completion)) {
        struct wharf_gpu_encode_place *place = place_at(encode, completion.item);
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

bool wharf_gpu_encode_hang(const struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    const struct wharf_gpu_piece *oldest =
        WHARF_LIST_FIRST(&backend->encode.running, struct wharf_gpu_piece, link);

    return oldest && now_ns > oldest->handed_ns + oldest->patience_ns;
}

void wharf_gpu_encode_count(struct wharf_gpu_backend *backend, const struct wharf_gpu_piece *piece)
{
    struct wharf_gpu_view *view = backend->view;

    view->n_encoded += piece->n_of_gpu;
    view->encoded_in_nbytes += piece->piece.in_nbytes;
    view->encoded_out_nbytes += piece->piece.out_nbytes;
}

/* ---- taking back --------------------------------------------------------------------------- */

/* Returns whether there was room for the cancel. */
static bool withdraw(struct wharf_gpu_encode *encode, struct wharf_gpu_encode_place *place)
{
    if (!place->is_withdrawn)
        place->is_withdrawn = wharf_work_withdraw(&encode->submitter, place->index, place->attempt);
    return place->is_withdrawn;
}

/* After any job was stopped. */
static void pass_cancels_on(struct wharf_gpu_backend *backend)
{
    struct wharf_gpu_encode *encode = &backend->encode;
    uint32_t n_stopped = backend->core->n_stopped;

    if (encode->n_stopped == n_stopped)
        return;
    WHARF_LIST_FOR(link, &encode->running)
    {
        struct wharf_gpu_piece *piece = WHARF_LIST_ENTRY(link, struct wharf_gpu_piece, link);
        if (piece->piece.job->stopped && !withdraw(encode, place_of(encode, piece)))
            return;
    }
    encode->n_stopped = n_stopped;
}

/* Whether idle work may be begun, beside so much. */
static bool may_begin_idle(const struct wharf_gpu_backend *backend)
{
    const struct wharf_idle_work *idle = &backend->view->idle_work;

    return idle->n_running < wharf_idle_work_allowed(idle, backend->encode.n_warps) &&
           wharf_place_gpu_has_room(backend->core, backend->gpu);
}

/* Puts the youngest idle work off, as far as there is more than may be. */
static void throttle(struct wharf_gpu_backend *backend)
{
    struct wharf_gpu_encode *encode = &backend->encode;
    struct wharf_idle_work *idle = &backend->view->idle_work;
    uint32_t allowed = wharf_idle_work_allowed(idle, encode->n_warps);
    struct wharf_list *link = encode->running.prev;

    for (uint32_t n = idle->n_running; n > allowed && link != &encode->running; link = link->prev) {
        struct wharf_gpu_piece *piece = WHARF_LIST_ENTRY(link, struct wharf_gpu_piece, link);
        struct wharf_gpu_encode_place *place = place_of(encode, piece);
        if (piece->piece.idle != idle)
            continue;
        n--;
        if (place->is_withdrawn)
            continue;
        if (!withdraw(encode, place))
            return;
        place->is_put_off = true;
    }
}

/* What was put off since the last look. */
static void count_put_off(struct wharf_gpu_backend *backend)
{
    WHARF_LIST_FOR(link, &backend->encode.waiting)
    {
        struct wharf_piece *piece = &WHARF_LIST_ENTRY(link, struct wharf_gpu_piece, link)->piece;
        if (piece->idle)
            wharf_idle_work_put_off(piece->idle, piece);
    }
}

/* ---- to the worker ------------------------------------------------------------------------- */

/* Skips queue entries of items in flight.  Returns whether the next entry is free. */
static bool find_entry(struct wharf_gpu_encode *encode)
{
    struct wharf_work_submitter *submitter = &encode->submitter;

    while (wharf_work_room(submitter) > 0) {
        const struct wharf_gpu_encode_place *place = place_at(encode, submitter->tail);
        if (!place->piece)
            return true;
        if (!wharf_work_can_pass(submitter, submitter->tail, place->index))
            return false;
        wharf_work_pass(submitter);
    }
    return false;
}

/* Whether a warp is free; memory that is to be unregistered comes first. */
static bool may_begin(struct wharf_gpu_backend *backend)
{
    struct wharf_gpu_encode *encode = &backend->encode;

    return backend->state == WHARF_GPU_UP && !backend->stop && !backend->is_alone &&
           !backend->large.is_held && wharf_list_is_empty(&backend->told.forgotten) &&
           encode->n_taken < encode->n_warps && find_entry(encode);
}

/* The item's parameter: the shape of lines. */
static uint16_t parameter_of(const struct wharf_submission *submission)
{
    const struct wharf_encode_choice choice = {submission->codec, submission->parameter,
                                               submission->encoder, submission->level};
    struct wharf_line_choice lines;

    if (!wharf_encode_lines(&choice, &lines))
        return 0; /* not where it was placed rightly; the kernel refuses it */
    return (uint16_t)WHARF_WORK_LINES((uint32_t)__builtin_ctz(lines.line_nbytes), lines.layout,
                                      lines.type);
}

static uint64_t patience_of(const struct wharf_gpu_backend *backend, uint64_t nbytes)
{
    uint64_t ns = LONGEST_NS_PER_BYTE * nbytes;

    if (backend->engine == WHARF_ENGINE_SIMT)
        ns = SIMT_LONGEST_NS + ns * WHARF_GPU_SIMT_TIMES;
    return backend->core->config.gpu_hang_timeout_ns + ns;
}

static void submit(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece,
                   uint64_t now_ns)
{
    struct wharf_gpu_encode *encode = &backend->encode;
    const struct wharf_job *job = gpu_piece->piece.job;
    const struct wharf_submission *submission = &job->submission;
    struct wharf_piece_span chunk = wharf_piece_span_at(&gpu_piece->piece, 0);
    uint32_t opcode = wharf_gpu_opcode(submission);
    struct wharf_work_item item = {
        .src = wharf_gpu_device_address(backend, chunk.source, chunk.src_offset),
        .dst = wharf_gpu_device_address(backend, chunk.destination, chunk.dst_offset),
        .src_nbytes = (uint32_t)chunk.in_nbytes,
        .dst_nbytes = (uint32_t)chunk.out_avail,
        .attempt = wharf_gpu_next_attempt(backend),
        .codec = submission->codec,
        .parameter = parameter_of(submission),
        .opcode = (uint8_t)(opcode == WHARF_WORK_DECODE ? WHARF_WORK_ENCODE : opcode),
        .output = chunk.destination->is_device ? WHARF_WORK_TO_DEVICE : WHARF_WORK_TO_HOST,
    };

    wharf_list_append(&encode->running, &gpu_piece->link);
    gpu_piece->has_places = gpu_piece->is_faulting = false;
    gpu_piece->has_device = wharf_regions_need_gpu(chunk.source, chunk.destination);
    gpu_piece->n_items = gpu_piece->n_left = 0;
    gpu_piece->handed_ns = backend->flight.active_ns = now_ns;
    gpu_piece->patience_ns = patience_of(backend, chunk.in_nbytes);
    gpu_piece->round = (struct wharf_gpu_round){.n_there = 1};
    gpu_piece->first = wharf_work_submit(&encode->submitter, &item);
    *place_of(encode, gpu_piece) = (struct wharf_gpu_encode_place){
        .piece = gpu_piece,
        .index = gpu_piece->first,
        .attempt = item.attempt,
        .src_nbytes = item.src_nbytes,
        .dst_nbytes = item.dst_nbytes,
    };
    encode->n_taken++;
    gpu_piece->is_alone = backend->is_alone = job->session->tenant->gpu_trust.n_alone > 0;
}

/* One that was put off has had the use of its memory all the time. */
static void begin(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece,
                  uint64_t now_ns)
{
    if (!gpu_piece->is_aside)
        wharf_gpu_room_use(backend->gpu, gpu_piece->piece.job, now_ns);
    gpu_piece->is_aside = true;
    gpu_piece->is_stream = false;
    /* Its time tells nothing of the CPU's encoder, nor of the GPU's decoder. */
    gpu_piece->piece.is_crowded = true;
    wharf_idle_work_begin(&backend->view->idle_work, &gpu_piece->piece);
    submit(backend, gpu_piece, now_ns);
}

/* Why a chunk is ended instead of begun; OK: it is not. */
static uint32_t refusal_of(const struct wharf_gpu_backend *backend, const struct wharf_job *job)
{
    if (job->stopped)
        return job->stopped;
    if (backend->encode.n_warps == 0 ||
        wharf_gpu_memory_of_job(job, backend->gpu) == WHARF_GPU_MEMORY_REFUSED)
        return WHARF_NO_MEMORY;
    return WHARF_OK;
}

/* Whether a suspect's chunk must wait until it can run alone; others then wait with it. */
static bool has_to_wait(const struct wharf_gpu_backend *backend, const struct wharf_job *job,
                        bool *ret_others_wait)
{
    bool is_aside = backend->large.n_taken > 0 || backend->encode.n_taken > 0;

    if (job->session->tenant->gpu_trust.n_alone == 0)
        return false;
    *ret_others_wait = backend->flight.n_items > 0 && !is_aside;
    return backend->flight.n_items > 0 || is_aside;
}

void wharf_gpu_encode_await(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece)
{
    backend->flight.n_without_places++;
    piece->is_aside = false;
    wharf_list_append(&backend->encode.waiting, &piece->link);
}

/* Ends or passes on a piece that waited.  It has a use of its memory if it was begun before. */
static void stop_waiting(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece)
{
    wharf_list_remove(&piece->link);
    backend->flight.n_without_places--;
    if (piece->is_aside)
        wharf_gpu_end_use(backend, piece->piece.job);
    piece->is_aside = false;
}

/* Begins the first of the pieces that wait.  Returns whether to continue with the next one. */
static bool see_to_first(struct wharf_gpu_backend *backend, uint64_t now_ns, bool *ret_others_wait)
{
    struct wharf_list *waiting = &backend->encode.waiting;
    struct wharf_gpu_piece *piece = WHARF_LIST_FIRST(waiting, struct wharf_gpu_piece, link);
    const struct wharf_job *job = piece->piece.job;
    uint32_t refusal = refusal_of(backend, job);

    if (refusal != WHARF_OK) {
        stop_waiting(backend, piece);
        wharf_gpu_results_end(backend, piece, WHARF_ENGINE_AUTO,
                              &(struct wharf_outcome){.result = refusal});
        return true;
    }
    if (wharf_gpu_memory_of_job(job, backend->gpu) != WHARF_GPU_MEMORY_READY) {
        wharf_gpu_room_want(backend->core, job, now_ns);
        wharf_list_rotate(waiting);
        return true;
    }
    if (has_to_wait(backend, job, ret_others_wait) || !may_begin(backend))
        return false;
    if (job->lane == WHARF_LANE_IDLE && !may_begin_idle(backend)) {
        wharf_list_rotate(waiting);
        return true;
    }
    wharf_list_remove(&piece->link);
    begin(backend, piece, now_ns);
    return true;
}

/* Takes a job's next chunk.  Returns whether there may be more. */
static bool take_one(struct wharf_gpu_backend *backend, uint64_t now_ns, bool *ret_others_wait)
{
    struct wharf_core *core = backend->core;
    struct wharf_gpu_piece *gpu_piece;
    struct wharf_job *job;
    uint32_t refusal;
    bool takes_idle;

    if (!wharf_gpu_may_keep(backend, 1))
        return false;
    if (backend->encode.n_warps > 0 && !may_begin(backend))
        return false;
    /* What was put off comes first. */
    takes_idle = wharf_list_is_empty(&backend->encode.waiting) && may_begin_idle(backend);
    job = wharf_place_first_to_encode(core, backend->gpu, takes_idle);
    if (!job || has_to_wait(backend, job, ret_others_wait))
        return false;
    gpu_piece = WHARF_LIST_FIRST(&backend->free_pieces, struct wharf_gpu_piece, link);
    wharf_list_remove(&gpu_piece->link);
    wharf_core_take_for_gpu(core, backend->gpu, job, 1, now_ns, &gpu_piece->piece);
    gpu_piece->piece.begun_ns = now_ns;
    gpu_piece->is_aside = false;
    refusal = refusal_of(backend, job);
    /* A queued chunk has its memory here, or it is refused. */
    if (refusal == WHARF_OK && wharf_gpu_memory_of_job(job, backend->gpu) != WHARF_GPU_MEMORY_READY)
        refusal = WHARF_NO_MEMORY;
    if (refusal != WHARF_OK) {
        wharf_gpu_results_end(backend, gpu_piece, WHARF_ENGINE_AUTO,
                              &(struct wharf_outcome){.result = refusal});
        return true;
    }
    backend->flight.n_without_places++;
    begin(backend, gpu_piece, now_ns);
    return true;
}

bool wharf_gpu_encode_pump(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_gpu_encode *encode = &backend->encode;
    const struct wharf_list *last = encode->waiting.prev;
    bool is_last = wharf_list_is_empty(&encode->waiting), others_wait = false, is_more = true;

    pass_cancels_on(backend);
    count_put_off(backend);
    throttle(backend);
    for (unsigned n = 0; n < MOST_LOOKS && is_more && !is_last; n++) {
        is_last = encode->waiting.next == last;
        is_more = see_to_first(backend, now_ns, &others_wait);
    }
    is_more &= !backend->stop;
    for (unsigned n = 0; n < MOST_LOOKS && is_more; n++)
        is_more = take_one(backend, now_ns, &others_wait);
    backend->view->n_encode_free = encode->n_warps - encode->n_taken;
    return !others_wait;
}

void wharf_gpu_encode_publish(struct wharf_gpu_backend *backend)
{
    wharf_gpu_publish_queue(&backend->encode.submitter);
}

/* ---- the end ------------------------------------------------------------------------------- */

struct wharf_gpu_piece *wharf_gpu_encode_lose(struct wharf_gpu_backend *backend)
{
    struct wharf_gpu_encode *encode = &backend->encode;
    struct wharf_gpu_piece *piece =
        WHARF_LIST_FIRST(&encode->running, struct wharf_gpu_piece, link);

    if (piece) {
        place_of(encode, piece)->piece = NULL;
        encode->n_taken--;
    } else {
        piece = WHARF_LIST_FIRST(&encode->waiting, struct wharf_gpu_piece, link);
    }
    if (!piece)
        return NULL;
    stop_waiting(backend, piece);
    wharf_idle_work_ended(backend->core, &piece->piece);
    return piece;
}
