/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/handle.h"

#include <errno.h>

#include "clientlib/error_text.h"

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

void wharf_client_leave(struct wharf *wharf)
{
    if (wharf->wakeup.epoll_fd >= 0)
        wharf_client_wakeup_fd_update(wharf);
    pthread_mutex_unlock(&wharf->lock);
}

void wharf_client_has_changed(struct wharf *wharf)
{
    if (wharf->n_waiters)
        pthread_cond_broadcast(&wharf->changed);
}

void wharf_client_wait_changed(struct wharf *wharf, uint64_t deadline_ns)
{
    struct timespec deadline = {(time_t)(deadline_ns / 1000000000u),
                                (long)(deadline_ns % 1000000000u)};

    wharf->n_waiters++;
    pthread_cond_timedwait(&wharf->changed, &wharf->lock, &deadline);
    wharf->n_waiters--;
}
