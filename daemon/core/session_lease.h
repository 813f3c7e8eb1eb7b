/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_lease.h: a session that one worker has to itself for a while, as others see it.
 *
 * lease.h says what the worker does with it.
 */
#ifndef WHARF_DAEMON_CORE_SESSION_LEASE_H
#define WHARF_DAEMON_CORE_SESSION_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/list.h"
#include "daemon/core/job.h"
#include "daemon/core/queues.h"
#include "daemon/core/stats.h"

struct wharf_session;

struct wharf_lease {
    struct wharf_list link;          /* in the core's list while it lasts */
    struct wharf_session *session;   /* also after the end: the last one; NULL: it is gone */
    uint64_t in_a_row_ns;            /* that the same session was had */
    uint32_t is_revoked;             /* read and written atomically */
    struct wharf_sched_bundle queue; /* what was taken and not begun */
    struct wharf_list ended;         /* jobs that others had, and that have ended; core lock */
    uint32_t codec;                  /* of its jobs */
    uint32_t ns_per_kib;             /* what that costs */
    uint8_t why;                     /* enum wharf_placement */
    uint64_t begun_ns;
    uint64_t until_ns;
    uint64_t most_ns;    /* what a job may be estimated to take */
    uint64_t dry_ns;     /* how long to wait for the client when it has got everything */
    uint64_t wake_kinds; /* how the client is to be woken (WHARF_WAIT_*); 0: not */
    uint64_t wake_by_ns;
    uint64_t charged_ns; /* to begin with */
    bool is_blocked;     /* its worker is, in memory of the client; core lock */
    bool has_taken;
    bool is_broken;                  /* the client broke the order of indices */
    bool has_other;                  /* the next submission is not for a lease */
    struct wharf_submission other;   /* that one */
    uint64_t used_ns;                /* by its pieces */
    uint64_t source_nbytes;          /* of these */
    uint64_t capacity_nbytes;        /* likewise */
    struct wharf_engine_stats stats; /* of its jobs */
    struct wharf_histogram latency;  /* likewise; all of them are of class NORMAL */
    uint32_t engine;                 /* enum wharf_engine that these are of */
};

/* The session and the worker's lease have nothing to do with each other any more. */
void wharf_lease_forget(struct wharf_lease *lease);

/* By anybody, under the core lock: a job of the session that somebody else had has ended.  It is
 * completed when the lease ends. */
void wharf_lease_keep(struct wharf_lease *lease, struct wharf_job *job,
                      const struct wharf_completion *completion);

/* By anybody: it is to end as soon as it can. */
static inline void wharf_lease_revoke(struct wharf_lease *lease)
{
    __atomic_store_n(&lease->is_revoked, 1, __ATOMIC_RELAXED);
}

static inline bool wharf_lease_is_revoked(const struct wharf_lease *lease)
{
    return __atomic_load_n(&lease->is_revoked, __ATOMIC_RELAXED);
}

#endif
