/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_spares.h: arenas that are ready for GPUs before anybody has asked for them.
 *
 * Pinning fresh pages costs 0.75 s for a GiB.  So of the sizes that sessions asked for lately, some
 * arenas are kept that are zeroed and pinned already.  Each is given to one session and to no other
 * one afterwards.
 */
#ifndef WHARF_DAEMON_PLACEMENT_GPU_SPARES_H
#define WHARF_DAEMON_PLACEMENT_GPU_SPARES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/residency.h"
#include "daemon/core/segment.h"

struct wharf_core;
struct wharf_gpu_memory;

/*
 * wharf_gpu_spares_take: an arena of exactly this size, for a session that is about to be made, and
 * its entry, whose session is set later.  Under the core lock, as all here that does not say
 * otherwise.  Returns whether there was one; the size is remembered in any case.
 */
bool wharf_gpu_spares_take(struct wharf_core *core, uint64_t nbytes,
                           struct wharf_segment *ret_segment, struct wharf_gpu_memory **ret_memory);

/* What of the budget spares have; they give so much of it up, if they have it. */
uint64_t wharf_gpu_spares_pinned(const struct wharf_gpu_spares *spares);
void wharf_gpu_spares_yield(struct wharf_core *core, uint64_t nbytes);

/* ---- for who makes them: gpu_spare_maker.h ------------------------------------------------- */

struct wharf_gpu_spare {
    struct wharf_list link;
    struct wharf_segment segment;
    struct wharf_gpu_memory *memory;
};

/* Of the GPUs that are up, the first one's thread makes them: its bit. */
uint32_t wharf_gpu_spares_maker(const struct wharf_core *core);

/* The size of the one to be made next; 0: none, perhaps since one has to go for that first. */
uint64_t wharf_gpu_spares_choose(struct wharf_core *core, bool *ret_gave_up);

/* Moves what is to be freed to a list of the caller's. */
void wharf_gpu_spares_take_unwanted(struct wharf_gpu_spares *spares, struct wharf_list *unwanted);

#endif
