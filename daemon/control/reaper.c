/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reaper.c: the reaper, a background queue that frees memory.
 */
#include "daemon/control/reaper.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/base/background_queue.h"
#include "daemon/base/list.h"
#include "daemon/core/file_io.h"
#include "daemon/core/segment.h"
#include "daemon/core/session.h"

struct task {
    struct wharf_list link;
    struct wharf_session *session; /* or NULL: the segment */
    struct wharf_segment segment;
    struct wharf_reaped reaped;
};

struct wharf_reaper {
    struct wharf_background_queue background;
};

static void run(struct task *task)
{
    if (task->session) {
        wharf_left_rings_take(&task->reaped.left, task->session);
        wharf_session_free(task->session);
    } else {
        wharf_segment_free(&task->segment);
    }
}

static void run_item(struct wharf_background_queue *background, struct wharf_list *link)
{
    (void)background;
    run(WHARF_LIST_ENTRY(link, struct task, link));
}

int wharf_reaper_new(struct wharf_loop *loop, struct wharf_reaper **ret_reaper)
{
    struct wharf_reaper *reaper = calloc(1, sizeof(*reaper));

    if (!reaper)
        return -ENOMEM;
    reaper->background =
        (struct wharf_background_queue){.loop = loop, .name = "wharf-reaper", .run = run_item};
    int r = wharf_background_queue_start(&reaper->background);
    if (r < 0)
        free(reaper);
    else
        *ret_reaper = reaper;
    return r;
}

void wharf_reaper_free(struct wharf_reaper *reaper)
{
    if (!reaper)
        return;
    wharf_background_queue_stop(&reaper->background);
    WHARF_LIST_FOR(link, &reaper->background.done)
    free(WHARF_LIST_ENTRY(link, struct task, link));
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
    wharf_background_queue_add(&reaper->background, &task->link);
    return true;
}

bool wharf_reaper_session(struct wharf_reaper *reaper, struct wharf_session *session)
{
    struct task task = {.session = session,
                        .reaped = {session->tenant, session->use, WHARF_NO_LEFT_RINGS,
                                   wharf_file_io_charge(session->file_io)}};

    return add(reaper, &task);
}

bool wharf_reaper_segment(struct wharf_reaper *reaper, const struct wharf_segment *segment,
                          struct wharf_tenant *tenant, const struct wharf_use *use)
{
    struct task task = {.segment = *segment, .reaped = {tenant, *use, WHARF_NO_LEFT_RINGS, NULL}};

    return add(reaper, &task);
}

bool wharf_reaper_next(struct wharf_reaper *reaper, struct wharf_reaped *ret_reaped)
{
    struct wharf_list *link = wharf_background_queue_take(&reaper->background);

    if (!link)
        return false;
    struct task *task = WHARF_LIST_ENTRY(link, struct task, link);
    *ret_reaped = task->reaped;
    free(task);
    return true;
}
