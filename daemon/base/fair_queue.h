/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fair_queue.h: start-time fair queueing, for work whose cost is known only when it is done.
 *
 * Each party has a queue of work.  Its first element has a start tag: the virtual time of its
 * arrival, or the end of the party's last work if that is later.  The work with the smallest start
 * tag is next.  Virtual time is the start tag of the current work.
 *
 * So two parties that always have work get half of the time each.  A party that asks for little
 * waits only for the current work and for other parties that ask for little, however much a third
 * party has queued.  When the queue is empty, all debts are dropped, since nobody waited for them.
 *
 * Costs and virtual time have the caller's unit.  A queue is used by one thread.
 */
#ifndef WHARF_DAEMON_BASE_FAIR_QUEUE_H
#define WHARF_DAEMON_BASE_FAIR_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/heap.h"
#include "daemon/base/list.h"

/* The owner of work: a tenant.  It is reference-counted, because its last work may outlive its
 * other users. */
struct wharf_fair_party {
    struct wharf_heap_node node; /* by start tag, while it has waiting and no current work */
    struct wharf_list waiting;
    const struct wharf_fair_queue *queue; /* the queue that charged it; NULL: none yet */
    uint64_t finish;                      /* virtual time when its last work ended */
    unsigned n_references;
};

struct wharf_fair_queue {
    struct wharf_heap parties;
    uint64_t now;                     /* virtual time */
    uint64_t latest;                  /* the largest `finish` of all parties */
    struct wharf_fair_party *current; /* owner of the current work, with a reference; or NULL */
};

/* A new party has one reference; it is freed with the last one.  NULL: out of memory. */
struct wharf_fair_party *wharf_fair_party_new(void);
void wharf_fair_party_ref(struct wharf_fair_party *party);
/* NULL is allowed.  First remove the work that was added with this reference. */
void wharf_fair_party_unref(struct wharf_fair_party *party);

/* Appends work to the party's queue.  Does nothing if it waits already.  The caller owns the
 * work. */
void wharf_fair_queue_add(struct wharf_fair_queue *queue, struct wharf_fair_party *party,
                          struct wharf_list *work);

/* Removes waiting work.  Does nothing if it does not wait. */
void wharf_fair_queue_remove(struct wharf_fair_queue *queue, struct wharf_fair_party *party,
                             struct wharf_list *work);

/* Takes the next work, or returns NULL.  When it is done, call wharf_fair_queue_done with its cost,
 * before the next wharf_fair_queue_next. */
struct wharf_list *wharf_fair_queue_next(struct wharf_fair_queue *queue);
void wharf_fair_queue_done(struct wharf_fair_queue *queue, uint64_t cost);

/* Charges a party for work that did not go through the queue.  NULL is allowed. */
void wharf_fair_queue_charge(struct wharf_fair_queue *queue, struct wharf_fair_party *party,
                             uint64_t cost);

/* Whether the party has had more than its share: a debt that freeing it would forget.  NULL is
 * allowed. */
static inline bool wharf_fair_party_owes(const struct wharf_fair_party *party)
{
    return party && party->queue && party->finish > party->queue->now;
}

/* Whether one party has been charged less than the other. */
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
