/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle_work.h: background jobs that compress use idle processors only.
 *
 * They have the last lane, in which jobs never age.  None starts while another job waits for the
 * CPU. Encoders do not poll, so a started chunk runs to its end: it delays others by one chunk at
 * most, and only if no other worker is free.  The waits of interactive and normal jobs show how
 * often that happens.  After each wait of more than a slice, half as many workers may take such
 * work; after sixteen pieces without such a wait, one more.
 *
 * Guarded by the core lock.
 */
#ifndef WHARF_DAEMON_SCHEDULE_IDLE_WORK_H
#define WHARF_DAEMON_SCHEDULE_IDLE_WORK_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_core;
struct wharf_piece;

/* Whether a worker that looks for work may start a job of that lane. */
bool wharf_idle_work_may_begin(const struct wharf_core *core);

/* How many workers may take such work at present. */
uint32_t wharf_idle_work_allowed(const struct wharf_core *core);

/* A CPU worker has taken a piece, of any lane; has ended or returned one. */
void wharf_idle_work_taken(struct wharf_core *core, struct wharf_piece *piece, uint64_t now_ns);
void wharf_idle_work_ended(struct wharf_core *core, const struct wharf_piece *piece);

#endif
