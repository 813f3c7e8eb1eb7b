/* SPDX-License-Identifier: Apache-2.0 */
/*
 * residency.h: the account of clients' memory that GPUs have registered, or could register.
 *
 * gpu_memory.h has the life of an entry, gpu_room.h eviction, gpu_arena_pool.h the arenas that are
 * pinned in advance.  Guarded by the core lock.
 */
#ifndef WHARF_DAEMON_CORE_RESIDENCY_H
#define WHARF_DAEMON_CORE_RESIDENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/config.h"
#include "daemon/base/list.h"
#include "daemon/core/totals.h"

struct wharf_session;
struct wharf_session_model;
struct wharf_shared_charge;
struct wharf_tenant;

/* In this order: the state of several pieces of memory together is the smallest of theirs. */
enum wharf_gpu_memory_state {
    WHARF_GPU_MEMORY_REFUSED, /* over the budget, or the driver refused it */
    WHARF_GPU_MEMORY_LEAVING, /* it is being evicted */
    WHARF_GPU_MEMORY_ABSENT,  /* the worker does not have it yet, or there is no worker */
    WHARF_GPU_MEMORY_ASKED,   /* the worker was asked to register it */
    WHARF_GPU_MEMORY_READY,
};

/* The state of a piece of memory on one GPU. */
struct wharf_gpu_hold {
    struct wharf_list link;          /* in that GPU's list */
    struct wharf_gpu_memory *memory; /* the entry that this belongs to */
    enum wharf_gpu_memory_state state;
    struct wharf_list answer_link; /* in the list of unanswered requests: gpu_answers.c */
    bool is_forgotten;             /* the worker was told to release it */
    bool is_over_budget;           /* REFUSED for want of room: retried when there is some */
    bool is_promised;              /* of a model: another one is being released for it */
    struct wharf_list model_link;  /* of a READY model, in least recently used order */
    uint64_t used_ns;              /* of a model: when an item last named it */
    uint64_t gone_ns;              /* of a model: when it was released or refused; 0: never */
    uint64_t refused_ns;           /* when the budget had no room for it */
    uint32_t n_pieces;             /* pieces on this GPU that name it; not for models */
    uint32_t pass;                 /* the last pass that visited it: gpu_pins.c */
    uint64_t address;              /* if READY: its device address, or a model's parameter */
};

struct wharf_gpu_memory {
    struct wharf_list link;
    struct wharf_session *session;      /* NULL: unused */
    struct wharf_tenant *tenant;        /* pinned */
    struct wharf_use use;               /* charged, and returned with the entry */
    struct wharf_shared_charge *charge; /* NULL, or let go of with the entry */
    bool is_awaited;                    /* somebody waits for the release of either */
    int fd;                             /* its memfd */
    uint64_t nbytes;
    bool read_only;
    bool is_device;     /* a client's own GPU memory: imported, not pinned */
    bool is_model;      /* a model's image, copied into the devices' memory: gpu_models.h */
    bool is_pooled;     /* in the arena pool, without a session: gpu_arena_pool.h */
    bool is_staging;    /* an area for sources in files, pinned when a job wants it */
    bool is_counted;    /* in pinned_nbytes: some worker has it, or was asked to register it */
    uint32_t owner;     /* the GPU that it belongs to; WHARF_MAX_GPUS: unknown, or none */
    uint32_t number;    /* its name in messages to workers */
    uint64_t since_ns;  /* when it was made */
    uint64_t wanted_ns; /* when a job last named it while no GPU (of a model: some GPU) had it */
    struct wharf_list pin_link; /* in its tenant's list of pinned memory; not for models */
    uint64_t pinned_ns;         /* when GPUs registered it */
    uint64_t pin_used_ns;       /* when a piece last named it */
    uint32_t n_stalls;          /* workers that hung while registering it */
    bool is_leaving;            /* being evicted: gpu_room.h */
    bool is_promised;           /* room in the budget is promised to it */
    const struct wharf_session_model *model; /* while it has a session */
    int error; /* of REFUSED GPU memory: an errno value, and the worker's message */
    char text[128];
    struct wharf_gpu_hold on[WHARF_MAX_GPUS];
};

/* Whether a worker has it, or was asked to. */
static inline bool wharf_gpu_memory_is_held(enum wharf_gpu_memory_state state)
{
    return state == WHARF_GPU_MEMORY_READY || state == WHARF_GPU_MEMORY_ASKED ||
           state == WHARF_GPU_MEMORY_LEAVING;
}

/* Whether its client has given it up, so that nobody can use it. */
static inline bool wharf_gpu_memory_is_dead(const struct wharf_gpu_memory *memory)
{
    return !memory->session && !memory->is_pooled;
}

/* Of the core. */
struct wharf_gpu_room {
    struct wharf_list tenants; /* tenants with pinned memory */
    uint32_t n_tenants;
    uint64_t leaving_nbytes;  /* pinned bytes that are being evicted */
    uint64_t promised_nbytes; /* promised to memory that waits for the eviction */
};

/* How many of the latest sizes the pool remembers. */
#define WHARF_GPU_ARENA_POOL_SIZES 4

struct wharf_gpu_arena_pool {
    struct wharf_list list;
    uint64_t nbytes;            /* of all arenas in the list */
    struct wharf_list unwanted; /* to be freed */
    uint64_t sizes[WHARF_GPU_ARENA_POOL_SIZES];
};

/* Of the core. */
struct wharf_residency {
    struct wharf_list memories; /* every entry that a GPU could use */
    struct wharf_list unheld;   /* GPU memory that its client gave up and no worker has */
    uint32_t last_memory;
    uint64_t pinned_nbytes; /* bytes that GPUs have registered, each counted once */
    uint64_t dead_nbytes;   /* part of pinned_nbytes that is unused */
    struct wharf_gpu_arena_pool arena_pool;
    struct wharf_gpu_room room;
};

void wharf_residency_init(struct wharf_residency *residency);

#endif
