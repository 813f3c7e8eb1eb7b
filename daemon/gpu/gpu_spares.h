/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_spares.h: arenas that are ready for GPUs before anybody has asked for them.
 *
 * Pinning fresh pages costs 0.75 s for a GiB.  So of the sizes that sessions asked for lately, some
 * arenas are kept that are zeroed and pinned already.  Each is given to one session and to no other
 * one afterwards.
 */
#ifndef WHARF_DAEMON_GPU_GPU_SPARES_H
#define WHARF_DAEMON_GPU_GPU_SPARES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/list.h"
#include "daemon/control/segment.h"

struct wharf_front;
struct wharf_gpu_memory;

/* Sizes that are remembered, the latest ones. */
#define WHARF_GPU_SPARE_SIZES 4

struct wharf_gpu_spares {
    struct wharf_list list;
    uint64_t nbytes;            /* of all in the list */
    struct wharf_list unwanted; /* to be freed */
    uint64_t sizes[WHARF_GPU_SPARE_SIZES];
};

void wharf_gpu_spares_init(struct wharf_gpu_spares *spares);

/*
 * wharf_gpu_spares_take: an arena of exactly this size, for a session that is about to be made, and
 * its entry, whose session is set later.  Under the front lock, as all here that does not say
 * otherwise.  Returns whether there was one; the size is remembered in any case.
 */
bool wharf_gpu_spares_take(struct wharf_front *front, uint64_t nbytes,
                           struct wharf_segment *ret_segment, struct wharf_gpu_memory **ret_memory);

/* What of the budget spares have; they give so much of it up, if they have it. */
uint64_t wharf_gpu_spares_pinned(const struct wharf_gpu_spares *spares);
void wharf_gpu_spares_yield(struct wharf_front *front, uint64_t nbytes);

/* Makes one that is missing, or frees one of a size that nobody asks for any more to make room for
 * it, if that GPU's thread is who makes them.  Without the lock.  Returns whether there may be
 * more. */
bool wharf_gpu_spares_refill(struct wharf_front *front, uint32_t gpu);

/* Frees all, when no worker has them any more.  Without the lock. */
void wharf_gpu_spares_deinit(struct wharf_front *front);

#endif
