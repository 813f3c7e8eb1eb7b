/* SPDX-License-Identifier: Apache-2.0 */
/* log_queue.c: a bounded queue with many writers and one reader (log_queue.h). */
#include "daemon/base/log_queue.h"

#include <stddef.h>

void wharf_log_queue_init(struct wharf_log_queue *queue)
{
    queue->next_number = queue->first = 0;
    for (uint64_t i = 0; i < WHARF_LOG_QUEUE_N; i++)
        queue->slots[i].turn = i;
}

static struct wharf_log_slot *slot_of(struct wharf_log_queue *queue, uint64_t number)
{
    return &queue->slots[number % WHARF_LOG_QUEUE_N];
}

/* Takes a number whose slot is free; the slot then belongs to the caller.  False: the queue is
 * full. */
static bool take_number(struct wharf_log_queue *queue, uint64_t *ret_number)
{
    uint64_t number = __atomic_load_n(&queue->next_number, __ATOMIC_RELAXED);

    for (;;) {
        /* Pairs with the reader's store in drop_first: the reader has finished with the slot's last
         * entry. */
        uint64_t turn = __atomic_load_n(&slot_of(queue, number)->turn, __ATOMIC_ACQUIRE);
        if (turn < number)
            return false;
        if (turn > number)
            number = __atomic_load_n(&queue->next_number, __ATOMIC_RELAXED);
        else if (__atomic_compare_exchange_n(&queue->next_number, &number, number + 1, true,
                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            break;
    }
    *ret_number = number;
    return true;
}

bool wharf_log_queue_put(struct wharf_log_queue *queue, const struct wharf_log_entry *entry)
{
    uint64_t number;

    if (!take_number(queue, &number))
        return false;
    struct wharf_log_slot *slot = slot_of(queue, number);
    slot->entry = *entry;
    /* Pairs with the load in first: the reader sees the entry. */
    __atomic_store_n(&slot->turn, number + 1, __ATOMIC_RELEASE);
    return true;
}

const struct wharf_log_entry *wharf_log_queue_first(struct wharf_log_queue *queue)
{
    struct wharf_log_slot *slot = slot_of(queue, queue->first);

    if (__atomic_load_n(&slot->turn, __ATOMIC_ACQUIRE) != queue->first + 1)
        return NULL;
    return &slot->entry;
}

void wharf_log_queue_drop_first(struct wharf_log_queue *queue)
{
    struct wharf_log_slot *slot = slot_of(queue, queue->first);

    __atomic_store_n(&slot->turn, queue->first + WHARF_LOG_QUEUE_N, __ATOMIC_RELEASE);
    queue->first++;
}
