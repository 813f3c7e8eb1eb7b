/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_backend.c: the thread that owns all that has to do with the GPU's worker. */
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include "daemon/cleanup.h"
#include "daemon/clock.h"
#include "daemon/front.h"
#include "daemon/gpu_state.h"
#include "daemon/log.h"
#include "proto/relax.h"
#include "proto/wharf_job.h"

/* How often the worker's socket and pidfd are looked at while there is work: so long after its end
 * at most, jobs are taken over. */
#define TEND_NS WHARF_NS_PER_MS
/* Between two looks at the completions of a worker that plays the GPU on the CPU, which needs the
 * processors more than we do. */
#define SIMT_PAUSE_NS (100 * (long)WHARF_NS_PER_US)
/* Looks at the completions between two looks at the rings, some 50 ns each. */
#define LOOKS_BETWEEN 20
#define FIRST_BACKOFF_NS (20 * (uint64_t)WHARF_NS_PER_MS)

/* ---- the thread ---------------------------------------------------------------------------- */

/* Sleeps until it is called, the worker says or does something, or it is time. */
static void sleep_until(struct wharf_gpu_backend *backend, uint64_t now_ns, uint64_t until_ns)
{
    struct pollfd fds[3] = {
        {.fd = backend->front->gpu_wake_fd, .events = POLLIN},
        {.fd = backend->link.socket, .events = POLLIN},
        {.fd = backend->link.pidfd, .events = POLLIN},
    };
    uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    struct timespec timeout = {
        .tv_sec = (time_t)(left_ns / WHARF_NS_PER_S),
        .tv_nsec = (long)(left_ns % WHARF_NS_PER_S),
    };
    uint64_t n;

    if (ppoll(fds, 3, until_ns == WHARF_NEVER ? NULL : &timeout, NULL) > 0 && fds[0].revents &&
        eventfd_read(fds[0].fd, &n) < 0)
        n = 0;
}

/* Some time to the worker. */
static void wait_for_work(const struct wharf_gpu_backend *backend)
{
    if (backend->engine == WHARF_ENGINE_SIMT) {
        struct timespec pause = {.tv_nsec = SIMT_PAUSE_NS};
        nanosleep(&pause, NULL);
        return;
    }
    for (unsigned i = 0; i < LOOKS_BETWEEN; i++) {
        if (wharf_work_ready(&backend->done) || wharf_work_ready(&backend->moved))
            return;
        wharf_relax();
    }
}

static bool is_idle(const struct wharf_gpu_backend *backend)
{
    return wharf_list_is_empty(&backend->under_way) && wharf_list_is_empty(&backend->finished) &&
           backend->front->n_orphans == 0;
}

/* For as long as the kernel stays without work so does the thread: the next job then costs neither
 * a wake-up nor a launch.  What plays the GPU on the CPU needs the processors more. */
static bool lingers(const struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    return backend->state == WHARF_GPU_UP && backend->engine != WHARF_ENGINE_SIMT &&
           now_ns - backend->active_ns < backend->front->config.gpu_idle_ns;
}

/* All that needs the front lock.  Returns whether the thread can sleep then. */
static bool serve_front(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_front *front = backend->front;

    wharf_front_enter_first(front);
    backend->is_asleep = false;
    backend->busy_since_ns = now_ns;
    front->gpu_view.is_wanted = false;
    if (front->gpu_view.looks)
        wharf_front_look(front);
    wharf_gpu_items_exchange(backend, now_ns);
    backend->has_dead |= front->gpu_view.has_dead;
    front->gpu_view.has_dead = false;
    bool can_sleep = backend->state != WHARF_GPU_PROVING && is_idle(backend) &&
                     wharf_list_is_empty(&backend->again) && !wharf_place_wants_gpu(front) &&
                     !lingers(backend, now_ns);
    backend->is_over = backend->stop && is_idle(backend);
    front->gpu_view.looks =
        !can_sleep && backend->state == WHARF_GPU_UP && backend->engine != WHARF_ENGINE_SIMT;
    if (can_sleep) {
        backend->is_asleep = true;
        backend->busy_since_ns = WHARF_NEVER;
    }
    wharf_front_leave(front);
    return can_sleep;
}

/* The worker and clients' memory.  Returns when they are due again. */
static uint64_t tend(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    uint64_t next_ns = wharf_gpu_worker_tend(backend, now_ns);

    if (backend->has_dead) {
        backend->has_dead = false;
        wharf_gpu_pins_bury(backend);
    }
    if (backend->state == WHARF_GPU_UP) {
        while (wharf_gpu_spares_refill(backend->front))
            ;
        uint64_t pins_ns = wharf_gpu_pins_tend(backend, now_ns);
        if (wharf_gpu_items_hang(backend, now_ns))
            wharf_gpu_worker_kill(backend, "a job takes far too long");
        if (pins_ns < next_ns)
            next_ns = pins_ns;
    }
    return next_ns;
}

/* One turn. */
static void serve(struct wharf_gpu_backend *backend, uint64_t *tend_at_ns)
{
    uint64_t now_ns = wharf_now_ns();

    if (backend->state == WHARF_GPU_UP)
        wharf_gpu_items_reap(backend, now_ns);
    bool can_sleep = serve_front(backend, now_ns);
    wharf_gpu_items_publish(backend);
    if (backend->is_over)
        return;
    if (can_sleep || now_ns >= *tend_at_ns) {
        uint64_t next_ns = tend(backend, now_ns);
        /* It may have got ready just now: then it has samples. */
        if (backend->state == WHARF_GPU_PROVING)
            next_ns = 0;
        else if (can_sleep)
            sleep_until(backend, now_ns, next_ns);
        *tend_at_ns = can_sleep || next_ns == 0 ? 0 : now_ns + TEND_NS;
    } else if (backend->state == WHARF_GPU_PROVING) {
        wait_for_work(backend);
    } else if (backend->state == WHARF_GPU_DYING && wharf_gpu_rescue_step(backend)) {
        return;
    } else if (backend->state != WHARF_GPU_UP) {
        sleep_until(backend, now_ns, *tend_at_ns);
    } else if (wharf_list_is_empty(&backend->finished)) {
        wait_for_work(backend);
    }
}

static void *work(void *data)
{
    struct wharf_gpu_backend *backend = data;
    uint64_t tend_at_ns = 0;

    while (!backend->is_over)
        serve(backend, &tend_at_ns);
    wharf_gpu_worker_stop(backend);
    return NULL;
}

/* ---- the backend --------------------------------------------------------------------------- */

static void *call(struct wharf_backend *base)
{
    struct wharf_gpu_backend *backend = (struct wharf_gpu_backend *)base;

    if (!backend->is_asleep)
        return NULL;
    backend->is_asleep = false;
    return &backend->front->gpu_wake_fd;
}

static void wake(void *called)
{
    /* The front's, which is there longer than the backend: the lock is not held. */
    eventfd_write(*(const int *)called, 1);
}

static uint64_t busy_since(const struct wharf_backend *base)
{
    return ((const struct wharf_gpu_backend *)base)->busy_since_ns;
}

static void stop(struct wharf_backend *base)
{
    struct wharf_gpu_backend *backend = (struct wharf_gpu_backend *)base;

    if (!backend)
        return;
    wharf_front_enter(backend->front);
    backend->stop = true;
    wharf_front_leave(backend->front);
    if (backend->is_started) {
        wake(&backend->front->gpu_wake_fd);
        pthread_join(backend->thread, NULL);
    }
    wharf_front_enter(backend->front);
    backend->front->gpu = NULL;
    backend->front->gpu_view = (struct wharf_gpu_view){.engine = WHARF_ENGINE_AUTO};
    wharf_front_leave(backend->front);
    wharf_gpu_pins_lost(backend);
    wharf_gpu_spares_deinit(backend->front);
    wharf_gpu_items_deinit(backend);
    pthread_cond_destroy(&backend->changed);
    free(backend);
}

/* The worker that the configuration names, or the one that was installed with this program, or the
 * one that was built with it. */
static int find_program(struct wharf_gpu_backend *backend, const struct wharf_config *config)
{
    char own[PATH_MAX - 64];

    if (config->gpu_worker[0]) {
        snprintf(backend->program, sizeof(backend->program), "%s", config->gpu_worker);
        return access(backend->program, X_OK) < 0 ? -errno : 0;
    }
    ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
    if (n < 0)
        return -errno;
    own[n] = 0;
    *strrchr(own, '/') = 0;
    const char *name = backend->engine == WHARF_ENGINE_SIMT ? "wharfd-simt" : "wharfd-gpu";
    snprintf(backend->program, sizeof(backend->program), "%s/../libexec/wharf/%s", own, name);
    if (access(backend->program, X_OK) == 0)
        return 0;
    snprintf(backend->program, sizeof(backend->program), "%s/%s", own, name);
    return access(backend->program, X_OK) < 0 ? -errno : 0;
}

static int start_thread(struct wharf_gpu_backend *backend)
{
    int r = pthread_create(&backend->thread, NULL, work, backend);

    if (r != 0)
        return -r;
    backend->is_started = true;
    pthread_setname_np(backend->thread, "wharf-gpu");
    return 0;
}

/* An engine that was asked for by name has to be there before anybody is served. */
static int wait_until_up(struct wharf_gpu_backend *backend)
{
    struct wharf_front *front = backend->front;

    wharf_front_enter(front);
    while (!front->gpu_view.is_up && backend->n_ended == 0)
        pthread_cond_wait(&backend->changed, &front->lock);
    int r = front->gpu_view.is_up ? 0 : -ENODEV;
    wharf_front_leave(front);
    return r;
}

static struct wharf_gpu_backend *backend_new(struct wharf_front *front,
                                             const struct wharf_config *config)
{
    struct wharf_gpu_backend *backend = calloc(1, sizeof(*backend));

    if (!backend)
        return NULL;
    backend->base.ops = &wharf_gpu_backend;
    backend->front = front;
    backend->link = WHARF_WORKER_LINK_NONE;
    backend->config = *config;
    backend->engine = config->gpu_engine == WHARF_GPU_SIMT ? WHARF_ENGINE_SIMT : WHARF_ENGINE_GPU;
    backend->backoff_ns = FIRST_BACKOFF_NS;
    backend->busy_since_ns = WHARF_NEVER;
    pthread_cond_init(&backend->changed, NULL);
    return backend;
}

/* Drivers make these; where there are none nobody need be asked. */
static bool has_device_node(void)
{
    return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

static int start(struct wharf_front *front, const struct wharf_config *config)
{
    bool is_asked_for = config->gpu_engine != WHARF_GPU_AUTO;

    if (config->gpu_engine == WHARF_GPU_NONE || (!is_asked_for && !has_device_node()))
        return 0;
    struct wharf_gpu_backend *backend = backend_new(front, config);
    if (!backend)
        return -ENOMEM;
    int r = wharf_gpu_items_init(backend);
    if (r == 0)
        r = find_program(backend, config);
    if (r < 0)
        wharf_log(is_asked_for ? WHARF_LOG_ERROR : WHARF_LOG_INFO,
                  &(struct wharf_log_fields){.error = -r}, "there is no GPU worker %s",
                  backend->program);
    wharf_front_enter(front);
    front->gpu = &backend->base;
    front->gpu_view.may_import = true;
    wharf_front_leave(front);
    if (r == 0)
        r = start_thread(backend);
    if (r == 0 && is_asked_for)
        r = wait_until_up(backend);
    if (r < 0)
        stop(&backend->base);
    return is_asked_for ? r : 0;
}

const struct wharf_backend_ops wharf_gpu_backend = {
    .number = WHARF_ENGINE_GPU,
    .start = start,
    .stop = stop,
    .call = call,
    .wake = wake,
    .busy_since = busy_since,
};
