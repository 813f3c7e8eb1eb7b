/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_arena_pool.h: arenas that are zeroed and pinned before a session asks for them.
 *
 * Pinning fresh pages costs 0.75 s for a GiB.  So the pool keeps some arenas of the sizes that
 * sessions asked for lately.  Each arena goes to one session and to no other session afterwards.
 *
 * Called under the core lock, unless a function says otherwise.
 */
#ifndef WHARF_DAEMON_PLACEMENT_GPU_ARENA_POOL_H
#define WHARF_DAEMON_PLACEMENT_GPU_ARENA_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/residency.h"
#include "daemon/core/segment.h"

struct wharf_core;
struct wharf_gpu_memory;

/*
 * wharf_gpu_arena_pool_take: takes an arena of exactly this size, and its memory's entry, for a
 * session that is about to be made; the caller sets the entry's session later.  Returns whether
 * there was one.  The size is remembered in any case.
 */
bool wharf_gpu_arena_pool_take(struct wharf_core *core, uint64_t nbytes,
                               struct wharf_segment *ret_segment,
                               struct wharf_gpu_memory **ret_memory);

/* The bytes of the pinned budget that the pool has; and giving up to nbytes of them back. */
uint64_t wharf_gpu_arena_pool_pinned(const struct wharf_gpu_arena_pool *pool);
void wharf_gpu_arena_pool_yield(struct wharf_core *core, uint64_t nbytes);

/* ---- for gpu_arena_maker.h ------------------------------------------------------------------ */

struct wharf_gpu_pooled_arena {
    struct wharf_list link;
    struct wharf_segment segment;
    struct wharf_gpu_memory *memory;
};

/* The thread of the first GPU that is up makes the arenas; returns that GPU's bit. */
uint32_t wharf_gpu_arena_pool_maker(const struct wharf_core *core);

/* The size of the arena to make next; 0: none, perhaps since another one has to be freed first. */
uint64_t wharf_gpu_arena_pool_choose(struct wharf_core *core, bool *ret_gave_up);

/* Moves the arenas that are to be freed to the caller's list. */
void wharf_gpu_arena_pool_take_unwanted(struct wharf_gpu_arena_pool *pool,
                                        struct wharf_list *unwanted);

#endif
