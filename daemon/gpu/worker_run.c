/* SPDX-License-Identifier: Apache-2.0 */
/* worker_run.c: the thread that starts kernels and waits for them. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/gpu/worker.h"

/* A wake-up that went astray costs at most this. */
static const struct timespec longest_sleep = {.tv_sec = 1};

/* Until the front has published more than `tail`, or says that there is something. */
static void sleep_on(const struct wharf_work_queue *queue, uint32_t tail)
{
    syscall(SYS_futex, &queue->front->tail, FUTEX_WAIT, tail, &longest_sleep, NULL, 0);
}

static void wake_runner(const struct wharf_work_queue *queue)
{
    syscall(SYS_futex, &queue->front->tail, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static bool wants_park(struct wharf_worker *worker)
{
    return __atomic_load_n(&worker->wants_park, __ATOMIC_ACQUIRE);
}

/* No kernel is there: says so, and waits until one may be again. */
static void stay_parked(struct wharf_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->is_parked = true;
    pthread_cond_broadcast(&worker->changed);
    while (worker->wants_park)
        pthread_cond_wait(&worker->changed, &worker->lock);
    worker->is_parked = false;
    pthread_mutex_unlock(&worker->lock);
}

static void run_kernel(struct wharf_worker *worker)
{
    int r = worker->ops->start(worker->epoch);

    if (r == 0)
        r = worker->ops->wait(worker->epoch);
    if (r < 0)
        wharf_worker_fail(WHARF_WORKER_EXIT_FAILED, -r, "running the kernel",
                          worker->ops->error_text());
}

static void *run(void *data)
{
    struct wharf_worker *worker = data;
    const struct wharf_work_queue *queue = &worker->queue;

    for (;;) {
        uint32_t tail = __atomic_load_n(&queue->front->tail, __ATOMIC_ACQUIRE);
        if (wants_park(worker))
            stay_parked(worker);
        else if (wharf_work_pending(queue) || wharf_work_must_start(queue))
            run_kernel(worker);
        else
            sleep_on(queue, tail);
    }
    return NULL;
}

void wharf_worker_run(struct wharf_worker *worker)
{
    int r = pthread_create(&worker->runner, NULL, run, worker);

    if (r != 0)
        wharf_worker_fail(WHARF_WORKER_EXIT_FAILED, r, "starting a thread", "");
    pthread_setname_np(worker->runner, "wharf-kernels");
}

void wharf_worker_park(struct wharf_worker *worker)
{
    wharf_work_park(&worker->queue, 1);
    pthread_mutex_lock(&worker->lock);
    __atomic_store_n(&worker->wants_park, true, __ATOMIC_RELEASE);
    while (!worker->is_parked) {
        /* It may be about to sleep, having looked before: then it has to be woken again. */
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        wake_runner(&worker->queue);
        pthread_cond_timedwait(&worker->changed, &worker->lock, &until);
    }
    pthread_mutex_unlock(&worker->lock);
}

void wharf_worker_go_on(struct wharf_worker *worker)
{
    wharf_work_park(&worker->queue, 0);
    pthread_mutex_lock(&worker->lock);
    __atomic_store_n(&worker->wants_park, false, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}
