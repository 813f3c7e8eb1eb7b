/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background_queue.h: a background thread with a work queue.
 *
 * Slow operations run here, one at a time, so the loop thread never blocks.  The loop is woken
 * after each one.
 */
#ifndef WHARF_DAEMON_BASE_BACKGROUND_QUEUE_H
#define WHARF_DAEMON_BASE_BACKGROUND_QUEUE_H

#include <pthread.h>
#include <stdbool.h>

#include "daemon/base/list.h"

struct wharf_loop;

struct wharf_background_queue {
    struct wharf_loop *loop;
    const char *name; /* of the thread */
    /* Chooses the next element of the non-empty `todo`, under the lock.  NULL: the first. */
    struct wharf_list *(*choose)(struct wharf_background_queue *background);
    void (*run)(struct wharf_background_queue *background, struct wharf_list *link);
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    struct wharf_list todo; /* to run; guarded by the lock, as all members below */
    struct wharf_list done;
    struct wharf_list *current; /* the element that is running, which is in no list; or NULL */
    bool stop;
};

/* Starts the thread; the caller has set the members above `thread`.  0 or -errno. */
int wharf_background_queue_start(struct wharf_background_queue *background);

/* Ends the thread when `todo` is empty; results that nobody took stay in `done`. */
void wharf_background_queue_stop(struct wharf_background_queue *background);

void wharf_background_queue_add(struct wharf_background_queue *background, struct wharf_list *link);

/* Takes the next element of `done`; NULL: none. */
struct wharf_list *wharf_background_queue_take(struct wharf_background_queue *background);

#endif
