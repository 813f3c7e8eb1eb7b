/* SPDX-License-Identifier: Apache-2.0 */
/* background_queue.c: the thread of background_queue.h, and its two lists under a lock. */
#include "daemon/base/background_queue.h"

#include "daemon/base/list.h"
#include "daemon/base/loop.h"

static void *work(void *data)
{
    struct wharf_background_queue *background = data;

    pthread_setname_np(pthread_self(), background->name);
    pthread_mutex_lock(&background->lock);
    for (;;) {
        if (wharf_list_is_empty(&background->todo)) {
            if (background->stop)
                break;
            pthread_cond_wait(&background->wanted, &background->lock);
            continue;
        }
        struct wharf_list *link =
            background->choose ? background->choose(background) : background->todo.next;
        wharf_list_remove(link);
        background->current = link;
        pthread_mutex_unlock(&background->lock);
        background->run(background, link);
        pthread_mutex_lock(&background->lock);
        background->current = NULL;
        wharf_list_append(&background->done, link);
        wharf_loop_wake(background->loop);
    }
    pthread_mutex_unlock(&background->lock);
    return NULL;
}

int wharf_background_queue_start(struct wharf_background_queue *background)
{
    pthread_mutex_init(&background->lock, NULL);
    pthread_cond_init(&background->wanted, NULL);
    wharf_list_init(&background->todo);
    wharf_list_init(&background->done);
    return -pthread_create(&background->thread, NULL, work, background);
}

void wharf_background_queue_stop(struct wharf_background_queue *background)
{
    pthread_mutex_lock(&background->lock);
    background->stop = true;
    pthread_cond_signal(&background->wanted);
    pthread_mutex_unlock(&background->lock);
    pthread_join(background->thread, NULL);
    pthread_cond_destroy(&background->wanted);
    pthread_mutex_destroy(&background->lock);
}

void wharf_background_queue_add(struct wharf_background_queue *background, struct wharf_list *link)
{
    pthread_mutex_lock(&background->lock);
    wharf_list_append(&background->todo, link);
    pthread_cond_signal(&background->wanted);
    pthread_mutex_unlock(&background->lock);
}

struct wharf_list *wharf_background_queue_take(struct wharf_background_queue *background)
{
    struct wharf_list *link = NULL;

    pthread_mutex_lock(&background->lock);
    if (!wharf_list_is_empty(&background->done)) {
        link = background->done.next;
        wharf_list_remove(link);
    }
    pthread_mutex_unlock(&background->lock);
    return link;
}
