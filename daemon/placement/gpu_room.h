/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_room.h: eviction from the budget of pinned memory.
 *
 * Pinned memory is counted for each tenant.  While the budget has room, all memory is pinned on
 * request.  When it has none, and a job names unpinned memory, victims are chosen in this order:
 * pooled arenas; memory that no GPU has used for long; memory of the largest tenant, if it has more
 * than an even share, and no less than the requesting tenant would then have.  Within each group
 * the least recently used goes first.  A GPU releases a victim when none of its items names it.
 * Meanwhile the room is promised to the requesting tenant.
 *
 * Memory stays pinned for a minimum time, so that two tenants that compete for the same room do not
 * waste the GPU's time.  Models have rules of their own (gpu_models.h).
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_PLACEMENT_GPU_ROOM_H
#define WHARF_DAEMON_PLACEMENT_GPU_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/residency.h"

struct wharf_core;
struct wharf_gpu_memory;
struct wharf_job;

/* A job is queued, or waits: marks the memory that it names and no GPU has as wanted, if a GPU
 * could run it. */
void wharf_gpu_room_want(struct wharf_core *core, const struct wharf_job *job, uint64_t now_ns);

/* A GPU gets a piece of the job; a GPU has ended one.  The latter returns whether a victim can go
 * now. */
void wharf_gpu_room_use(uint32_t gpu, const struct wharf_job *job, uint64_t now_ns);
bool wharf_gpu_room_end_use(uint32_t gpu, const struct wharf_job *job);

/* Whether the budget has room for it; memory that is already counted fits. */
bool wharf_gpu_room_fits(const struct wharf_core *core, const struct wharf_gpu_memory *memory);

/* Whether a job waits for it, or recently ran elsewhere because no GPU has it. */
bool wharf_gpu_room_is_wanted(const struct wharf_gpu_memory *memory, uint64_t now_ns);

/* The prospects of memory for which the budget has no room. */
enum wharf_gpu_room_outlook {
    WHARF_GPU_ROOM_NONE,  /* no room can be made for now */
    WHARF_GPU_ROOM_LATER, /* victims have not been pinned for the minimum time */
    WHARF_GPU_ROOM_SOON,  /* room is promised, and victims are leaving */
};

/* Evicts others for it, if it is wanted and the rules allow that. */
enum wharf_gpu_room_outlook wharf_gpu_room_make(struct wharf_core *core,
                                                struct wharf_gpu_memory *memory, uint64_t now_ns);

#endif
