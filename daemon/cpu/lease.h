/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease.h: a session that one worker has to itself for a while.
 *
 * Where all workers are busy and there are sessions for all of them, a worker takes a whole
 * session: all its jobs, its ring, and what they change.  Until the lease ends, which is after
 * 100 us, up to 300 us where there are many workers, or a chunk more, it takes submissions, decodes
 * them and publishes completions without the front lock; under it nothing is done for each chunk.
 * What was used is accounted for when it ends.
 *
 * A lease is of a session whose jobs in flight are all plain (job->is_plain: one chunk, normal, no
 * deadline), and for the CPU, but for what engines have already.  While it lasts, session->lease is
 * set, and nobody else touches the session's ring, jobs and cancel, or changes its regions, not
 * even under the front lock: who has to, recalls it first (wharf_front_recall).  Its killer leaves
 * the rest to the worker.
 *
 * Begin and end are called under the front lock, all else without it, by the worker.
 */
#ifndef WHARF_DAEMON_CPU_LEASE_H
#define WHARF_DAEMON_CPU_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/control/stats.h"
#include "daemon/front/job.h"
#include "daemon/front/sched.h"

struct wharf_front;
struct wharf_session;

struct wharf_lease {
    struct wharf_list link;          /* in the front's list while it lasts */
    struct wharf_session *session;   /* also after the end: the last one; NULL: it is gone */
    uint64_t in_a_row_ns;            /* that the same session was had */
    uint32_t is_revoked;             /* read and written atomically */
    struct wharf_sched_bundle queue; /* what was taken and not begun */
    struct wharf_list ended;         /* jobs that others had, and that have ended; front lock */
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
    bool is_stuck;       /* its worker is, in memory of the client; front lock */
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

/*
 * Whether the worker has a session to itself from now on: one of the tenant whose turn it is on the
 * CPU, `job` being its first.  That is the session that it had last, if it is its turn, for a slice
 * in a row: outputs are written to the same memory again, which otherwise comes from another
 * processor's cache.
 */
bool wharf_lease_begin(struct wharf_front *front, struct wharf_lease *lease,
                       const struct wharf_job *job);

/* The next job as a piece; false: it is time to end.  now_ns: about now. */
bool wharf_lease_next(struct wharf_lease *lease, uint64_t now_ns, struct wharf_piece *ret_piece);

/* The piece is done: completes its job, and publishes that. */
void wharf_lease_done(struct wharf_lease *lease, const struct wharf_piece *piece);

/* Wakes the client, if that was put off. */
void wharf_lease_wake(struct wharf_lease *lease);

/* Takes what is in the ring, so that it is queued when the lease has ended. */
void wharf_lease_refill(struct wharf_lease *lease, uint64_t now_ns);

/* By anybody, under the front lock: a job of the session that somebody else had has ended.  It is
 * completed when the lease ends. */
void wharf_lease_keep(struct wharf_lease *lease, struct wharf_job *job,
                      const struct wharf_completion *completion);

/* The end.  A piece that is in the middle, or NULL: it goes on as one of a session that nobody has
 * to himself. */
void wharf_lease_end(struct wharf_front *front, struct wharf_lease *lease,
                     struct wharf_piece *running);

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
