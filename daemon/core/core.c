/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/core.h"

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

int wharf_core_init(struct wharf_core *core, const struct wharf_config *config,
                    struct wharf_loop *loop)
{
    pthread_mutexattr_t attributes;

    memset(core, 0, sizeof(*core));
    core->loop = loop;
    core->config = *config;
    core->loop_wakes_at_ns = WHARF_NEVER;
    core->promise_fd = -1;
    for (uint32_t i = 0; i < WHARF_MAX_GPUS; i++) {
        core->fleet.gpus[i].number = i;
        core->fleet.gpus[i].wake_fd = -1;
        wharf_list_init(&core->fleet.gpus[i].memories);
        wharf_list_init(&core->fleet.gpus[i].models);
    }
    wharf_tenants_init(&core->tenants);
    wharf_list_init(&core->sessions);
    wharf_list_init(&core->watching.watched);
    wharf_list_init(&core->unpublished);
    wharf_list_init(&core->watching.stale);
    wharf_list_init(&core->split_decodes);
    wharf_list_init(&core->leases);
    wharf_list_init(&core->events);
    wharf_list_init(&core->due);
    wharf_list_init(&core->starts.young);
    wharf_residency_init(&core->residency);
    wharf_retry_init(&core->retries);
    wharf_list_init(&core->suspended);
    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        wharf_sched_init(&core->sched[i], (enum wharf_pool)i, config->slice_ns);
    /* Holds are short: waiting awake for a while is cheaper than sleeping. */
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    int r = pthread_mutex_init(&core->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    if (r != 0)
        return -r;
    pthread_cond_init(&core->fleet.gpus_changed, NULL);
    if (getrandom(&core->generation, sizeof(core->generation), 0) != sizeof(core->generation))
        return -EIO;
    return 0;
}

void wharf_core_deinit(struct wharf_core *core)
{
    wharf_tenants_deinit(&core->tenants);
    for (uint32_t i = 0; i < WHARF_MAX_GPUS; i++)
        wharf_close_fd(core->fleet.gpus[i].wake_fd);
    pthread_cond_destroy(&core->fleet.gpus_changed);
    pthread_mutex_destroy(&core->lock);
}
