/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fair_queue.h: start-time fair queueing, for work whose cost is known only when it is done.
 *
 * Each party has a queue of work.  Its first piece of work has a start tag: the virtual time when
 * it came, or the end of the party's last work if that is later.  The work with the least start tag
 * is done next; virtual time is the start tag of the work that is being done.
 *
 * So two parties that always have work get half of the time each.  A party that asks for little is
 * served next: it waits for the work that is being done and for other parties that ask for little,
 * however much a third party has waiting.  When no work waits, all debts are forgotten, since
 * nobody waited for them.
 *
 * Costs and virtual time have the caller's unit.  A queue is used by one thread.
 */
#ifndef WHARF_DAEMON_BASE_FAIR_QUEUE_H
#define WHARF_DAEMON_BASE_FAIR_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/heap.h"
#include "daemon/base/list.h"

/* Who has work: a tenant.  References are counted: the work being done may be the last one's. */
struct wharf_fair_party {
    struct wharf_heap_node node; /* by start tag, while something waits and nothing is being done */
    struct wharf_list waiting;
    const struct wharf_fair_queue *queue; /* where it was charged; NULL: nowhere yet */
    uint64_t finish;                      /* virtual time when its last work ended */
    unsigned n_references;
};

struct wharf_fair_queue {
    struct wharf_heap parties;
    uint64_t now;                     /* virtual time */
    uint64_t latest;                  /* the largest `finish` of all parties */
    struct wharf_fair_party *current; /* whose work is being done, referred to; or NULL */
};

/* A new party has one reference; it is freed with the last one.  NULL: out of memory. */
struct wharf_fair_party *wharf_fair_party_new(void);
void wharf_fair_party_ref(struct wharf_fair_party *party);
/* NULL is allowed.  Remove the work that came with the reference from the queue first. */
void wharf_fair_party_unref(struct wharf_fair_party *party);

/* Adds work behind the party's other work; does nothing if it waits already.  It stays the
 * caller's. */
void wharf_fair_queue_add(struct wharf_fair_queue *queue, struct wharf_fair_party *party,
                          struct wharf_list *work);

/* Removes work that waits; does nothing if it does not wait. */
void wharf_fair_queue_remove(struct wharf_fair_queue *queue, struct wharf_fair_party *party,
                             struct wharf_list *work);

/* Takes out the work to do next, or returns NULL if none waits.  Call wharf_fair_queue_done with
 * its cost when it is done, before taking the next one. */
struct wharf_list *wharf_fair_queue_next(struct wharf_fair_queue *queue);
void wharf_fair_queue_done(struct wharf_fair_queue *queue, uint64_t cost);

/* Charges a party for work that did not go through the queue.  NULL is allowed. */
void wharf_fair_queue_charge(struct wharf_fair_queue *queue, struct wharf_fair_party *party,
                             uint64_t cost);

/* Whether it has had more than its part of the time by now: who forgets it forgives it that.  NULL
 * is allowed. */
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
