/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starts.h: jobs that wait for their clients' streams.
 *
 * A job with a start word is held until a CUDA stream of its client has stored the job's serial
 * number there.  Until then it is in no pool: it occupies no worker and no part of a GPU, and keeps
 * no kernel running.  Such a store wakes nobody, so the daemon polls the words.  Threads that poll
 * rings also poll words, until the youngest job has waited for `spin`.  Then the loop thread's
 * timer does, each time that this job has waited a sixteenth longer.  Each look is charged to the
 * session, and sessions take turns.
 *
 * The client can write the words at any time, but cannot punch holes into their memory, and all
 * pages are present (wharf_segment_keep).  So a load under the lock does not block.  A wrong word
 * makes the job start too early, or not at all: then it ends with DEADLINE, START_TIME within
 * start_limit_ns.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_DISPATCH_STARTS_H
#define WHARF_DAEMON_DISPATCH_STARTS_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_core;
struct wharf_job;

/* Queues or holds a job with a start word that was just taken. */
void wharf_starts_take(struct wharf_core *core, struct wharf_job *job, uint64_t now_ns);

/* Polls some of the words.  Returns whether a job was queued. */
bool wharf_starts_look(struct wharf_core *core, uint64_t now_ns);

/* Whether the youngest held job has waited for less than `spin`, so that threads poll words. */
bool wharf_starts_are_young(const struct wharf_core *core, uint64_t now_ns);

/* When the loop thread polls words next; WHARF_NEVER: no job is held. */
uint64_t wharf_starts_next_ns(const struct wharf_core *core, uint64_t now_ns);

/* Whether the deadline of a held job is that of its start word. */
bool wharf_starts_is_late(const struct wharf_job *job);

#endif
