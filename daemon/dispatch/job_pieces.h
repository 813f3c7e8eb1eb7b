/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_pieces.h: hands pieces of jobs to engines and takes them back.
 *
 * Under the core lock, unless a function says otherwise.
 */
#ifndef WHARF_DAEMON_DISPATCH_JOB_PIECES_H
#define WHARF_DAEMON_DISPATCH_JOB_PIECES_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_core;
struct wharf_job;
struct wharf_piece;

/*
 * The next job for the CPU, which stays in its queue; or NULL.  The caller has polled the rings
 * (wharf_core_poll_rings).  most_ns: the largest estimate that is acceptable.
 */
struct wharf_job *wharf_core_first(struct wharf_core *core, uint64_t most_ns);

/* Cuts the next piece from that job. */
void wharf_core_take(struct wharf_core *core, struct wharf_job *job, struct wharf_piece *ret_piece);

/* Does both, but returns pieces that a GPU worker left behind first.  False if there is nothing. */
bool wharf_core_next(struct wharf_core *core, uint64_t most_ns, struct wharf_piece *ret_piece);

/*
 * Charges the time that a running piece has used up to now_ns.  Engines whose pieces can be
 * interrupted call it at least once for each slice.
 */
void wharf_core_going_on(struct wharf_core *core, struct wharf_piece *piece, uint64_t now_ns);

/*
 * For a GPU's backend: cuts a piece of at most most_chunks from a job that
 * wharf_place_first_for_gpu returned.  Returns the time that one warp would take for all of them.
 */
uint64_t wharf_core_take_for_gpu(struct wharf_core *core, uint32_t gpu, struct wharf_job *job,
                                 uint32_t most_chunks, uint64_t now_ns,
                                 struct wharf_piece *ret_piece);

/* Returns a chunk that was taken, but not started, to the front of its queue. */
void wharf_core_put_back(struct wharf_core *core, struct wharf_piece *piece);

/* Ends a piece; the last write to client memory has happened. */
void wharf_core_done(struct wharf_core *core, struct wharf_piece *piece);

/* Marks a job as started by an engine.  In a lease without the lock. */
void wharf_job_begin(struct wharf_job *job, uint64_t now_ns);

/* Takes a job out of its queue, so that those behind it may start. */
void wharf_core_unqueue(struct wharf_core *core, struct wharf_job *job);

/* Drops a dead session's job; tells an engine that runs it to stop. */
void wharf_core_forget_job(struct wharf_core *core, struct wharf_job *job);

#endif
