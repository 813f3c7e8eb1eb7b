/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_queue.c: the places in the queue to the worker, and how items get into it.
 *
 * An item's number modulo the queue's size is its place (kernels/EPOCH.md, Places).  Items end in
 * any order, so a long one can still occupy its place when the numbers come round: the place is
 * then skipped.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/file_io.h"
#include "daemon/core/file_staging.h"
#include "daemon/core/piece.h"
#include "daemon/core/session.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/placement/gpu_models.h"
#include "daemon/placement/gpu_room.h"
#include "kernels/work_parts.h"

/* Occupied places that are skipped at a time, at about 10 ns each under the lock. */
#define MOST_PASSED 1024
/* A piece takes at most so much longer than it was estimated to. */
#define PATIENCE_FACTOR 16

/* ---- places ---------------------------------------------------------------------------------- */

static void take_item(struct wharf_gpu_backend *backend, struct wharf_tenant *tenant)
{
    backend->flight.n_items++;
    backend->flight.n_places++;
    backend->core->fleet.n_gpu_tenants += tenant->n_gpu_items++ == 0;
}

void wharf_gpu_item_free(struct wharf_gpu_backend *backend, const struct wharf_gpu_piece *piece,
                         uint32_t i)
{
    struct wharf_gpu_item *item = wharf_gpu_item_at(backend, piece->first + i);
    struct wharf_tenant *tenant = piece->piece.job->session->tenant;

    backend->flight.n_items -= !item->is_done;
    backend->flight.n_places--;
    backend->flight.n_passed = 0;
    backend->core->fleet.n_gpu_tenants -= --tenant->n_gpu_items == 0;
    item->piece = NULL; /* the rest is the next one's to set */
}

static uint32_t least_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The number of consecutive free places from the next index on. */
static uint32_t n_in_a_row(const struct wharf_gpu_backend *backend, uint32_t most)
{
    uint32_t n = 0;

    while (n < most && !wharf_gpu_item_at(backend, backend->submitter.tail + n)->piece)
        n++;
    return n;
}

/* Whether an index can be skipped although its place has an item. */
static bool can_pass(const struct wharf_gpu_backend *backend, uint32_t index)
{
    uint32_t first = wharf_gpu_item_at(backend, index)->piece->first;

    return wharf_work_can_pass(&backend->submitter, index,
                               first + ((index - first) & (WHARF_GPU_N_ENTRIES - 1)));
}

/* Skips n free places and the next one, which has an item.  Returns whether that was possible. */
static bool pass_by(struct wharf_gpu_backend *backend, uint32_t n)
{
    /* After a whole round without success, waits until a place is free. */
    if (backend->flight.n_passed > WHARF_GPU_N_ENTRIES ||
        n >= wharf_work_room(&backend->submitter) ||
        !can_pass(backend, backend->submitter.tail + n))
        return false;
    for (uint32_t i = 0; i <= n; i++)
        wharf_work_pass(&backend->submitter);
    backend->flight.n_passed += n + 1;
    return true;
}

/* Finds at least `least` and at most `most` consecutive free places.  Skips others, a bounded
 * number at a time. */
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

/* The number of chunks that a new piece may have.  If the worker ends, each of its chunks needs a
 * gpu_piece of its own, so chunks on the worker never exceed the free gpu_pieces. */
static uint32_t n_to_keep(const struct wharf_gpu_backend *backend)
{
    uint32_t n_kept =
        backend->flight.n_places + backend->flight.n_without_places + backend->flight.n_requeued;

    return n_kept < WHARF_GPU_N_ENTRIES ? WHARF_GPU_N_ENTRIES - n_kept : 0;
}

bool wharf_gpu_may_keep(const struct wharf_gpu_backend *backend, uint32_t n)
{
    return n_to_keep(backend) >= n && !wharf_list_is_empty(&backend->free_pieces);
}

uint32_t wharf_gpu_items_free_places(struct wharf_gpu_backend *backend, uint32_t least,
                                     uint32_t most)
{
    return find_places(backend, least, least_of(most, n_to_keep(backend)));
}

bool wharf_gpu_items_find_place(struct wharf_gpu_backend *backend)
{
    return find_places(backend, 1, 1) > 0;
}

/* ---- to the worker --------------------------------------------------------------------------- */

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

/* Where a chunk's source is on the device. */
static uint64_t source_address(const struct wharf_gpu_backend *backend,
                               const struct wharf_gpu_piece *gpu_piece,
                               const struct wharf_piece_span *chunk)
{
    const struct wharf_gpu_stage *stage = &gpu_piece->stage;

    if (!stage->is_there)
        return wharf_gpu_device_address(backend, chunk->source, chunk->src_offset);
    const struct wharf_file_staging *staging = gpu_piece->piece.job->session->file_io->staging;
    uint64_t from = wharf_piece_span_at(&gpu_piece->piece, 0).src_offset;
    return staging->account->on[backend->gpu].address + wharf_file_staging_offset(stage->place) +
           chunk->src_offset - from;
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
        .src = source_address(backend, gpu_piece, &chunk),
        .dst = wharf_gpu_device_address(backend, chunk.destination, chunk.dst_offset),
        .src_nbytes = (uint32_t)chunk.in_nbytes,
        .dst_nbytes = (uint32_t)chunk.out_avail,
        .staging = wharf_gpu_memo_owner(backend, gpu_piece->piece.job),
        .attempt = wharf_gpu_next_attempt(backend),
        .checksum = chunk.checksum,
        .codec = submission->codec,
        .parameter = wharf_gpu_device_parameter(backend, gpu_piece->piece.job),
        .flags = (uint16_t)submission->flags,
        .opcode = (uint8_t)wharf_gpu_opcode(submission),
        .output = WHARF_WORK_TO_HOST,
    };

    gpu_piece->has_device |= wharf_regions_need_gpu(chunk.source, chunk.destination);
    if (chunk.destination->is_device)
        item.output = WHARF_WORK_TO_DEVICE;
    if (has_parts)
        make_part(&item, at, gpu_piece->n_items);
    uint32_t index = wharf_work_submit(&backend->submitter, &item);

    *wharf_gpu_item_at(backend, index) = (struct wharf_gpu_item){
        .piece = gpu_piece,
        .attempt = item.attempt,
        .src_nbytes = item.src_nbytes,
        .dst_nbytes = item.dst_nbytes,
    };
    uint64_t nbytes = (uint64_t)(chunk.source->is_device ? 0 : item.src_nbytes) +
                      (chunk.destination->is_device ? 0 : item.dst_nbytes);
    return has_parts ? nbytes / gpu_piece->n_items : nbytes;
}

void wharf_gpu_items_submit(struct wharf_gpu_backend *backend, const struct wharf_piece *piece,
                            uint32_t n_items, uint64_t warp_ns, uint64_t now_ns)
{
    struct wharf_gpu_piece *gpu_piece =
        WHARF_LIST_FIRST(&backend->free_pieces, struct wharf_gpu_piece, link);

    wharf_list_remove(&gpu_piece->link);
    gpu_piece->piece = *piece;
    wharf_gpu_items_hand_over(backend, gpu_piece, n_items, warp_ns, now_ns);
}

void wharf_gpu_items_hand_over(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *gpu_piece,
                               uint32_t n_items, uint64_t warp_ns, uint64_t now_ns)
{
    const struct wharf_core *core = backend->core;
    const struct wharf_piece *piece = &gpu_piece->piece;
    uint32_t n_before = backend->flight.n_items;

    wharf_list_append(&backend->under_way, &gpu_piece->link);
    backend->flight.n_warp_ns += warp_ns;
    gpu_piece->piece.begun_ns = now_ns;
    gpu_piece->has_device = gpu_piece->is_faulting = false;
    gpu_piece->is_told = gpu_piece->is_refused = gpu_piece->is_aside = false;
    gpu_piece->has_places = true;
    gpu_piece->first = backend->submitter.tail;
    gpu_piece->n_items = gpu_piece->n_left = n_items;
    gpu_piece->handed_ns = now_ns;
    backend->flight.active_ns = now_ns;
    backend->flight.has_kernel = true;
    gpu_piece->warp_ns = warp_ns;
    gpu_piece->is_withdrawn = gpu_piece->is_recalled = gpu_piece->is_given_up = false;
    /* Behind all that is there, on one warp. */
    gpu_piece->patience_ns =
        core->config.gpu_hang_timeout_ns +
        PATIENCE_FACTOR * (warp_ns + backend->flight.n_warp_ns / backend->view->n_warps);
    if (piece->job->model)
        wharf_gpu_models_use(backend->view, &piece->job->model->memory->on[backend->gpu], now_ns);
    wharf_gpu_room_use(backend->gpu, piece->job, now_ns);
    gpu_piece->nbytes = 0;
    gpu_piece->memo = (struct wharf_memo_stats){0};
    for (uint32_t i = 0; i < n_items; i++) {
        take_item(backend, piece->job->session->tenant);
        gpu_piece->nbytes += submit_item(backend, gpu_piece, i);
    }
    backend->flight.n_nbytes += gpu_piece->nbytes;
    gpu_piece->round = (struct wharf_gpu_round){
        .estimate_ns = warp_ns,
        .nbytes = backend->flight.n_nbytes,
        .n_there = n_before + piece->n_chunks,
        .n_idle = backend->view->idle_work.n_running,
    };
}

void wharf_gpu_tell_place(struct wharf_gpu_backend *backend)
{
    struct wharf_gpu_view *view = backend->view;

    view->n_in_flight = backend->flight.n_items;
    view->in_flight_ns = backend->flight.n_warp_ns;
    view->in_flight_nbytes = backend->flight.n_nbytes;
    view->is_alone = backend->is_alone;
}

void wharf_gpu_publish_queue(struct wharf_work_submitter *submitter)
{
    if (wharf_work_publish(submitter))
        syscall(SYS_futex, &submitter->queue.core->tail, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
