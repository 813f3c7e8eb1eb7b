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
 * Guarded by the core lock, but for the descriptor, which never changes.
 */
#ifndef WHARF_DAEMON_PLACEMENT_GPU_MEMORY_H
#define WHARF_DAEMON_PLACEMENT_GPU_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/residency.h"

struct wharf_core;
struct wharf_job;
struct wharf_session;

/*
 * wharf_gpu_memory_new: an entry for memory of a session, by a descriptor that is duplicated.
 * Returns NULL if there is no GPU, or no memory for the entry: then the CPU does without.
 */
struct wharf_gpu_memory *wharf_gpu_memory_new(struct wharf_core *core,
                                              struct wharf_session *session, int fd,
                                              uint64_t nbytes, bool read_only);

/* The same for GPU memory that a client offers by descriptor. */
struct wharf_gpu_memory *wharf_gpu_memory_new_device(struct wharf_core *core,
                                                     struct wharf_session *session, int fd,
                                                     uint64_t nbytes);

/* The same for a pooled arena, which is nobody's yet. */
struct wharf_gpu_memory *wharf_gpu_memory_new_pooled(int fd, uint64_t nbytes);

/* Enters what wharf_gpu_memory_new made. */
void wharf_gpu_memory_add(struct wharf_core *core, struct wharf_gpu_memory *memory);

/* A pooled arena is this session's now. */
void wharf_gpu_memory_give(struct wharf_core *core, struct wharf_gpu_memory *memory,
                           struct wharf_session *session);

/*
 * The client has given it up, and no job names it.  NULL is allowed.  Takes over what is charged
 * for it, `use`, and returns true, if the worker may still have it, or its descriptor is a
 * device's, which the backend's thread closes; or frees it and returns false.
 */
bool wharf_gpu_memory_drop(struct wharf_core *core, struct wharf_gpu_memory *memory,
                           const struct wharf_use *use);

/* Frees an entry that no worker has.  Returns its descriptor, for the caller to close
 * without the lock: if it is the last one, that frees the pages. */
int wharf_gpu_memory_free(struct wharf_gpu_memory *memory);

/* Bits of the GPUs whose workers have it, or were asked to. */
uint32_t wharf_gpu_memory_holders(const struct wharf_gpu_memory *memory);

/* Enters a hold's new state, with that GPU: what is pinned is counted. */
void wharf_gpu_memory_set(struct wharf_core *core, uint32_t gpu, struct wharf_gpu_memory *memory,
                          enum wharf_gpu_memory_state state);

/* A GPU more: all memory is entered in its list. */
void wharf_gpu_memory_add_gpu(struct wharf_core *core, uint32_t gpu);

/* Of all that a job names, with that GPU's worker; and the best of what those that are up have. */
enum wharf_gpu_memory_state wharf_gpu_memory_of_job(const struct wharf_job *job, uint32_t gpu);
enum wharf_gpu_memory_state wharf_gpu_memory_anywhere(const struct wharf_core *core,
                                                      const struct wharf_job *job);

/* Goes through the memory that a job names, but for its model; an opened batch's, if it is one.
 * *at begins with 0.  NULL in *ret_memory: GPUs cannot have it.  Returns false behind the last. */
bool wharf_gpu_memory_next(const struct wharf_job *job, uint32_t *at,
                           struct wharf_gpu_memory **ret_memory);

/* Bits of the GPUs that own memory to which outputs of the job go; 0: it has none of these. */
uint32_t wharf_gpu_memory_owners(const struct wharf_job *job);

#endif
