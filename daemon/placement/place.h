/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h: which engine runs a job.
 *
 * A queued job is in one of the pools of queues.h, or it waits for memory.  For jobs that any
 * engine may run, the one that would be done with it first gets it, by what each has to do and by
 * what such jobs have cost it before.  All under the core lock.
 */
#ifndef WHARF_DAEMON_PLACEMENT_PLACE_H
#define WHARF_DAEMON_PLACEMENT_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/queues.h"
#include "proto/wharf_result.h"

struct wharf_core;
struct wharf_job;
struct wharf_session;

/* Tenants that have normal jobs; those with jobs in several pools count as often. */
uint32_t wharf_place_n_tenants(const struct wharf_core *core);

/* Whether this GPU's thread has a reason to stay awake. */
bool wharf_place_wants_gpu(const struct wharf_core *core, uint32_t gpu);

/* Whether it has a free place for a large chunk, or has to refuse them since no GPU has any. */
bool wharf_place_may_take_large(const struct wharf_core *core, uint32_t gpu);

/* Bits of the GPUs whose threads are to be woken. */
uint32_t wharf_place_gpus_to_wake(const struct wharf_core *core);

/* The pool that a job belongs to now, or NONE. */
enum wharf_pool wharf_place_pool_of(const struct wharf_core *core, const struct wharf_job *job);

/* Puts a job into the pool that it belongs to now, at the end or at the beginning of its queue; or,
 * unless at_front, behind those of its session that are due. */
void wharf_place_push(struct wharf_core *core, struct wharf_job *job, bool at_front);
void wharf_place_remove(struct wharf_core *core, struct wharf_job *job);

/* Whether the CPU, which has got this job, may decode no chunk of it: its session wants the GPU
 * alone, which has no decoder for it.  And what becomes of chunks that it may not decode, these and
 * those with a source or destination in GPU memory.  By the engine that has a piece of it, without
 * the lock. */
bool wharf_place_is_refused(const struct wharf_core *core, const struct wharf_job *job);
struct wharf_outcome wharf_place_refusal(const struct wharf_core *core,
                                         const struct wharf_job *job);

/* Forgets all queued jobs of a session, without touching them. */
void wharf_place_drop(struct wharf_core *core, struct wharf_session *session);

/*
 * Memory of the session has become ready, or will not: jobs that waited for it are due, and what is
 * pushed meanwhile is behind them.  There can be as many as the session has entries, so some are
 * placed each time that the lock is given back (wharf_place_due): sessions in turn, each one's jobs
 * in their order.
 */
void wharf_place_look_again(struct wharf_core *core, struct wharf_session *session);

/* Places up to 64 of these, under the lock; more may be left in front->due. */
void wharf_place_due(struct wharf_core *core);

#endif
