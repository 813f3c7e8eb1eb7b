/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish.h: publishes completions of jobs, and wakes the clients that wait for them.
 *
 * Under the core lock, unless a function says otherwise.
 */
#ifndef WHARF_DAEMON_CORE_PUBLISH_H
#define WHARF_DAEMON_CORE_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/wharf_result.h"
#include "proto/wharf_ring.h"

struct wharf_core;
struct wharf_job;
struct wharf_job_end;
struct wharf_session;

/* Wakes a session's client in the given ways (WHARF_WAIT_*).  Without the lock; the caller has
 * pinned the session. */
void wharf_core_wake_client(struct wharf_session *session, uint64_t kinds);

/* Writes a completion; it is published when the lock is left. */
void wharf_core_complete(struct wharf_core *core, struct wharf_session *session,
                         const struct wharf_completion *completion);

/* Completes a job of which no engine has a piece and that owes no done word, and frees its slot. */
void wharf_core_complete_job(struct wharf_core *core, struct wharf_job *job,
                             const struct wharf_job_end *end);

/* The steps of wharf_core_complete_job, for leases: making the completion; freeing the slot. */
struct wharf_completion wharf_job_completion(const struct wharf_job *job,
                                             const struct wharf_job_end *end);
void wharf_job_free(struct wharf_job *job);

#endif
