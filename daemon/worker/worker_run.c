/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_run.c: the threads that start kernels.
 *
 * The thread of a queue sleeps until the core wakes it or the queue's state says that work is left.
 * Then it starts a kernel and waits until the kernel has left.
 *
 * INVARIANT of parking: once `wants_park` is set, kernels leave and threads stop; memory may be
 * unmapped when all threads have reported that.
 *
 * Leaving costs time under load, so the thread adapts how long the next kernel stays to the time
 * that leaving took.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/gpu/worker_message.h"
#include "daemon/worker/worker.h"
#include "proto/relax.h"
#include "proto/wharf_job.h"

/* Bounds the cost of a lost wake-up. */
static const struct timespec longest_sleep = {.tv_sec = 1};

/* Sleeps until the core has published more than `tail` or wakes the thread. */
static void sleep_on(const struct wharf_work_queue *queue, uint32_t tail)
{
    syscall(SYS_futex, &queue->core->tail, FUTEX_WAIT, tail, &longest_sleep, NULL, 0);
}

static void wake_threads(const struct wharf_work_queue *queue)
{
    syscall(SYS_futex, &queue->core->tail, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool wants_park(const struct wharf_worker *worker)
{
    return __atomic_load_n(&worker->wants_park, __ATOMIC_ACQUIRE);
}

/* Reports that this thread runs no kernel, and waits until it may continue. */
static void stay_parked(struct wharf_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->n_parked++;
    pthread_cond_broadcast(&worker->changed);
    while (worker->wants_park)
        pthread_cond_wait(&worker->changed, &worker->lock);
    worker->n_parked--;
    pthread_mutex_unlock(&worker->lock);
}

/*
 * At the end of its stay, a kernel takes no more items.  Its warps become idle one by one until the
 * last item is done, and then the next kernel must start; jobs that arrive meanwhile wait.
 *
 * So the next kernel stays TIMES_LEAVING times as long as leaving took.  Of jobs that take no
 * longer than leaving, one in TIMES_LEAVING then meets such a gap (of jobs twice as long, two),
 * which is rare enough not to change their 99th percentile.  The longest stay is MOST_STAYS times
 * the shortest: 80 ms for 500 us.  A GPU that is shared by processes is time-sliced in milliseconds
 * anyway.
 */
#define TIMES_LEAVING 256
#define MOST_STAYS 160

static void choose_stay(struct wharf_worker_kernels *kernels, uint64_t took_ns)
{
    uint64_t least_ns = kernels->least_stay_ns, most_ns = MOST_STAYS * least_ns;
    uint32_t state = __atomic_load_n(&kernels->queue.kernel->state, __ATOMIC_ACQUIRE);
    uint64_t leaving_ns = took_ns > kernels->stay_ns ? took_ns - kernels->stay_ns : 0;
    uint64_t stay_ns = TIMES_LEAVING * leaving_ns;

    if (most_ns > (uint64_t)WHARF_EPOCH_MAX_US * WHARF_NS_PER_US)
        most_ns = (uint64_t)WHARF_EPOCH_MAX_US * WHARF_NS_PER_US;
    /* The kernel left because it was idle or parked. */
    if (WHARF_WORK_STATE_OF(state) != WHARF_WORK_OUT_MORE || leaving_ns == 0)
        stay_ns = least_ns;
    stay_ns = stay_ns < least_ns ? least_ns : stay_ns > most_ns ? most_ns : stay_ns;
    if (least_ns == 0 || stay_ns == kernels->stay_ns)
        return;
    kernels->stay_ns = stay_ns;
    kernels->worker->ops->set_stay(kernels->epoch, (uint32_t)(stay_ns / WHARF_NS_PER_US));
}

/* A kernel of the main queue is about to be there, on the part of the GPU that it may have now. */
static void begin_kernel(struct wharf_worker_kernels *kernels)
{
    struct wharf_worker *worker = kernels->worker;

    if (!worker->ops->set_part || kernels != &worker->main)
        return;
    pthread_mutex_lock(&worker->lock);
    kernels->has_kernel = true;
    kernels->kernel_part = kernels->part;
    pthread_mutex_unlock(&worker->lock);
    worker->ops->set_part(kernels->epoch, kernels->kernel_part);
}

/* It has left.  Whoever had it leave may want nothing more. */
static void end_kernel(struct wharf_worker_kernels *kernels)
{
    struct wharf_worker *worker = kernels->worker;

    if (!worker->ops->set_part || kernels != &worker->main)
        return;
    pthread_mutex_lock(&worker->lock);
    kernels->has_kernel = false;
    wharf_work_park(&kernels->queue, worker->wants_park);
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

static void run_kernel(struct wharf_worker_kernels *kernels)
{
    const struct wharf_worker *worker = kernels->worker;
    uint64_t begun_ns = wharf_now_ns();

    begin_kernel(kernels);
    int r = worker->ops->start(kernels->epoch);
    if (r == 0)
        r = worker->ops->wait(kernels->epoch);
    if (r < 0)
        wharf_worker_fail(WHARF_WORKER_EXIT_FAILED, -r, "running the kernel",
                          worker->ops->error_text());
    end_kernel(kernels);
    if (!worker->is_per_batch)
        choose_stay(kernels, wharf_now_ns() - begun_ns);
}

/* Polls between two reads of the clock; a poll takes about 50 ns. */
#define LOOKS_AT_TAIL 20

/* After a kernel for one batch, polls for more work for as long as a resident kernel would.  Not on
 * the SIMT layer, which needs the processors. */
static bool look_for_more(const struct wharf_worker_kernels *kernels, uint32_t tail)
{
    const struct wharf_worker *worker = kernels->worker;
    uint64_t until_ns = wharf_now_ns() + worker->setup.idle_ns;

    if (!worker->is_per_batch || !kernels->epoch || worker->setup.engine == WHARF_ENGINE_SIMT)
        return false;
    do {
        for (unsigned i = 0; i < LOOKS_AT_TAIL; i++) {
            if (__atomic_load_n(&kernels->queue.core->tail, __ATOMIC_ACQUIRE) != tail)
                return true;
            wharf_relax();
        }
    } while (!wants_park(worker) && wharf_now_ns() < until_ns);
    return false;
}

static const char *name_of(const struct wharf_worker_kernels *kernels)
{
    const struct wharf_worker *worker = kernels->worker;

    return kernels == &worker->main     ? "wharf-kernels"
           : kernels == &worker->large  ? "wharf-large"
           : kernels == &worker->encode ? "wharf-encode"
                                        : "wharf-streams";
}

/* Serves the queue until it seems empty, or the worker parks. */
static void serve(struct wharf_worker_kernels *kernels)
{
    struct wharf_worker *worker = kernels->worker;

    if (kernels == &worker->streams.kernels)
        wharf_worker_serve_streams(&worker->streams);
    else
        run_kernel(kernels);
}

static void *run(void *data)
{
    struct wharf_worker_kernels *kernels = data;
    const struct wharf_work_queue *queue = &kernels->queue;

    pthread_setname_np(pthread_self(), name_of(kernels));
    for (;;) {
        uint32_t tail = __atomic_load_n(&queue->core->tail, __ATOMIC_ACQUIRE);
        if (wants_park(kernels->worker))
            stay_parked(kernels->worker);
        else if (wharf_work_pending(queue) || wharf_work_must_start(queue))
            serve(kernels);
        else if (!look_for_more(kernels, tail))
            sleep_on(queue, tail);
    }
    return NULL;
}

static void start_thread(struct wharf_worker_kernels *kernels)
{
    int r = pthread_create(&kernels->runner, NULL, run, kernels);

    if (r != 0)
        wharf_worker_fail(WHARF_WORKER_EXIT_FAILED, r, "starting a thread", "");
}

/* The queues that have threads. */
static unsigned list_queues(struct wharf_worker *worker, struct wharf_worker_kernels *ret[4])
{
    unsigned n = 0;

    ret[n++] = &worker->main;
    if (worker->large.epoch)
        ret[n++] = &worker->large;
    if (worker->encode.epoch)
        ret[n++] = &worker->encode;
    if (worker->streams.is_open)
        ret[n++] = &worker->streams.kernels;
    return n;
}

void wharf_worker_run(struct wharf_worker *worker)
{
    struct wharf_worker_kernels *queues[4];

    worker->main.least_stay_ns = worker->main.stay_ns = worker->setup.stay_ns;
    worker->encode.least_stay_ns = worker->encode.stay_ns = worker->setup.stay_ns;
    worker->n_threads = list_queues(worker, queues);
    for (unsigned i = 0; i < worker->n_threads; i++)
        start_thread(queues[i]);
}

/* With the lock, under which the word of the main queue says more than this wish. */
static void set_park(struct wharf_worker *worker, bool park)
{
    struct wharf_worker_kernels *queues[4];
    unsigned n = list_queues(worker, queues);

    __atomic_store_n(&worker->wants_park, park, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < n; i++)
        wharf_work_park(&queues[i]->queue, park);
}

void wharf_worker_park(struct wharf_worker *worker)
{
    struct wharf_worker_kernels *queues[4];
    unsigned n = list_queues(worker, queues);

    pthread_mutex_lock(&worker->lock);
    set_park(worker, true);
    while (worker->n_parked < worker->n_threads) {
        /* The thread may have checked already and be about to sleep; then it must be woken
         * again. */
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        for (unsigned i = 0; i < n; i++)
            wake_threads(&queues[i]->queue);
        pthread_cond_timedwait(&worker->changed, &worker->lock, &until);
    }
    pthread_mutex_unlock(&worker->lock);
}

void wharf_worker_go_on(struct wharf_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    set_park(worker, false);
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}
