/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle_work.h: background jobs that compress take processors that are idle, and no others.
 *
 * They have a lane of their own, the last one, in which nothing grows old.  None is begun while any
 * other job waits for the CPU.  One that was begun ends its chunk, since encoders do not ask
 * whether to go on: so it delays others by one chunk at most, and only where no other worker is
 * free.  How often that happens shows in how long interactive and normal jobs wait: after each that
 * waited for more than a slice half as many workers may have such work, and one more for each
 * sixteen pieces of it that nobody waited for.
 *
 * Guarded by the core lock.
 */
#ifndef WHARF_DAEMON_SCHEDULE_IDLE_WORK_H
#define WHARF_DAEMON_SCHEDULE_IDLE_WORK_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_core;
struct wharf_job;
struct wharf_piece;

/* Whether a job of that lane may be begun by a worker that looks for something to do. */
bool wharf_idle_work_may_begin(const struct wharf_core *core);

/* How many workers may have such work at present. */
uint32_t wharf_idle_work_allowed(const struct wharf_core *core);

/* A worker of the CPU has taken this piece, of whatever lane; and has ended one, or gives it back.
 */
void wharf_idle_work_taken(struct wharf_core *core, const struct wharf_piece *piece,
                           uint64_t now_ns);
void wharf_idle_work_ended(struct wharf_core *core, const struct wharf_job *job);

#endif
