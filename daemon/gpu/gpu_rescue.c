/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_rescue.c: what a worker left undone when it ended.
 *
 * Until its pidfd says that it is gone, the GPU may still write to the destinations of its items.
 * So they are decoded at once, but aside, and put in place when it is gone; pieces that are not
 * done by then the CPU's threads do.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/front/front.h"
#include "daemon/front/touch.h"
#include "daemon/gpu/gpu_state.h"

/* Items that a suspect has to have run alone, without harm, before it is like others again; and
 * workers that end meanwhile before all of its jobs run on the CPU. */
#define N_ALONE 8
#define MOST_STRIKES 3
/* Pieces that are left to the CPU under one hold of the front lock. */
#define MOST_ORPHANS 16

/* ---- whose fault --------------------------------------------------------------------------- */

static void ban(const struct wharf_gpu_backend *backend, struct wharf_tenant *tenant,
                uint64_t now_ns)
{
    tenant->gpu_trust.banned_until_ns = now_ns + backend->front->config.gpu_ban_ns;
    wharf_log(WHARF_LOG_WARNING, &(struct wharf_log_fields){.tenant = tenant->name},
              "the CPU runs all jobs of this tenant for a while");
}

static void strike(struct wharf_gpu_backend *backend, struct wharf_tenant *tenant, uint64_t now_ns)
{
    struct wharf_gpu_trust *trust = &tenant->gpu_trust;

    trust->n_strikes++;
    wharf_log(WHARF_LOG_WARNING, &(struct wharf_log_fields){.tenant = tenant->name},
              "GPU %s: the worker ended while it ran a job of this tenant alone, %u times now",
              backend->name, trust->n_strikes);
    if (trust->n_strikes < MOST_STRIKES)
        return;
    trust->n_strikes = 0;
    trust->n_alone = N_ALONE;
    ban(backend, tenant, now_ns);
}

void wharf_gpu_rescue_blame_slow(struct wharf_gpu_backend *backend, struct wharf_tenant *tenant,
                                 uint64_t now_ns)
{
    struct wharf_gpu_trust *trust = &tenant->gpu_trust;

    if (now_ns - trust->slow_ns > backend->front->config.gpu_ban_ns)
        trust->n_slow = 0;
    trust->slow_ns = now_ns;
    if (++trust->n_slow < MOST_STRIKES)
        return;
    trust->n_slow = 0;
    wharf_log(WHARF_LOG_WARNING, &(struct wharf_log_fields){.tenant = tenant->name},
              "GPU %s: results of this tenant's jobs could not be written for long, %u times",
              backend->name, MOST_STRIKES);
    ban(backend, tenant, now_ns);
}

void wharf_gpu_rescue_blame(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    WHARF_LIST_FOR(link, &backend->under_way)
    {
        struct wharf_gpu_piece *piece = WHARF_LIST_ENTRY(link, struct wharf_gpu_piece, link);
        struct wharf_tenant *tenant = piece->piece.job->session->tenant;
        if (backend->is_alone)
            strike(backend, tenant, now_ns);
        piece->is_culprit = backend->is_alone;
        tenant->gpu_trust.n_alone = N_ALONE;
    }
}

/* ---- what was lost ------------------------------------------------------------------------- */

/* The next item that is not done, from where it was looked last: what is behind that is done. */
static struct wharf_gpu_item *next_lost(struct wharf_gpu_backend *backend,
                                        struct wharf_gpu_piece **ret_piece, uint32_t *ret_at)
{
    for (; backend->rescue_at != &backend->under_way;
         backend->rescue_at = backend->rescue_at->next) {
        struct wharf_gpu_piece *piece =
            WHARF_LIST_ENTRY(backend->rescue_at, struct wharf_gpu_piece, link);
        /* The CPU cannot do anything for what is to be in GPU memory, and does not decode parts. */
        bool can_do = !piece->has_device && !wharf_gpu_piece_has_parts(piece);
        for (uint32_t i = 0; piece->n_left > 0 && can_do && i < piece->piece.n_chunks; i++) {
            struct wharf_gpu_item *item = wharf_gpu_item_at(backend, piece->first + i);
            if (item->is_done)
                continue;
            *ret_piece = piece;
            *ret_at = i;
            return item;
        }
    }
    return NULL;
}

void wharf_gpu_rescue_begin(struct wharf_gpu_backend *backend)
{
    backend->rescue_at = backend->under_way.next;
}

static void begin_anew(struct wharf_piece *piece)
{
    if (piece->attempt == 0 && piece->job->attempt < UINT8_MAX)
        piece->attempt = (uint8_t)(piece->job->attempt + 1);
}

/* Pieces stay under way, though all their items are done, until the worker is gone. */
static void set_done(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece,
                     struct wharf_gpu_item *item)
{
    item->is_done = true;
    backend->n_items--;
    piece->n_left--;
    begin_anew(&piece->piece);
}

/* Ends a decode when its job is stopped. */
struct stop_poll {
    struct wharf_decode_poll base;
    const struct wharf_job *job;
};

static uint32_t ask_stopped(struct wharf_decode_poll *poll)
{
    return __atomic_load_n(&((const struct stop_poll *)poll)->job->stopped, __ATOMIC_RELAXED);
}

static void decode(struct wharf_gpu_backend *backend, const struct wharf_gpu_piece *piece,
                   struct wharf_gpu_item *item, uint32_t at, uint8_t *aside)
{
    struct stop_poll poll = {{ask_stopped}, piece->piece.job};
    uint64_t begun_ns = wharf_now_ns();

    item->aside = aside;
    item->engine = WHARF_ENGINE_CPU;
    wharf_cpu_run_chunk(backend->front, &backend->buffer, &piece->piece, at, aside,
                        &(struct wharf_cpu_others){&poll.base, NULL}, &item->outcome);
    item->took_ns = wharf_now_ns() - begun_ns;
}

bool wharf_gpu_rescue_step(struct wharf_gpu_backend *backend)
{
    struct wharf_gpu_piece *piece;
    uint8_t *aside = NULL;
    uint32_t at;
    struct wharf_gpu_item *item = next_lost(backend, &piece, &at);

    if (!item)
        return false;
    uint32_t stopped = __atomic_load_n(&piece->piece.job->stopped, __ATOMIC_RELAXED);
    if (stopped) {
        item->outcome = (struct wharf_outcome){.result = stopped};
        item->engine = WHARF_ENGINE_AUTO;
    } else {
        /* Without memory it has to wait until the worker is gone. */
        aside = malloc(item->dst_nbytes ? item->dst_nbytes : 1);
        if (!aside)
            return false;
        decode(backend, piece, item, at, aside);
    }
    set_done(backend, piece, item);
    return true;
}

/* All of it was done aside: it goes where it belongs. */
static void put_in_place(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece)
{
    for (uint32_t i = 0; i < piece->piece.n_chunks; i++) {
        struct wharf_gpu_item *item = wharf_gpu_item_at(backend, piece->first + i);
        struct wharf_piece_chunk chunk = wharf_piece_chunk_at(&piece->piece, i);
        if (!item->aside)
            continue;
        if (!wharf_touch_copy(wharf_piece_chunk_destination(&chunk), item->aside,
                              item->outcome.out_nbytes))
            item->outcome = (struct wharf_outcome){.result = WHARF_NO_MEMORY};
        free(item->aside);
        item->aside = NULL;
    }
    wharf_gpu_results_finish(backend, piece);
}

void wharf_gpu_rescue_make_orphan(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece)
{
    struct wharf_front *front = backend->front;

    wharf_list_append(&front->orphans, &piece->link);
    front->n_orphans++;
    front->nothing_fits = false;
}

/* The CPU's threads do it, as a whole.  Under the lock. */
static void make_orphan(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece)
{
    for (uint32_t i = 0; i < piece->n_items; i++) {
        free(wharf_gpu_item_at(backend, piece->first + i)->aside);
        wharf_gpu_item_free(backend, piece, i);
    }
    wharf_gpu_room_end_use(backend, piece->piece.job);
    backend->n_warp_ns -= piece->warp_ns;
    backend->n_nbytes -= piece->nbytes;
    piece->n_left = 0;
    begin_anew(&piece->piece);
    wharf_list_remove(&piece->link);
    wharf_gpu_rescue_make_orphan(backend, piece);
}

/* What is not done goes first: others do it while this thread puts the rest in place.  Threads are
 * called each time that the lock is given back. */
static void make_orphans(struct wharf_gpu_backend *backend)
{
    struct wharf_front *front = backend->front;
    struct wharf_list *link = backend->under_way.next;

    while (link != &backend->under_way) {
        wharf_front_enter(front);
        unsigned n = 0;
        while (n < MOST_ORPHANS && link != &backend->under_way) {
            struct wharf_gpu_piece *piece = WHARF_LIST_ENTRY(link, struct wharf_gpu_piece, link);
            link = link->next;
            n += piece->has_device ? piece->piece.n_chunks : 1;
            if (piece->n_left > 0 && piece->has_device)
                wharf_gpu_again_cut(backend, piece);
            else if (piece->n_left > 0)
                make_orphan(backend, piece);
        }
        wharf_front_leave(front);
    }
}

void wharf_gpu_rescue_publish(struct wharf_gpu_backend *backend)
{
    make_orphans(backend);
    while (!wharf_list_is_empty(&backend->under_way))
        put_in_place(backend, WHARF_LIST_FIRST(&backend->under_way, struct wharf_gpu_piece, link));
    backend->is_alone = false;
}

bool wharf_gpu_orphan_take(struct wharf_front *front, struct wharf_piece *ret_piece)
{
    struct wharf_gpu_piece *piece = WHARF_LIST_FIRST(&front->orphans, struct wharf_gpu_piece, link);

    if (!piece)
        return false;
    *ret_piece = piece->piece;
    wharf_list_remove(&piece->link);
    front->n_orphans--;
    wharf_list_append(&piece->backend->free_pieces, &piece->link);
    return true;
}
