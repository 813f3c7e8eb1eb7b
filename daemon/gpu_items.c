/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_items.c: work to the worker and back. */
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/cleanup.h"
#include "daemon/clock.h"
#include "daemon/front.h"
#include "daemon/gpu_memory.h"
#include "daemon/gpu_models.h"
#include "daemon/gpu_state.h"
#include "daemon/place_parts.h"
#include "kernels/work_parts.h"
#include "proto/wharf_job.h"

/* Completions that are taken between two looks at anything else. */
#define MOST_REAPED 1024
/* Pieces that are handed back, or looked at for cancels, under one hold of the front lock, at some
 * 200 ns each. */
#define MOST_BACK 64
#define MOST_CANCEL_LOOKS 1024
/* Chunks of a piece.  Places for them are looked for under the lock, and a batch is cut into as
 * many pieces as it takes. */
#define MOST_CHUNKS 64
/* A piece's results whose writing takes longer have waited for their client's memory. */
#define SLOW_NS (50 * (uint64_t)WHARF_NS_PER_MS)
/* A piece takes at most so much longer than it was estimated to. */
#define PATIENCE_FACTOR 16

int wharf_gpu_items_init(struct wharf_gpu_backend *backend)
{
    backend->queue.fd = -1;
    wharf_list_init(&backend->free_pieces);
    wharf_list_init(&backend->under_way);
    wharf_list_init(&backend->finished);
    wharf_list_init(&backend->again);
    backend->items = calloc(WHARF_GPU_N_ENTRIES, sizeof(*backend->items));
    backend->pieces = calloc(WHARF_GPU_N_ENTRIES, sizeof(*backend->pieces));
    if (!backend->items || !backend->pieces)
        return -ENOMEM;
    for (uint32_t i = 0; i < WHARF_GPU_N_ENTRIES; i++) {
        backend->pieces[i].backend = backend;
        wharf_list_append(&backend->free_pieces, &backend->pieces[i].link);
    }
    return 0;
}

void wharf_gpu_items_deinit(struct wharf_gpu_backend *backend)
{
    wharf_segment_free(&backend->queue);
    wharf_segment_free(&backend->proof.memory);
    free(backend->staging.free_places);
    wharf_cpu_buffer_deinit(&backend->buffer);
    free(backend->items);
    free(backend->pieces);
}

int wharf_gpu_items_begin(struct wharf_gpu_backend *backend)
{
    struct wharf_segment queue;
    int r = wharf_segment_make(WHARF_SEGMENT_WORKER, wharf_work_queue_nbytes(WHARF_GPU_N_ENTRIES),
                               &queue);

    if (r < 0)
        return r;
    wharf_segment_free(&backend->queue);
    backend->queue = queue;
    wharf_work_submitter_init(&backend->submitter, queue.address, WHARF_GPU_N_ENTRIES);
    wharf_work_reaper_init(&backend->done, backend->submitter.queue.done, WHARF_GPU_N_ENTRIES);
    wharf_work_reaper_init(&backend->moved, backend->submitter.queue.moved, WHARF_GPU_N_ENTRIES);
    return 0;
}

/* ---- places -------------------------------------------------------------------------------- */

static void take_item(struct wharf_gpu_backend *backend, struct wharf_tenant *tenant)
{
    backend->n_items++;
    backend->n_places++;
    backend->front->n_gpu_tenants += tenant->n_gpu_items++ == 0;
}

void wharf_gpu_item_free(struct wharf_gpu_backend *backend, const struct wharf_gpu_piece *piece,
                         uint32_t i)
{
    struct wharf_gpu_item *item = wharf_gpu_item_at(backend, piece->first + i);
    struct wharf_tenant *tenant = piece->piece.job->session->tenant;

    backend->n_items -= !item->is_done;
    backend->n_places--;
    backend->front->n_gpu_tenants -= --tenant->n_gpu_items == 0;
    *item = (struct wharf_gpu_item){.piece = NULL};
}

/* ---- outputs that are copied ---------------------------------------------------------------- */

/* Smaller ones are not worth a copy of their own, which costs a microsecond or two. */
#define LEAST_COPIED_NBYTES 16384u
/* Alignment of places. */
#define PLACE_ALIGN 256u

uint64_t wharf_gpu_staging_nbytes(const struct wharf_gpu_backend *backend)
{
    const struct wharf_config *config = &backend->config;

    return config->gpu_output == WHARF_GPU_OUTPUT_COPY ? config->gpu_staging_nbytes : 0;
}

int wharf_gpu_staging_begin(struct wharf_gpu_backend *backend, uint64_t address)
{
    struct wharf_gpu_staging *staging = &backend->staging;
    uint64_t nbytes = wharf_gpu_staging_nbytes(backend);

    staging->address = nbytes ? address : 0;
    if (!staging->address)
        return 0;
    staging->place_nbytes =
        (backend->config.gpu_chunk_nbytes + PLACE_ALIGN - 1) & ~(uint64_t)(PLACE_ALIGN - 1);
    uint64_t n = nbytes / staging->place_nbytes;
    if (n > WHARF_GPU_N_ENTRIES)
        n = WHARF_GPU_N_ENTRIES;
    if (!staging->free_places)
        staging->free_places = malloc(WHARF_GPU_N_ENTRIES * sizeof(*staging->free_places));
    if (!staging->free_places)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        staging->free_places[i] = i + 1;
    staging->n_free = (uint32_t)n;
    return 0;
}

/* A place for an output, or 0: the kernel writes it. */
static uint32_t take_place(struct wharf_gpu_staging *staging, const struct wharf_work_item *item)
{
    if (!staging->address || staging->n_free == 0 || item->dst_nbytes < LEAST_COPIED_NBYTES ||
        item->dst_nbytes > staging->place_nbytes)
        return 0;
    return staging->free_places[--staging->n_free];
}

static void give_place(struct wharf_gpu_staging *staging, uint32_t place)
{
    if (place)
        staging->free_places[staging->n_free++] = place;
}

/* ---- back from the worker ------------------------------------------------------------------ */

void wharf_gpu_items_finish(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece)
{
    wharf_list_remove(&piece->link);
    wharf_list_append(&backend->finished, &piece->link);
    backend->n_warp_ns -= piece->warp_ns;
    if (backend->n_nbytes > piece->trip.nbytes)
        piece->trip.nbytes = backend->n_nbytes;
    backend->n_nbytes -= piece->nbytes;
}

void wharf_gpu_items_end(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece,
                         uint32_t engine, const struct wharf_outcome *outcome)
{
    piece->has_places = piece->is_told = piece->is_refused = piece->is_recalled = false;
    piece->engine = (uint8_t)engine;
    piece->outcome = *outcome;
    backend->n_without_places++;
    wharf_list_append(&backend->finished, &piece->link);
}

/* The results that a decoder can end with. */
static bool is_result(uint32_t result)
{
    return result <= WHARF_CANCELLED || result == WHARF_BAD_REQUEST;
}

/* A worker that says what cannot be is out of its mind: nothing that it says counts any more. */
static bool is_sane(const struct wharf_work_completion *completion,
                    const struct wharf_gpu_item *item)
{
    if (!item->piece || item->is_done || completion->attempt != item->attempt)
        return false;
    if (completion->in_nbytes > item->src_nbytes || completion->out_nbytes > item->dst_nbytes)
        return false;
    if (!is_result(completion->result))
        return false;
    return completion->result == WHARF_OK || completion->out_nbytes == 0;
}

/* The worker's own times, as far as they can be. */
static uint64_t time_of(const struct wharf_work_completion *completion, uint64_t elapsed_ns)
{
    uint64_t ns = (uint64_t)completion->fetch_ns + completion->decode_ns + completion->move_ns;

    return ns < elapsed_ns ? ns : elapsed_ns;
}

static bool take_completion(struct wharf_gpu_backend *backend,
                            const struct wharf_work_completion *completion, uint64_t now_ns)
{
    struct wharf_gpu_item *item = wharf_gpu_item_at(backend, completion->item);

    if (!is_sane(completion, item)) {
        wharf_gpu_worker_kill(backend, "it completed what it did not have");
        return false;
    }
    item->is_done = true;
    item->engine = (uint8_t)backend->engine;
    item->piece->trip.elapsed_ns = now_ns - item->piece->handed_ns;
    item->took_ns = time_of(completion, item->piece->trip.elapsed_ns);
    if (completion->decode_ns > item->piece->trip.decode_ns)
        item->piece->trip.decode_ns = completion->decode_ns;
    item->outcome = (struct wharf_outcome){
        .result = completion->result,
        .reason = completion->reason,
        .bit_offset = completion->bit_offset,
        .in_nbytes = completion->in_nbytes,
        .out_nbytes = completion->out_nbytes,
    };
    item->part = completion->part;
    give_place(&backend->staging, item->staging);
    item->was_copied = item->staging && completion->result == WHARF_OK;
    item->staging = 0;
    /* Its part of what the piece was estimated to take. */
    uint64_t part_ns = item->piece->warp_ns / item->piece->n_left;
    item->piece->warp_ns -= part_ns;
    backend->n_warp_ns -= part_ns;
    backend->n_items--;
    if (--item->piece->n_left == 0)
        wharf_gpu_items_finish(backend, item->piece);
    return true;
}

bool wharf_gpu_items_reap(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_work_completion completion;
    unsigned n = 0;

    if (!backend->queue.address)
        return false;
    while (n < MOST_REAPED && (wharf_work_reap(&backend->done, &completion) ||
                               wharf_work_reap(&backend->moved, &completion))) {
        if (!take_completion(backend, &completion, now_ns))
            break;
        backend->active_ns = now_ns;
        n++;
    }
    return n > 0;
}

/* ---- back to the front --------------------------------------------------------------------- */

/* A suspect's item that ran alone and did no harm. */
static void clear_suspect(struct wharf_gpu_backend *backend, struct wharf_tenant *tenant)
{
    if (!backend->is_alone)
        return;
    backend->is_alone = false;
    if (tenant->gpu_trust.n_alone > 0 && --tenant->gpu_trust.n_alone == 0)
        tenant->gpu_trust.n_strikes = 0;
}

static void tell_of_parts(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece)
{
    struct wharf_outcome outcome;

    gpu_piece->is_refused = !wharf_gpu_parts_settle(backend, gpu_piece, &outcome);
    if (gpu_piece->is_refused)
        return;
    wharf_piece_take_outcome(&gpu_piece->piece, 0, backend->engine, &outcome);
    for (uint32_t i = 0; i < gpu_piece->n_items; i++)
        gpu_piece->took_ns += wharf_gpu_item_at(backend, gpu_piece->first + i)->took_ns;
    gpu_piece->n_of_gpu = 1;
    gpu_piece->out_nbytes = outcome.out_nbytes;
}

/* Whether some of it was not done, and that for taking too long. */
static bool is_given_up(const struct wharf_gpu_backend *backend,
                        const struct wharf_gpu_piece *piece)
{
    const struct wharf_job *job = piece->piece.job;

    if (!piece->is_recalled || __atomic_load_n(&job->stopped, __ATOMIC_RELAXED))
        return false;
    for (uint32_t i = 0; i < piece->n_items; i++)
        if (wharf_gpu_item_at(backend, piece->first + i)->outcome.result == WHARF_CANCELLED)
            return true;
    return false;
}

static void tell(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece)
{
    struct wharf_piece *piece = &gpu_piece->piece;

    gpu_piece->is_told = true;
    gpu_piece->is_given_up = is_given_up(backend, gpu_piece);
    if (gpu_piece->is_given_up)
        return;
    gpu_piece->n_copied = gpu_piece->n_of_gpu = 0;
    gpu_piece->out_nbytes = gpu_piece->took_ns = 0;
    if (gpu_piece->has_places && wharf_gpu_piece_has_parts(gpu_piece)) {
        tell_of_parts(backend, gpu_piece);
        return;
    }
    for (uint32_t i = 0; i < piece->n_chunks; i++) {
        if (!gpu_piece->has_places) {
            wharf_piece_take_outcome(piece, i, gpu_piece->engine, &gpu_piece->outcome);
            continue;
        }
        const struct wharf_gpu_item *item = wharf_gpu_item_at(backend, gpu_piece->first + i);
        wharf_piece_take_outcome(piece, i, item->engine, &item->outcome);
        gpu_piece->took_ns += item->took_ns;
        gpu_piece->n_copied += item->was_copied;
        if (item->engine == backend->engine) {
            gpu_piece->n_of_gpu++;
            gpu_piece->out_nbytes += item->outcome.out_nbytes;
        }
    }
}

/* Results are a table in the client's memory, which it can make us wait for: some 10 ns each. */
static void tell_in_time(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece)
{
    const struct wharf_piece *piece = &gpu_piece->piece;
    bool has_results = piece->kind == WHARF_PIECE_SLICE && piece->job->destination;
    uint64_t begun_ns = has_results ? wharf_now_ns() : 0;

    tell(backend, gpu_piece);
    gpu_piece->is_slow = has_results && wharf_now_ns() - begun_ns > SLOW_NS;
}

void wharf_gpu_items_tell(struct wharf_gpu_backend *backend)
{
    struct wharf_list *link = backend->finished.next;

    for (unsigned n = 0; n < MOST_BACK && link != &backend->finished; n++, link = link->next) {
        struct wharf_gpu_piece *piece = WHARF_LIST_ENTRY(link, struct wharf_gpu_piece, link);
        if (!piece->is_told)
            tell_in_time(backend, piece);
    }
}

static void free_places(struct wharf_gpu_backend *backend, const struct wharf_gpu_piece *gpu_piece)
{
    if (!gpu_piece->has_places) {
        backend->n_without_places--;
        return;
    }
    for (uint32_t i = 0; i < gpu_piece->n_items; i++)
        wharf_gpu_item_free(backend, gpu_piece, i);
}

/* It was decoded in parts, or could not be. */
static void count_parts(struct wharf_front *front, const struct wharf_gpu_piece *gpu_piece)
{
    if (gpu_piece->is_refused) {
        front->n_parts_refused++;
        return;
    }
    front->n_parted_chunks++;
    front->n_parts += gpu_piece->n_items;
}

static void hand_back(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece,
                      uint64_t now_ns)
{
    struct wharf_piece *piece = &gpu_piece->piece;
    uint64_t used_ns = gpu_piece->took_ns;

    wharf_list_remove(&gpu_piece->link);
    if (gpu_piece->has_places && wharf_gpu_piece_has_parts(gpu_piece))
        count_parts(backend->front, gpu_piece);
    free_places(backend, gpu_piece);
    if (gpu_piece->is_slow)
        wharf_gpu_rescue_blame_slow(backend, piece->job->session->tenant, now_ns);
    if (gpu_piece->is_refused) {
        wharf_gpu_parts_take_whole(backend, gpu_piece, now_ns);
        return;
    }
    backend->view->n_copied += gpu_piece->n_copied;
    backend->view->n_chunks += gpu_piece->n_of_gpu;
    backend->view->out_nbytes += gpu_piece->out_nbytes;
    piece->ended_ns = now_ns;
    if (gpu_piece->n_of_gpu == piece->n_chunks) {
        piece->warp_ns = used_ns > 0 ? used_ns : 1;
        wharf_place_learn_trip(backend->view, piece, &gpu_piece->trip);
        used_ns /= backend->view->n_warps;
        clear_suspect(backend, piece->job->session->tenant);
    }
    /* All the other time it only waited. */
    if (used_ns < now_ns - piece->begun_ns)
        piece->others_ns = now_ns - piece->begun_ns - used_ns;
    wharf_front_done(backend->front, piece);
    /* First of all: the caches have it. */
    wharf_list_append(backend->free_pieces.next, &gpu_piece->link);
}

/* Nothing was told of it. */
static void give_up(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece)
{
    wharf_list_remove(&gpu_piece->link);
    free_places(backend, gpu_piece);
    backend->is_alone = false;
    backend->view->n_given_up += gpu_piece->piece.n_chunks;
    wharf_place_learn_too_long(gpu_piece->piece.job, &gpu_piece->trip);
    wharf_gpu_rescue_make_orphan(backend, gpu_piece);
}

static void hand_back_finished(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    for (unsigned n = 0; n < MOST_BACK; n++) {
        struct wharf_gpu_piece *piece =
            WHARF_LIST_FIRST(&backend->finished, struct wharf_gpu_piece, link);
        if (!piece || !piece->is_told)
            return;
        if (piece->is_given_up)
            give_up(backend, piece);
        else
            hand_back(backend, piece, now_ns);
    }
}

/* ---- cancels ------------------------------------------------------------------------------- */

/* Returns whether there was room for all of its items. */
static bool withdraw(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece)
{
    for (uint32_t i = 0; i < piece->n_items; i++) {
        struct wharf_gpu_item *item = wharf_gpu_item_at(backend, piece->first + i);
        if (item->is_done)
            continue;
        if (!wharf_work_withdraw(&backend->submitter, piece->first + i, item->attempt))
            return false;
    }
    return true;
}

/* When some job was stopped all pieces are looked at, some at a time: it may be one of them. */
static void pass_cancels_on(struct wharf_gpu_backend *backend)
{
    uint32_t n_stopped = backend->front->n_stopped;

    if (backend->n_stopped != n_stopped) {
        backend->n_stopped = n_stopped;
        backend->n_cancel_looks = WHARF_GPU_N_ENTRIES;
    }
    for (unsigned n = 0; n < MOST_CANCEL_LOOKS && backend->n_cancel_looks > 0; n++) {
        struct wharf_gpu_piece *piece = &backend->pieces[backend->cancel_look_at];
        if (piece->n_left > 0 && piece->piece.job->stopped && !piece->is_withdrawn)
            piece->is_withdrawn = withdraw(backend, piece);
        /* No room for more cancels: it is looked at again. */
        if (piece->n_left > 0 && piece->piece.job->stopped && !piece->is_withdrawn)
            break;
        /* Not from the beginning again when more are stopped: somebody always stops some. */
        backend->cancel_look_at = (backend->cancel_look_at + 1) % WHARF_GPU_N_ENTRIES;
        backend->n_cancel_looks--;
    }
}

/* What plays a GPU on the CPU takes so many times as long. */
#define SIMT_TIMES 1000u

/* What the GPU has for too long: all that have to wait until it has nothing wait for that.  The CPU
 * can be interrupted in the middle of it.  The oldest pieces come first. */
static void recall_longest(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    uint64_t most_ns = backend->front->config.gpu_longest_ns;
    unsigned n = 0;

    if (most_ns == 0)
        return;
    if (backend->engine == WHARF_ENGINE_SIMT)
        most_ns *= SIMT_TIMES;
    WHARF_LIST_FOR(link, &backend->under_way)
    {
        struct wharf_gpu_piece *piece = WHARF_LIST_ENTRY(link, struct wharf_gpu_piece, link);
        if (now_ns < piece->handed_ns + most_ns || n++ == MOST_BACK)
            return;
        if (piece->is_withdrawn || piece->has_device)
            continue;
        piece->is_recalled = piece->is_withdrawn = withdraw(backend, piece);
        if (!piece->is_recalled)
            return;
    }
}

/* ---- to the worker ------------------------------------------------------------------------- */

bool wharf_gpu_items_have_place(const struct wharf_gpu_backend *backend)
{
    return !wharf_gpu_item_at(backend, backend->submitter.tail)->piece;
}

/* Places in a row from the next index on; but only as many as there are gpu_pieces to keep all
 * chunks that the worker has one by one, should it end, beside what others have left. */
static uint32_t n_free_places(const struct wharf_gpu_backend *backend, uint32_t most)
{
    uint32_t n_kept = backend->n_places + backend->n_without_places + backend->front->n_orphans;
    uint32_t n_left = n_kept < WHARF_GPU_N_ENTRIES ? WHARF_GPU_N_ENTRIES - n_kept : 0;
    uint32_t n = 0;

    if (most > n_left)
        most = n_left;
    while (n < most && !wharf_gpu_item_at(backend, backend->submitter.tail + n)->piece)
        n++;
    return n;
}

static uint64_t device_address(const struct wharf_gpu_backend *backend,
                               const struct wharf_region *region, uint64_t offset)
{
    return region->memory->on[backend->gpu].address + offset;
}

static uint16_t device_parameter(const struct wharf_gpu_backend *backend,
                                 const struct wharf_job *job)
{
    return job->model ? (uint16_t)job->model->memory->on[backend->gpu].address
                      : job->submission.parameter;
}

/* An item that is a part: of a fault that a test asks for it is the last one that has it. */
static void make_part(struct wharf_work_item *item, uint32_t at, uint32_t n_items)
{
    if (item->opcode != WHARF_WORK_DECODE && at + 1 == n_items)
        return;
    item->opcode = WHARF_WORK_DECODE_PART;
    item->staging = WHARF_WORK_PART(at, n_items);
}

/* Returns how many bytes it is of source and capacity that pass the link. */
static uint64_t submit_item(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece,
                            uint32_t at)
{
    bool has_parts = wharf_gpu_piece_has_parts(gpu_piece);
    struct wharf_piece_chunk chunk = wharf_piece_chunk_at(&gpu_piece->piece, has_parts ? 0 : at);
    struct wharf_work_item item = {
        .src = device_address(backend, chunk.source, chunk.src_offset),
        .dst = device_address(backend, chunk.destination, chunk.dst_offset),
        .src_nbytes = (uint32_t)chunk.job.in_nbytes,
        .dst_nbytes = (uint32_t)chunk.job.out_avail,
        .attempt = ++backend->last_attempt ? backend->last_attempt : ++backend->last_attempt,
        .checksum = chunk.job.checksum,
        .codec = (uint16_t)chunk.job.codec,
        .parameter = device_parameter(backend, gpu_piece->piece.job),
        .flags = (uint16_t)chunk.job.flags,
        .opcode = (uint8_t)wharf_gpu_opcode(&gpu_piece->piece.job->submission),
        .output = WHARF_WORK_TO_HOST,
    };
    uint32_t place = 0;

    if (chunk.destination->is_device) {
        item.output = WHARF_WORK_TO_DEVICE;
        gpu_piece->has_device = true;
    } else if (!has_parts) {
        place = take_place(&backend->staging, &item);
    }
    if (has_parts)
        make_part(&item, at, gpu_piece->n_items);
    if (place) {
        item.output = WHARF_WORK_TO_STAGING;
        item.staging = backend->staging.address + (place - 1) * backend->staging.place_nbytes;
    }
    uint32_t index = wharf_work_submit(&backend->submitter, &item);

    *wharf_gpu_item_at(backend, index) = (struct wharf_gpu_item){
        .piece = gpu_piece,
        .attempt = item.attempt,
        .staging = place,
        .src_nbytes = item.src_nbytes,
        .dst_nbytes = item.dst_nbytes,
    };
    uint64_t nbytes =
        (uint64_t)item.src_nbytes + (chunk.destination->is_device ? 0 : item.dst_nbytes);
    return has_parts ? nbytes / gpu_piece->n_items : nbytes;
}

/* The client wanted the GPU, and its memory is not to be had for that. */
static void refuse_piece(struct wharf_gpu_backend *backend, const struct wharf_piece *piece,
                         uint64_t now_ns)
{
    struct wharf_gpu_piece *gpu_piece =
        WHARF_LIST_FIRST(&backend->free_pieces, struct wharf_gpu_piece, link);

    wharf_list_remove(&gpu_piece->link);
    gpu_piece->piece = *piece;
    gpu_piece->piece.begun_ns = now_ns;
    wharf_gpu_items_end(backend, gpu_piece, WHARF_ENGINE_AUTO,
                        &(struct wharf_outcome){.result = WHARF_NO_MEMORY});
}

static bool is_too_large(const struct wharf_piece *piece)
{
    for (uint32_t i = 0; i < piece->n_chunks; i++) {
        struct wharf_piece_chunk chunk = wharf_piece_chunk_at(piece, i);
        if (chunk.job.in_nbytes > UINT32_MAX || chunk.job.out_avail > UINT32_MAX)
            return true;
    }
    return false;
}

void wharf_gpu_items_submit(struct wharf_gpu_backend *backend, const struct wharf_piece *piece,
                            uint32_t n_items, uint64_t warp_ns, uint64_t now_ns)
{
    struct wharf_gpu_piece *gpu_piece =
        WHARF_LIST_FIRST(&backend->free_pieces, struct wharf_gpu_piece, link);
    const struct wharf_front *front = backend->front;
    uint32_t n_before = backend->n_items;

    wharf_list_remove(&gpu_piece->link);
    wharf_list_append(&backend->under_way, &gpu_piece->link);
    backend->n_warp_ns += warp_ns;
    gpu_piece->piece = *piece;
    gpu_piece->piece.begun_ns = now_ns;
    gpu_piece->has_device = gpu_piece->is_culprit = false;
    gpu_piece->is_told = gpu_piece->is_refused = false;
    gpu_piece->has_places = true;
    gpu_piece->first = backend->submitter.tail;
    gpu_piece->n_items = gpu_piece->n_left = n_items;
    gpu_piece->handed_ns = now_ns;
    backend->active_ns = now_ns;
    gpu_piece->warp_ns = warp_ns;
    gpu_piece->is_withdrawn = gpu_piece->is_recalled = gpu_piece->is_given_up = false;
    /* Behind all that is there, on one warp. */
    gpu_piece->patience_ns =
        front->config.gpu_hang_timeout_ns +
        PATIENCE_FACTOR * (warp_ns + backend->n_warp_ns / backend->view->n_warps);
    if (piece->job->model)
        wharf_gpu_models_use(backend->view, &piece->job->model->memory->on[backend->gpu], now_ns);
    gpu_piece->nbytes = 0;
    for (uint32_t i = 0; i < n_items; i++) {
        take_item(backend, piece->job->session->tenant);
        gpu_piece->nbytes += submit_item(backend, gpu_piece, i);
    }
    backend->n_nbytes += gpu_piece->nbytes;
    gpu_piece->trip = (struct wharf_gpu_trip){
        .estimate_ns = warp_ns,
        .nbytes = backend->n_nbytes,
        .n_there = n_before + piece->n_chunks,
    };
}

/* Takes one piece.  Returns whether there may be more. */
static bool feed_one(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_front *front = backend->front;
    struct wharf_piece piece;
    uint64_t warp_ns;
    struct wharf_job *job = wharf_place_first_for_gpu(front, backend->gpu);

    if (!job)
        return false;
    bool is_suspect = job->session->tenant->gpu_trust.n_alone > 0;
    if (is_suspect && backend->n_items > 0)
        return false;
    uint32_t n_parts = wharf_parts_now(front, job, backend->view);
    uint32_t n_free = n_free_places(backend, is_suspect || !job->batch ? n_parts : MOST_CHUNKS);
    if (n_free < wharf_parts_least(front, job))
        return false;
    warp_ns = wharf_front_take_for_gpu(front, backend->gpu, job, n_free, now_ns, &piece);
    if (wharf_gpu_memory_of_job(piece.job, backend->gpu) != WHARF_GPU_MEMORY_READY ||
        is_too_large(&piece)) {
        refuse_piece(backend, &piece, now_ns);
        return true;
    }
    n_parts = n_parts < n_free ? n_parts : n_free;
    wharf_gpu_items_submit(backend, &piece, n_parts > 1 ? n_parts : piece.n_chunks, warp_ns,
                           now_ns);
    backend->is_alone = is_suspect;
    return !is_suspect;
}

static void tell_place(struct wharf_gpu_backend *backend)
{
    struct wharf_gpu_view *view = backend->view;

    view->n_in_flight = backend->n_items;
    view->in_flight_ns = backend->n_warp_ns;
    view->in_flight_nbytes = backend->n_nbytes;
    view->is_alone = backend->is_alone;
}

static void feed(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_front *front = backend->front;

    for (unsigned n = 0; n < MOST_BACK && !backend->is_alone; n++) {
        tell_place(backend);
        if (!wharf_place_gpu_has_room(front, backend->gpu)) {
            wharf_place_pass_on(front);
            break;
        }
        if (wharf_list_is_empty(&backend->free_pieces) || !feed_one(backend, now_ns))
            break;
    }
    tell_place(backend);
}

void wharf_gpu_items_exchange(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    hand_back_finished(backend, now_ns);
    bool may_feed = backend->stop || wharf_gpu_again_exchange(backend, now_ns);
    if (backend->state != WHARF_GPU_UP)
        return;
    pass_cancels_on(backend);
    recall_longest(backend, now_ns);
    /* Later than jobs that were taken just now. */
    if (!backend->stop && may_feed)
        feed(backend, wharf_now_ns());
}

bool wharf_gpu_items_hang(const struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_gpu_piece *oldest =
        WHARF_LIST_FIRST(&backend->under_way, struct wharf_gpu_piece, link);

    return oldest && now_ns > oldest->handed_ns && now_ns - oldest->handed_ns > oldest->patience_ns;
}

void wharf_gpu_items_publish(struct wharf_gpu_backend *backend)
{
    if (backend->queue.address && wharf_work_publish(&backend->submitter))
        syscall(SYS_futex, &backend->submitter.queue.front->tail, FUTEX_WAKE, INT_MAX, NULL, NULL,
                0);
}
