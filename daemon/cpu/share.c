/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/cpu/share.h"

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/touch.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/cpu/cpu_state.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/intake.h"

/* Of what is left a worker takes this part of an even share: those who take part do not all end
 * their parts at the same time, nor begin. */
#define SHARE_PARTS 2

/* ---- parts --------------------------------------------------------------------------------- */

/* A range in a thread's hands. */
struct range {
    struct wharf_share *share;
    struct wharf_decode_poll *poll;
    uint32_t first;
    uint32_t n;
    bool is_good;
};

/* While nobody is idle: whether nobody will be before long. */
static bool nobody_will_help(const struct wharf_core *core)
{
    return core->workers.n_workers == 1 || wharf_place_n_for_cpu(core) > 0;
}

/* What a part is estimated to take. */
static uint64_t part_ns(const struct wharf_share *share)
{
    return share->piece->estimate_ns / share->piece->n_chunks / share->n_parts;
}

/* Whether a single one keeps a helper for as long as a long piece, and it cannot be interrupted. */
static bool has_long_parts(const struct wharf_share *share)
{
    return part_ns(share) > share->core->config.long_ns;
}

/* As with long pieces, one worker stays free for short ones. */
static bool may_be_helped(const struct wharf_share *share)
{
    const struct wharf_core *core = share->core;

    return share->next_part < share->n_parts &&
           (!has_long_parts(share) || core->workers.n_long + 1 < core->workers.n_workers);
}

/* Parts that are estimated to take a helper two slices at most, since nobody can interrupt it; one
 * in any case. */
static uint32_t most_parts(const struct wharf_share *share)
{
    uint64_t n = 2 * share->core->config.slice_ns / (part_ns(share) + 1);

    return n < 1 ? 1 : n < share->n_parts ? (uint32_t)n : share->n_parts;
}

/* Under the core lock; false if none is left. */
static bool take_range(struct wharf_share *share, struct range *range, bool is_helper)
{
    uint32_t left = share->n_parts - share->next_part;
    uint32_t n_workers = 1 + share->n_helpers + share->core->workers.n_sleeping;

    if (left == 0)
        return false;
    range->first = share->next_part;
    range->n = (left + SHARE_PARTS * n_workers - 1) / (SHARE_PARTS * n_workers);
    if (n_workers == 1 && nobody_will_help(share->core))
        range->n = left;
    if (is_helper && range->n > most_parts(share))
        range->n = most_parts(share);
    share->next_part += range->n;
    share->core->workers.n_shared_ranges++;
    share->core->workers.n_helped_ranges += is_helper;
    return true;
}

static void act(void *context)
{
    struct range *range = context;

    range->is_good = range->share->act(range->share->context, range->first, range->n, range->poll);
}

/* Without the lock.  A client's memory that is not to be had makes a range a bad one. */
static bool run_range(struct range *range)
{
    range->is_good = false;
    return wharf_touch(act, range) && range->is_good;
}

/* Under the core lock: nothing more of it is begun. */
static void fail(struct wharf_share *share)
{
    __atomic_store_n(&share->has_failed, true, __ATOMIC_RELAXED);
    share->next_part = share->n_parts;
}

/* Whether somebody who is idle could take part. */
static void call_help(struct wharf_core *core, const struct wharf_share *share)
{
    if (may_be_helped(share))
        wharf_core_call_worker(core);
}

/* ---- the worker whose chunk it is ---------------------------------------------------------- */

/* Until no other one is at it: then what helpers have used is the piece's. */
static void await_helpers(struct wharf_share *share)
{
    struct wharf_core *core = share->core;

    wharf_core_enter(core);
    wharf_list_remove(&share->link);
    share->is_awaited = share->n_helpers > 0;
    if (share->ret_waits)
        *share->ret_waits = share->is_awaited;
    wharf_core_leave(core);
    if (share->is_awaited)
        while (sem_wait(&share->done) < 0)
            ;
    /* Who has posted it held the lock. */
    wharf_core_enter(core);
    share->piece->helped_ns += share->helped_ns;
    share->helped_ns = 0;
    if (share->ret_waits)
        *share->ret_waits = false;
    wharf_core_leave(core);
}

static bool run(struct wharf_decode_crew *crew, uint32_t n_parts, wharf_decode_parts_fn *parts_act,
                void *context)
{
    struct wharf_share *share = (struct wharf_share *)crew;
    struct wharf_core *core = share->core;
    struct range range = {.share = share, .poll = share->poll};
    bool is_good = true;

    wharf_core_enter(core);
    share->act = parts_act;
    share->context = context;
    share->n_parts = n_parts;
    share->next_part = 0;
    share->has_failed = false;
    wharf_list_append(&core->shares, &share->link);
    core->workers.n_shared_chunks++;
    call_help(core, share);
    while (is_good && take_range(share, &range, false)) {
        call_help(core, share);
        wharf_core_leave(core);
        is_good = run_range(&range);
        wharf_core_enter(core);
    }
    if (!is_good)
        fail(share);
    wharf_core_leave(core);
    await_helpers(share);
    return !share->has_failed;
}

void wharf_share_init(struct wharf_share *share, struct wharf_core *core, struct wharf_piece *piece,
                      struct wharf_decode_poll *poll)
{
    *share = (struct wharf_share){
        .base.run = run,
        .core = core,
        .piece = piece,
        .poll = poll,
    };
    wharf_list_init(&share->link);
    sem_init(&share->done, 0, 0);
}

void wharf_share_deinit(struct wharf_share *share)
{
    sem_destroy(&share->done);
}

/* ---- who helps ----------------------------------------------------------------------------- */

struct helper {
    struct wharf_decode_poll poll;
    const struct wharf_share *share;
};

/* Its own work waits for the end of the part, which is short. */
static uint32_t ask(struct wharf_decode_poll *poll)
{
    const struct wharf_share *share = ((struct helper *)poll)->share;

    if (__atomic_load_n(&share->has_failed, __ATOMIC_RELAXED))
        return WHARF_CANCELLED;
    return __atomic_load_n(&share->piece->job->stopped, __ATOMIC_RELAXED);
}

static struct wharf_share *first_to_help(struct wharf_core *core)
{
    WHARF_LIST_FOR(link, &core->shares)
    {
        struct wharf_share *share = WHARF_LIST_ENTRY(link, struct wharf_share, link);
        if (may_be_helped(share))
            return share;
    }
    return NULL;
}

static void end_help(struct wharf_share *share, bool is_good, uint64_t used_ns)
{
    if (!is_good)
        fail(share);
    share->helped_ns += used_ns;
    share->n_helpers--;
    if (share->is_awaited && share->n_helpers == 0)
        sem_post(&share->done);
}

bool wharf_share_help(struct wharf_core *core, struct wharf_cpu_worker *worker)
{
    struct wharf_share *share = first_to_help(core);
    struct helper helper = {{ask}, share};
    struct range range = {.share = share, .poll = &helper.poll};

    if (!share || !take_range(share, &range, true))
        return false;
    share->n_helpers++;
    bool is_long = has_long_parts(share);
    uint64_t begun_ns = wharf_cpu_begin(worker, share->piece->job->session->tenant, is_long, false);
    call_help(core, share);
    wharf_core_leave(core);
    bool is_good = run_range(&range);
    wharf_core_enter(core);
    wharf_cpu_end(worker);
    if (is_long)
        core->nothing_fits = false;
    end_help(share, is_good, wharf_now_ns() - begun_ns);
    return true;
}
