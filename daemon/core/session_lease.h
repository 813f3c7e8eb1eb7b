/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_lease.h: a lease as other threads see it: the exclusive use of a session by one worker.
 *
 * lease.h has the worker's side.
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
    struct wharf_list link;          /* in the core's list during the lease */
    struct wharf_session *session;   /* after the end, the last one; NULL: that one is gone */
    uint64_t in_a_row_ns;            /* how long in a row this session was leased */
    uint32_t is_revoked;             /* read and written atomically */
    struct wharf_sched_bundle queue; /* jobs that were taken and not started */
    struct wharf_list ended;         /* jobs that ended in other threads meanwhile; core lock */
    uint32_t codec;                  /* of its jobs */
    uint32_t ns_per_kib;             /* the cost of that codec */
    uint8_t why;                     /* enum wharf_placement */
    uint64_t begun_ns;
    uint64_t until_ns;
    uint64_t most_ns;    /* the largest estimate of a job */
    uint64_t dry_ns;     /* how long to wait for submissions when the queue is empty */
    uint64_t wake_kinds; /* how to wake the client (WHARF_WAIT_*); 0: no need */
    uint64_t wake_by_ns;
    uint64_t charged_ns; /* charged at the start */
    bool is_blocked;     /* its worker is blocked in the client's memory; core lock */
    bool has_taken;
    bool is_broken;                  /* the client broke the order of indices */
    bool has_other;                  /* the next submission, `other`, cannot run in a lease */
    struct wharf_submission other;   /* see has_other */
    uint64_t used_ns;                /* time used by its pieces */
    uint64_t source_nbytes;          /* of its pieces */
    uint64_t capacity_nbytes;        /* likewise */
    struct wharf_engine_stats stats; /* of its jobs */
    struct wharf_histogram latency;  /* likewise; all of them are of class NORMAL */
    uint32_t engine;                 /* enum wharf_engine that these are of */
};

/* Unlinks the lease and its session from each other. */
void wharf_lease_forget(struct wharf_lease *lease);

/* From any thread, under the core lock: a job of the session ended elsewhere.  It is completed when
 * the lease ends. */
void wharf_lease_keep(struct wharf_lease *lease, struct wharf_job *job,
                      const struct wharf_completion *completion);

/* From any thread: asks the lease to end as soon as possible. */
static inline void wharf_lease_revoke(struct wharf_lease *lease)
{
    __atomic_store_n(&lease->is_revoked, 1, __ATOMIC_RELAXED);
}

static inline bool wharf_lease_is_revoked(const struct wharf_lease *lease)
{
    return __atomic_load_n(&lease->is_revoked, __ATOMIC_RELAXED);
}

#endif
