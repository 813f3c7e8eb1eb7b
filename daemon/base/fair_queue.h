/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fair_queue.h: whose work is next, where what work costs is known when it is done.
 *
 * Start-time fair queueing.  Virtual time is the start tag of what is being done.  Work of a party
 * that had none starts at the present virtual time, or where the party's last work ended if that is
 * later; what the party has waiting behind starts where the work before it ended.  The least start
 * tag is next.  So of two parties that always have work each gets half of the time, and one that
 * asks for little is next as soon as it asks: it waits for what is being done and for others that
 * ask for as little, however much a third one has waiting.  When nothing waits all debts are
 * forgotten: nobody was kept from anything.
 *
 * Nothing here knows what time is: a cost is a number.  One thread uses a queue.
 */
#ifndef WHARF_DAEMON_BASE_FAIR_QUEUE_H
#define WHARF_DAEMON_BASE_FAIR_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/heap.h"
#include "daemon/base/list.h"

/* One who has work: a tenant.  Counted references, since work can be the party's last. */
struct wharf_fair_party {
    struct wharf_heap_node node; /* by start tag, while something waits and nothing is being done */
    struct wharf_list waiting;
    uint64_t finish; /* where its last work ended */
    unsigned n_references;
};

struct wharf_fair_queue {
    struct wharf_heap parties;
    uint64_t now;                     /* virtual time */
    uint64_t latest;                  /* of all finishes */
    struct wharf_fair_party *current; /* whose work is being done, referred to; or NULL */
};

/* A new party has one reference; it is freed with the last one.  NULL: out of memory. */
struct wharf_fair_party *wharf_fair_party_new(void);
void wharf_fair_party_ref(struct wharf_fair_party *party);
/* NULL is allowed.  Who lets go of a party has removed its own work from the queue before. */
void wharf_fair_party_unref(struct wharf_fair_party *party);

/* Work that waits from now on; does nothing if it waits already. */
void wharf_fair_queue_add(struct wharf_fair_queue *queue, struct wharf_fair_party *party,
                          struct wharf_list *work);

/* Work that does not wait any more; does nothing if it does not wait. */
void wharf_fair_queue_remove(struct wharf_fair_queue *queue, struct wharf_fair_party *party,
                             struct wharf_list *work);

/* Takes out what is to be done next, or returns NULL.  When it is done wharf_fair_queue_done is to
 * be called, before the next one is taken. */
struct wharf_list *wharf_fair_queue_next(struct wharf_fair_queue *queue);
void wharf_fair_queue_done(struct wharf_fair_queue *queue, uint64_t cost);

/* What was done for a party beside its turns.  NULL is allowed. */
void wharf_fair_queue_charge(struct wharf_fair_queue *queue, struct wharf_fair_party *party,
                             uint64_t cost);

/* Whether one has had less than another one. */
static inline bool wharf_fair_party_is_before(const struct wharf_fair_party *one,
                                              const struct wharf_fair_party *other)
{
    return one->finish < other->finish;
}

static inline bool wharf_fair_queue_is_empty(const struct wharf_fair_queue *queue)
{
    return !queue->parties.root;
}

#endif
