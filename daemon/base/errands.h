/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errands.h: a background thread with a work queue.
 *
 * Slow operations run here, one at a time, so the loop thread never blocks.  The loop is woken
 * after each one.
 */
#ifndef WHARF_DAEMON_BASE_ERRANDS_H
#define WHARF_DAEMON_BASE_ERRANDS_H

#include <pthread.h>
#include <stdbool.h>

#include "daemon/base/list.h"

struct wharf_loop;

struct wharf_errands {
    struct wharf_loop *loop;
    const char *name; /* of the thread */
    /* Which is next, of those to do, of which there are some; under the lock.  NULL: the first. */
    struct wharf_list *(*choose)(struct wharf_errands *errands);
    void (*run)(struct wharf_errands *errands, struct wharf_list *link);
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    struct wharf_list todo; /* lock, as all below */
    struct wharf_list done;
    struct wharf_list *current; /* that the thread is at, in no list; NULL: none */
    bool stop;
};

/* Starts the thread; the caller has filled what is above it.  0 or -errno. */
int wharf_errands_start(struct wharf_errands *errands);

/* Ends it when all that is to do is done; what nobody has taken stays in `done`. */
void wharf_errands_stop(struct wharf_errands *errands);

void wharf_errands_add(struct wharf_errands *errands, struct wharf_list *link);

/* What was done, one at a time; NULL: no more. */
struct wharf_list *wharf_errands_take(struct wharf_errands *errands);

#endif
