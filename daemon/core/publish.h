/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish.h: completions of jobs, and waking who waits for them.
 *
 * Under the core lock, unless they say otherwise.
 */
#ifndef WHARF_DAEMON_CORE_PUBLISH_H
#define WHARF_DAEMON_CORE_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/wharf_result.h"
#include "proto/wharf_ring.h"

struct wharf_core;
struct wharf_job;
struct wharf_session;

/* Wakes a session's client, in these ways (WHARF_WAIT_*).  Without the lock, while somebody pins
 * the session. */
void wharf_core_wake_client(struct wharf_session *session, uint64_t kinds);

/* Completions, which are published when the lock is left. */
void wharf_core_complete(struct wharf_core *core, struct wharf_session *session,
                         const struct wharf_completion *completion);

/* What became of a job. */
struct wharf_job_end {
    struct wharf_outcome outcome;
    uint32_t engine;    /* enum wharf_engine */
    uint32_t bad_chunk; /* of a batch that is not OK */
    bool has_results;   /* a table of results was filled */
    uint64_t ended_ns;
};
/* Completes a job that no engine runs any more, and frees its slot. */
void wharf_core_complete_job(struct wharf_core *core, struct wharf_job *job,
                             const struct wharf_job_end *end);

/* Parts of that, which a lease needs too: the completion; giving back the slot. */
struct wharf_completion wharf_job_completion(const struct wharf_job *job,
                                             const struct wharf_job_end *end);
void wharf_job_free(struct wharf_job *job);

#endif
