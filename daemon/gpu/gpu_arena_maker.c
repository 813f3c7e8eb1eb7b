/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_arena_maker.c: makes and frees pooled arenas. */
#include "daemon/gpu/gpu_arena_maker.h"

#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/segment.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/placement/gpu_arena_pool.h"
#include "daemon/placement/gpu_memory.h"

static void arena_free(struct wharf_gpu_pooled_arena *arena)
{
    wharf_segment_free(&arena->segment);
    free(arena);
}

static struct wharf_gpu_pooled_arena *arena_new(uint64_t nbytes)
{
    struct wharf_gpu_pooled_arena *arena = calloc(1, sizeof(*arena));

    if (arena && wharf_segment_make(WHARF_SEGMENT_ARENA, nbytes, &arena->segment) == 0) {
        arena->memory = wharf_gpu_memory_new_pooled(arena->segment.fd, nbytes);
        if (arena->memory)
            return arena;
        wharf_segment_free(&arena->segment);
    }
    free(arena);
    return NULL;
}

static void free_all(struct wharf_list *pool)
{
    while (!wharf_list_is_empty(pool)) {
        struct wharf_gpu_pooled_arena *arena =
            WHARF_LIST_FIRST(pool, struct wharf_gpu_pooled_arena, link);
        wharf_list_remove(&arena->link);
        arena_free(arena);
    }
}

bool wharf_gpu_arena_maker_refill(struct wharf_core *core, uint32_t gpu)
{
    struct wharf_list unwanted;
    bool gave_up = false;

    wharf_core_enter_first(core);
    uint64_t nbytes = wharf_gpu_arena_pool_maker(core) == 1u << gpu
                          ? wharf_gpu_arena_pool_choose(core, &gave_up)
                          : 0;
    wharf_gpu_arena_pool_take_unwanted(&core->residency.arena_pool, &unwanted);
    wharf_core_leave(core);
    free_all(&unwanted);
    struct wharf_gpu_pooled_arena *arena = nbytes ? arena_new(nbytes) : NULL;
    if (!arena)
        return gave_up;
    wharf_core_enter_first(core);
    wharf_list_append(&core->residency.arena_pool.list, &arena->link);
    core->residency.arena_pool.nbytes += nbytes;
    wharf_gpu_memory_add(core, arena->memory);
    wharf_core_leave(core);
    return true;
}

void wharf_gpu_arena_maker_deinit(struct wharf_core *core)
{
    struct wharf_gpu_arena_pool *pool = &core->residency.arena_pool;

    while (!wharf_list_is_empty(&pool->list)) {
        struct wharf_gpu_pooled_arena *arena =
            WHARF_LIST_FIRST(&pool->list, struct wharf_gpu_pooled_arena, link);
        wharf_core_enter(core);
        wharf_list_remove(&arena->link);
        int fd = wharf_gpu_memory_free(arena->memory);
        wharf_core_leave(core);
        wharf_close_fd(fd);
        arena_free(arena);
    }
    free_all(&pool->unwanted);
    pool->nbytes = 0;
}
