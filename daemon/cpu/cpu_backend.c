/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_backend.c: the CPU's threads: starting, calling, watching over and ending them. */
#include <errno.h>
#include <stdlib.h>

#include "daemon/base/clock.h"
#include "daemon/base/cpu_set.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "daemon/base/touch.h"
#include "daemon/core/backend.h"
#include "daemon/core/core.h"
#include "daemon/core/session_lease.h"
#include "daemon/cpu/cpu_state.h"
#include "daemon/dispatch/core_lock.h"

static void *call_spare(struct wharf_cpu_backend *backend)
{
    struct wharf_cpu_worker *worker = backend->spare;

    if (!worker)
        return NULL;
    backend->spare = worker->next_sleeper;
    backend->n_spares_at_work++;
    backend->core->workers.n_workers++;
    backend->core->workers.n_awake++;
    return worker;
}

static void *call(struct wharf_backend *base)
{
    struct wharf_cpu_backend *backend = (struct wharf_cpu_backend *)base;
    struct wharf_cpu_worker *worker = backend->sleeper;

    if (!worker)
        return backend->n_spares_at_work < backend->core->workers.n_blocked ? call_spare(backend)
                                                                            : NULL;
    backend->sleeper = worker->next_sleeper;
    backend->core->workers.n_sleeping--;
    backend->core->workers.n_awake++;
    return worker;
}

static void wake(void *called)
{
    struct wharf_cpu_worker *worker = called;

    sem_post(&worker->called);
}

static uint64_t busy_since(const struct wharf_backend *base)
{
    const struct wharf_cpu_backend *backend = (const struct wharf_cpu_backend *)base;
    uint64_t earliest_ns = WHARF_NEVER;

    /* A blocked worker does not count while a spare worker replaces it. */
    bool is_missed = backend->core->workers.n_blocked >= backend->n_threads / 2;

    for (uint32_t i = 0; i < backend->n_threads; i++) {
        const struct wharf_cpu_worker *worker = &backend->workers[i];
        if (worker->busy_since_ns < earliest_ns && (is_missed || !worker->is_blocked))
            earliest_ns = worker->busy_since_ns;
    }
    return earliest_ns;
}

static void stop(struct wharf_backend *base)
{
    struct wharf_cpu_backend *backend = (struct wharf_cpu_backend *)base;
    struct wharf_cpu_worker *sleeper;

    if (!backend)
        return;
    do {
        wharf_core_enter(backend->core);
        backend->stop = true;
        sleeper = call(base);
        if (!sleeper)
            sleeper = call_spare(backend);
        wharf_core_leave(backend->core);
        if (sleeper)
            wake(sleeper);
    } while (sleeper);
    for (uint32_t i = 0; i < backend->n_threads; i++) {
        if (backend->workers[i].is_started)
            pthread_join(backend->workers[i].thread, NULL);
        sem_destroy(&backend->workers[i].called);
    }
    wharf_core_enter(backend->core);
    for (uint32_t i = 0; i < backend->n_threads; i++)
        wharf_lease_forget(&backend->workers[i].lease);
    backend->core->backend = NULL;
    wharf_core_leave(backend->core);
    free(backend);
}

static int start_workers(struct wharf_cpu_backend *backend)
{
    for (uint32_t i = 0; i < backend->n_threads; i++) {
        struct wharf_cpu_worker *worker = &backend->workers[i];
        int r = pthread_create(&worker->thread, NULL, wharf_cpu_worker_run, worker);
        if (r != 0)
            return -r;
        worker->is_started = true;
    }
    return 0;
}

static int start(struct wharf_core *core, const struct wharf_config *config)
{
    cpu_set_t cpus;
    uint32_t n_workers;
    int r = wharf_touch_init();

    if (r == 0)
        r = wharf_cpu_set_choose(config, &cpus, &n_workers);
    if (r == -EINVAL)
        wharf_log(WHARF_LOG_ERROR, NULL, WHARF_CPU_SET_NONE, config->cpus);
    if (r < 0)
        return r;
    struct wharf_cpu_backend *backend =
        calloc(1, sizeof(*backend) + 2 * n_workers * sizeof(backend->workers[0]));
    if (!backend)
        return -ENOMEM;
    backend->base.ops = &wharf_cpu_backend;
    backend->core = core;
    backend->cpus = cpus;
    backend->nice = (int)config->nice;
    backend->n_threads = 2 * n_workers;
    for (uint32_t i = 0; i < backend->n_threads; i++) {
        backend->workers[i].backend = backend;
        backend->workers[i].is_spare = i >= n_workers;
        backend->workers[i].busy_since_ns = WHARF_NEVER;
        sem_init(&backend->workers[i].called, 0, 0);
    }
    wharf_core_enter(core);
    core->workers.n_workers = n_workers;
    core->backend = &backend->base;
    wharf_core_leave(core);
    r = start_workers(backend);
    if (r < 0)
        stop(&backend->base);
    return r;
}

const struct wharf_backend_ops wharf_cpu_backend = {
    .number = WHARF_ENGINE_CPU,
    .start = start,
    .stop = stop,
    .call = call,
    .wake = wake,
    .busy_since = busy_since,
    .watch = wharf_cpu_watch,
};
