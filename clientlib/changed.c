/* SPDX-License-Identifier: Apache-2.0 */
/* changed.c: who waits for the handle to change. */
#include "clientlib/handle.h"

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
