/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retry_queue.h: pieces that a worker of a GPU left behind, for threads of the CPU.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_CORE_RETRY_QUEUE_H
#define WHARF_DAEMON_CORE_RETRY_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/list.h"

struct wharf_piece;

/* One of them, as who left it has it. */
struct wharf_retry {
    struct wharf_list link;
    struct wharf_piece *piece;
    /* It was taken: copied out of *piece. */
    void (*taken)(struct wharf_retry *retry);
};

/* Of the core. */
struct wharf_retry_queue {
    struct wharf_list ready;
    uint32_t n;
    struct wharf_list held; /* of tenants that were suspended */
    uint32_t n_held;
};

void wharf_retry_init(struct wharf_retry_queue *queue);

void wharf_retry_add(struct wharf_retry_queue *queue, struct wharf_retry *retry);

/* The next one, for a thread of the CPU; whether there is one. */
bool wharf_retry_take(struct wharf_retry_queue *queue, struct wharf_piece *ret_piece);

/* A tenant is suspended no more: what was left of its jobs can be taken. */
void wharf_retry_resume(struct wharf_retry_queue *queue);

#endif
