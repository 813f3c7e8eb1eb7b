/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/placement/gpu_spares.h"

#include <stdlib.h>

#include "daemon/base/config.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/residency.h"
#include "daemon/placement/gpu_memory.h"

/* Of each size: so many sessions can begin at about the same time. */
#define SPARES_OF_SIZE 2

uint32_t wharf_gpu_spares_maker(const struct wharf_core *core)
{
    return core->fleet.gpus_up & -core->fleet.gpus_up;
}

/* ---- taking -------------------------------------------------------------------------------- */

/* To the front of those that are remembered; the one at the end is forgotten. */
static void remember(struct wharf_gpu_spares *spares, uint64_t nbytes)
{
    unsigned i = 0;

    while (i + 1 < WHARF_GPU_SPARE_SIZES && spares->sizes[i] != nbytes)
        i++;
    for (; i > 0; i--)
        spares->sizes[i] = spares->sizes[i - 1];
    spares->sizes[0] = nbytes;
}

/* Some worker has it. */
static bool is_ready(const struct wharf_gpu_memory *memory)
{
    for (uint32_t i = 0; i < WHARF_MAX_GPUS; i++)
        if (memory->on[i].state == WHARF_GPU_MEMORY_READY)
            return true;
    return false;
}

static struct wharf_gpu_spare *find(struct wharf_gpu_spares *spares, uint64_t nbytes)
{
    WHARF_LIST_FOR(link, &spares->list)
    {
        struct wharf_gpu_spare *spare = WHARF_LIST_ENTRY(link, struct wharf_gpu_spare, link);
        if (spare->segment.nbytes == nbytes && is_ready(spare->memory))
            return spare;
    }
    return NULL;
}

bool wharf_gpu_spares_take(struct wharf_core *core, uint64_t nbytes,
                           struct wharf_segment *ret_segment, struct wharf_gpu_memory **ret_memory)
{
    struct wharf_gpu_spares *spares = &core->residency.spares;

    if (core->fleet.n_gpus == 0 || nbytes == 0)
        return false;
    remember(spares, nbytes);
    core->fleet.gpus_wanted |= wharf_gpu_spares_maker(core);
    struct wharf_gpu_spare *spare = find(spares, nbytes);
    if (!spare)
        return false;
    wharf_list_remove(&spare->link);
    spares->nbytes -= nbytes;
    *ret_segment = spare->segment;
    *ret_memory = spare->memory;
    free(spare);
    return true;
}

/* ---- making -------------------------------------------------------------------------------- */

static unsigned n_of_size(const struct wharf_gpu_spares *spares, uint64_t nbytes)
{
    unsigned n = 0;

    WHARF_LIST_FOR(link, &spares->list)
    n += WHARF_LIST_ENTRY(link, struct wharf_gpu_spare, link)->segment.nbytes == nbytes;
    return n;
}

/* A size of which there are too few, and one more of which has at most so many bytes; 0: none. */
static uint64_t missing(const struct wharf_gpu_spares *spares, uint64_t most)
{
    for (unsigned i = 0; i < WHARF_GPU_SPARE_SIZES; i++) {
        uint64_t nbytes = spares->sizes[i];
        if (nbytes > 0 && nbytes <= most && n_of_size(spares, nbytes) < SPARES_OF_SIZE)
            return nbytes;
    }
    return 0;
}

static bool is_remembered(const struct wharf_gpu_spares *spares, uint64_t nbytes)
{
    for (unsigned i = 0; i < WHARF_GPU_SPARE_SIZES; i++)
        if (spares->sizes[i] == nbytes)
            return true;
    return false;
}

/* Its memory is let go of as that of a session is; it is freed later, without the lock. */
static void give_up(struct wharf_core *core, struct wharf_gpu_spare *spare)
{
    wharf_list_remove(&spare->link);
    wharf_list_append(&core->residency.spares.unwanted, &spare->link);
    core->residency.spares.nbytes -= spare->segment.nbytes;
    wharf_gpu_memory_drop(core, spare->memory, &(struct wharf_use){.n_jobs = 0});
    spare->memory = NULL;
    core->fleet.gpus_wanted |= wharf_gpu_spares_maker(core);
}

/* One of a size that nobody has asked for lately; whether there was one. */
static bool give_up_stale(struct wharf_core *core)
{
    WHARF_LIST_FOR(link, &core->residency.spares.list)
    {
        struct wharf_gpu_spare *spare = WHARF_LIST_ENTRY(link, struct wharf_gpu_spare, link);
        if (is_remembered(&core->residency.spares, spare->segment.nbytes))
            continue;
        give_up(core, spare);
        return true;
    }
    return false;
}

uint64_t wharf_gpu_spares_pinned(const struct wharf_gpu_spares *spares)
{
    uint64_t nbytes = 0;

    WHARF_LIST_FOR(link, &spares->list)
    {
        const struct wharf_gpu_memory *memory =
            WHARF_LIST_ENTRY(link, struct wharf_gpu_spare, link)->memory;
        nbytes += memory->is_counted ? memory->nbytes : 0;
    }
    return nbytes;
}

void wharf_gpu_spares_yield(struct wharf_core *core, uint64_t nbytes)
{
    WHARF_LIST_FOR(link, &core->residency.spares.list)
    {
        struct wharf_gpu_spare *spare = WHARF_LIST_ENTRY(link, struct wharf_gpu_spare, link);
        uint64_t own_nbytes = spare->memory->nbytes;
        if (nbytes == 0)
            return;
        if (!spare->memory->is_counted)
            continue;
        give_up(core, spare);
        nbytes -= own_nbytes < nbytes ? own_nbytes : nbytes;
    }
}

/* Room for more of them in the budget, which they do not take from others. */
static uint64_t room(const struct wharf_core *core)
{
    const struct wharf_gpu_spares *spares = &core->residency.spares;
    uint64_t budget = core->config.gpu_memory_nbytes;
    uint64_t taken = core->residency.pinned_nbytes + core->residency.room.promised_nbytes +
                     spares->nbytes - wharf_gpu_spares_pinned(spares);

    return taken < budget ? budget - taken : 0;
}

uint64_t wharf_gpu_spares_choose(struct wharf_core *core, bool *ret_gave_up)
{
    uint64_t most = core->config.gpu_spare_nbytes;
    uint64_t left = core->residency.spares.nbytes < most ? most - core->residency.spares.nbytes : 0;
    uint64_t left_room = room(core);
    uint64_t nbytes = missing(&core->residency.spares, left < left_room ? left : left_room);

    *ret_gave_up = nbytes == 0 &&
                   missing(&core->residency.spares, most < left_room ? most : left_room) &&
                   give_up_stale(core);
    return nbytes;
}

void wharf_gpu_spares_take_unwanted(struct wharf_gpu_spares *spares, struct wharf_list *unwanted)
{
    wharf_list_init(unwanted);
    while (!wharf_list_is_empty(&spares->unwanted)) {
        struct wharf_list *link = spares->unwanted.next;
        wharf_list_remove(link);
        wharf_list_append(unwanted, link);
    }
}
