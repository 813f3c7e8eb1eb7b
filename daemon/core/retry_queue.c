/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/retry_queue.h"

#include "daemon/base/list.h"
#include "daemon/core/job.h"
#include "daemon/core/session.h"

void wharf_retry_init(struct wharf_retry_queue *queue)
{
    *queue = (struct wharf_retry_queue){.n = 0};
    wharf_list_init(&queue->ready);
    wharf_list_init(&queue->held);
}

void wharf_retry_add(struct wharf_retry_queue *queue, struct wharf_retry *retry)
{
    wharf_list_append(&queue->ready, &retry->link);
    queue->n++;
}

bool wharf_retry_take(struct wharf_retry_queue *queue, struct wharf_piece *ret_piece)
{
    struct wharf_retry *retry;

    while ((retry = WHARF_LIST_FIRST(&queue->ready, struct wharf_retry, link))) {
        wharf_list_remove(&retry->link);
        queue->n--;
        if (!retry->piece->job->session->tenant->is_suspended)
            break;
        wharf_list_append(&queue->held, &retry->link);
        queue->n_held++;
    }
    if (!retry)
        return false;
    *ret_piece = *retry->piece;
    retry->taken(retry);
    return true;
}

void wharf_retry_resume(struct wharf_retry_queue *queue)
{
    wharf_list_splice(&queue->ready, &queue->held);
    queue->n += queue->n_held;
    queue->n_held = 0;
}
