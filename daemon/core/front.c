/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/front.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/base/list.h"
#include "daemon/core/queues.h"
#include "daemon/core/residency.h"
#include "daemon/core/retry_queue.h"
#include "daemon/core/tenant.h"

int wharf_front_init(struct wharf_front *front, const struct wharf_config *config,
                     struct wharf_loop *loop)
{
    pthread_mutexattr_t attributes;

    memset(front, 0, sizeof(*front));
    front->loop = loop;
    front->config = *config;
    front->loop_wakes_at_ns = WHARF_NEVER;
    front->promise_fd = -1;
    for (uint32_t i = 0; i < WHARF_MAX_GPUS; i++) {
        front->fleet.gpus[i].number = i;
        front->fleet.gpus[i].wake_fd = -1;
        wharf_list_init(&front->fleet.gpus[i].memories);
        wharf_list_init(&front->fleet.gpus[i].models);
    }
    wharf_tenants_init(&front->tenants);
    wharf_list_init(&front->sessions);
    wharf_list_init(&front->watching.watched);
    wharf_list_init(&front->unpublished);
    wharf_list_init(&front->watching.stale);
    wharf_list_init(&front->shares);
    wharf_list_init(&front->leases);
    wharf_list_init(&front->events);
    wharf_list_init(&front->due);
    wharf_residency_init(&front->residency);
    wharf_retry_init(&front->retries);
    wharf_list_init(&front->suspended);
    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        wharf_sched_init(&front->sched[i], (enum wharf_pool)i, config->slice_ns);
    /* Holds are short: waiting awake for a while is cheaper than sleeping. */
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    int r = pthread_mutex_init(&front->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    if (r != 0)
        return -r;
    pthread_cond_init(&front->fleet.gpus_changed, NULL);
    if (getrandom(&front->generation, sizeof(front->generation), 0) != sizeof(front->generation))
        return -EIO;
    return 0;
}

void wharf_front_deinit(struct wharf_front *front)
{
    wharf_tenants_deinit(&front->tenants);
    for (uint32_t i = 0; i < WHARF_MAX_GPUS; i++)
        wharf_close_fd(front->fleet.gpus[i].wake_fd);
    pthread_cond_destroy(&front->fleet.gpus_changed);
    pthread_mutex_destroy(&front->lock);
}
