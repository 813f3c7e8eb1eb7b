/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starts.h: jobs that wait for their clients' streams.
 *
 * A job with a start word is held until its client, or rather a CUDA stream of it, has stored the
 * job's serial number there.  Until then it is in no pool: it holds neither a worker nor anything
 * of a GPU, and no kernel stays for its sake.  Nobody is woken by such a store, so the words are
 * looked at: with the rings, by whoever looks at these, as long as a job has waited for no longer
 * than rings are watched (`spin`); and by the loop thread's timer, each time that the youngest job
 * has waited a sixteenth longer.  Each look is charged to the session, and sessions take turns.
 *
 * The words are in memory that the client alone writes, at any time, in which it cannot punch holes
 * and of which each page is there (wharf_segment_keep): so a load under the lock does not wait.  A
 * word that says what is not so has the job begin too early, or not at all: within start_limit_ns
 * it ends with DEADLINE, START_TIME.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_DISPATCH_STARTS_H
#define WHARF_DAEMON_DISPATCH_STARTS_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_core;
struct wharf_job;

/* A job that was just taken, with a start word: queues it, or holds it. */
void wharf_starts_take(struct wharf_core *core, struct wharf_job *job, uint64_t now_ns);

/* Looks at some of the words; whether a job has begun to wait for its turn instead. */
bool wharf_starts_look(struct wharf_core *core, uint64_t now_ns);

/* Whether some job has waited for so short a time that it is worth a thread's watch. */
bool wharf_starts_are_young(const struct wharf_core *core, uint64_t now_ns);

/* When the loop thread is to look; WHARF_NEVER: there are no such jobs. */
uint64_t wharf_starts_next_ns(const struct wharf_core *core, uint64_t now_ns);

/* Whether a held job whose deadline has passed ends for its start word's sake. */
bool wharf_starts_is_late(const struct wharf_job *job);

#endif
