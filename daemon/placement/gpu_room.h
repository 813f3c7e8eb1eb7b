/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_room.h: room in the budget of pinned memory, and whose memory makes room.
 *
 * What GPUs have pinned is counted for each tenant.  While the budget has room, all memory that is
 * asked for is pinned.  When it has none, and a job names memory that is not pinned, memory goes in
 * this order: pooled arenas; what no GPU has used for long; memory of the tenant that has most, as
 * long as that is more than an even share and not less than the tenant that wants room would have
 * then.  In each case what was used longest ago goes first.  All GPUs let go of it as soon as no
 * item of theirs names it.  Meanwhile the room is promised to the tenant that wanted it.
 *
 * Memory stays pinned for a while before it makes room for others, so that two tenants that want
 * the same room do not spend the GPU's time on that.  Models have their own order (gpu_models.h).
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

/* A job is queued, or waits: what it names and no GPU has is wanted, if a GPU could run it. */
void wharf_gpu_room_want(struct wharf_core *core, const struct wharf_job *job, uint64_t now_ns);

/* A GPU has a piece of the job; or has it no more: whether something that makes room for others can
 * go now. */
void wharf_gpu_room_use(uint32_t gpu, const struct wharf_job *job, uint64_t now_ns);
bool wharf_gpu_room_end_use(uint32_t gpu, const struct wharf_job *job);

/* Whether there is room for it; what is counted has its room. */
bool wharf_gpu_room_fits(const struct wharf_core *core, const struct wharf_gpu_memory *memory);

/* Whether a job waits for it, or ran elsewhere just now since no GPU has it. */
bool wharf_gpu_room_is_wanted(const struct wharf_gpu_memory *memory, uint64_t now_ns);

/* What becomes of memory for which there is no room. */
enum wharf_gpu_room_outlook {
    WHARF_GPU_ROOM_NONE,  /* nothing, for now */
    WHARF_GPU_ROOM_LATER, /* others have been pinned for too short a time to go */
    WHARF_GPU_ROOM_SOON,  /* it is promised room, which others are about to leave */
};

/* Has others make room for it, if it is wanted and they have to. */
enum wharf_gpu_room_outlook wharf_gpu_room_make(struct wharf_core *core,
                                                struct wharf_gpu_memory *memory, uint64_t now_ns);

#endif
