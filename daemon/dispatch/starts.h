/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starts.h: jobs that wait for their clients' streams.
 *
 * A job with a start word is held until a CUDA stream of its client has stored the job's serial
 * number there.  Until then it is in no pool: it occupies no worker and no part of a GPU, and keeps
 * no kernel running.  Such a store wakes nobody, so the daemon polls the words.
 *
 * Each tenant has its own times, by its youngest job.  Until that has waited for `spin`, threads
 * that poll rings also poll the tenant's words.  Then the loop thread's timer does, each time that
 * the job has waited a sixteenth longer, at least every millisecond.  So one tenant's new jobs do
 * not hasten the looks at another's words.
 *
 * The tenant pays for the time: for each look at a word, for threads that stay awake for its words,
 * and for the loop thread's wake-ups.  Tenants share those that they both needed.  The time counts
 * as unqueued work, and against a budget of a sixteenth of a processor.  Without a budget a
 * tenant's words are polled once a millisecond, at ticks that all tenants share.  A word that was
 * set fills the budget, unless queued jobs wait for processors.
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
struct wharf_tenant;

/* Queues or holds a job with a start word that was just taken. */
void wharf_starts_take(struct wharf_core *core, struct wharf_job *job, uint64_t now_ns);

/* Polls some of the words that are due.  Returns whether a job was queued. */
bool wharf_starts_look(struct wharf_core *core, uint64_t now_ns);

/* Before a look: for so long the caller did nothing but wait for words; the loop thread was woken.
 * Whoever's words are due then pays. */
void wharf_starts_spun(struct wharf_core *core, uint64_t used_ns);
void wharf_starts_woken(struct wharf_core *core);

/* Whether threads poll words, because a tenant's youngest held job has waited for less than `spin`;
 * whether they poll this tenant's. */
bool wharf_starts_are_young(const struct wharf_core *core, uint64_t now_ns);
bool wharf_starts_is_young(const struct wharf_core *core, const struct wharf_tenant *tenant,
                           uint64_t now_ns);

/* When the loop thread polls words next; WHARF_NEVER: no job is held. */
uint64_t wharf_starts_next_ns(const struct wharf_core *core, uint64_t now_ns);

/* A held job ends by its deadline: it pays for the wake-up. */
void wharf_starts_expired(struct wharf_core *core, const struct wharf_job *job, uint64_t now_ns);

/* Whether the deadline of a held job is that of its start word. */
bool wharf_starts_is_late(const struct wharf_job *job);

#endif
