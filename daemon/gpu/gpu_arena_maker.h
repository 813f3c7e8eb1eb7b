/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_arena_maker.h: makes and frees the arenas of gpu_arena_pool.h.  Called without the core lock.
 */
#ifndef WHARF_DAEMON_GPU_GPU_ARENA_MAKER_H
#define WHARF_DAEMON_GPU_GPU_ARENA_MAKER_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_core;

/* Makes a missing arena, or frees one of a size that no session asks for any more.  Does nothing
 * unless that GPU's thread is the maker.  Returns whether there may be more to do. */
bool wharf_gpu_arena_maker_refill(struct wharf_core *core, uint32_t gpu);

/* Frees all arenas, after the last worker has ended. */
void wharf_gpu_arena_maker_deinit(struct wharf_core *core);

#endif
