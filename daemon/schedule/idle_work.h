/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle_work.h: background jobs that compress use idle processors, and idle warps of GPUs, only.
 *
 * They have the last lane, in which jobs never age.  None starts while another job waits for the
 * engine.  A started chunk can delay others nevertheless: on the CPU by its whole time, since
 * encoders do not poll; on a GPU through the link and the memory.  So how long others wait or take
 * decides how much of such work an engine may run at a time.  One rule serves all engines: each
 * delay halves that, and sixteen pieces without a delay add one.
 *
 * A delay on the CPU is an interactive or normal job that waited for more than a slice.  As many
 * pieces as ran then are tried again when a thousand such jobs have waited for none, or when there
 * are no such jobs any more.  On a GPU it is a mean time of such chunks that exceeds what they take
 * alone by STRAIN percent; the newest idle work above the new limit is then withdrawn.
 *
 * The paper's assist warps (Vijaykumar et al., CABA) are the origin: a trigger, a priority below
 * all else, and a throttle.
 *
 * Guarded by the core lock.
 */
#ifndef WHARF_DAEMON_SCHEDULE_IDLE_WORK_H
#define WHARF_DAEMON_SCHEDULE_IDLE_WORK_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_core;
struct wharf_idle_work;
struct wharf_piece;

/* How many pieces of idle work an engine may have, of n_most. */
uint32_t wharf_idle_work_allowed(const struct wharf_idle_work *idle, uint32_t n_most);

/* ---- the CPU: pieces of workers ------------------------------------------------------------ */

/* Whether a worker that looks for work may start a job of that lane. */
bool wharf_idle_work_may_begin(const struct wharf_core *core);

/* A CPU worker has taken a piece, of any lane. */
void wharf_idle_work_taken(struct wharf_core *core, struct wharf_piece *piece, uint64_t now_ns);

/* ---- a GPU: pieces of warps ---------------------------------------------------------------- */

/* The GPU begins a piece; it is idle work if its job's lane says so. */
void wharf_idle_work_begin(struct wharf_idle_work *idle, struct wharf_piece *piece);

/* A piece was withdrawn, to be begun again later. */
void wharf_idle_work_put_off(struct wharf_idle_work *idle, struct wharf_piece *piece);

/* A chunk that others wait for took took_ns beside idle work, of which the GPU may have n_most
 * pieces; similar chunks take alone_ns without. */
void wharf_idle_work_compare(struct wharf_idle_work *idle, uint32_t n_most, uint64_t took_ns,
                             uint64_t alone_ns);

/* ---- both ---------------------------------------------------------------------------------- */

/* A piece of any lane has ended, or was returned or passed to another engine. */
void wharf_idle_work_ended(struct wharf_core *core, struct wharf_piece *piece);

#endif
