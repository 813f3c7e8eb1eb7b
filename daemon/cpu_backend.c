/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_backend.c: threads that watch the rings and decode what they find there.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "daemon/backend.h"
#include "daemon/cleanup.h"
#include "daemon/clock.h"
#include "daemon/cpu_run.h"
#include "daemon/cpu_set.h"
#include "daemon/front.h"
#include "daemon/log.h"
#include "proto/wharf_job.h"

struct worker {
    struct cpu_backend *backend;
    pthread_t thread;
    bool is_started;
    sem_t called;
    struct worker *next_sleeper; /* front lock, as all below */
    uint64_t busy_since_ns;
};

struct cpu_backend {
    struct wharf_backend base;
    struct wharf_front *front;
    cpu_set_t cpus;
    int nice;
    bool stop;              /* front lock */
    struct worker *sleeper; /* the one that went to sleep last, whose caches are warmest */
    uint32_t n_workers;
    struct worker workers[];
};

/* ---- a worker ------------------------------------------------------------------------------ */

/* Between two looks at the rings: lets the other threads of the processor's core, and those that
 * wait for the front lock, go ahead. */
static void pause_briefly(void)
{
    for (unsigned i = 0; i < 8; i++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("isb");
#endif
    }
}

/* While all other workers are busy with long pieces, this one stays free for short ones. */
static uint64_t most_ns(const struct wharf_front *front)
{
    if (front->n_workers > 1 && front->n_long + 1 == front->n_workers)
        return front->config.long_ns;
    return WHARF_NEVER;
}

/* Runs a piece without the lock, and hands it back. */
static void run(struct worker *worker, struct wharf_cpu_buffer *buffer, struct wharf_piece *piece)
{
    struct wharf_front *front = worker->backend->front;
    bool is_long = piece->estimate_ns > front->config.long_ns;
    uint32_t *n = is_long ? &front->n_long : &front->n_short;

    front->n_awake--;
    ++*n;
    worker->busy_since_ns = wharf_now_ns();
    wharf_front_leave(front);
    if (piece->kind == WHARF_PIECE_OPEN)
        wharf_batch_open(front, piece);
    else
        wharf_cpu_run(buffer, piece);
    wharf_front_enter(front);
    worker->busy_since_ns = WHARF_NEVER;
    --*n;
    front->n_awake++;
    if (is_long)
        front->nothing_fits = false;
    wharf_front_done(front, piece);
}

/* Until it is called.  Whoever calls it counts it as awake. */
static void sleep_until_called(struct worker *worker)
{
    struct cpu_backend *backend = worker->backend;
    struct wharf_front *front = backend->front;

    front->n_awake--;
    front->n_sleeping++;
    worker->next_sleeper = backend->sleeper;
    backend->sleeper = worker;
    wharf_front_leave(front);
    while (sem_wait(&worker->called) < 0)
        ;
    wharf_front_enter(front);
}

static void *work(void *data)
{
    struct worker *worker = data;
    struct cpu_backend *backend = worker->backend;
    struct wharf_front *front = backend->front;
    struct wharf_cpu_buffer buffer = {NULL, 0};
    struct wharf_piece piece;

    if (sched_setaffinity(0, sizeof(backend->cpus), &backend->cpus) < 0)
        wharf_log(WHARF_LOG_WARNING, &(struct wharf_log_fields){.error = errno},
                  "cannot bind a worker to its processors");
    if (backend->nice && setpriority(PRIO_PROCESS, 0, backend->nice) < 0)
        wharf_log(WHARF_LOG_WARNING, &(struct wharf_log_fields){.error = errno},
                  "cannot set the workers' nice value");
    wharf_front_enter(front);
    front->n_awake++;
    for (;;) {
        wharf_front_look(front);
        if (backend->stop)
            break;
        if (wharf_front_next(front, most_ns(front), &piece)) {
            run(worker, &buffer, &piece);
        } else if (wharf_front_watches(front) && front->n_awake == 1) {
            wharf_front_leave(front);
            pause_briefly();
            wharf_front_enter(front);
        } else {
            sleep_until_called(worker);
        }
    }
    front->n_awake--;
    wharf_front_leave(front);
    wharf_cpu_buffer_deinit(&buffer);
    return NULL;
}

/* ---- the backend --------------------------------------------------------------------------- */

static void *call(struct wharf_backend *base)
{
    struct cpu_backend *backend = (struct cpu_backend *)base;
    struct worker *worker = backend->sleeper;

    if (!worker)
        return NULL;
    backend->sleeper = worker->next_sleeper;
    backend->front->n_sleeping--;
    backend->front->n_awake++;
    return worker;
}

static void wake(void *called)
{
    struct worker *worker = called;

    sem_post(&worker->called);
}

static uint64_t busy_since(const struct wharf_backend *base)
{
    const struct cpu_backend *backend = (const struct cpu_backend *)base;
    uint64_t earliest_ns = WHARF_NEVER;

    for (uint32_t i = 0; i < backend->n_workers; i++)
        if (backend->workers[i].busy_since_ns < earliest_ns)
            earliest_ns = backend->workers[i].busy_since_ns;
    return earliest_ns;
}

static void stop(struct wharf_backend *base)
{
    struct cpu_backend *backend = (struct cpu_backend *)base;
    struct worker *sleeper;

    if (!backend)
        return;
    do {
        wharf_front_enter(backend->front);
        backend->stop = true;
        sleeper = call(base);
        wharf_front_leave(backend->front);
        if (sleeper)
            wake(sleeper);
    } while (sleeper);
    for (uint32_t i = 0; i < backend->n_workers; i++) {
        if (backend->workers[i].is_started)
            pthread_join(backend->workers[i].thread, NULL);
        sem_destroy(&backend->workers[i].called);
    }
    backend->front->backend = NULL;
    free(backend);
}

static int start_workers(struct cpu_backend *backend)
{
    for (uint32_t i = 0; i < backend->n_workers; i++) {
        struct worker *worker = &backend->workers[i];
        char name[16];
        int r = pthread_create(&worker->thread, NULL, work, worker);
        if (r != 0)
            return -r;
        worker->is_started = true;
        snprintf(name, sizeof(name), "wharf-cpu-%u", (unsigned)i % 1000);
        pthread_setname_np(worker->thread, name);
    }
    return 0;
}

static int start(struct wharf_front *front, const struct wharf_config *config)
{
    cpu_set_t cpus;
    uint32_t n_workers;
    int r = wharf_cpu_set_choose(config, &cpus, &n_workers);

    if (r < 0)
        return r;
    struct cpu_backend *backend =
        calloc(1, sizeof(*backend) + n_workers * sizeof(backend->workers[0]));
    if (!backend)
        return -ENOMEM;
    backend->base.ops = &wharf_cpu_backend;
    backend->front = front;
    backend->cpus = cpus;
    backend->nice = (int)config->nice;
    backend->n_workers = n_workers;
    for (uint32_t i = 0; i < n_workers; i++) {
        backend->workers[i].backend = backend;
        backend->workers[i].busy_since_ns = WHARF_NEVER;
        sem_init(&backend->workers[i].called, 0, 0);
    }
    wharf_front_enter(front);
    front->n_workers = n_workers;
    front->backend = &backend->base;
    wharf_front_leave(front);
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
};
