/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_room.c: eviction from pinned memory.
 *
 * Fair sharing of one resource of known size: a tenant may always take its even share, and more
 * while nobody else wants it.  Only memory above an even share is evicted for others, least
 * recently used first.  Two delays prevent thrashing: memory stays pinned for a minimum time, and a
 * failed search is not repeated for a while.  A search that finds too little evicts nothing.
 */
#include "daemon/placement/gpu_room.h"

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/residency.h"
#include "daemon/placement/gpu_arena_pool.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/pin_account.h"
#include "proto/wharf_job.h"

/* How long memory stays pinned before it can be evicted: for a tenant that stays within an even
 * share; and for one that would have more, with which it takes turns.  Pinning a GiB takes 50 ms,
 * and kernels have to leave for each release. */
#define STAY_NS ((uint64_t)WHARF_NS_PER_S)
#define TURN_NS (10 * (uint64_t)WHARF_NS_PER_S)
/* Memory that no item named for this long can be evicted for anybody. */
#define UNUSED_NS (10 * (uint64_t)WHARF_NS_PER_S)
/* How long memory counts as wanted after a job that ran elsewhere. */
#define WANTED_NS (2 * (uint64_t)WHARF_NS_PER_S)
/* The least time between two notices to GPUs that memory is wanted, and between two failed searches
 * for room. */
#define TELL_NS (100 * (uint64_t)WHARF_NS_PER_MS)
/* The accuracy of the least recently used order. */
#define COARSE_NS (10 * (uint64_t)WHARF_NS_PER_MS)
/* The most victims at a time for one piece of memory; more can follow later. */
#define MOST_VICTIMS 64

/* Compare times by sums: the caller's time may be older than the entry's. */

/* ---- jobs ---------------------------------------------------------------------------------- */

static bool is_for_gpu(const struct wharf_core *core, const struct wharf_job *job)
{
    return wharf_place_has_gpu(core, job->session->engine) && wharf_place_gpu_codes(core, job) &&
           (job->batch || job->submission.opcode != WHARF_OP_BATCH);
}

void wharf_gpu_room_want(struct wharf_core *core, const struct wharf_job *job, uint64_t now_ns)
{
    struct wharf_gpu_memory *memory;
    uint32_t at = 0;

    if (!is_for_gpu(core, job))
        return;
    while (wharf_gpu_memory_next(job, &at, &memory)) {
        if (!memory || memory->is_device || (memory->is_counted && !memory->is_leaving))
            continue;
        if (now_ns >= memory->wanted_ns + TELL_NS)
            core->fleet.gpus_wanted |= core->fleet.gpus_up & -core->fleet.gpus_up;
        if (now_ns > memory->wanted_ns)
            memory->wanted_ns = now_ns;
    }
}

void wharf_gpu_room_use(uint32_t gpu, const struct wharf_job *job, uint64_t now_ns)
{
    struct wharf_gpu_memory *memory;
    uint32_t at = 0;

    while (wharf_gpu_memory_next(job, &at, &memory)) {
        memory->on[gpu].n_pieces++;
        if (!wharf_list_is_linked(&memory->pin_link) || now_ns < memory->pin_used_ns + COARSE_NS)
            continue;
        memory->pin_used_ns = now_ns;
        wharf_list_remove(&memory->pin_link);
        wharf_list_append(&memory->tenant->gpu_pins.pins, &memory->pin_link);
    }
}

bool wharf_gpu_room_end_use(uint32_t gpu, const struct wharf_job *job)
{
    struct wharf_gpu_memory *memory;
    bool is_left = false;
    uint32_t at = 0;

    while (wharf_gpu_memory_next(job, &at, &memory))
        is_left |= --memory->on[gpu].n_pieces == 0 && memory->is_leaving;
    return is_left;
}

/* ---- room ---------------------------------------------------------------------------------- */

/* The bytes that are missing for it after all present evictions; below 0: the bytes to spare. */
static int64_t missing_nbytes(const struct wharf_core *core, const struct wharf_gpu_memory *memory,
                              uint64_t going_nbytes)
{
    uint64_t others =
        core->residency.room.promised_nbytes - (memory->is_promised ? memory->nbytes : 0);

    return (int64_t)(core->residency.pinned_nbytes - going_nbytes + others + memory->nbytes) -
           (int64_t)core->config.gpu_memory_nbytes;
}

bool wharf_gpu_room_fits(const struct wharf_core *core, const struct wharf_gpu_memory *memory)
{
    return memory->is_device || memory->is_counted || missing_nbytes(core, memory, 0) <= 0;
}

bool wharf_gpu_room_is_wanted(const struct wharf_gpu_memory *memory, uint64_t now_ns)
{
    const struct wharf_session *session = memory->session;

    return memory->wanted_ns && (now_ns < memory->wanted_ns + WANTED_NS ||
                                 !wharf_list_is_empty(&session->placing.waiting) ||
                                 !wharf_list_is_empty(&session->placing.due));
}

/* ---- victims ------------------------------------------------------------------------------- */

/* A search for victims, and its result. */
struct search {
    const struct wharf_gpu_memory *memory; /* for which room is made */
    uint64_t now_ns;
    uint64_t share_nbytes;     /* an even one */
    uint64_t own_nbytes;       /* that its tenant would have with it */
    struct wharf_list victims; /* so far */
    bool is_early;             /* some would go later */
};

static uint64_t staying_nbytes(const struct wharf_tenant *tenant)
{
    return tenant->gpu_pins.pinned_nbytes - tenant->gpu_pins.leaving_nbytes;
}

/* Whether this tenant's least recently used memory may be evicted, apart from the minimum time. */
static bool may_be_asked(const struct search *search, const struct wharf_tenant *tenant)
{
    uint64_t nbytes = staying_nbytes(tenant);

    return tenant != search->memory->tenant && nbytes > search->share_nbytes &&
           nbytes >= search->own_nbytes;
}

static struct wharf_gpu_memory *find_victim(const struct wharf_core *core, struct search *search)
{
    uint64_t stay_ns = search->own_nbytes <= search->share_nbytes ? STAY_NS : TURN_NS;
    struct wharf_gpu_memory *unused = NULL, *found = NULL;

    WHARF_LIST_FOR(link, &core->residency.room.tenants)
    {
        const struct wharf_tenant *tenant =
            WHARF_LIST_ENTRY(link, struct wharf_tenant, gpu_pins.link);
        struct wharf_gpu_memory *oldest =
            WHARF_LIST_FIRST(&tenant->gpu_pins.pins, struct wharf_gpu_memory, pin_link);
        if (!oldest)
            continue;
        if (search->now_ns >= oldest->pin_used_ns + UNUSED_NS &&
            (!unused || oldest->pin_used_ns < unused->pin_used_ns))
            unused = oldest;
        if (!may_be_asked(search, tenant))
            continue;
        if (search->now_ns < oldest->pinned_ns + stay_ns)
            search->is_early = true;
        else if (!found || staying_nbytes(tenant) > staying_nbytes(found->tenant))
            found = oldest;
    }
    return unused ? unused : found;
}

/* Whether others, besides present victims, have enough memory that may be evicted. */
static bool others_have(const struct wharf_core *core, const struct search *search, int64_t nbytes)
{
    uint64_t kept =
        search->own_nbytes > search->share_nbytes ? search->own_nbytes : search->share_nbytes;

    WHARF_LIST_FOR(link, &core->residency.room.tenants)
    {
        const struct wharf_tenant *tenant =
            WHARF_LIST_ENTRY(link, struct wharf_tenant, gpu_pins.link);
        if (tenant != search->memory->tenant && staying_nbytes(tenant) > kept)
            nbytes -= (int64_t)(staying_nbytes(tenant) - kept);
    }
    return nbytes <= 0;
}

/* Finds victims with enough memory; or as many as go at a time, if more can follow.  False: there
 * are not enough, and nothing is evicted. */
static bool find_victims(struct wharf_core *core, struct search *search, int64_t missing)
{
    unsigned n;

    for (n = 0; n < MOST_VICTIMS && missing > 0; n++) {
        struct wharf_gpu_memory *victim = find_victim(core, search);
        if (!victim)
            break;
        wharf_list_remove(&victim->pin_link);
        wharf_list_append(&search->victims, &victim->pin_link);
        wharf_pin_set_leaving(core, victim, true);
        missing -= (int64_t)victim->nbytes;
    }
    if (missing <= 0 || (n == MOST_VICTIMS && others_have(core, search, missing)))
        return true;
    while (!wharf_list_is_empty(&search->victims)) {
        struct wharf_gpu_memory *victim =
            WHARF_LIST_ENTRY(search->victims.prev, struct wharf_gpu_memory, pin_link);
        wharf_pin_set_leaving(core, victim, false);
        wharf_list_remove(&victim->pin_link);
        wharf_list_append(victim->tenant->gpu_pins.pins.next, &victim->pin_link);
    }
    return false;
}

/* From now on no GPU takes an item that names it. */
static void evict(struct wharf_core *core, struct wharf_gpu_memory *memory)
{
    wharf_list_remove(&memory->pin_link);
    memory->tenant->stats.n_evicted++;
    for (uint32_t gpu = 0; gpu < core->fleet.n_gpus; gpu++)
        if (memory->on[gpu].state == WHARF_GPU_MEMORY_READY)
            wharf_gpu_memory_set(core, gpu, memory, WHARF_GPU_MEMORY_LEAVING);
    core->fleet.gpus_wanted |= wharf_gpu_memory_holders(memory);
}

/* An even share of the budget, among the tenants that would then have pinned memory. */
static struct search begin_search(const struct wharf_core *core,
                                  const struct wharf_gpu_memory *memory, uint64_t now_ns)
{
    uint64_t staying = staying_nbytes(memory->tenant);
    uint32_t n = core->residency.room.n_tenants + (memory->tenant->gpu_pins.pinned_nbytes == 0);

    return (struct search){
        .memory = memory,
        .now_ns = now_ns,
        .share_nbytes = core->config.gpu_memory_nbytes / n,
        .own_nbytes = staying + memory->nbytes,
    };
}

/* Tenants give what the pool does not; if both are not enough, nothing goes. */
static bool make(struct wharf_core *core, struct search *search, int64_t missing)
{
    uint64_t pool_nbytes =
        missing > 0 ? wharf_gpu_arena_pool_pinned(&core->residency.arena_pool) : 0;

    if (!find_victims(core, search, missing - (int64_t)pool_nbytes))
        return false;
    while (!wharf_list_is_empty(&search->victims))
        evict(core, WHARF_LIST_FIRST(&search->victims, struct wharf_gpu_memory, pin_link));
    missing = missing_nbytes(core, search->memory,
                             core->residency.room.leaving_nbytes + core->residency.dead_nbytes);
    if (missing > 0)
        wharf_gpu_arena_pool_yield(core, (uint64_t)missing);
    return true;
}

enum wharf_gpu_room_outlook wharf_gpu_room_make(struct wharf_core *core,
                                                struct wharf_gpu_memory *memory, uint64_t now_ns)
{
    uint64_t going_nbytes = core->residency.room.leaving_nbytes + core->residency.dead_nbytes;
    struct wharf_gpu_pins *own = memory->tenant ? &memory->tenant->gpu_pins : NULL;

    /* A pooled arena is nobody's: it waits until there is room. */
    if (!own)
        return WHARF_GPU_ROOM_NONE;
    if (memory->is_promised && going_nbytes > 0)
        return WHARF_GPU_ROOM_SOON;
    /* The budget may have become smaller meanwhile. */
    wharf_pin_set_promised(core, memory, false);
    if (memory->nbytes > core->config.gpu_memory_nbytes ||
        !wharf_gpu_room_is_wanted(memory, now_ns))
        return WHARF_GPU_ROOM_NONE;
    if (now_ns < own->in_vain_ns + TELL_NS && memory->nbytes >= own->in_vain_nbytes)
        return own->is_in_vain_for_now ? WHARF_GPU_ROOM_LATER : WHARF_GPU_ROOM_NONE;
    struct search search = begin_search(core, memory, now_ns);
    wharf_list_init(&search.victims);
    if (!make(core, &search, missing_nbytes(core, memory, going_nbytes))) {
        own->in_vain_ns = now_ns;
        own->in_vain_nbytes = memory->nbytes;
        own->is_in_vain_for_now = search.is_early;
        return search.is_early ? WHARF_GPU_ROOM_LATER : WHARF_GPU_ROOM_NONE;
    }
    wharf_pin_set_promised(core, memory, true);
    return WHARF_GPU_ROOM_SOON;
}
