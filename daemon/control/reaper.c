/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/reaper.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "daemon/base/list.h"
#include "daemon/base/loop.h"

struct task {
    struct wharf_list link;
    struct wharf_session *session; /* or NULL: the segment */
    struct wharf_segment segment;
    struct wharf_tenant *tenant;
    struct wharf_use use;
};

struct wharf_reaper {
    struct wharf_loop *loop;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    struct wharf_list todo; /* lock, as all below */
    struct wharf_list done;
    bool stop;
};

static void run(struct task *task)
{
    if (task->session)
        wharf_session_free(task->session);
    else
        wharf_segment_free(&task->segment);
}

static void *work(void *data)
{
    struct wharf_reaper *reaper = data;

    pthread_mutex_lock(&reaper->lock);
    for (;;) {
        struct task *task = WHARF_LIST_FIRST(&reaper->todo, struct task, link);
        if (!task && reaper->stop)
            break;
        if (!task) {
            pthread_cond_wait(&reaper->wanted, &reaper->lock);
            continue;
        }
        wharf_list_remove(&task->link);
        pthread_mutex_unlock(&reaper->lock);
        run(task);
        pthread_mutex_lock(&reaper->lock);
        wharf_list_append(&reaper->done, &task->link);
        wharf_loop_wake(reaper->loop);
    }
    pthread_mutex_unlock(&reaper->lock);
    return NULL;
}

int wharf_reaper_new(struct wharf_loop *loop, struct wharf_reaper **ret_reaper)
{
    struct wharf_reaper *reaper = calloc(1, sizeof(*reaper));

    if (!reaper)
        return -ENOMEM;
    reaper->loop = loop;
    pthread_mutex_init(&reaper->lock, NULL);
    pthread_cond_init(&reaper->wanted, NULL);
    wharf_list_init(&reaper->todo);
    wharf_list_init(&reaper->done);
    int r = pthread_create(&reaper->thread, NULL, work, reaper);
    if (r != 0) {
        free(reaper);
        return -r;
    }
    pthread_setname_np(reaper->thread, "wharf-reaper");
    *ret_reaper = reaper;
    return 0;
}

void wharf_reaper_free(struct wharf_reaper *reaper)
{
    if (!reaper)
        return;
    pthread_mutex_lock(&reaper->lock);
    reaper->stop = true;
    pthread_cond_signal(&reaper->wanted);
    pthread_mutex_unlock(&reaper->lock);
    pthread_join(reaper->thread, NULL);
    WHARF_LIST_FOR(link, &reaper->done)
    free(WHARF_LIST_ENTRY(link, struct task, link));
    pthread_cond_destroy(&reaper->wanted);
    pthread_mutex_destroy(&reaper->lock);
    free(reaper);
}

static bool add(struct wharf_reaper *reaper, const struct task *wanted)
{
    struct task *task = malloc(sizeof(*task));

    if (!task) {
        struct task now = *wanted;
        run(&now);
        return false;
    }
    *task = *wanted;
    pthread_mutex_lock(&reaper->lock);
    wharf_list_append(&reaper->todo, &task->link);
    pthread_cond_signal(&reaper->wanted);
    pthread_mutex_unlock(&reaper->lock);
    return true;
}

bool wharf_reaper_session(struct wharf_reaper *reaper, struct wharf_session *session)
{
    struct task task = {.session = session, .tenant = session->tenant, .use = session->use};

    return add(reaper, &task);
}

bool wharf_reaper_segment(struct wharf_reaper *reaper, const struct wharf_segment *segment,
                          struct wharf_tenant *tenant, const struct wharf_use *use)
{
    struct task task = {.segment = *segment, .tenant = tenant, .use = *use};

    return add(reaper, &task);
}

bool wharf_reaper_next(struct wharf_reaper *reaper, struct wharf_tenant **ret_tenant,
                       struct wharf_use *ret_use)
{
    struct task *task;

    pthread_mutex_lock(&reaper->lock);
    task = WHARF_LIST_FIRST(&reaper->done, struct task, link);
    if (task)
        wharf_list_remove(&task->link);
    pthread_mutex_unlock(&reaper->lock);
    if (!task)
        return false;
    *ret_tenant = task->tenant;
    *ret_use = task->use;
    free(task);
    return true;
}
