/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.c: the model maker, a background queue that serves tenants in turn.
 */
#include "daemon/control/model.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/base/background_queue.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/touch.h"
#include "daemon/core/core.h"
#include "daemon/core/segment.h"
#include "daemon/dispatch/core_lock.h"
#include "encoders/codec.h"
#include "proto/wharf_ring.h"

struct task {
    struct wharf_list link;
    struct wharf_model_made made; /* its order until it is made */
};

struct wharf_model_maker {
    struct wharf_core *core;
    struct wharf_background_queue background;
    uint64_t last_turn; /* counts up: tenants' turns */
};

static struct task *task_of(struct wharf_list *link)
{
    return WHARF_LIST_ENTRY(link, struct task, link);
}

static struct wharf_model_maker *maker_of(struct wharf_background_queue *background)
{
    return WHARF_LIST_ENTRY(background, struct wharf_model_maker, background);
}

/* ---- making one ---------------------------------------------------------------------------- */

static int charge(struct wharf_model_maker *maker, struct wharf_model_made *made,
                  size_t image_nbytes)
{
    /* The image's descriptor, and the GPUs'. */
    made->use =
        (struct wharf_use){.n_descriptors = 2, .n_mappings = 1, .memory_nbytes = image_nbytes};
    return wharf_core_charge(maker->core, made->order.tenant, &made->use, &made->limit);
}

/* A model's bytes and its image; pages of either may not be allocated yet. */
struct touched {
    const struct wharf_model_ops *ops;
    const uint8_t *model;
    uint64_t model_nbytes;
    size_t image_nbytes;
    void *image;
    enum wharf_reason reason;
};

static void find_size(void *context)
{
    struct touched *touched = context;

    touched->reason =
        touched->ops->image_nbytes(touched->model, touched->model_nbytes, &touched->image_nbytes);
}

static void fill(void *context)
{
    struct touched *touched = context;

    touched->reason =
        touched->ops->make_image(touched->model, touched->model_nbytes, touched->image);
}

static int touch(void (*act)(void *context), struct touched *touched)
{
    if (!wharf_touch(act, touched))
        return -ENOMEM;
    return touched->reason == WHARF_REASON_NONE ? 0 : -EBADMSG;
}

/* From the model's bytes, which do not change. */
static int make_image(struct wharf_model_maker *maker, struct wharf_model_made *made)
{
    struct touched touched = {
        .ops = wharf_codec_find(made->order.codec)->ops->models,
        .model = made->order.segment.address,
        .model_nbytes = made->order.segment.nbytes,
    };
    int r = touch(find_size, &touched);

    made->reason = touched.reason;
    if (r < 0)
        return r;
    size_t nbytes = (size_t)wharf_ring_whole_pages(touched.image_nbytes);
    r = charge(maker, made, nbytes);
    if (r < 0)
        return r;
    r = wharf_segment_make(WHARF_SEGMENT_ARENA, nbytes, &made->segment);
    if (r == 0) {
        touched.image = made->segment.address;
        r = touch(fill, &touched);
        made->reason = touched.reason;
        if (r < 0)
            wharf_segment_free(&made->segment);
    }
    if (r < 0)
        wharf_core_give_back(maker->core, made->order.tenant, &made->use);
    return r;
}

static void make(struct wharf_model_maker *maker, struct wharf_model_made *made)
{
    uint64_t begun_ns = wharf_now_ns();

    made->error = make_image(maker, made);
    wharf_segment_free(&made->order.segment);
    made->used_ns = (int64_t)(wharf_now_ns() - begun_ns);
}

/* ---- the thread ---------------------------------------------------------------------------- */

/* Chooses the first model of the tenant whose last turn was longest ago.  So a tenant waits for at
 * most one model of each other tenant. */
static struct wharf_list *choose(struct wharf_background_queue *background)
{
    struct task *next = task_of(background->todo.next);

    WHARF_LIST_FOR(link, &background->todo)
    {
        struct task *task = task_of(link);
        if (task->made.order.tenant->model_turn < next->made.order.tenant->model_turn)
            next = task;
    }
    next->made.order.tenant->model_turn = ++maker_of(background)->last_turn;
    return &next->link;
}

static void run(struct wharf_background_queue *background, struct wharf_list *link)
{
    make(maker_of(background), &task_of(link)->made);
}

int wharf_model_maker_new(struct wharf_core *core, struct wharf_loop *loop,
                          struct wharf_model_maker **ret_maker)
{
    struct wharf_model_maker *maker = calloc(1, sizeof(*maker));

    if (!maker)
        return -ENOMEM;
    maker->core = core;
    maker->background = (struct wharf_background_queue){
        .loop = loop, .name = "wharf-models", .choose = choose, .run = run};
    int r = wharf_background_queue_start(&maker->background);
    if (r < 0)
        free(maker);
    else
        *ret_maker = maker;
    return r;
}

static void free_tasks(struct wharf_list *tasks)
{
    struct task *task;

    while ((task = WHARF_LIST_FIRST(tasks, struct task, link))) {
        wharf_list_remove(&task->link);
        wharf_segment_free(&task->made.order.segment);
        wharf_segment_free(&task->made.segment);
        free(task);
    }
}

void wharf_model_maker_free(struct wharf_model_maker *maker)
{
    if (!maker)
        return;
    pthread_mutex_lock(&maker->background.lock);
    free_tasks(&maker->background.todo);
    pthread_mutex_unlock(&maker->background.lock);
    wharf_background_queue_stop(&maker->background);
    free_tasks(&maker->background.done);
    free(maker);
}

/* ---- for the loop thread ------------------------------------------------------------------- */

int wharf_model_maker_ask(struct wharf_model_maker *maker, const struct wharf_model_order *order)
{
    struct task *task = calloc(1, sizeof(*task));

    if (!task)
        return -ENOMEM;
    task->made.order = *order;
    wharf_background_queue_add(&maker->background, &task->link);
    return 0;
}

static struct task *find(const struct wharf_list *tasks, const struct wharf_connection *connection)
{
    WHARF_LIST_FOR(link, tasks)
    {
        if (task_of(link)->made.order.connection == connection)
            return task_of(link);
    }
    return NULL;
}

static void forget_begun(struct wharf_background_queue *background,
                         const struct wharf_connection *connection)
{
    struct task *task = find(&background->done, connection);

    if (!task && background->current &&
        task_of(background->current)->made.order.connection == connection)
        task = task_of(background->current);
    if (task)
        task->made.order.connection = NULL;
}

bool wharf_model_maker_forget(struct wharf_model_maker *maker,
                              const struct wharf_connection *connection,
                              struct wharf_model_order *ret_order)
{
    struct wharf_background_queue *background = &maker->background;

    pthread_mutex_lock(&background->lock);
    struct task *task = find(&background->todo, connection);
    if (task)
        wharf_list_remove(&task->link);
    else
        forget_begun(background, connection);
    pthread_mutex_unlock(&background->lock);
    if (!task)
        return false;
    *ret_order = task->made.order;
    free(task);
    return true;
}

bool wharf_model_maker_next(struct wharf_model_maker *maker, struct wharf_model_made *ret_made)
{
    struct wharf_list *link = wharf_background_queue_take(&maker->background);

    if (!link)
        return false;
    *ret_made = task_of(link)->made;
    free(task_of(link));
    return true;
}
