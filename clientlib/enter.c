/* SPDX-License-Identifier: Apache-2.0 */
/* enter.c: into the handle and out of it. */
#include "clientlib/handle.h"

#include <errno.h>

#include "clientlib/error_text.h"
#include "clientlib/pump.h"
#include "clientlib/rings.h"

int wharf_client_check(struct wharf *wharf)
{
    if (!wharf)
        return wharf_client_fail(-EINVAL, "the handle is NULL");
    if (wharf_client_is_forked(&wharf->guard))
        return wharf_client_fail(-ESTALE,
                                 "this handle is the parent's, of process %d: a forked "
                                 "child opens its own",
                                 (int)wharf->guard.pid);
    return 0;
}

int wharf_client_enter(struct wharf *wharf)
{
    int r = wharf_client_check(wharf);

    if (r == 0)
        pthread_mutex_lock(&wharf->lock);
    return r;
}

/*
 * Lets the daemon send a packet for the next completion.  Returns whether it will, or there is
 * nothing to come.
 */
static int arm(struct wharf *wharf)
{
    struct wharf_client_rings *rings = wharf->link.rings;

    if (wharf->link.state != WHARF_CLIENT_LINK_UP || !wharf_client_rings_n_outstanding(rings) ||
        wharf_client_rings_is_armed(rings, WHARF_WAIT_PACKET))
        return 1;
    return wharf_client_rings_arm(rings, WHARF_WAIT_PACKET, 1) == 0;
}

static int has_work(const struct wharf *wharf)
{
    const struct wharf_client_jobs *jobs = &wharf->jobs;

    if (wharf->is_daemon)
        return jobs->done.n || wharf->link.state == WHARF_CLIENT_LINK_BROKEN;
    return jobs->done.n || jobs->queued[1].n || jobs->queued[2].n || jobs->queued[3].n;
}

/* Makes the descriptor readable exactly if wharf_poll has something to do, now or later. */
static void update_wakeup_fd(struct wharf *wharf)
{
    const struct wharf_client_link *link = &wharf->link;
    int is_armed = arm(wharf);

    /* What came meanwhile is taken here, and then the next one is asked for; a few times. */
    for (int i = 0; !is_armed && i < 4; i++) {
        wharf_client_pump(wharf);
        is_armed = arm(wharf);
    }
    if (link->socket >= 0 && link->state != WHARF_CLIENT_LINK_BROKEN)
        wharf_client_wakeup_fd_watch(&wharf->wakeup, link->socket);
    int is_to_dial = wharf->is_daemon && link->state == WHARF_CLIENT_LINK_DOWN;
    wharf_client_wakeup_fd_set_timer(&wharf->wakeup, is_to_dial ? link->next_try_ns : 0);
    wharf_client_wakeup_fd_signal(&wharf->wakeup, !is_armed || has_work(wharf));
}

void wharf_client_leave(struct wharf *wharf)
{
    if (wharf->wakeup.epoll_fd >= 0)
        update_wakeup_fd(wharf);
    pthread_mutex_unlock(&wharf->lock);
}
