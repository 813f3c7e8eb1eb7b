/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_memory.h: clients' memory as the workers of GPUs know it.
 *
 * Each arena and region has an entry from when it is made.  The thread of each GPU lets its worker
 * register it, which for a GPU means pinning its pages, when its session has been there for a while
 * or wants a GPU alone.  So any GPU can take any job.  What is pinned is within a budget, of which
 * memory takes its part once, however many workers have it.  Until then jobs in it run on the CPU.
 * A worker that ends takes all registrations with it; the next one is given them again.
 *
 * Clients' own GPU memory is imported at once, outside of the budget: it is charged to the tenant.
 * Whose GPU it is nobody tells but their workers, which refuse that of others: they are asked one
 * after the other, and the first one that takes it is the owner for as long as it is there.
 *
 * Memory that its client has given up stays with the workers, and charged to the tenant, until they
 * have let it go: only then is the entry freed.
 *
 * Guarded by the front lock, but for the descriptor, which never changes.
 */
#ifndef WHARF_DAEMON_GPU_GPU_MEMORY_H
#define WHARF_DAEMON_GPU_GPU_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/config.h"
#include "daemon/base/list.h"
#include "daemon/control/tenant.h"

struct wharf_front;
struct wharf_job;
struct wharf_session;
struct wharf_session_model;

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
    bool is_spare;      /* nobody uses it yet: gpu_spares.h */
    bool is_counted;    /* in the front's pinned_nbytes: some worker has it, or was asked to */
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

/*
 * wharf_gpu_memory_new: an entry for memory of a session, by a descriptor that is duplicated.
 * Returns NULL if there is no GPU, or no memory for the entry: then the CPU does without.
 */
struct wharf_gpu_memory *wharf_gpu_memory_new(struct wharf_front *front,
                                              struct wharf_session *session, int fd,
                                              uint64_t nbytes, bool read_only);

/* The same for GPU memory that a client offers by descriptor. */
struct wharf_gpu_memory *wharf_gpu_memory_new_device(struct wharf_front *front,
                                                     struct wharf_session *session, int fd,
                                                     uint64_t nbytes);

/* The same for a spare arena, which is nobody's yet. */
struct wharf_gpu_memory *wharf_gpu_memory_new_spare(int fd, uint64_t nbytes);

/* Enters what wharf_gpu_memory_new made. */
void wharf_gpu_memory_add(struct wharf_front *front, struct wharf_gpu_memory *memory);

/* A spare arena is this session's now. */
void wharf_gpu_memory_give(struct wharf_front *front, struct wharf_gpu_memory *memory,
                           struct wharf_session *session);

/*
 * The client has given it up, and no job names it.  NULL is allowed.  Takes over what is charged
 * for it, `use`, and returns true, if the worker may still have it, or its descriptor is a
 * device's, which the backend's thread closes; or frees it and returns false.
 */
bool wharf_gpu_memory_drop(struct wharf_front *front, struct wharf_gpu_memory *memory,
                           const struct wharf_use *use);

/* Frees an entry that no worker has.  Returns its descriptor, for the caller to close
 * without the lock: if it is the last one, that frees the pages. */
int wharf_gpu_memory_free(struct wharf_gpu_memory *memory);

/* Whether a worker has it, or was asked to. */
static inline bool wharf_gpu_memory_is_held(enum wharf_gpu_memory_state state)
{
    return state == WHARF_GPU_MEMORY_READY || state == WHARF_GPU_MEMORY_ASKED ||
           state == WHARF_GPU_MEMORY_LEAVING;
}

/* Bits of the GPUs whose workers have it, or were asked to. */
uint32_t wharf_gpu_memory_holders(const struct wharf_gpu_memory *memory);

/* Whether nobody can use it any more: the client that it was of has given it up. */
static inline bool wharf_gpu_memory_is_dead(const struct wharf_gpu_memory *memory)
{
    return !memory->session && !memory->is_spare;
}

/* Enters a hold's new state, with that GPU: what is pinned is counted. */
void wharf_gpu_memory_set(struct wharf_front *front, uint32_t gpu, struct wharf_gpu_memory *memory,
                          enum wharf_gpu_memory_state state);

/* A GPU more: all memory is entered in its list. */
void wharf_gpu_memory_add_gpu(struct wharf_front *front, uint32_t gpu);

/* Of all that a job names, with that GPU's worker; and the best of what those that are up have. */
enum wharf_gpu_memory_state wharf_gpu_memory_of_job(const struct wharf_job *job, uint32_t gpu);
enum wharf_gpu_memory_state wharf_gpu_memory_anywhere(const struct wharf_front *front,
                                                      const struct wharf_job *job);

/* Goes through the memory that a job names, but for its model; an opened batch's, if it is one.
 * *at begins with 0.  NULL in *ret_memory: GPUs cannot have it.  Returns false behind the last. */
bool wharf_gpu_memory_next(const struct wharf_job *job, uint32_t *at,
                           struct wharf_gpu_memory **ret_memory);

/* Bits of the GPUs that own memory to which outputs of the job go; 0: it has none of these. */
uint32_t wharf_gpu_memory_owners(const struct wharf_job *job);

#endif
