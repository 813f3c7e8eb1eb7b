/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retry_queue.h: pieces that a dead GPU worker had, for the CPU threads.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_CORE_RETRY_QUEUE_H
#define WHARF_DAEMON_CORE_RETRY_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/list.h"

struct wharf_piece;

/* A queued piece; embedded in the data of its former owner. */
struct wharf_retry {
    struct wharf_list link;
    struct wharf_piece *piece;
    /* Called when the piece was taken: *piece has been copied. */
    void (*taken)(struct wharf_retry *retry);
};

/* Of the core. */
struct wharf_retry_queue {
    struct wharf_list ready;
    uint32_t n;
    struct wharf_list held; /* pieces of suspended tenants */
    uint32_t n_held;
};

void wharf_retry_init(struct wharf_retry_queue *queue);

void wharf_retry_add(struct wharf_retry_queue *queue, struct wharf_retry *retry);

/* Takes the next piece, for a CPU thread.  Returns whether there was one. */
bool wharf_retry_take(struct wharf_retry_queue *queue, struct wharf_piece *ret_piece);

/* A tenant's suspension has ended, so its held pieces can be taken. */
void wharf_retry_resume(struct wharf_retry_queue *queue);

#endif
