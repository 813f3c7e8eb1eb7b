/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/reaper.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/base/errands.h"
#include "daemon/base/list.h"
#include "daemon/core/segment.h"
#include "daemon/core/session.h"

struct task {
    struct wharf_list link;
    struct wharf_session *session; /* or NULL: the segment */
    struct wharf_segment segment;
    struct wharf_reaped reaped;
};

struct wharf_reaper {
    struct wharf_errands errands;
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

static void run_errand(struct wharf_errands *errands, struct wharf_list *link)
{
    (void)errands;
    run(WHARF_LIST_ENTRY(link, struct task, link));
}

int wharf_reaper_new(struct wharf_loop *loop, struct wharf_reaper **ret_reaper)
{
    struct wharf_reaper *reaper = calloc(1, sizeof(*reaper));

    if (!reaper)
        return -ENOMEM;
    reaper->errands =
        (struct wharf_errands){.loop = loop, .name = "wharf-reaper", .run = run_errand};
    int r = wharf_errands_start(&reaper->errands);
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
    wharf_errands_stop(&reaper->errands);
    WHARF_LIST_FOR(link, &reaper->errands.done)
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
    wharf_errands_add(&reaper->errands, &task->link);
    return true;
}

bool wharf_reaper_session(struct wharf_reaper *reaper, struct wharf_session *session)
{
    struct task task = {.session = session,
                        .reaped = {session->tenant, session->use, WHARF_NO_LEFT_RINGS}};

    return add(reaper, &task);
}

bool wharf_reaper_segment(struct wharf_reaper *reaper, const struct wharf_segment *segment,
                          struct wharf_tenant *tenant, const struct wharf_use *use)
{
    struct task task = {.segment = *segment, .reaped = {tenant, *use, WHARF_NO_LEFT_RINGS}};

    return add(reaper, &task);
}

bool wharf_reaper_next(struct wharf_reaper *reaper, struct wharf_reaped *ret_reaped)
{
    struct wharf_list *link = wharf_errands_take(&reaper->errands);

    if (!link)
        return false;
    struct task *task = WHARF_LIST_ENTRY(link, struct task, link);
    *ret_reaped = task->reaped;
    free(task);
    return true;
}
