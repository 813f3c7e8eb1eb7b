/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_pieces.h: pieces of jobs, to engines and back.
 *
 * Under the core lock, unless they say otherwise.
 */
#ifndef WHARF_DAEMON_DISPATCH_JOB_PIECES_H
#define WHARF_DAEMON_DISPATCH_JOB_PIECES_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_core;
struct wharf_job;
struct wharf_piece;

/*
 * The job whose turn it is on the CPU, which stays in its queue, or NULL.  The caller has called
 * wharf_core_poll_rings before.  most_ns: none that is estimated to take longer.
 */
struct wharf_job *wharf_core_first(struct wharf_core *core, uint64_t most_ns);

/* Cuts the next piece from that job. */
void wharf_core_take(struct wharf_core *core, struct wharf_job *job, struct wharf_piece *ret_piece);

/* Both at once, but what a worker of the GPU left goes before all; false if there is nothing. */
bool wharf_core_next(struct wharf_core *core, uint64_t most_ns, struct wharf_piece *ret_piece);

/*
 * The piece is not done, and may take long: charges what it has used, up to now_ns.  Engines whose
 * pieces can be interrupted say so at least once for each slice.
 */
void wharf_core_going_on(struct wharf_core *core, struct wharf_piece *piece, uint64_t now_ns);

/*
 * For the backend of a GPU: a piece of at most so many chunks of what wharf_place_first_for_gpu
 * gave.  Returns what one warp would take for all of them.
 */
uint64_t wharf_core_take_for_gpu(struct wharf_core *core, uint32_t gpu, struct wharf_job *job,
                                 uint32_t most_chunks, uint64_t now_ns,
                                 struct wharf_piece *ret_piece);

/* A chunk that was taken is not begun after all: it goes back to the beginning of its queue. */
void wharf_core_put_back(struct wharf_core *core, const struct wharf_piece *piece);

/* The piece is done: the last write to client memory has happened. */
void wharf_core_done(struct wharf_core *core, struct wharf_piece *piece);

/* An engine begins a job that it has not begun yet.  Without the lock where a worker has the
 * session to itself. */
void wharf_job_begin(struct wharf_job *job, uint64_t now_ns);

/* Takes a job out of its queue: what is behind it may be what can be begun. */
void wharf_core_unqueue(struct wharf_core *core, struct wharf_job *job);

/* Forgets a dead session's job; one that an engine has it tells to end. */
void wharf_core_forget_job(struct wharf_core *core, struct wharf_job *job);

#endif
