/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rings.h: the mapped ring segments of one session.
 *
 * Threads look at the completion index, and sleep on it, without the handle's lock, so the
 * mappings stay until the last of them has let go, also when the session is long over.  All the
 * rest is guarded by the handle's lock.
 */
#ifndef WHARF_CLIENT_RINGS_H
#define WHARF_CLIENT_RINGS_H

#include "proto/ring_ops.h"

struct wharf_client_rings {
    struct wharf_ring_client ring;
    size_t c_nbytes;
    size_t d_nbytes;
    const uint32_t *marks; /* in D, or NULL: it has none */
    uint32_t n_holders;
    uint32_t armed_index; /* of the wait word, with its kinds; kinds 0: never armed */
    uint64_t armed_kinds;
    uint32_t found[]; /* the sorted marks that wharf_client_rings_find_marks found */
};

/*
 * wharf_client_rings_new: checks the two descriptors, which the caller keeps, and maps them, for
 * rings of n_entries, D with marks or without.  The caller holds the result once.  Returns 0; or,
 * with a message, -EBADF, -EPERM, -EINVAL, -ENOMEM or an error of mmap.
 */
int wharf_client_rings_new(int c_fd, int d_fd, uint32_t n_entries, int has_marks, int has_words,
                           struct wharf_client_rings **ret_rings);

/* Adds a hold; the last drop unmaps the rings. */
void wharf_client_rings_hold(struct wharf_client_rings *rings);
/* Takes NULL too. */
void wharf_client_rings_drop(struct wharf_client_rings *rings);
/* Frees a forked child's part of it. */
void wharf_client_rings_free_forked(struct wharf_client_rings *rings);

/*
 * The submissions that a dead daemon worked on.  wharf_client_rings_find_marks reads the marks
 * once.  Then wharf_client_rings_were_begun says whether the daemon had started or was checking the
 * submission of this index.  Without marks it may have.
 */
void wharf_client_rings_find_marks(struct wharf_client_rings *rings);
int wharf_client_rings_were_begun(const struct wharf_client_rings *rings, uint32_t index);

/* How many submissions have no completion, as of the last look at the ring. */
static inline uint32_t wharf_client_rings_n_outstanding(const struct wharf_client_rings *rings)
{
    return wharf_index_span(rings->ring.cq_head, rings->ring.sq_tail);
}

/*
 * wharf_client_rings_arm: requests wake-ups of all `kinds` (WHARF_WAIT_*) when n_wanted (1 to the
 * number outstanding) completions are there, or sooner if an earlier request says so; then looks
 * again.  Returns how many are there now, or -EPROTO.
 */
int wharf_client_rings_arm(struct wharf_client_rings *rings, uint64_t kinds, uint32_t n_wanted);

/* Whether a requested wake-up of this kind is still due. */
int wharf_client_rings_is_armed(const struct wharf_client_rings *rings, uint64_t kind);

/* The daemon's packet was read; no other one comes before the rings are armed for it again. */
void wharf_client_rings_had_packet(struct wharf_client_rings *rings);

/*
 * These two are called while the rings are held, and without the lock.
 *
 * wharf_client_rings_spin: polls until n completions after index `from` are there, or until
 * deadline_ns.  Returns whether they are.
 *
 * wharf_client_rings_sleep: sleeps while the completion index is `value`, at most timeout_ns.
 */
int wharf_client_rings_spin(const struct wharf_client_rings *rings, uint32_t from, uint32_t n,
                            uint64_t deadline_ns);
void wharf_client_rings_sleep(const struct wharf_client_rings *rings, uint32_t value,
                              uint64_t timeout_ns);

/* Wakes this process's sleeping threads, because the daemon is gone and will not. */
void wharf_client_rings_wake_own(const struct wharf_client_rings *rings);

#endif
