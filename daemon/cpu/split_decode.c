/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split_decode.c: shares the ranges of one stream among workers.
 *
 * A form of guided self-scheduling (Polychronopoulos and Kuck, 1987): each worker takes a part of
 * an even share of what is left, so ranges shrink towards the end and all workers finish at nearly
 * the same time.  The offer lives on the stack of the chunk's worker, which waits for its last
 * helper before it returns.
 */
#include "daemon/cpu/split_decode.h"

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/touch.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/cpu/cpu_state.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/intake.h"

/* A worker takes this part of an even share of the rest, because workers neither start nor end
 * their parts at the same time. */
#define SHARE_PARTS 2

/* ---- parts --------------------------------------------------------------------------------- */

/* A range that a thread decodes. */
struct range {
    struct wharf_split_decode *split;
    struct wharf_decode_poll *poll;
    uint32_t first;
    uint32_t n;
    bool is_good;
};

/* While nobody is idle: whether that will remain so for a while. */
static bool nobody_will_help(const struct wharf_core *core)
{
    return core->workers.n_workers == 1 || wharf_place_n_for_cpu(core) > 0;
}

/* The estimate of one part. */
static uint64_t part_ns(const struct wharf_split_decode *split)
{
    return split->piece->estimate_ns / split->piece->n_chunks / split->n_parts;
}

/* Whether a single part occupies a helper as long as a long piece, without an interruption. */
static bool has_long_parts(const struct wharf_split_decode *split)
{
    return part_ns(split) > split->core->config.long_ns;
}

/* As with long pieces, one worker stays free for short ones. */
static bool may_be_helped(const struct wharf_split_decode *split)
{
    const struct wharf_core *core = split->core;

    return split->next_part < split->n_parts &&
           (!has_long_parts(split) || core->workers.n_long + 1 < core->workers.n_workers);
}

/* The parts that take a helper about two slices, since it cannot be interrupted; at least one. */
static uint32_t most_parts(const struct wharf_split_decode *split)
{
    uint64_t n = 2 * split->core->config.slice_ns / (part_ns(split) + 1);

    return n < 1 ? 1 : n < split->n_parts ? (uint32_t)n : split->n_parts;
}

/* Under the core lock; false if none is left. */
static bool take_range(struct wharf_split_decode *split, struct range *range, bool is_helper)
{
    uint32_t left = split->n_parts - split->next_part;
    uint32_t n_workers = 1 + split->n_helpers + split->core->workers.n_sleeping;

    if (left == 0)
        return false;
    range->first = split->next_part;
    range->n = (left + SHARE_PARTS * n_workers - 1) / (SHARE_PARTS * n_workers);
    if (n_workers == 1 && nobody_will_help(split->core))
        range->n = left;
    if (is_helper && range->n > most_parts(split))
        range->n = most_parts(split);
    split->next_part += range->n;
    split->core->workers.n_shared_ranges++;
    split->core->workers.n_helped_ranges += is_helper;
    return true;
}

static void act(void *context)
{
    struct range *range = context;

    range->is_good = range->split->act(range->split->context, range->first, range->n, range->poll);
}

/* Without the lock.  Missing pages of the client's memory make the range bad. */
static bool run_range(struct range *range)
{
    range->is_good = false;
    return wharf_touch(act, range) && range->is_good;
}

/* Under the core lock: starts no more parts. */
static void fail(struct wharf_split_decode *split)
{
    __atomic_store_n(&split->has_failed, true, __ATOMIC_RELAXED);
    split->next_part = split->n_parts;
}

/* Calls an idle worker, if one could help. */
static void call_help(struct wharf_core *core, const struct wharf_split_decode *split)
{
    if (may_be_helped(split))
        wharf_core_call_worker(core);
}

/* ---- the worker whose chunk it is ---------------------------------------------------------- */

/* Waits for the last helper; then adds the helpers' time to the piece. */
static void await_helpers(struct wharf_split_decode *split)
{
    struct wharf_core *core = split->core;

    wharf_core_enter(core);
    wharf_list_remove(&split->link);
    split->is_awaited = split->n_helpers > 0;
    if (split->ret_waits)
        *split->ret_waits = split->is_awaited;
    wharf_core_leave(core);
    if (split->is_awaited)
        while (sem_wait(&split->done) < 0)
            ;
    /* The helper that posted it held the lock. */
    wharf_core_enter(core);
    split->piece->helped_ns += split->helped_ns;
    split->helped_ns = 0;
    if (split->ret_waits)
        *split->ret_waits = false;
    wharf_core_leave(core);
}

static bool run(struct wharf_decode_crew *crew, uint32_t n_parts, wharf_decode_parts_fn *parts_act,
                void *context)
{
    struct wharf_split_decode *split = (struct wharf_split_decode *)crew;
    struct wharf_core *core = split->core;
    struct range range = {.split = split, .poll = split->poll};
    bool is_good = true;

    wharf_core_enter(core);
    split->act = parts_act;
    split->context = context;
    split->n_parts = n_parts;
    split->next_part = 0;
    split->has_failed = false;
    wharf_list_append(&core->split_decodes, &split->link);
    core->workers.n_shared_chunks++;
    call_help(core, split);
    while (is_good && take_range(split, &range, false)) {
        call_help(core, split);
        wharf_core_leave(core);
        is_good = run_range(&range);
        wharf_core_enter(core);
    }
    if (!is_good)
        fail(split);
    wharf_core_leave(core);
    await_helpers(split);
    return !split->has_failed;
}

void wharf_split_decode_init(struct wharf_split_decode *split, struct wharf_core *core,
                             struct wharf_piece *piece, struct wharf_decode_poll *poll)
{
    *split = (struct wharf_split_decode){
        .base.run = run,
        .core = core,
        .piece = piece,
        .poll = poll,
    };
    wharf_list_init(&split->link);
    sem_init(&split->done, 0, 0);
}

void wharf_split_decode_deinit(struct wharf_split_decode *split)
{
    sem_destroy(&split->done);
}

/* ---- helpers ------------------------------------------------------------------------------- */

struct helper {
    struct wharf_decode_poll poll;
    const struct wharf_split_decode *split;
};

/* Its own work waits for the end of the part, which is short. */
static uint32_t ask(struct wharf_decode_poll *poll)
{
    const struct wharf_split_decode *split = ((struct helper *)poll)->split;

    if (__atomic_load_n(&split->has_failed, __ATOMIC_RELAXED))
        return WHARF_CANCELLED;
    return __atomic_load_n(&split->piece->job->stopped, __ATOMIC_RELAXED);
}

static struct wharf_split_decode *first_to_help(struct wharf_core *core)
{
    WHARF_LIST_FOR(link, &core->split_decodes)
    {
        struct wharf_split_decode *split = WHARF_LIST_ENTRY(link, struct wharf_split_decode, link);
        if (may_be_helped(split))
            return split;
    }
    return NULL;
}

static void end_help(struct wharf_split_decode *split, bool is_good, uint64_t used_ns)
{
    if (!is_good)
        fail(split);
    split->helped_ns += used_ns;
    split->n_helpers--;
    if (split->is_awaited && split->n_helpers == 0)
        sem_post(&split->done);
}

bool wharf_split_decode_help(struct wharf_core *core, struct wharf_cpu_worker *worker)
{
    struct wharf_split_decode *split = first_to_help(core);
    struct helper helper = {{ask}, split};
    struct range range = {.split = split, .poll = &helper.poll};

    if (!split || !take_range(split, &range, true))
        return false;
    split->n_helpers++;
    bool is_long = has_long_parts(split);
    uint64_t begun_ns = wharf_cpu_begin(worker, split->piece->job->session->tenant, is_long, false);
    call_help(core, split);
    wharf_core_leave(core);
    bool is_good = run_range(&range);
    wharf_core_enter(core);
    wharf_cpu_end(worker);
    if (is_long)
        core->nothing_fits = false;
    end_help(split, is_good, wharf_now_ns() - begun_ns);
    return true;
}
