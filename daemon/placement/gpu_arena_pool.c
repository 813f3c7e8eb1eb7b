/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_arena_pool.c: chooses which arenas to keep pinned in advance.
 *
 * The pool remembers the sizes of the latest sessions, most recent first, and keeps up to
 * ARENAS_OF_SIZE of each within the setting `spare`.  It is the first to give memory up when the
 * budget of pinned memory is spent.
 */
#include "daemon/placement/gpu_arena_pool.h"

#include <stdlib.h>

#include "daemon/base/config.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/residency.h"
#include "daemon/placement/gpu_memory.h"

/* Arenas of each size: how many sessions can start at about the same time. */
#define ARENAS_OF_SIZE 2

uint32_t wharf_gpu_arena_pool_maker(const struct wharf_core *core)
{
    return core->fleet.gpus_up & -core->fleet.gpus_up;
}

/* ---- taking -------------------------------------------------------------------------------- */

/* Moves a size to the front of the remembered ones; drops the last one.  So a client that asks for
 * ever new sizes makes the pool forget, but not grow. */
static void remember(struct wharf_gpu_arena_pool *pool, uint64_t nbytes)
{
    unsigned i = 0;

    while (i + 1 < WHARF_GPU_ARENA_POOL_SIZES && pool->sizes[i] != nbytes)
        i++;
    for (; i > 0; i--)
        pool->sizes[i] = pool->sizes[i - 1];
    pool->sizes[0] = nbytes;
}

/* Whether some worker has registered it. */
static bool is_ready(const struct wharf_gpu_memory *memory)
{
    for (uint32_t i = 0; i < WHARF_MAX_GPUS; i++)
        if (memory->on[i].state == WHARF_GPU_MEMORY_READY)
            return true;
    return false;
}

/* One that is registered: a session would wait as long for another one as for its own arena. */
static struct wharf_gpu_pooled_arena *find(struct wharf_gpu_arena_pool *pool, uint64_t nbytes)
{
    WHARF_LIST_FOR(link, &pool->list)
    {
        struct wharf_gpu_pooled_arena *arena =
            WHARF_LIST_ENTRY(link, struct wharf_gpu_pooled_arena, link);
        if (arena->segment.nbytes == nbytes && is_ready(arena->memory))
            return arena;
    }
    return NULL;
}

bool wharf_gpu_arena_pool_take(struct wharf_core *core, uint64_t nbytes,
                               struct wharf_segment *ret_segment,
                               struct wharf_gpu_memory **ret_memory)
{
    struct wharf_gpu_arena_pool *pool = &core->residency.arena_pool;

    if (core->fleet.n_gpus == 0 || nbytes == 0)
        return false;
    remember(pool, nbytes);
    core->fleet.gpus_wanted |= wharf_gpu_arena_pool_maker(core);
    struct wharf_gpu_pooled_arena *arena = find(pool, nbytes);
    if (!arena)
        return false;
    wharf_list_remove(&arena->link);
    pool->nbytes -= nbytes;
    *ret_segment = arena->segment;
    *ret_memory = arena->memory;
    free(arena);
    return true;
}

/* ---- making -------------------------------------------------------------------------------- */

static unsigned n_of_size(const struct wharf_gpu_arena_pool *pool, uint64_t nbytes)
{
    unsigned n = 0;

    WHARF_LIST_FOR(link, &pool->list)
    n += WHARF_LIST_ENTRY(link, struct wharf_gpu_pooled_arena, link)->segment.nbytes == nbytes;
    return n;
}

/* A size of at most `most` bytes with too few arenas; 0: none. */
static uint64_t missing(const struct wharf_gpu_arena_pool *pool, uint64_t most)
{
    for (unsigned i = 0; i < WHARF_GPU_ARENA_POOL_SIZES; i++) {
        uint64_t nbytes = pool->sizes[i];
        if (nbytes > 0 && nbytes <= most && n_of_size(pool, nbytes) < ARENAS_OF_SIZE)
            return nbytes;
    }
    return 0;
}

static bool is_remembered(const struct wharf_gpu_arena_pool *pool, uint64_t nbytes)
{
    for (unsigned i = 0; i < WHARF_GPU_ARENA_POOL_SIZES; i++)
        if (pool->sizes[i] == nbytes)
            return true;
    return false;
}

/* Releases its memory like a session's; the arena is freed later, without the lock. */
static void give_up(struct wharf_core *core, struct wharf_gpu_pooled_arena *arena)
{
    wharf_list_remove(&arena->link);
    wharf_list_append(&core->residency.arena_pool.unwanted, &arena->link);
    core->residency.arena_pool.nbytes -= arena->segment.nbytes;
    wharf_gpu_memory_drop(core, arena->memory, &(struct wharf_use){.n_jobs = 0});
    arena->memory = NULL;
    core->fleet.gpus_wanted |= wharf_gpu_arena_pool_maker(core);
}

/* Gives up an arena of a size that no recent session wanted; whether there was one. */
static bool give_up_stale(struct wharf_core *core)
{
    WHARF_LIST_FOR(link, &core->residency.arena_pool.list)
    {
        struct wharf_gpu_pooled_arena *arena =
            WHARF_LIST_ENTRY(link, struct wharf_gpu_pooled_arena, link);
        if (is_remembered(&core->residency.arena_pool, arena->segment.nbytes))
            continue;
        give_up(core, arena);
        return true;
    }
    return false;
}

uint64_t wharf_gpu_arena_pool_pinned(const struct wharf_gpu_arena_pool *pool)
{
    uint64_t nbytes = 0;

    WHARF_LIST_FOR(link, &pool->list)
    {
        const struct wharf_gpu_memory *memory =
            WHARF_LIST_ENTRY(link, struct wharf_gpu_pooled_arena, link)->memory;
        nbytes += memory->is_counted ? memory->nbytes : 0;
    }
    return nbytes;
}

void wharf_gpu_arena_pool_yield(struct wharf_core *core, uint64_t nbytes)
{
    WHARF_LIST_FOR(link, &core->residency.arena_pool.list)
    {
        struct wharf_gpu_pooled_arena *arena =
            WHARF_LIST_ENTRY(link, struct wharf_gpu_pooled_arena, link);
        uint64_t own_nbytes = arena->memory->nbytes;
        if (nbytes == 0)
            return;
        if (!arena->memory->is_counted)
            continue;
        give_up(core, arena);
        nbytes -= own_nbytes < nbytes ? own_nbytes : nbytes;
    }
}

/* The room for more arenas in the budget; they never evict others. */
static uint64_t room(const struct wharf_core *core)
{
    const struct wharf_gpu_arena_pool *pool = &core->residency.arena_pool;
    uint64_t budget = core->config.gpu_memory_nbytes;
    uint64_t taken = core->residency.pinned_nbytes + core->residency.room.promised_nbytes +
                     pool->nbytes - wharf_gpu_arena_pool_pinned(pool);

    return taken < budget ? budget - taken : 0;
}

uint64_t wharf_gpu_arena_pool_choose(struct wharf_core *core, bool *ret_gave_up)
{
    uint64_t most = core->config.gpu_spare_nbytes;
    uint64_t left =
        core->residency.arena_pool.nbytes < most ? most - core->residency.arena_pool.nbytes : 0;
    uint64_t left_room = room(core);
    uint64_t nbytes = missing(&core->residency.arena_pool, left < left_room ? left : left_room);

    *ret_gave_up = nbytes == 0 &&
                   missing(&core->residency.arena_pool, most < left_room ? most : left_room) &&
                   give_up_stale(core);
    return nbytes;
}

void wharf_gpu_arena_pool_take_unwanted(struct wharf_gpu_arena_pool *pool,
                                        struct wharf_list *unwanted)
{
    wharf_list_init(unwanted);
    while (!wharf_list_is_empty(&pool->unwanted)) {
        struct wharf_list *link = pool->unwanted.next;
        wharf_list_remove(link);
        wharf_list_append(unwanted, link);
    }
}
