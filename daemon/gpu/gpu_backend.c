/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_backend.c: the thread wharf-gpu-N, which runs everything for one GPU's worker.
 *
 * A turn takes completions, hands their pieces back to the core, feeds new items, and polls the
 * clients' rings.  Every TEND_NS it also handles the worker's messages, time limits and end.  The
 * thread polls while the worker has items and for `idle` after that; then it sleeps in ppoll.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/core/core.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/intake.h"
#include "daemon/dispatch/starts.h"
#include "daemon/gpu/gpu_arena_maker.h"
#include "daemon/gpu/gpu_files.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/gpu/worker_link.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/place.h"
#include "proto/relax.h"
#include "proto/wharf_job.h"

/* How often to poll the worker's socket and pidfd while there is work.  It bounds the delay until
 * the jobs of a dead worker are recovered. */
#define TEND_NS WHARF_NS_PER_MS
/* The pause between two polls of a simulated GPU's completions: its worker needs the processors
 * more than this thread does. */
#define SIMT_PAUSE_NS (100 * (long)WHARF_NS_PER_US)
/* Polls of the completions, about 50 ns each, between two polls of the rings. */
#define LOOKS_BETWEEN 20
#define FIRST_BACKOFF_NS (20 * (uint64_t)WHARF_NS_PER_MS)

/* ---- the thread ---------------------------------------------------------------------------- */

/* Sleeps until the thread is woken, the worker sends something or ends, or the time comes. */
static void sleep_until(struct wharf_gpu_backend *backend, uint64_t now_ns, uint64_t until_ns)
{
    struct pollfd fds[3] = {
        {.fd = backend->view->wake_fd, .events = POLLIN},
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

/* Gives the worker some time. */
static void wait_for_work(const struct wharf_gpu_backend *backend)
{
    if (backend->engine == WHARF_ENGINE_SIMT) {
        struct timespec pause = {.tv_nsec = SIMT_PAUSE_NS};
        nanosleep(&pause, NULL);
        return;
    }
    for (unsigned i = 0; i < LOOKS_BETWEEN; i++) {
        if (wharf_work_ready(&backend->done) || wharf_work_ready(&backend->large.warps.done) ||
            wharf_work_ready(&backend->large.streams.done) ||
            wharf_work_ready(&backend->encode.done))
            return;
        wharf_relax();
    }
}

static bool is_idle(const struct wharf_gpu_backend *backend)
{
    return wharf_list_is_empty(&backend->under_way) && wharf_list_is_empty(&backend->finished) &&
           backend->large.n_taken == 0 && backend->encode.n_taken == 0;
}

/* Whether to poll on without work.  The thread does so for as long as the idle kernel stays on the
 * GPU, so that the next job costs neither a wake-up nor a launch, and for start words of new jobs.
 * With a simulated GPU it does not, since its worker needs the processors. */
static bool lingers(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    const struct wharf_core *core = backend->core;

    if (backend->state != WHARF_GPU_UP || backend->engine == WHARF_ENGINE_SIMT)
        return false;
    if (now_ns - backend->flight.active_ns < core->config.gpu_idle_ns)
        return true;
    backend->is_up_for_words = wharf_starts_are_young(core, now_ns);
    return backend->is_up_for_words;
}

/* Does all that needs the core lock.  Returns whether the thread can sleep afterwards. */
static bool serve_front(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_core *core = backend->core;
    const uint32_t own_bit = 1u << backend->gpu;

    wharf_core_enter_first(core);
    core->fleet.gpus_asleep &= ~own_bit;
    if (core->fleet.gpus_wanted & own_bit)
        backend->told.pass.is_stale = true;
    core->fleet.gpus_wanted &= ~own_bit;
    backend->view->busy_since_ns = now_ns;
    if (backend->is_up_for_words)
        wharf_starts_spun(core, now_ns - backend->served_ns);
    backend->is_up_for_words = false;
    backend->served_ns = now_ns;
    if (core->fleet.gpus_looking & own_bit)
        wharf_core_poll_rings(core);
    wharf_gpu_items_pump(backend, now_ns);
    backend->told.has_unheld = backend->gpu == 0 && !wharf_list_is_empty(&core->residency.unheld);
    bool can_sleep = backend->state != WHARF_GPU_PROVING && !backend->stop && is_idle(backend) &&
                     wharf_list_is_empty(&backend->again) &&
                     wharf_list_is_empty(&backend->large.waiting) &&
                     wharf_list_is_empty(&backend->encode.waiting) &&
                     wharf_gpu_files_look_ns(backend, now_ns) > 0 &&
                     !wharf_place_wants_gpu(core, backend->gpu) && !lingers(backend, now_ns);
    backend->flight.is_to_leave = false;
    if (is_idle(backend) && !wharf_place_wants_gpu(core, backend->gpu))
        wharf_gpu_items_see_to_streams(backend);
    backend->is_over = backend->stop && is_idle(backend) && wharf_gpu_files_are_idle(backend) &&
                       backend->flight.n_requeued == 0;
    core->fleet.gpus_looking &= ~own_bit;
    if (!can_sleep && backend->state == WHARF_GPU_UP && backend->engine != WHARF_ENGINE_SIMT)
        core->fleet.gpus_looking |= own_bit;
    if (can_sleep) {
        core->fleet.gpus_asleep |= own_bit;
        backend->view->busy_since_ns = WHARF_NEVER;
    }
    wharf_core_leave(core);
    return can_sleep;
}

/* Attends to the worker and to clients' memory.  Returns when they are due again. */
static uint64_t tend(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    uint64_t next_ns = wharf_gpu_worker_tend(backend, now_ns);

    if (backend->told.has_unheld)
        wharf_gpu_pins_retire(backend);
    if (backend->state == WHARF_GPU_UP) {
        while (wharf_gpu_arena_maker_refill(backend->core, backend->gpu))
            ;
        uint64_t pins_ns = wharf_gpu_pins_tend(backend, now_ns);
        if (wharf_gpu_items_hang(backend, now_ns) || wharf_gpu_large_hang(backend, now_ns) ||
            wharf_gpu_encode_hang(backend, now_ns))
            wharf_gpu_worker_kill(backend, "a job takes far too long");
        uint64_t stall_ns = wharf_gpu_answers_see_to_stalls(backend, now_ns);
        if (pins_ns < next_ns)
            next_ns = pins_ns;
        if (stall_ns < next_ns)
            next_ns = stall_ns;
    }
    return next_ns;
}

/* One turn. */
static void serve(struct wharf_gpu_backend *backend, uint64_t *tend_at_ns)
{
    uint64_t now_ns = wharf_now_ns();

    if (backend->state == WHARF_GPU_UP) {
        wharf_gpu_results_reap(backend, now_ns);
        wharf_gpu_large_reap(backend, now_ns);
        wharf_gpu_encode_reap(backend, now_ns);
    }
    wharf_gpu_files_reap(backend, now_ns);
    wharf_gpu_results_tell(backend);
    bool can_sleep = serve_front(backend, now_ns);
    wharf_gpu_items_publish(backend);
    wharf_gpu_files_publish(backend);
    wharf_gpu_items_leave(backend);
    if (backend->is_over)
        return;
    if (can_sleep || now_ns >= *tend_at_ns) {
        uint64_t next_ns = tend(backend, now_ns),
                 look_ns = wharf_gpu_files_look_ns(backend, now_ns);
        /* It may have got ready just now: then it has samples. */
        if (backend->state == WHARF_GPU_PROVING)
            next_ns = 0;
        else if (can_sleep)
            sleep_until(backend, now_ns, look_ns < next_ns ? look_ns : next_ns);
        *tend_at_ns = can_sleep || next_ns == 0 ? 0 : now_ns + TEND_NS;
    } else if (backend->state == WHARF_GPU_PROVING) {
        wait_for_work(backend);
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
    char name[16];

    snprintf(name, sizeof(name), "wharf-gpu-%u", (unsigned)backend->gpu);
    pthread_setname_np(pthread_self(), name);
    while (!backend->is_over)
        serve(backend, &tend_at_ns);
    wharf_gpu_worker_stop(backend);
    return NULL;
}

/* ---- its beginning and end ----------------------------------------------------------------- */

static struct wharf_gpu_backend *backend_new(struct wharf_core *core,
                                             const struct wharf_config *config, const char *program,
                                             const char *name)
{
    struct wharf_gpu_backend *backend = calloc(1, sizeof(*backend));

    if (!backend)
        return NULL;
    backend->core = core;
    backend->gpu = core->fleet.n_gpus;
    backend->view = &core->fleet.gpus[backend->gpu];
    backend->link = WHARF_WORKER_LINK_NONE;
    backend->config = *config;
    backend->engine = config->gpu_engine == WHARF_GPU_SIMT ? WHARF_ENGINE_SIMT : WHARF_ENGINE_GPU;
    backend->life.backoff_ns = FIRST_BACKOFF_NS;
    snprintf(backend->program, sizeof(backend->program), "%s", program);
    snprintf(backend->name, sizeof(backend->name), "%s", name);
    if (wharf_gpu_items_init(backend) < 0) {
        wharf_gpu_items_deinit(backend);
        free(backend);
        return NULL;
    }
    return backend;
}

static void enter(struct wharf_gpu_backend *backend)
{
    struct wharf_core *core = backend->core;
    struct wharf_gpu_view *view = backend->view;

    wharf_core_enter(core);
    snprintf(view->name, sizeof(view->name), "%s", backend->name);
    view->backend = backend;
    view->busy_since_ns = WHARF_NEVER;
    view->may_come = true;
    view->n_warps = 1;
    __atomic_store_n(&core->fleet.n_gpus, backend->gpu + 1, __ATOMIC_RELAXED);
    wharf_gpu_memory_add_gpu(core, backend->gpu);
    wharf_core_leave(core);
}

static int start_thread(struct wharf_gpu_backend *backend)
{
    int r = pthread_create(&backend->thread, NULL, work, backend);

    if (r != 0)
        return -r;
    backend->is_started = true;
    return 0;
}

int wharf_gpu_backend_start(struct wharf_core *core, const struct wharf_config *config,
                            const char *program, const char *name, wharf_gpu_count *tell_count)
{
    struct wharf_gpu_view *view = &core->fleet.gpus[core->fleet.n_gpus];

    if (view->wake_fd < 0)
        view->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (view->wake_fd < 0)
        return -errno;
    struct wharf_gpu_backend *backend = backend_new(core, config, program, name);
    if (!backend)
        return -ENOMEM;
    backend->tell_count = tell_count;
    enter(backend);
    return start_thread(backend);
}

void wharf_gpu_backend_stop(struct wharf_gpu_backend *backend)
{
    if (!backend)
        return;
    wharf_core_enter(backend->core);
    backend->stop = true;
    wharf_core_leave(backend->core);
    if (!backend->is_started)
        return;
    eventfd_write(backend->view->wake_fd, 1);
    pthread_join(backend->thread, NULL);
}

void wharf_gpu_backend_free(struct wharf_gpu_backend *backend)
{
    if (!backend)
        return;
    wharf_gpu_pins_lost(backend);
    wharf_gpu_items_deinit(backend);
    free(backend);
}
