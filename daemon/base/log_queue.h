/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_queue.h: a queue of messages from the daemon's threads to the one that writes them.
 *
 * A ring of fixed size, without a lock: a thread that logs may hold the core lock, so it never
 * waits.  Each slot has a turn.  With n slots, message number p goes to slot p % n:
 *
 *     turn == p       the slot is free for message p
 *     turn == p + 1   message p is in it
 *     turn == p + n   message p was taken: the slot is free for message p + n
 *
 * A writer takes a number by a compare-and-swap of `next_number`, fills the slot, and then stores
 * its turn.  The one reader waits for the turn of the next slot.  (D. Vyukov's bounded MPMC queue.)
 */
#ifndef WHARF_DAEMON_BASE_LOG_QUEUE_H
#define WHARF_DAEMON_BASE_LOG_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#define WHARF_LOG_QUEUE_N 128
#define WHARF_LOG_MESSAGE_NBYTES 1024
#define WHARF_LOG_TENANT_NBYTES 64

struct wharf_log_entry {
    int level;
    int error;
    uint64_t connection;
    uint64_t session;
    char tenant[WHARF_LOG_TENANT_NBYTES]; /* empty: none */
    char message[WHARF_LOG_MESSAGE_NBYTES];
};

struct wharf_log_queue {
    uint64_t next_number; /* for the next writer */
    uint64_t first;       /* for the reader */
    struct wharf_log_slot {
        uint64_t turn;
        struct wharf_log_entry entry;
    } slots[WHARF_LOG_QUEUE_N];
};

void wharf_log_queue_init(struct wharf_log_queue *queue);

/* Copies *entry into the queue.  False: the queue is full.  Any thread. */
bool wharf_log_queue_put(struct wharf_log_queue *queue, const struct wharf_log_entry *entry);

/* The oldest message, or NULL.  It stays in the queue until wharf_log_queue_drop_first.  The reader
 * only. */
const struct wharf_log_entry *wharf_log_queue_first(struct wharf_log_queue *queue);
void wharf_log_queue_drop_first(struct wharf_log_queue *queue);

#endif
