/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_memory.c: entries of the account of GPU memory.
 *
 * An entry exists from the creation of the client's memory until no worker has it and no job names
 * it.  A worker's state of it changes only in wharf_gpu_memory_set, which keeps the sums of pinned
 * memory right.
 */
#include "daemon/placement/gpu_memory.h"

#include <fcntl.h>
#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/file_io.h"
#include "daemon/core/file_staging.h"
#include "daemon/core/residency.h"
#include "daemon/core/session.h"
#include "daemon/core/shared_charge.h"
#include "daemon/core/tenant.h"
#include "daemon/placement/gpu_models.h"
#include "daemon/placement/pin_account.h"

/* Of nothing yet. */
static struct wharf_gpu_memory *entry_new(int fd, uint64_t nbytes)
{
    struct wharf_gpu_memory *memory = calloc(1, sizeof(*memory));

    if (!memory)
        return NULL;
    memory->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (memory->fd < 0) {
        free(memory);
        return NULL;
    }
    wharf_list_init(&memory->link);
    wharf_list_init(&memory->pin_link);
    memory->nbytes = nbytes;
    memory->since_ns = wharf_now_ns();
    memory->owner = WHARF_MAX_GPUS;
    for (uint32_t i = 0; i < WHARF_MAX_GPUS; i++) {
        wharf_list_init(&memory->on[i].link);
        wharf_list_init(&memory->on[i].model_link);
        wharf_list_init(&memory->on[i].answer_link);
        memory->on[i].memory = memory;
        memory->on[i].state = WHARF_GPU_MEMORY_ABSENT;
    }
    return memory;
}

struct wharf_gpu_memory *wharf_gpu_memory_new(struct wharf_core *core,
                                              struct wharf_session *session, int fd,
                                              uint64_t nbytes, bool read_only)
{
    /* The lock is not held, so another GPU may be added meanwhile. */
    bool is_any = __atomic_load_n(&core->fleet.n_gpus, __ATOMIC_RELAXED) > 0;
    struct wharf_gpu_memory *memory = is_any ? entry_new(fd, nbytes) : NULL;

    if (!memory)
        return NULL;
    memory->session = session;
    memory->tenant = session->tenant;
    memory->read_only = read_only;
    return memory;
}

struct wharf_gpu_memory *wharf_gpu_memory_new_pooled(int fd, uint64_t nbytes)
{
    struct wharf_gpu_memory *memory = entry_new(fd, nbytes);

    if (memory)
        memory->is_pooled = true;
    return memory;
}

struct wharf_gpu_memory *wharf_gpu_memory_new_device(struct wharf_core *core,
                                                     struct wharf_session *session, int fd,
                                                     uint64_t nbytes)
{
    struct wharf_gpu_memory *memory = wharf_gpu_memory_new(core, session, fd, nbytes, false);

    if (memory)
        memory->is_device = true;
    return memory;
}

static uint32_t all_gpus(const struct wharf_core *core)
{
    return (uint32_t)(((uint64_t)1 << core->fleet.n_gpus) - 1);
}

void wharf_gpu_memory_add(struct wharf_core *core, struct wharf_gpu_memory *memory)
{
    if (!memory)
        return;
    memory->number = ++core->residency.last_memory;
    if (memory->tenant)
        wharf_tenant_ref(memory->tenant);
    wharf_list_append(&core->residency.memories, &memory->link);
    for (uint32_t i = 0; i < core->fleet.n_gpus; i++)
        wharf_list_append(&core->fleet.gpus[i].memories, &memory->on[i].link);
    core->fleet.gpus_wanted |= all_gpus(core);
}

void wharf_gpu_memory_add_gpu(struct wharf_core *core, uint32_t gpu)
{
    WHARF_LIST_FOR(link, &core->residency.memories)
    {
        struct wharf_gpu_memory *memory = WHARF_LIST_ENTRY(link, struct wharf_gpu_memory, link);
        wharf_list_append(&core->fleet.gpus[gpu].memories, &memory->on[gpu].link);
    }
}

void wharf_gpu_memory_give(struct wharf_core *core, struct wharf_gpu_memory *memory,
                           struct wharf_session *session)
{
    memory->is_pooled = false;
    memory->session = session;
    memory->tenant = session->tenant;
    wharf_tenant_ref(memory->tenant);
    memory->since_ns = wharf_now_ns();
    wharf_pin_give_to_tenant(core, memory);
}

int wharf_gpu_memory_free(struct wharf_gpu_memory *memory)
{
    int fd = memory->fd;

    if (memory->tenant) {
        memory->tenant->n_gpu_leaving -= memory->is_awaited;
        wharf_tenant_give_back(memory->tenant, &memory->use);
        wharf_tenant_unref(memory->tenant);
    }
    wharf_shared_charge_release(memory->charge);
    wharf_list_remove(&memory->link);
    for (uint32_t i = 0; i < WHARF_MAX_GPUS; i++) {
        wharf_list_remove(&memory->on[i].link);
        wharf_list_remove(&memory->on[i].answer_link);
    }
    free(memory);
    return fd;
}

uint32_t wharf_gpu_memory_holders(const struct wharf_gpu_memory *memory)
{
    uint32_t bits = 0;

    for (uint32_t i = 0; i < WHARF_MAX_GPUS; i++)
        bits |= (uint32_t)wharf_gpu_memory_is_held(memory->on[i].state) << i;
    return bits;
}

void wharf_gpu_memory_set(struct wharf_core *core, uint32_t gpu, struct wharf_gpu_memory *memory,
                          enum wharf_gpu_memory_state state)
{
    struct wharf_gpu_hold *hold = &memory->on[gpu];
    enum wharf_gpu_memory_state before = hold->state;

    hold->state = state;
    if (memory->is_model)
        wharf_gpu_models_count(&core->fleet.gpus[gpu], gpu, hold, before);
    /* Pages are pinned once, by however many workers: from the first one's request, since that may
     * have pinned them before it answers, to the last one's release. */
    bool is_counted = !memory->is_device && wharf_gpu_memory_holders(memory) != 0;
    if (is_counted && !memory->is_counted) {
        wharf_pin_count(core, memory);
    } else if (!is_counted && memory->is_counted) {
        wharf_pin_discount(core, memory);
        /* That makes room for others. */
        core->fleet.gpus_wanted |= all_gpus(core);
    }
    memory->is_counted = is_counted;
}

bool wharf_gpu_memory_drop(struct wharf_core *core, struct wharf_gpu_memory *memory,
                           const struct wharf_use *use)
{
    if (!memory)
        return false;
    wharf_pin_drop(core, memory);
    memory->session = NULL;
    memory->model = NULL;
    memory->is_pooled = false;
    uint32_t holders = wharf_gpu_memory_holders(memory);
    if (!memory->is_device && holders == 0) {
        /* The daemon's own mapping still exists, so this frees no pages. */
        wharf_close_fd(wharf_gpu_memory_free(memory));
        return false;
    }
    /* The tenant pays until the last worker has let go of it.  Else a client that comes and goes
     * could have any amount of memory pinned. */
    memory->use = *use;
    memory->is_awaited = memory->tenant != NULL;
    if (memory->tenant)
        memory->tenant->n_gpu_leaving++;
    core->residency.dead_nbytes += memory->is_counted ? memory->nbytes : 0;
    core->fleet.gpus_wanted |= holders;
    if (holders == 0) {
        /* The first GPU's thread closes descriptors, with or without a worker. */
        wharf_list_remove(&memory->link);
        wharf_list_append(&core->residency.unheld, &memory->link);
        core->fleet.gpus_wanted |= 1;
    }
    return true;
}

/* ---- of jobs ------------------------------------------------------------------------------- */

static enum wharf_gpu_memory_state of_memory(const struct wharf_gpu_memory *memory, uint32_t gpu)
{
    return memory ? memory->on[gpu].state : WHARF_GPU_MEMORY_REFUSED;
}

static enum wharf_gpu_memory_state lesser(enum wharf_gpu_memory_state a,
                                          enum wharf_gpu_memory_state b)
{
    return a < b ? a : b;
}

/* What GPUs need of a region: of a file, from which they get sources, the session's staging area.
 * NULL: they cannot have it. */
static struct wharf_gpu_memory *memory_of(const struct wharf_job *job,
                                          const struct wharf_region *region)
{
    const struct wharf_file_io *io = job->session->file_io;

    if (!region->is_file)
        return region->memory;
    return io && io->staging && wharf_job_has_file_source(job) ? io->staging->account : NULL;
}

/* The CPU alone writes and compresses files. */
static bool is_for_cpu(const struct wharf_job *job)
{
    return (job->batch ? job->batch->has_file_output : job->destination->is_file) ||
           (wharf_job_compresses(job) && wharf_job_has_file_source(job));
}

/* Iterates over the regions that an opened batch names: returns the next one at or after *at and
 * advances *at; NULL: no more. */
static const struct wharf_region *next_region(const struct wharf_job *job, uint32_t *at)
{
    const struct wharf_batch *batch = job->batch;

    for (; *at / 64 < batch->n_region_words; *at = (*at / 64 + 1) * 64) {
        uint64_t bits = batch->regions[*at / 64] >> *at % 64;
        if (!bits)
            continue;
        *at += (uint32_t)__builtin_ctzll(bits) + 1;
        return &job->session->regions[*at - 1];
    }
    return NULL;
}

bool wharf_gpu_memory_next(const struct wharf_job *job, uint32_t *at,
                           struct wharf_gpu_memory **ret_memory)
{
    const struct wharf_region *region;

    if (job->batch)
        region = next_region(job, at);
    else
        region = *at > 1 ? NULL : (*at)++ == 0 ? job->source : job->destination;
    if (!region)
        return false;
    *ret_memory = memory_of(job, region);
    return true;
}

enum wharf_gpu_memory_state wharf_gpu_memory_of_job(const struct wharf_job *job, uint32_t gpu)
{
    enum wharf_gpu_memory_state state = WHARF_GPU_MEMORY_READY;
    const struct wharf_region *region;
    uint32_t at = 0;

    if (is_for_cpu(job))
        return WHARF_GPU_MEMORY_REFUSED;
    if (job->model)
        state = of_memory(job->model->memory, gpu);
    if (!job->batch)
        return lesser(state, lesser(of_memory(memory_of(job, job->source), gpu),
                                    of_memory(job->destination->memory, gpu)));
    while ((region = next_region(job, &at)))
        state = lesser(state, of_memory(memory_of(job, region), gpu));
    return state;
}

bool wharf_gpu_memory_is_full(const struct wharf_job *job)
{
    const struct wharf_file_io *io = job->session->file_io;

    return wharf_job_has_file_source(job) && io->staging && io->staging->is_full;
}

enum wharf_gpu_memory_state wharf_gpu_memory_anywhere(const struct wharf_core *core,
                                                      const struct wharf_job *job)
{
    enum wharf_gpu_memory_state best = WHARF_GPU_MEMORY_REFUSED;

    for (uint32_t bits = core->fleet.gpus_up; bits && best != WHARF_GPU_MEMORY_READY;
         bits &= bits - 1) {
        enum wharf_gpu_memory_state state =
            wharf_gpu_memory_of_job(job, (uint32_t)__builtin_ctz(bits));
        best = state > best ? state : best;
    }
    return best;
}

/* As a bit; 0: it is no GPU's. */
static uint32_t owner_of(const struct wharf_region *region)
{
    return region && region->is_device ? 1u << region->memory->owner : 0;
}

uint32_t wharf_gpu_memory_owners(const struct wharf_job *job)
{
    const struct wharf_region *region;
    uint32_t at = 0, bits = 0;

    if (!job->batch)
        return owner_of(job->source) | owner_of(job->destination);
    while (job->batch->has_device && (region = next_region(job, &at)))
        bits |= owner_of(region);
    return bits;
}
