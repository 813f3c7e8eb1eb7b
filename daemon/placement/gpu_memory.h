/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_memory.h: the registration of clients' memory with GPU workers.
 *
 * Each arena and region has an entry from its creation.  The thread of each GPU has its worker
 * register the memory, which pins its pages, once the session is old enough or if it wants only the
 * GPU.  So any GPU can take any job.  Pinned memory counts once against a budget, however many
 * workers have it.  Until it is registered, jobs in it run on the CPU.  When a worker ends, its
 * registrations end too; the next worker repeats them.
 *
 * Clients' GPU memory is imported at once, outside of the budget: it is charged to the tenant. Only
 * the workers can tell to which GPU it belongs, since each refuses memory of other GPUs.  They are
 * asked one after the other; the first that accepts it is its owner from then on.
 *
 * Memory that its client has given up remains charged to the tenant until all workers have released
 * it.  Only then is the entry freed.
 *
 * Guarded by the core lock, except the descriptor, which never changes.
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
 * wharf_gpu_memory_new: creates an entry for a session's memory; duplicates the descriptor. Returns
 * NULL if there is no GPU, or no memory for the entry; then the CPU runs the jobs.
 */
struct wharf_gpu_memory *wharf_gpu_memory_new(struct wharf_core *core,
                                              struct wharf_session *session, int fd,
                                              uint64_t nbytes, bool read_only);

/* The same for a client's GPU memory. */
struct wharf_gpu_memory *wharf_gpu_memory_new_device(struct wharf_core *core,
                                                     struct wharf_session *session, int fd,
                                                     uint64_t nbytes);

/* The same for a pooled arena, which has no session yet. */
struct wharf_gpu_memory *wharf_gpu_memory_new_pooled(int fd, uint64_t nbytes);

/* Adds an entry to the account. */
void wharf_gpu_memory_add(struct wharf_core *core, struct wharf_gpu_memory *memory);

/* Gives a pooled arena to a session. */
void wharf_gpu_memory_give(struct wharf_core *core, struct wharf_gpu_memory *memory,
                           struct wharf_session *session);

/*
 * The client has given the memory up, and no job names it.  NULL is allowed.  If a worker may still
 * have it, or its descriptor is a device's, which the backend's thread closes, takes over the
 * charge `use` and returns true.  Otherwise frees it and returns false.
 */
bool wharf_gpu_memory_drop(struct wharf_core *core, struct wharf_gpu_memory *memory,
                           const struct wharf_use *use);

/* Frees an entry that no worker has.  Returns its descriptor; the caller closes it without the
 * lock, since the last close frees the pages. */
int wharf_gpu_memory_free(struct wharf_gpu_memory *memory);

/* Mask of the GPUs whose workers have it, or were asked to register it. */
uint32_t wharf_gpu_memory_holders(const struct wharf_gpu_memory *memory);

/* Sets the state on a GPU, and updates the account of pinned memory. */
void wharf_gpu_memory_set(struct wharf_core *core, uint32_t gpu, struct wharf_gpu_memory *memory,
                          enum wharf_gpu_memory_state state);

/* Adds a GPU: puts all memory into its list. */
void wharf_gpu_memory_add_gpu(struct wharf_core *core, uint32_t gpu);

/* The state of all memory of a job on one GPU; and the best on any GPU that is up. */
enum wharf_gpu_memory_state wharf_gpu_memory_of_job(const struct wharf_job *job, uint32_t gpu);
enum wharf_gpu_memory_state wharf_gpu_memory_anywhere(const struct wharf_core *core,
                                                      const struct wharf_job *job);

/* Whether the job has sources in files, for which the session's staging area has no room now. */
bool wharf_gpu_memory_is_full(const struct wharf_job *job);

/* Iterates over the memory that a job, or its opened batch, names, without its model.  *at starts
 * at 0. *ret_memory is NULL for memory that GPUs cannot register.  Returns false after the last. */
bool wharf_gpu_memory_next(const struct wharf_job *job, uint32_t *at,
                           struct wharf_gpu_memory **ret_memory);

/* Mask of the GPUs that own memory of the job; 0: it names no GPU memory. */
uint32_t wharf_gpu_memory_owners(const struct wharf_job *job);

#endif
