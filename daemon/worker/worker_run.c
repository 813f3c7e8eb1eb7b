/* SPDX-License-Identifier: Apache-2.0 */
/* worker_run.c: the thread that starts kernels and waits for them, and the one that copies. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/gpu/worker_message.h"
#include "daemon/worker/worker.h"
#include "proto/relax.h"
#include "proto/wharf_job.h"

/* A wake-up that went astray costs at most this. */
static const struct timespec longest_sleep = {.tv_sec = 1};

/* Until the core has published more than `tail`, or says that there is something. */
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

/* No kernel is there, or no copy under way: says so, and waits until one may be again. */
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
 * A kernel that leaves since it has stayed for long enough takes nothing more, and its warps become
 * idle one by one until the last item is done; then the next one has to be started.  Whoever has a
 * job under way then waits for as long as that takes, beside what his job does.  So the next kernel
 * stays for so many times as long: of jobs that take no longer than leaving does, one in so many
 * meets it, or of those that take twice as long two, which is no part of their 99th percentile.
 * The most is so many times the shortest stay, 80 ms of 500 us.  A GPU that others use as well is
 * shared all the time by its own slices of some milliseconds.
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
    /* It left for want of work, or for us. */
    if (WHARF_WORK_STATE_OF(state) != WHARF_WORK_OUT_MORE || leaving_ns == 0)
        stay_ns = least_ns;
    stay_ns = stay_ns < least_ns ? least_ns : stay_ns > most_ns ? most_ns : stay_ns;
    if (least_ns == 0 || stay_ns == kernels->stay_ns)
        return;
    kernels->stay_ns = stay_ns;
    kernels->worker->ops->set_stay(kernels->epoch, (uint32_t)(stay_ns / WHARF_NS_PER_US));
}

static void run_kernel(struct wharf_worker_kernels *kernels)
{
    const struct wharf_worker *worker = kernels->worker;
    uint64_t begun_ns = wharf_now_ns();

    __atomic_store_n(&kernels->has_one, true, __ATOMIC_SEQ_CST);
    int r = worker->ops->start(kernels->epoch);
    if (r == 0)
        r = worker->ops->wait(kernels->epoch);
    __atomic_store_n(&kernels->has_one, false, __ATOMIC_SEQ_CST);
    if (r < 0)
        wharf_worker_fail(WHARF_WORKER_EXIT_FAILED, -r, "running the kernel",
                          worker->ops->error_text());
    if (!worker->is_per_batch)
        choose_stay(kernels, wharf_now_ns() - begun_ns);
}

/* Between two looks at the clock, at some 50 ns each. */
#define LOOKS_AT_TAIL 20

/* A kernel that stays looks for more by itself.  In the place of one that has ended with its batch
 * this thread does, for as long; but on the SIMT layer, which needs the processors more. */
static bool look_for_more(const struct wharf_worker_kernels *kernels, uint32_t tail)
{
    const struct wharf_worker *worker = kernels->worker;
    uint64_t until_ns = wharf_now_ns() + worker->setup.idle_ns;

    if (!worker->is_per_batch || worker->setup.engine == WHARF_ENGINE_SIMT)
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

static void *run(void *data)
{
    struct wharf_worker_kernels *kernels = data;
    const struct wharf_work_queue *queue = &kernels->queue;

    for (;;) {
        uint32_t tail = __atomic_load_n(&queue->core->tail, __ATOMIC_ACQUIRE);
        if (wants_park(kernels->worker))
            stay_parked(kernels->worker);
        else if (wharf_work_pending(queue) || wharf_work_must_start(queue))
            run_kernel(kernels);
        else if (!look_for_more(kernels, tail))
            sleep_on(queue, tail);
    }
    return NULL;
}

/* Between two looks at outputs that wait and copies that are under way. */
static const struct timespec short_sleep = {.tv_nsec = 10000};
/* Looks when nothing is there any more, one a short sleep: of a kernel that says that it has left,
 * the last warps tell of their outputs some microseconds later. */
#define LOOKS_AT_LAST 100

/* Outputs come while a kernel is there; some time after it has left, none come until the next one.
 */
static void *copy(void *data)
{
    struct wharf_worker *worker = data;
    const struct wharf_work_queue *queue = &worker->main.queue;
    unsigned n_looks = 0;

    /* Sleeps as short as that are otherwise rounded up to 50 us. */
    prctl(PR_SET_TIMERSLACK, 1000);
    for (;;) {
        uint32_t tail = __atomic_load_n(&queue->core->tail, __ATOMIC_ACQUIRE);
        /* In this order: what a kernel has taken it took after it had begun, and when it is not
         * there any more, what it left to be copied is.  Its state says that it has left before the
         * last of its warps has told of its output. */
        bool is_pending = wharf_work_pending(queue) != 0;
        bool may_come = __atomic_load_n(&worker->main.has_one, __ATOMIC_SEQ_CST);
        int busy = wharf_work_mover_step(worker->mover, NULL);
        if (busy < 0)
            wharf_worker_fail(WHARF_WORKER_EXIT_FAILED, -busy, "copying outputs",
                              worker->ops->error_text());
        /* What no kernel has taken the next one will take, which is perhaps not there yet, and of
         * whose beginning nobody tells. */
        if (busy || may_come || (is_pending && !wants_park(worker)))
            n_looks = 0;
        else
            n_looks++;
        if (n_looks < LOOKS_AT_LAST)
            nanosleep(&short_sleep, NULL);
        else if (wants_park(worker))
            stay_parked(worker);
        else
            sleep_on(queue, tail);
    }
    return NULL;
}

static void start_thread(pthread_t *thread, void *(*work)(void *), void *data, const char *name)
{
    int r = pthread_create(thread, NULL, work, data);

    if (r != 0)
        wharf_worker_fail(WHARF_WORKER_EXIT_FAILED, r, "starting a thread", "");
    pthread_setname_np(*thread, name);
}

void wharf_worker_run(struct wharf_worker *worker)
{
    worker->main.least_stay_ns = worker->main.stay_ns = worker->setup.stay_ns;
    worker->n_threads = 1 + (worker->large.epoch != NULL) + (worker->mover != NULL);
    start_thread(&worker->main.runner, run, &worker->main, "wharf-kernels");
    if (worker->large.epoch)
        start_thread(&worker->large.runner, run, &worker->large, "wharf-large");
    if (worker->mover)
        start_thread(&worker->copier, copy, worker, "wharf-copies");
}

static void set_park(const struct wharf_worker *worker, int park)
{
    wharf_work_park(&worker->main.queue, park);
    if (worker->large.epoch)
        wharf_work_park(&worker->large.queue, park);
}

void wharf_worker_park(struct wharf_worker *worker)
{
    set_park(worker, 1);
    pthread_mutex_lock(&worker->lock);
    __atomic_store_n(&worker->wants_park, true, __ATOMIC_RELEASE);
    while (worker->n_parked < worker->n_threads) {
        /* One may be about to sleep, having looked before: then it has to be woken again. */
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        wake_threads(&worker->main.queue);
        if (worker->large.epoch)
            wake_threads(&worker->large.queue);
        pthread_cond_timedwait(&worker->changed, &worker->lock, &until);
    }
    pthread_mutex_unlock(&worker->lock);
}

void wharf_worker_go_on(struct wharf_worker *worker)
{
    set_park(worker, 0);
    pthread_mutex_lock(&worker->lock);
    __atomic_store_n(&worker->wants_park, false, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}
