/* SPDX-License-Identifier: Apache-2.0 */
/*
 * residency.h: what GPUs have, or could have, of clients' memory: an account.
 *
 * gpu_memory.h says how an entry lives, gpu_room.h who makes room for whom, gpu_arena_pool.h which
 * arenas are pinned in advance.  Guarded by the core lock.
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
struct wharf_tenant;

/* In this order: what several pieces of memory are together is the least of them. */
enum wharf_gpu_memory_state {
    WHARF_GPU_MEMORY_REFUSED, /* over the budget, or the driver does not want it */
    WHARF_GPU_MEMORY_LEAVING, /* it makes room for other memory */
    WHARF_GPU_MEMORY_ABSENT,  /* the worker does not know it yet, or there is none */
    WHARF_GPU_MEMORY_ASKED,   /* it was asked to register it */
    WHARF_GPU_MEMORY_READY,
};

/* What the worker of one GPU has of it. */
struct wharf_gpu_hold {
    struct wharf_list link;          /* in the list of that GPU */
    struct wharf_gpu_memory *memory; /* that it is of */
    enum wharf_gpu_memory_state state;
    struct wharf_list answer_link; /* of what its worker has not answered: gpu_answers.c */
    bool is_forgotten;             /* the worker was told to let it go */
    bool is_over_budget;           /* of what is REFUSED: it is tried again when there is room */
    bool is_promised;              /* of a model: another one is being let go for it */
    struct wharf_list model_link;  /* of a model that is READY: the one used longest ago is first */
    uint64_t used_ns;              /* of a model: when an item last named it */
    uint64_t gone_ns;              /* likewise: when it was let go or refused; 0: never */
    uint64_t refused_ns;           /* when it found no room in the budget */
    uint32_t n_pieces;             /* that this GPU has and that name it; not of models */
    uint32_t pass;                 /* the last one that looked at it: gpu_pins.c */
    uint64_t address; /* where the device has it, or a model's parameter, if it is ready */
};

struct wharf_gpu_memory {
    struct wharf_list link;
    struct wharf_session *session; /* NULL: nobody uses it any more */
    struct wharf_tenant *tenant;   /* pinned */
    struct wharf_use use;          /* to be given back with the entry */
    bool is_awaited;               /* that is waited for */
    int fd;                        /* its memfd */
    uint64_t nbytes;
    bool read_only;
    bool is_device;     /* a client's own GPU memory: imported, not pinned */
    bool is_model;      /* the image of one: copied into the devices' memory; gpu_models.h */
    bool is_pooled;     /* nobody uses it yet: gpu_arena_pool.h */
    bool is_counted;    /* in the core's pinned_nbytes: some worker has it, or was asked to */
    uint32_t owner;     /* the GPU whose memory it is; WHARF_MAX_GPUS: not known, or none */
    uint32_t number;    /* what workers call it */
    uint64_t since_ns;  /* when it was made */
    uint64_t wanted_ns; /* when a job last named it that no GPU had, or of a model some GPU */
    struct wharf_list pin_link; /* in its tenant's list of what is pinned; of models not */
    uint64_t pinned_ns;         /* since when GPUs have it */
    uint64_t pin_used_ns;       /* when a piece last named it */
    uint32_t n_stalls;          /* workers that could not end registering it */
    bool is_leaving;            /* for other memory: gpu_room.h */
    bool is_promised;           /* room in the budget */
    const struct wharf_session_model *model; /* while it has a session */
    int error; /* of GPU memory that was REFUSED: an errno value, and the worker's words */
    char text[128];
    struct wharf_gpu_hold on[WHARF_MAX_GPUS];
};

/* Whether a worker has it, or was asked to. */
static inline bool wharf_gpu_memory_is_held(enum wharf_gpu_memory_state state)
{
    return state == WHARF_GPU_MEMORY_READY || state == WHARF_GPU_MEMORY_ASKED ||
           state == WHARF_GPU_MEMORY_LEAVING;
}

/* Whether nobody can use it any more: the client that it was of has given it up. */
static inline bool wharf_gpu_memory_is_dead(const struct wharf_gpu_memory *memory)
{
    return !memory->session && !memory->is_pooled;
}

/* Of the core. */
struct wharf_gpu_room {
    struct wharf_list tenants; /* that have something pinned */
    uint32_t n_tenants;
    uint64_t leaving_nbytes;  /* of what is pinned: what makes room for others */
    uint64_t promised_nbytes; /* to memory that waits for that */
};

/* Sizes that are remembered, the latest ones. */
#define WHARF_GPU_ARENA_POOL_SIZES 4

struct wharf_gpu_arena_pool {
    struct wharf_list list;
    uint64_t nbytes;            /* of all in the list */
    struct wharf_list unwanted; /* to be freed */
    uint64_t sizes[WHARF_GPU_ARENA_POOL_SIZES];
};

/* Of the core. */
struct wharf_residency {
    struct wharf_list memories; /* all that a GPU could use */
    struct wharf_list unheld;   /* GPU memory that was given up and that no worker has */
    uint32_t last_memory;
    uint64_t pinned_nbytes; /* of which GPUs have so much, each byte counted once */
    uint64_t dead_nbytes;   /* of that, what nobody uses any more */
    struct wharf_gpu_arena_pool arena_pool;
    struct wharf_gpu_room room;
};

void wharf_residency_init(struct wharf_residency *residency);

#endif
