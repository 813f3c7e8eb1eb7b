/* SPDX-License-Identifier: Apache-2.0 */
/* test_epoch.c: runs an epoch engine with a core and a worker in one process. */
#include "tests/lib/test_epoch.h"
#include "daemon/base/clock.h"
#include "daemon/gpu/worker_message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* On a loaded machine, a thread of a healthy test may be delayed for seconds. */
#define PATIENCE_NS UINT64_C(100000000000)
#define NAP_NS 50000

static void die(const char *what, const char *why)
{
    fprintf(stderr, "test_epoch: %s: %s\n", what, why);
    exit(3);
}

static void must(const struct test_epoch *t, const char *what, int rc)
{
    if (rc < 0) {
        fprintf(stderr, "test_epoch: %s: %s: %s\n", what, strerror(-rc), t->ops->error_text());
        exit(3);
    }
}

static void nap(void)
{
    struct timespec span = {.tv_nsec = NAP_NS};
    nanosleep(&span, NULL);
}

/* ---- the worker ----------------------------------------------------------------------------- */

static void wake(const struct test_epoch *t)
{
    uint64_t one = 1;
    if (write(t->wake_fd, &one, sizeof(one)) != sizeof(one))
        die("eventfd", strerror(errno));
}

static void sleep_until_woken(const struct test_epoch *t)
{
    uint64_t count;
    if (read(t->wake_fd, &count, sizeof(count)) != sizeof(count))
        die("eventfd", strerror(errno));
}

static bool is_parked(const struct test_epoch *t)
{
    return __atomic_load_n(&t->queue.worker->park, __ATOMIC_ACQUIRE) != 0;
}

static void *starter_main(void *argument)
{
    struct test_epoch *t = argument;
    for (;;) {
        if (is_parked(t) || !wharf_work_must_start(&t->queue))
            sleep_until_woken(t);
        if (__atomic_load_n(&t->stopping, __ATOMIC_ACQUIRE))
            return NULL;
        if (is_parked(t))
            continue;
        __atomic_fetch_add(&t->n_started, 1, __ATOMIC_RELEASE);
        must(t, "start", t->ops->start(t->epoch));
        must(t, "wait", t->ops->wait(t->epoch));
        __atomic_fetch_add(&t->n_left, 1, __ATOMIC_RELEASE);
    }
}

/* ---- making it ------------------------------------------------------------------------------ */

static size_t mapping_nbytes(const struct test_epoch *t)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (wharf_work_queue_nbytes(t->config.n_entries) + page - 1) / page * page;
}

void test_epoch_open(struct test_epoch *t, const struct wharf_epoch_ops *ops,
                     const struct wharf_epoch_config *config)
{
    memset(t, 0, sizeof(*t));
    t->ops = ops;
    t->config = *config;
    t->naps = strcmp(ops->name, "simt") == 0;
    t->config.queue =
        mmap(NULL, mapping_nbytes(t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    t->places = calloc(config->n_entries, sizeof(*t->places));
    if (t->config.queue == MAP_FAILED || !t->places)
        die("memory", strerror(ENOMEM));
    t->queue = wharf_work_queue_at(t->config.queue, config->n_entries);
    wharf_work_submitter_init(&t->submitter, t->config.queue, config->n_entries);
    wharf_work_reaper_init(&t->done, t->queue.done, config->n_entries);
    must(t, "open", ops->open(&t->config, &t->epoch));
    t->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (t->wake_fd < 0 || pthread_create(&t->starter, NULL, starter_main, t))
        die("threads", strerror(errno));
}

void test_epoch_close(struct test_epoch *t)
{
    wharf_work_quit(&t->queue);
    __atomic_store_n(&t->stopping, true, __ATOMIC_RELEASE);
    wake(t);
    pthread_join(t->starter, NULL);
    t->ops->close(t->epoch);
    close(t->wake_fd);
    free(t->places);
    munmap(t->config.queue, mapping_nbytes(t));
}

/* ---- the core ------------------------------------------------------------------------------ */

static struct test_epoch_place *place(const struct test_epoch *t, uint32_t index)
{
    return &t->places[index & (t->config.n_entries - 1)];
}

bool test_epoch_has_room(struct test_epoch *t)
{
    uint32_t before = t->submitter.tail;
    while (t->n_under_way < t->config.n_entries && wharf_work_room(&t->submitter) > 0) {
        uint32_t tail = t->submitter.tail;
        const struct test_epoch_place *p = place(t, tail);
        if (!p->busy || !wharf_work_can_pass(&t->submitter, tail, p->index))
            break;
        wharf_work_pass(&t->submitter);
    }
    if (t->submitter.tail != before)
        test_epoch_publish(t);
    return !place(t, t->submitter.tail)->busy && wharf_work_room(&t->submitter) > 0;
}

uint32_t test_epoch_submit(struct test_epoch *t, const struct wharf_work_item *item)
{
    struct test_epoch_place *p = place(t, t->submitter.tail);
    if (p->busy || wharf_work_room(&t->submitter) == 0)
        die("submit", "there is no room");
    p->item = *item;
    t->n_attempts += !(t->n_attempts + 1) + 1;
    p->item.attempt = t->n_attempts;
    p->busy = true;
    t->n_under_way++;
    return p->index = wharf_work_submit(&t->submitter, &p->item);
}

void test_epoch_publish(struct test_epoch *t)
{
    if (wharf_work_publish(&t->submitter)) {
        t->n_wakes++;
        wake(t);
    }
}

bool test_epoch_cancel(struct test_epoch *t, uint32_t index)
{
    int r = wharf_work_withdraw(&t->submitter, index, place(t, index)->item.attempt);
    test_epoch_publish(t);
    return r;
}

bool test_epoch_reap(struct test_epoch *t, struct wharf_work_completion *ret_completion)
{
    if (!wharf_work_reap(&t->done, ret_completion))
        return false;
    struct test_epoch_place *p = place(t, ret_completion->item);
    if (!p->busy || !wharf_work_completion_good(ret_completion, &p->item, p->index))
        die("reap", "a completion of no item under way");
    p->busy = false;
    t->n_under_way--;
    return true;
}

struct wharf_work_completion test_epoch_await(struct test_epoch *t)
{
    struct wharf_work_completion completion;
    uint64_t until = wharf_now_ns() + PATIENCE_NS;
    while (!test_epoch_reap(t, &completion)) {
        if (wharf_now_ns() > until)
            die("await", "no completion in a hundred seconds");
        if (t->naps)
            nap();
    }
    return completion;
}

struct wharf_work_completion test_epoch_run(struct test_epoch *t,
                                            const struct wharf_work_item *item)
{
    test_epoch_submit(t, item);
    test_epoch_publish(t);
    return test_epoch_await(t);
}

static uint32_t state_of(const struct test_epoch *t)
{
    return WHARF_WORK_STATE_OF(__atomic_load_n(&t->queue.kernel->state, __ATOMIC_ACQUIRE));
}

static bool is_out(const struct test_epoch *t)
{
    uint32_t state = state_of(t);
    return state != WHARF_WORK_RUNNING && state != WHARF_WORK_LEAVING &&
           __atomic_load_n(&t->n_left, __ATOMIC_ACQUIRE) ==
               __atomic_load_n(&t->n_started, __ATOMIC_ACQUIRE);
}

void test_epoch_park(struct test_epoch *t)
{
    uint64_t until = wharf_now_ns() + PATIENCE_NS;
    wharf_work_park(&t->queue, 1);
    while (!is_out(t)) {
        if (wharf_now_ns() > until)
            die("park", "the kernel did not leave in a hundred seconds");
        nap();
    }
}

void test_epoch_unpark(struct test_epoch *t)
{
    wharf_work_park(&t->queue, 0);
    wake(t);
}

bool test_epoch_await_state(const struct test_epoch *t, uint32_t state)
{
    uint64_t until = wharf_now_ns() + PATIENCE_NS;
    while (state_of(t) != state) {
        if (wharf_now_ns() > until)
            return false;
        nap();
    }
    return true;
}
