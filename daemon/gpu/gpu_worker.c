/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_worker.c: the life of a GPU's worker process, as the core sees it: start, self-test, hang,
 * end, and restart with growing pauses.  DESIGN.md has the table of its states.
 *
 * Invariant: a worker is gone only when its pidfd is readable.  Until then the GPU may write to
 * clients' memory, and no other worker is started.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/exit_text.h"
#include "daemon/base/gpu_list.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/estimate.h"
#include "daemon/core/gpu_latency.h"
#include "daemon/core/session.h"
#include "daemon/core/session_events.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/gpu/worker_link.h"
#include "daemon/gpu/worker_message.h"
#include "daemon/placement/place.h"
#include "kernels/epoch.h"
#include "proto/wharf_job.h"

/* The first worker to end is replaced at once.  Later delays double each time, and start over after
 * a worker that ran well for a while. */
#define LEAST_BACKOFF_NS (20 * (uint64_t)WHARF_NS_PER_MS)
#define MOST_BACKOFF_NS (10 * (uint64_t)WHARF_NS_PER_S)
#define DOES_WELL_NS (10 * (uint64_t)WHARF_NS_PER_S)
/* After so many workers in a row that did not become ready, jobs that need one stop waiting. */
#define MOST_FAILURES 3
/* Messages that are read in one turn: a faulty worker may never stop sending. */
#define MOST_MESSAGES 256
/* How long a worker may take to end on request before it is killed. */
#define STOP_NS (500 * (uint64_t)WHARF_NS_PER_MS)

/* ---- beginning ----------------------------------------------------------------------------- */

static int set_up(struct wharf_gpu_backend *backend)
{
    const struct wharf_config *config = &backend->config;
    struct wharf_worker_message message = {
        .kind = WHARF_WORKER_SETUP,
        .setup =
            {
                .engine = backend->engine,
                .share = (uint32_t)config->gpu_share_percent,
                .n_entries = WHARF_GPU_N_ENTRIES,
                .chunk_nbytes = (uint32_t)config->gpu_chunk_nbytes,
                .kernel = (uint32_t)config->gpu_kernel,
                .has_faults = wharf_gpu_has_faults,
                .counts = backend->tell_count != NULL,
                .idle_ns = config->gpu_idle_ns,
                .stay_ns = config->gpu_stay_ns,
                .large_nbytes = config->gpu_large_nbytes,
                .encode_warps = (uint32_t)config->gpu_compress_warps,
                .memo_nbytes = config->gpu_memo_nbytes,
                .memo_users = (uint32_t)config->n_gpu_memo_users,
            },
    };

    if (getrandom(message.setup.memo_key, sizeof(message.setup.memo_key), 0) !=
        sizeof(message.setup.memo_key))
        return -EIO;
    strncpy(message.setup.version, WHARF_VERSION, sizeof(message.setup.version) - 1);
    return wharf_worker_link_send(&backend->link, &message, backend->queue.fd);
}

/* Counts a worker that ended or did not start.  That counts against the GPU unless somebody killed
 * the worker.  Under the lock. */
static void count_end(struct wharf_gpu_backend *backend, bool was_its_own)
{
    backend->view->n_ended++;
    backend->view->n_own_ends += was_its_own;
    backend->life.n_failures += backend->life.up_since_ns == 0;
    backend->life.up_since_ns = 0;
    backend->view->is_lost = backend->life.n_failures >= MOST_FAILURES;
}

static void retry_later(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    backend->life.retry_at_ns = now_ns + backend->life.backoff_ns;
    backend->life.backoff_ns *= 2;
    if (backend->life.backoff_ns > MOST_BACKOFF_NS)
        backend->life.backoff_ns = MOST_BACKOFF_NS;
    wharf_gpu_set_state(backend, WHARF_GPU_WAITING, now_ns);
    if (backend->life.n_failures == MOST_FAILURES)
        wharf_log(WHARF_LOG_WARNING, NULL,
                  "GPU %s: jobs do without it; it is tried again now and then, every %u seconds in "
                  "the end",
                  backend->name, (unsigned)(MOST_BACKOFF_NS / WHARF_NS_PER_S));
}

/* Whether there is no GPU at all, so that starting another worker is pointless. */
static bool is_hopeless(const struct wharf_gpu_backend *backend, int status)
{
    return status == WHARF_WORKER_EXIT_NO_DEVICE && !backend->life.is_known;
}

/* Repeated failures, for example of a GPU in exclusive use, are logged at a lower level. */
static enum wharf_log_level loudness(const struct wharf_gpu_backend *backend, int status)
{
    if (is_hopeless(backend, status))
        return WHARF_LOG_INFO;
    return backend->life.n_failures < MOST_FAILURES ? WHARF_LOG_WARNING : WHARF_LOG_DEBUG;
}

static void start(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    int r = wharf_gpu_items_begin(backend);

    backend->failure[0] = 0;
    backend->life.was_killed = false;
    if (r == 0)
        r = wharf_worker_link_start(backend->program, backend->name, backend->core->promise_fd,
                                    &backend->link);
    if (r == 0)
        r = set_up(backend);
    if (r < 0) {
        wharf_log(loudness(backend, WHARF_WORKER_EXIT_FAILED),
                  &(struct wharf_log_fields){.error = -r}, "GPU %s: cannot start a worker, %s",
                  backend->name, backend->program);
        if (backend->link.pid) {
            wharf_worker_link_kill(&backend->link);
            wharf_gpu_begin_dying(backend, now_ns);
            return;
        }
        wharf_core_enter(backend->core);
        count_end(backend, true);
        wharf_core_leave(backend->core);
        retry_later(backend, now_ns);
        return;
    }
    wharf_gpu_set_state(backend, WHARF_GPU_STARTING, now_ns);
}

/* The view of the same GPU under another name, or NULL.  Under the lock. */
static const struct wharf_gpu_view *find_double(const struct wharf_gpu_backend *backend)
{
    const struct wharf_core *core = backend->core;

    for (uint32_t i = 0; i < core->fleet.n_gpus && backend->view->place; i++)
        if (i != backend->gpu && core->fleet.gpus[i].place == backend->view->place)
            return &core->fleet.gpus[i];
    return NULL;
}

/* Whether the GPU has a backend under another name.  Two workers would each get half its time. */
static bool is_double(struct wharf_gpu_backend *backend, uint32_t place)
{
    char why[2 * WHARF_GPU_NAME_NBYTES + 64];

    wharf_core_enter(backend->core);
    backend->view->place = place;
    const struct wharf_gpu_view *other = find_double(backend);
    if (other)
        backend->view->place = 0;
    wharf_core_leave(backend->core);
    if (!other)
        return false;
    backend->life.is_double = true;
    /* A name never changes. */
    snprintf(why, sizeof(why), "it is GPU %s by another name: take one of both out of device",
             other->name);
    wharf_gpu_worker_kill(backend, why);
    return true;
}

static void take_ready(struct wharf_gpu_backend *backend, const struct wharf_worker_ready *ready)
{
    struct wharf_core *core = backend->core;
    struct wharf_gpu_view *view = backend->view;

    if (is_double(backend, ready->place))
        return;
    wharf_core_enter(core);
    /* Workers are of one build: all have the same. */
    __atomic_store_n(&core->fleet.gpu_codecs, ready->codecs, __ATOMIC_RELAXED);
    view->n_warps = ready->n_warps ? ready->n_warps : 1;
    view->n_in_flight = 0;
    view->in_flight_ns = view->in_flight_nbytes = 0;
    view->is_alone = false;
    wharf_core_leave(core);
    backend->codecs = ready->codecs;
    snprintf(backend->device, sizeof(backend->device), "%.63s", ready->device);
    backend->is_per_batch = ready->per_batch != 0;
    backend->is_beside = ready->is_beside != 0;
    backend->flight.has_kernel = false;
    if (ready->share[0])
        wharf_log(WHARF_LOG_NOTICE, NULL, "GPU %s: worker %d has %u percent of it: %.127s",
                  backend->name, (int)backend->link.pid,
                  (unsigned)backend->config.gpu_share_percent, ready->share);
    wharf_gpu_large_ready(backend, ready);
    wharf_gpu_encode_ready(backend, ready);
    if (ready->n_large == 0)
        wharf_log(
            WHARF_LOG_WARNING, NULL,
            "GPU %s: there is no memory of it for chunks over [gpu] chunk: sessions that want "
            "nothing but the GPU get NO_MEMORY for them",
            backend->name);
    wharf_gpu_memo_ready(backend, ready);
    int r = wharf_gpu_self_test_begin(backend);
    if (r == 0)
        backend->state = WHARF_GPU_PROVING;
    /* One that is gone by now ended by no doing of ours: its socket's end and its status tell. */
    else if (r != -EPIPE && r != -ECONNRESET)
        wharf_gpu_worker_kill(backend, strerrordesc_np(-r));
}

/* Makes the samples' times the initial estimates of new tenants, and of existing ones that have
 * none for this GPU. */
static void begin_estimates(const struct wharf_gpu_backend *backend)
{
    struct wharf_core *core = backend->core;
    struct wharf_tenants *tenants = &core->tenants;
    const struct wharf_gpu_proof *proof = &backend->proof;
    /* CPU times are those of the first worker: during later ones the CPUs started more workers. */
    bool is_first = !core->fleet.gpu_was_up;

    memcpy(tenants->gpus[backend->gpu].ns_per_kib, proof->ns_per_kib, sizeof(proof->ns_per_kib));
    tenants->gpus[backend->gpu].latency_ns = proof->latency_ns;
    if (is_first)
        memcpy(tenants->cpu_ns_per_kib, proof->cpu_ns_per_kib, sizeof(proof->cpu_ns_per_kib));
    WHARF_LIST_FOR(link, &tenants->list)
    {
        struct wharf_tenant *tenant = WHARF_LIST_ENTRY(link, struct wharf_tenant, link);
        if (is_first)
            wharf_estimates_init(&tenant->estimates, proof->cpu_ns_per_kib);
        if (!backend->life.is_known)
            wharf_gpu_costs_init(&tenant->gpu_costs[backend->gpu], proof->ns_per_kib,
                                 proof->latency_ns);
    }
    core->fleet.gpu_was_up = true;
}

/* Clients' jobs are given to it from now on. */
static void come_up(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_core *core = backend->core;
    struct wharf_gpu_view *view = backend->view;

    wharf_core_enter(core);
    view->most_models = WHARF_EPOCH_MAX_MODELS;
    view->latency_ns = backend->proof.latency_ns;
    view->is_lost = false;
    /* Before jobs that wait for it are placed. */
    view->n_large = view->n_large_free = backend->large.n_places;
    view->has_streams = backend->large.least_stream > 0;
    view->n_stream_free = view->has_streams;
    view->n_encode = view->n_encode_free = backend->encode.n_warps;
    if (view->n_encode > 0)
        __atomic_store_n(&core->fleet.gpu_encoders, WHARF_WORKER_ENCODERS, __ATOMIC_RELAXED);
    begin_estimates(backend);
    wharf_core_leave(core);
    wharf_log(WHARF_LOG_NOTICE, NULL,
              "GPU %s: worker %d is ready after %" PRIu64
              " ms: %s, %u warps, %s, answers in %" PRIu64 " us",
              backend->name, (int)backend->link.pid,
              (now_ns - backend->life.since_ns) / WHARF_NS_PER_MS, backend->device,
              (unsigned)view->n_warps,
              backend->is_per_batch ? "a kernel for each batch" : "kernels that stay",
              view->latency_ns / WHARF_NS_PER_US);
    backend->life.is_known = true;
    backend->life.n_failures = 0;
    backend->life.up_since_ns = now_ns;
    wharf_gpu_set_state(backend, WHARF_GPU_UP, now_ns);
}

/* ---- the end ------------------------------------------------------------------------------- */

/* SIGKILL by somebody else says nothing about the jobs. */
static bool is_suspicious(const struct wharf_gpu_backend *backend, int status)
{
    return backend->life.was_killed || status != 128 + SIGKILL;
}

static void on_gone(struct wharf_gpu_backend *backend, int status, uint64_t now_ns)
{
    struct wharf_core *core = backend->core;
    char text[WHARF_EXIT_TEXT_NBYTES];

    wharf_gpu_begin_dying(backend, now_ns);
    if (backend->life.up_since_ns && now_ns - backend->life.up_since_ns > DOES_WELL_NS)
        backend->life.backoff_ns = LEAST_BACKOFF_NS;
    wharf_log(loudness(backend, status), NULL,
              "GPU %s: the worker has ended %s, while it had %u chunks%s%s", backend->name,
              wharf_exit_text(status, text), (unsigned)backend->life.n_lost,
              backend->failure[0] ? ": " : "", backend->failure);
    wharf_core_enter(core);
    count_end(backend, is_suspicious(backend, status));
    backend->view->n_lost += backend->life.n_lost;
    if (is_suspicious(backend, status))
        wharf_gpu_recovery_blame(backend, now_ns);
    wharf_core_leave(core);
    wharf_gpu_recovery_hand_on(backend);
    wharf_gpu_pins_lost(backend);
    if (is_hopeless(backend, status) || backend->life.is_double)
        wharf_gpu_set_state(backend, WHARF_GPU_ABSENT, now_ns);
    else
        retry_later(backend, now_ns);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static void take_message(struct wharf_gpu_backend *backend,
                         const struct wharf_worker_message *message)
{
    switch (message->kind) {
    case WHARF_WORKER_DEVICES:
        if (backend->tell_count)
            backend->tell_count(backend->core, &backend->config, backend->program, message->number);
        break;
    case WHARF_WORKER_READY:
        if (backend->state == WHARF_GPU_STARTING)
            take_ready(backend, &message->ready);
        break;
    case WHARF_WORKER_REGISTERING:
        if (message->number != 0)
            wharf_gpu_answers_begun(backend, message, wharf_now_ns());
        break;
    case WHARF_WORKER_REGISTERED:
        if (message->number != 0)
            wharf_gpu_answers_registered(backend, message);
        else if (message->error)
            wharf_gpu_worker_kill(backend, "it cannot register memory");
        else
            backend->proof.address = message->address;
        break;
    case WHARF_WORKER_FORGOTTEN:
        wharf_gpu_answers_forgotten(backend, message);
        break;
    case WHARF_WORKER_FAILED:
        snprintf(backend->failure, sizeof(backend->failure), "%s", message->text);
        break;
    default:
        wharf_gpu_worker_kill(backend, "it sent a message that makes no sense");
    }
}

static void take_messages(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_worker_message message;
    int r = 0;

    for (unsigned n = 0; n < MOST_MESSAGES && backend->link.socket >= 0; n++) {
        r = wharf_worker_link_receive(&backend->link, &message);
        if (r <= 0)
            break;
        take_message(backend, &message);
    }
    if (r >= 0)
        return;
    /* It is about to end; until then it may continue to write. */
    backend->link.socket = wharf_close_fd(backend->link.socket);
    if (r == -EPROTO)
        wharf_gpu_worker_kill(backend, "it sent a packet that is no message");
    wharf_gpu_begin_dying(backend, now_ns);
    backend->life.since_ns = now_ns;
}

static bool has_worker(const struct wharf_gpu_backend *backend)
{
    return backend->state != WHARF_GPU_WAITING && backend->state != WHARF_GPU_ABSENT;
}

/* Kills a worker that closed its socket and does not end in time. */
static uint64_t see_to_timeouts(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    uint64_t timeout_ns = backend->config.gpu_start_timeout_ns;

    if (backend->state == WHARF_GPU_STARTING || backend->state == WHARF_GPU_PROVING) {
        if (now_ns - backend->life.since_ns < timeout_ns)
            return backend->life.since_ns + timeout_ns;
        wharf_gpu_worker_kill(backend, "it did not get ready in time");
    }
    if (backend->state == WHARF_GPU_DYING) {
        if (now_ns - backend->life.since_ns < STOP_NS)
            return backend->life.since_ns + STOP_NS;
        wharf_worker_link_kill(&backend->link);
        return now_ns + STOP_NS;
    }
    return WHARF_NEVER;
}

/* Polls the current sample of the self-test and submits the next one. */
static void prove(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    int r = wharf_gpu_self_test_step(backend);

    if (r < 0) {
        snprintf(backend->failure, sizeof(backend->failure),
                 "it decodes %s wrongly: do not use this device",
                 wharf_gpu_self_test_what(backend));
        wharf_gpu_worker_kill(backend, backend->failure);
    }
    if (r > 0)
        come_up(backend, now_ns);
}

uint64_t wharf_gpu_worker_tend(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    int status;

    if (has_worker(backend)) {
        take_messages(backend, now_ns);
        if (wharf_worker_link_is_gone(&backend->link, &status))
            on_gone(backend, status, now_ns);
    }
    if (backend->state == WHARF_GPU_PROVING)
        prove(backend, now_ns);
    if (backend->state == WHARF_GPU_WAITING && now_ns >= backend->life.retry_at_ns)
        start(backend, now_ns);
    return backend->state == WHARF_GPU_WAITING ? backend->life.retry_at_ns
                                               : see_to_timeouts(backend, now_ns);
}

void wharf_gpu_worker_stop(struct wharf_gpu_backend *backend)
{
    uint64_t until_ns = wharf_now_ns() + STOP_NS;
    int status;

    if (!has_worker(backend))
        return;
    /* Its end of the socket tells it to end. */
    backend->link.socket = wharf_close_fd(backend->link.socket);
    while (!wharf_worker_link_is_gone(&backend->link, &status)) {
        /* One that hangs in the driver is left behind: it still holds the lock that keeps the next
         * daemon waiting. */
        if (wharf_now_ns() > until_ns + STOP_NS)
            return;
        if (wharf_now_ns() > until_ns)
            wharf_worker_link_kill(&backend->link);
        usleep(1000);
    }
}
