/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_items.c: work to the worker. */
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/front.h"
#include "daemon/core/piece.h"
#include "daemon/core/residency.h"
#include "daemon/core/segment.h"
#include "daemon/dispatch/job_pieces.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/gpu/worker_message.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/gpu_models.h"
#include "daemon/placement/gpu_room.h"
#include "daemon/placement/place_cost.h"
#include "daemon/placement/place_parts.h"
#include "daemon/placement/place_pick.h"
#include "kernels/work_parts.h"
#include "proto/wharf_job.h"

/* Pieces that are taken, or recalled, under one hold of the front lock. */
#define MOST_PIECES 64
#define MOST_CANCEL_LOOKS 1024
/* Chunks of a piece.  Places for them are looked for under the lock, and a batch is cut into as
 * many pieces as it takes. */
#define MOST_CHUNKS 64
/* Places that are passed by at a time, at some 10 ns each under the lock. */
#define MOST_PASSED 1024
/* A piece takes at most so much longer than it was estimated to. */
#define PATIENCE_FACTOR 16

int wharf_gpu_items_init(struct wharf_gpu_backend *backend)
{
    backend->queue.fd = -1;
    wharf_list_init(&backend->free_pieces);
    wharf_list_init(&backend->under_way);
    wharf_list_init(&backend->finished);
    wharf_list_init(&backend->again);
    wharf_list_init(&backend->asked);
    wharf_list_init(&backend->forgotten);
    wharf_gpu_large_init(backend);
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
    free(backend->items);
    free(backend->pieces);
}

int wharf_gpu_items_begin(struct wharf_gpu_backend *backend)
{
    struct wharf_segment queue;
    int r = wharf_segment_make(WHARF_SEGMENT_WORKER,
                               wharf_worker_queues_nbytes(WHARF_GPU_N_ENTRIES), &queue);

    if (r < 0)
        return r;
    wharf_segment_free(&backend->queue);
    backend->queue = queue;
    wharf_work_submitter_init(&backend->submitter, queue.address, WHARF_GPU_N_ENTRIES);
    wharf_work_reaper_init(&backend->done, backend->submitter.queue.done, WHARF_GPU_N_ENTRIES);
    wharf_work_reaper_init(&backend->moved, backend->submitter.queue.moved, WHARF_GPU_N_ENTRIES);
    wharf_gpu_large_begin(backend);
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
    backend->n_passed = 0;
    backend->front->n_gpu_tenants -= --tenant->n_gpu_items == 0;
    item->piece = NULL; /* the rest is the next one's to set */
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

void wharf_gpu_staging_give(struct wharf_gpu_staging *staging, uint32_t place)
{
    if (place)
        staging->free_places[staging->n_free++] = place;
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

/* Pieces that cannot be taken back, or are already, stand before those that can. */
#define MOST_RECALL_LOOKS 512

/* What the GPU has for too long: all that have to wait until it has nothing wait for that.  The CPU
 * can be interrupted in the middle of it, and who wants the GPU alone has places where nobody waits
 * for him.  The oldest pieces come first. */
static void recall_longest(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    uint64_t most_ns = backend->front->config.gpu_longest_ns;
    unsigned n_looked_at = 0, n_recalled = 0;

    if (most_ns == 0)
        return;
    if (backend->engine == WHARF_ENGINE_SIMT)
        most_ns *= WHARF_GPU_SIMT_TIMES;
    WHARF_LIST_FOR(link, &backend->under_way)
    {
        struct wharf_gpu_piece *piece = WHARF_LIST_ENTRY(link, struct wharf_gpu_piece, link);
        if (now_ns < piece->handed_ns + most_ns || n_recalled == MOST_PIECES ||
            n_looked_at++ == MOST_RECALL_LOOKS)
            return;
        if (piece->is_withdrawn || piece->has_device)
            continue;
        /* Some of it is even where there is no room for all: those may be back before the next
         * look. */
        piece->is_recalled = true;
        piece->is_withdrawn = withdraw(backend, piece);
        if (!piece->is_withdrawn)
            return;
        n_recalled++;
    }
}

/* ---- to the worker ------------------------------------------------------------------------- */

static uint32_t least_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Free places in a row from the next index on. */
static uint32_t n_in_a_row(const struct wharf_gpu_backend *backend, uint32_t most)
{
    uint32_t n = 0;

    while (n < most && !wharf_gpu_item_at(backend, backend->submitter.tail + n)->piece)
        n++;
    return n;
}

/* Whether an index can be given to nothing though its place has an item. */
static bool can_pass(const struct wharf_gpu_backend *backend, uint32_t index)
{
    uint32_t first = wharf_gpu_item_at(backend, index)->piece->first;

    return wharf_work_can_pass(&backend->submitter, index,
                               first + ((index - first) & (WHARF_GPU_N_ENTRIES - 1)));
}

/* Passes by n free places and the next one, which has an item.  Whether it could. */
static bool pass_by(struct wharf_gpu_backend *backend, uint32_t n)
{
    /* Where a whole round of that has led to nothing, it waits until some place is free again. */
    if (backend->n_passed > WHARF_GPU_N_ENTRIES || n >= wharf_work_room(&backend->submitter) ||
        !can_pass(backend, backend->submitter.tail + n))
        return false;
    for (uint32_t i = 0; i <= n; i++)
        wharf_work_pass(&backend->submitter);
    backend->n_passed += n + 1;
    return true;
}

/* Free places in a row, `most` at most.  Where there are not `least`, others are passed by, some at
 * a time, up to where there are. */
static uint32_t find_places(struct wharf_gpu_backend *backend, uint32_t least, uint32_t most)
{
    uint32_t before = backend->submitter.tail;

    for (;;) {
        uint32_t room = least_of(most, wharf_work_room(&backend->submitter));
        uint32_t n = n_in_a_row(backend, room);
        if (n >= least || n == room || backend->submitter.tail - before >= MOST_PASSED ||
            !pass_by(backend, n))
            return n;
    }
}

/* The same for chunks of a new piece, but only as many as there are gpu_pieces to keep all chunks
 * that the worker has one by one, should it end, beside what earlier ones have left. */
static uint32_t n_to_keep(const struct wharf_gpu_backend *backend)
{
    uint32_t n_kept = backend->n_places + backend->n_without_places + backend->n_orphans;

    return n_kept < WHARF_GPU_N_ENTRIES ? WHARF_GPU_N_ENTRIES - n_kept : 0;
}

bool wharf_gpu_may_keep_one(const struct wharf_gpu_backend *backend)
{
    return n_to_keep(backend) > 0 && !wharf_list_is_empty(&backend->free_pieces);
}

static uint32_t n_free_places(struct wharf_gpu_backend *backend, uint32_t least, uint32_t most)
{
    return find_places(backend, least, least_of(most, n_to_keep(backend)));
}

bool wharf_gpu_items_find_place(struct wharf_gpu_backend *backend)
{
    return find_places(backend, 1, 1) > 0;
}

uint64_t wharf_gpu_device_address(const struct wharf_gpu_backend *backend,
                                  const struct wharf_region *region, uint64_t offset)
{
    return region->memory->on[backend->gpu].address + offset;
}

uint32_t wharf_gpu_next_attempt(struct wharf_gpu_backend *backend)
{
    return ++backend->last_attempt ? backend->last_attempt : ++backend->last_attempt;
}

uint16_t wharf_gpu_device_parameter(const struct wharf_gpu_backend *backend,
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
    const struct wharf_submission *submission = &gpu_piece->piece.job->submission;
    struct wharf_piece_span chunk = wharf_piece_span_at(&gpu_piece->piece, has_parts ? 0 : at);
    struct wharf_work_item item = {
        .src = wharf_gpu_device_address(backend, chunk.source, chunk.src_offset),
        .dst = wharf_gpu_device_address(backend, chunk.destination, chunk.dst_offset),
        .src_nbytes = (uint32_t)chunk.in_nbytes,
        .dst_nbytes = (uint32_t)chunk.out_avail,
        .attempt = wharf_gpu_next_attempt(backend),
        .checksum = chunk.checksum,
        .codec = submission->codec,
        .parameter = wharf_gpu_device_parameter(backend, gpu_piece->piece.job),
        .flags = (uint16_t)submission->flags,
        .opcode = (uint8_t)wharf_gpu_opcode(submission),
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
    wharf_gpu_results_end(backend, gpu_piece, WHARF_ENGINE_AUTO,
                          &(struct wharf_outcome){.result = WHARF_NO_MEMORY});
}

static bool is_too_large(const struct wharf_piece *piece)
{
    for (uint32_t i = 0; i < piece->n_chunks; i++) {
        struct wharf_piece_span chunk = wharf_piece_span_at(piece, i);
        if (chunk.in_nbytes > UINT32_MAX || chunk.out_avail > UINT32_MAX)
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
    gpu_piece->is_told = gpu_piece->is_refused = gpu_piece->is_large = false;
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
    wharf_gpu_room_use(backend->gpu, piece->job, now_ns);
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
    /* Large chunks can be there for a minute, and others after them: nobody waits for these. */
    if (is_suspect && backend->n_items > 0)
        return false;
    uint32_t n_parts = wharf_parts_now(front, job, backend->view);
    uint32_t n_least = wharf_parts_least(front, job);
    uint32_t n_free =
        n_free_places(backend, n_least, is_suspect || !job->batch ? n_parts : MOST_CHUNKS);
    if (n_free < n_least)
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

    for (unsigned n = 0; n < MOST_PIECES && !backend->is_alone; n++) {
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
    wharf_gpu_results_hand_back(backend, now_ns);
    bool may_feed = backend->stop || wharf_gpu_again_exchange(backend, now_ns);
    if (backend->state != WHARF_GPU_UP)
        return;
    pass_cancels_on(backend);
    recall_longest(backend, now_ns);
    may_feed &= wharf_gpu_large_exchange(backend, now_ns);
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

void wharf_gpu_publish_queue(struct wharf_work_submitter *submitter)
{
    if (wharf_work_publish(submitter))
        syscall(SYS_futex, &submitter->queue.front->tail, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void wharf_gpu_items_publish(struct wharf_gpu_backend *backend)
{
    if (!backend->queue.address)
        return;
    wharf_gpu_publish_queue(&backend->submitter);
    wharf_gpu_large_publish(backend);
}
