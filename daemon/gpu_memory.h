/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_memory.h: clients' memory as the GPU's worker knows it.
 *
 * Each arena and region has an entry from when it is made.  The backend's thread lets the worker
 * register it, which for a GPU means pinning its pages, when its session has been there for a while
 * or wants the GPU alone, and within a budget.  Until then jobs in it run on the CPU.  A worker
 * that ends takes all registrations with it; the next one is given them again.
 *
 * Clients' own GPU memory is imported at once, outside of the budget: it is charged to the tenant.
 *
 * Memory that its client has given up stays with the worker, and charged to the tenant, until the
 * worker has let it go: only then is the entry freed.
 *
 * Guarded by the front lock, but for the descriptor, which never changes.
 */
#ifndef WHARF_DAEMON_GPU_MEMORY_H
#define WHARF_DAEMON_GPU_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/list.h"
#include "daemon/tenant.h"

struct wharf_front;
struct wharf_job;
struct wharf_segment;
struct wharf_session;

/* In this order: what several pieces of memory are together is the least of them. */
enum wharf_gpu_memory_state {
    WHARF_GPU_MEMORY_REFUSED, /* over the budget, or the driver does not want it */
    WHARF_GPU_MEMORY_ABSENT,  /* the worker does not know it yet */
    WHARF_GPU_MEMORY_ASKED,   /* it was asked to register it */
    WHARF_GPU_MEMORY_READY,
};

struct wharf_gpu_memory {
    struct wharf_list link;
    struct wharf_session *session; /* NULL: nobody uses it any more */
    struct wharf_tenant *tenant;   /* pinned */
    struct wharf_use use;          /* to be given back with the entry */
    int fd;                        /* its memfd */
    uint64_t nbytes;
    bool read_only;
    bool is_device;    /* a client's own GPU memory: imported, not pinned */
    bool is_model;     /* the image of one: copied into the device's memory */
    bool is_spare;     /* nobody uses it yet: gpu_spares.h */
    bool is_forgotten; /* the worker was told to let it go */
    enum wharf_gpu_memory_state state;
    uint32_t number;   /* what the worker calls it */
    uint64_t address;  /* where the device has it, or a model's parameter, if it is ready */
    uint64_t since_ns; /* when it was made */
    int error;         /* of GPU memory that was REFUSED: an errno value, and the worker's words */
    char text[128];
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

/* Enters what wharf_gpu_memory_new made. */
void wharf_gpu_memory_add(struct wharf_front *front, struct wharf_gpu_memory *memory);

/* A spare arena is this session's now. */
void wharf_gpu_memory_give(struct wharf_gpu_memory *memory, struct wharf_session *session);

/*
 * The client has given it up, and no job names it.  NULL is allowed.  Takes over what is charged
 * for it, `use`, and returns true, if the worker may still have it, or its descriptor is a
 * device's, which the backend's thread closes; or frees it and returns false.
 */
bool wharf_gpu_memory_drop(struct wharf_front *front, struct wharf_gpu_memory *memory,
                           const struct wharf_use *use);

/* Frees an entry that the worker does not have.  Returns its descriptor, for the caller to close
 * without the lock: if it is the last one, that frees the pages. */
int wharf_gpu_memory_free(struct wharf_gpu_memory *memory);

/* Of all that a job names. */
enum wharf_gpu_memory_state wharf_gpu_memory_of_job(const struct wharf_job *job);

#endif
