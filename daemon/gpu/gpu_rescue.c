/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_rescue.c: what a worker left undone when it ended.
 *
 * Until its pidfd says that it is gone, the GPU may still write to the destinations of its items:
 * they wait.  Then the CPU's threads do them, before all else.  Nothing of it is done here: memory
 * of clients can keep who touches it waiting, and of those threads there are more, and others to
 * stand in for them.
 */
#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/core/front.h"
#include "daemon/core/retry_queue.h"
#include "daemon/dispatch/front_lock.h"
#include "daemon/gpu/gpu_state.h"

/* Items that a suspect has to have run alone, without harm, before it is like others again; and
 * workers that end meanwhile before all of its jobs run on the CPU. */
#define N_ALONE 8
#define MOST_STRIKES 3
/* Pieces that are left to the CPU under one hold of the front lock. */
#define MOST_ORPHANS 16

/* A tenant's memory may keep the thread waiting for a hundredth of the time, of so long.  A wait
 * counts as this at most: some are the machine's, and those that are longer are counted too. */
#define WAITS_WINDOW_NS (10 * (uint64_t)WHARF_NS_PER_S)
#define MOST_WAITS_NS (WAITS_WINDOW_NS / 100)
#define LONGEST_WAIT_NS (MOST_WAITS_NS / 2)

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

    /* By sums: threads of several GPUs have looked at the clock before others have had the lock. */
    if (now_ns > trust->slow_ns + backend->front->config.gpu_ban_ns)
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

void wharf_gpu_rescue_blame_waits(struct wharf_gpu_backend *backend, struct wharf_tenant *tenant,
                                  uint64_t waited_ns, uint64_t now_ns)
{
    struct wharf_gpu_trust *trust = &tenant->gpu_trust;

    __atomic_store_n(&trust->watched_until_ns, now_ns + WAITS_WINDOW_NS, __ATOMIC_RELAXED);
    if (now_ns > trust->waits_since_ns + WAITS_WINDOW_NS) {
        trust->waits_ns = 0;
        trust->waits_since_ns = now_ns;
    }
    trust->waits_ns += waited_ns < LONGEST_WAIT_NS ? waited_ns : LONGEST_WAIT_NS;
    if (trust->waits_ns <= MOST_WAITS_NS || trust->banned_until_ns > now_ns)
        return;
    trust->waits_ns = 0;
    wharf_log(WHARF_LOG_WARNING, &(struct wharf_log_fields){.tenant = tenant->name},
              "GPU %s: this tenant's memory kept it waiting for results to be written for a "
              "hundredth of the time",
              backend->name);
    ban(backend, tenant, now_ns);
}

void wharf_gpu_rescue_blame_stall(struct wharf_gpu_backend *backend, struct wharf_tenant *tenant,
                                  uint64_t now_ns)
{
    struct wharf_gpu_trust *trust = &tenant->gpu_trust;

    if (now_ns >= trust->stall_ns + backend->front->config.gpu_ban_ns)
        trust->n_stalls = 0;
    trust->stall_ns = now_ns;
    wharf_log(WHARF_LOG_WARNING, &(struct wharf_log_fields){.tenant = tenant->name},
              "GPU %s: memory of this tenant could not be registered in time", backend->name);
    if (++trust->n_stalls < WHARF_GPU_MOST_STALLS)
        return;
    trust->n_stalls = 0;
    ban(backend, tenant, now_ns);
}

static void blame(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece, bool was_alone,
                  uint64_t now_ns)
{
    struct wharf_tenant *tenant = piece->piece.job->session->tenant;

    if (was_alone)
        strike(backend, tenant, now_ns);
    piece->is_culprit = was_alone;
    tenant->gpu_trust.n_alone = N_ALONE;
    tenant->gpu_trust.suspect_ns = now_ns;
}

void wharf_gpu_rescue_blame(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    bool has_usual = !wharf_list_is_empty(&backend->under_way);
    /* It may have been a large chunk that was there before. */
    bool was_alone = backend->is_alone && !(has_usual && backend->large.n_taken > 0);

    WHARF_LIST_FOR(link, &backend->under_way)
    {
        blame(backend, WHARF_LIST_ENTRY(link, struct wharf_gpu_piece, link), was_alone, now_ns);
    }
    for (uint32_t i = 0; i < backend->large.n_places; i++)
        if (backend->large.places[i].piece)
            blame(backend, backend->large.places[i].piece, was_alone, now_ns);
}

/* ---- what was lost ------------------------------------------------------------------------- */

static void begin_anew(struct wharf_piece *piece)
{
    if (piece->attempt == 0 && piece->job->attempt < UINT8_MAX)
        piece->attempt = (uint8_t)(piece->job->attempt + 1);
}

static void retry_taken(struct wharf_retry *retry)
{
    struct wharf_gpu_piece *piece = WHARF_LIST_ENTRY(retry, struct wharf_gpu_piece, retry);

    piece->backend->n_orphans--;
    wharf_list_append(&piece->backend->free_pieces, &piece->link);
}

void wharf_gpu_rescue_make_orphan(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece)
{
    struct wharf_front *front = backend->front;

    piece->retry = (struct wharf_retry){.piece = &piece->piece, .taken = retry_taken};
    wharf_retry_add(&front->retries, &piece->retry);
    piece->backend->n_orphans++;
    front->nothing_fits = false;
}

/* The CPU's threads do it, as a whole.  Under the lock. */
static void make_orphan(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece)
{
    for (uint32_t i = 0; i < piece->n_items; i++)
        wharf_gpu_item_free(backend, piece, i);
    wharf_gpu_end_use(backend, piece->piece.job);
    backend->n_warp_ns -= piece->warp_ns;
    backend->n_nbytes -= piece->nbytes;
    piece->n_left = 0;
    begin_anew(&piece->piece);
    wharf_list_remove(&piece->link);
    wharf_gpu_rescue_make_orphan(backend, piece);
}

/* Those that had places for large chunks, and those that waited for one. */
static void hand_on_large(struct wharf_gpu_backend *backend)
{
    struct wharf_gpu_piece *piece;

    do {
        wharf_front_enter(backend->front);
        for (unsigned n = 0; n < MOST_ORPHANS && (piece = wharf_gpu_large_lose(backend)) != NULL;
             n++) {
            begin_anew(&piece->piece);
            wharf_gpu_rescue_make_orphan(backend, piece);
        }
        wharf_front_leave(backend->front);
    } while (piece);
}

void wharf_gpu_rescue_hand_on(struct wharf_gpu_backend *backend)
{
    struct wharf_front *front = backend->front;

    /* Threads are called each time that the lock is given back. */
    while (!wharf_list_is_empty(&backend->under_way)) {
        wharf_front_enter(front);
        for (unsigned n = 0; n < MOST_ORPHANS;) {
            struct wharf_gpu_piece *piece =
                WHARF_LIST_FIRST(&backend->under_way, struct wharf_gpu_piece, link);
            if (!piece)
                break;
            n += piece->has_device ? piece->piece.n_chunks : 1;
            if (piece->has_device)
                wharf_gpu_again_cut(backend, piece);
            else
                make_orphan(backend, piece);
        }
        wharf_front_leave(front);
    }
    hand_on_large(backend);
    backend->is_alone = false;
}
