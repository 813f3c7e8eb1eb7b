/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h: which engine runs a job.
 *
 * A queued job is in one of the pools of queues.h, or it waits for memory.  If several engines may
 * run a job, it goes to the one that would finish it first, by its queue and its learnt costs.  All
 * under the core lock.
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
struct wharf_submission;

/* Tenants with normal jobs; one with jobs in several pools counts for each. */
uint32_t wharf_place_n_tenants(const struct wharf_core *core);

/* Whether this GPU's thread has a reason to stay awake. */
bool wharf_place_wants_gpu(const struct wharf_core *core, uint32_t gpu);

/* Whether the GPU has a free place for a large chunk, or no GPU has such places, so that it must
 * refuse them. */
bool wharf_place_may_take_large(const struct wharf_core *core, uint32_t gpu);

/* Whether a whole GPU could decode a large chunk of the job as a stream: it is of Deflate, zlib or
 * gzip. */
bool wharf_place_can_stream(const struct wharf_submission *submission);

/* Whether a warp of the GPU that compresses is free, or no GPU has any, so that it must refuse the
 * chunk. */
bool wharf_place_may_encode(const struct wharf_core *core, uint32_t gpu);

/* Mask of the GPUs whose threads have to be woken. */
uint32_t wharf_place_gpus_to_wake(const struct wharf_core *core);

/* The pool that a job belongs to now, or NONE. */
enum wharf_pool wharf_place_pool_of(const struct wharf_core *core, const struct wharf_job *job);

/* Queues a job in its pool, at the front or the end of its queue.  At the end, it goes behind jobs
 * of its session that are due. */
void wharf_place_push(struct wharf_core *core, struct wharf_job *job, bool at_front);
void wharf_place_remove(struct wharf_core *core, struct wharf_job *job);

/* Puts a job among those of its session that wait for their start words, in no pool. */
void wharf_place_hold(struct wharf_core *core, struct wharf_job *job);

/* Puts a job that owes its done word into the CPU's queue, before all others of its session. */
void wharf_place_push_word(struct wharf_core *core, struct wharf_job *job);

/* Whether the CPU has to refuse a job that it got: its session wants only the GPU, which has no
 * decoder.  And the outcome of chunks that it must refuse, these and those in GPU memory.  For the
 * engine that has a piece of the job, without the lock. */
bool wharf_place_is_refused(const struct wharf_core *core, const struct wharf_job *job);
struct wharf_outcome wharf_place_refusal(const struct wharf_core *core,
                                         const struct wharf_job *job);

/* Drops all queued jobs of a session, in constant time. */
void wharf_place_drop(struct wharf_core *core, struct wharf_session *session);

/*
 * Memory of the session has become ready, or never will: the jobs that waited for it are due, and
 * later jobs go behind them.  There can be as many as ring entries, so each unlock places only some
 * (wharf_place_due): sessions in turn, and each session's jobs in order.
 */
void wharf_place_look_again(struct wharf_core *core, struct wharf_session *session);

/* Places up to 64 of these; more may remain in core->due. */
void wharf_place_due(struct wharf_core *core);

#endif
