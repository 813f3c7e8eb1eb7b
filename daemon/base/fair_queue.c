/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fair_queue.c: start-time fair queueing (Goyal, Vin and Cheng, "Start-time Fair Queuing", SIGCOMM
 * 1996).
 *
 * Parties with waiting work are in a heap, ordered by start tag.
 *
 * INVARIANT: a party's debt is in its finish time, not in its waiting work.  So a client gains
 * nothing by cancelling its work and coming back.
 */
#include "daemon/base/fair_queue.h"

#include <stdlib.h>

#include "daemon/base/heap.h"
#include "daemon/base/list.h"

struct wharf_fair_party *wharf_fair_party_new(void)
{
    struct wharf_fair_party *party = calloc(1, sizeof(*party));

    if (!party)
        return NULL;
    wharf_list_init(&party->waiting);
    party->n_references = 1;
    return party;
}

void wharf_fair_party_ref(struct wharf_fair_party *party)
{
    party->n_references++;
}

void wharf_fair_party_unref(struct wharf_fair_party *party)
{
    if (party && --party->n_references == 0)
        free(party);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void enter(struct wharf_fair_queue *queue, struct wharf_fair_party *party)
{
    wharf_heap_insert(&queue->parties, &party->node, later(queue->now, party->finish));
}

void wharf_fair_queue_add(struct wharf_fair_queue *queue, struct wharf_fair_party *party,
                          struct wharf_list *work)
{
    if (wharf_list_is_linked(work))
        return;
    wharf_list_append(&party->waiting, work);
    if (party != queue->current && !party->node.is_linked)
        enter(queue, party);
}

void wharf_fair_queue_remove(struct wharf_fair_queue *queue, struct wharf_fair_party *party,
                             struct wharf_list *work)
{
    wharf_list_remove(work);
    if (wharf_list_is_empty(&party->waiting))
        wharf_heap_remove(&queue->parties, &party->node);
}

/* Work starts at the present virtual time, or later if the party has been charged past it. */
static void pay(struct wharf_fair_queue *queue, struct wharf_fair_party *party, uint64_t cost)
{
    party->queue = queue;
    party->finish = later(queue->now, party->finish) + cost;
    queue->latest = later(queue->latest, party->finish);
}

void wharf_fair_queue_charge(struct wharf_fair_queue *queue, struct wharf_fair_party *party,
                             uint64_t cost)
{
    if (!party)
        return;
    pay(queue, party, cost);
    if (!party->node.is_linked)
        return;
    wharf_heap_remove(&queue->parties, &party->node);
    enter(queue, party);
}

struct wharf_list *wharf_fair_queue_next(struct wharf_fair_queue *queue)
{
    struct wharf_heap_node *first = queue->parties.root;

    if (!first) {
        queue->now = queue->latest;
        return NULL;
    }
    struct wharf_fair_party *party = WHARF_LIST_ENTRY(first, struct wharf_fair_party, node);
    struct wharf_list *work = party->waiting.next;
    queue->now = first->key;
    queue->current = party;
    wharf_fair_party_ref(party);
    wharf_heap_remove(&queue->parties, first);
    wharf_list_remove(work);
    return work;
}

void wharf_fair_queue_done(struct wharf_fair_queue *queue, uint64_t cost)
{
    struct wharf_fair_party *party = queue->current;

    queue->current = NULL;
    pay(queue, party, cost);
    if (!wharf_list_is_empty(&party->waiting))
        enter(queue, party);
    wharf_fair_party_unref(party);
}
