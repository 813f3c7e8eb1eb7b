/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/errands.h"

#include "daemon/base/list.h"
#include "daemon/base/loop.h"

static void *work(void *data)
{
    struct wharf_errands *errands = data;

    pthread_mutex_lock(&errands->lock);
    for (;;) {
        if (wharf_list_is_empty(&errands->todo)) {
            if (errands->stop)
                break;
            pthread_cond_wait(&errands->wanted, &errands->lock);
            continue;
        }
        struct wharf_list *link = errands->choose ? errands->choose(errands) : errands->todo.next;
        wharf_list_remove(link);
        errands->current = link;
        pthread_mutex_unlock(&errands->lock);
        errands->run(errands, link);
        pthread_mutex_lock(&errands->lock);
        errands->current = NULL;
        wharf_list_append(&errands->done, link);
        wharf_loop_wake(errands->loop);
    }
    pthread_mutex_unlock(&errands->lock);
    return NULL;
}

int wharf_errands_start(struct wharf_errands *errands)
{
    pthread_mutex_init(&errands->lock, NULL);
    pthread_cond_init(&errands->wanted, NULL);
    wharf_list_init(&errands->todo);
    wharf_list_init(&errands->done);
    int r = pthread_create(&errands->thread, NULL, work, errands);
    if (r == 0)
        pthread_setname_np(errands->thread, errands->name);
    return -r;
}

void wharf_errands_stop(struct wharf_errands *errands)
{
    pthread_mutex_lock(&errands->lock);
    errands->stop = true;
    pthread_cond_signal(&errands->wanted);
    pthread_mutex_unlock(&errands->lock);
    pthread_join(errands->thread, NULL);
    pthread_cond_destroy(&errands->wanted);
    pthread_mutex_destroy(&errands->lock);
}

void wharf_errands_add(struct wharf_errands *errands, struct wharf_list *link)
{
    pthread_mutex_lock(&errands->lock);
    wharf_list_append(&errands->todo, link);
    pthread_cond_signal(&errands->wanted);
    pthread_mutex_unlock(&errands->lock);
}

struct wharf_list *wharf_errands_take(struct wharf_errands *errands)
{
    struct wharf_list *link = NULL;

    pthread_mutex_lock(&errands->lock);
    if (!wharf_list_is_empty(&errands->done)) {
        link = errands->done.next;
        wharf_list_remove(link);
    }
    pthread_mutex_unlock(&errands->lock);
    return link;
}
