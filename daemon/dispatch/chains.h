/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chains.h: batches that wait for the end of an earlier job, because its outputs are their sources.
 *
 * A chain names the submission that it waits for by its index.  If that is a job in flight, the
 * chain is in this job's list, and in no pool: it occupies no worker and no part of a GPU.  When
 * the job ends, however it does, its chains are placed like jobs whose memory has become available,
 * some under each hold of the lock.  What the job's chunks came to is in its table of results,
 * which the chain reads as its own table (chain_parts.h): so a chain whose earlier job has ended
 * needs nothing of that job, not even the same daemon.
 *
 * A job waits for at most one other, which was taken before it, so no jobs wait for each other.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_DISPATCH_CHAINS_H
#define WHARF_DAEMON_DISPATCH_CHAINS_H

#include <stdint.h>

struct wharf_core;
struct wharf_job;

/* Queues a chain that was just taken, or lets it wait. */
void wharf_chain_take(struct wharf_core *core, struct wharf_job *job, uint64_t now_ns);

/* The job has ended: what waited for it is placed. */
void wharf_chains_let_go(struct wharf_core *core, struct wharf_job *job);

/* Of a dead session, whose queues were dropped: the job waits no more. */
void wharf_chain_forget(struct wharf_core *core, struct wharf_job *job);

#endif
