/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/log_level.h"
#include "daemon/cpu/cpu_state.h"

#include <sys/resource.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/core/activity.h"
#include "daemon/core/backend.h"
#include "daemon/core/core.h"
#include "daemon/core/job.h"
#include "daemon/cpu/cpu_run.h"
#include "daemon/cpu/cpu_time.h"
#include "daemon/cpu/lease.h"
#include "daemon/cpu/slices.h"
#include "daemon/cpu/split_decode.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/intake.h"
#include "daemon/dispatch/job_pieces.h"
#include "proto/relax.h"
#include "proto/wharf_job.h"

/* ---- what is next -------------------------------------------------------------------------- */

/* While all other workers are busy with long pieces, this one stays free for short ones. */
static uint64_t most_ns(const struct wharf_core *core)
{
    if (core->workers.n_workers > core->workers.n_blocked + 1 &&
        core->workers.n_long + 1 == core->workers.n_workers)
        return core->config.long_ns;
    return WHARF_NEVER;
}

/*
 * Short chunks that a worker takes at once where there are plenty: taking and handing back are done
 * under the core lock, which many workers with chunks of some ten microseconds would do nothing
 * but wait for.  They are one session's: if they take longer than estimated, others do not wait.
 */
#define MOST_IN_HAND 8

/* Whether the session whose turn it is is the worker's alone now. */
static bool take_lease(struct wharf_cpu_worker *worker)
{
    struct wharf_core *core = worker->backend->core;

    /* What a worker of the GPU left goes before all. */
    if (core->retries.n > 0 || most_ns(core) != WHARF_NEVER)
        return false;
    const struct wharf_job *job = wharf_core_first(core, WHARF_NEVER);
    return job && wharf_lease_begin(core, &worker->lease, job);
}

/* Fills the hand; returns how many pieces are in it, or 0: there is nothing to do. */
static unsigned take_hand(struct wharf_core *core, struct wharf_piece hand[MOST_IN_HAND])
{
    uint64_t left_ns = WHARF_CPU_BRIEF_NS;
    unsigned n = 1;

    if (!wharf_core_next(core, most_ns(core), &hand[0]))
        return 0;
    const struct wharf_session *session = hand[0].job->session;
    /* Orphans cannot be put back, and come one by one; so does what is to delay nobody. */
    while (n < MOST_IN_HAND && hand[0].job->lane != WHARF_LANE_IDLE &&
           hand[n - 1].kind == WHARF_PIECE_CHUNK && core->retries.n == 0 &&
           hand[n - 1].estimate_ns < left_ns && wharf_core_has_plenty(core)) {
        left_ns -= hand[n - 1].estimate_ns;
        struct wharf_job *job = wharf_core_first(core, left_ns);
        if (!job || job->session != session || job->submission.opcode != WHARF_OP_DECODE ||
            job->lane == WHARF_LANE_IDLE)
            break;
        wharf_core_take(core, job, &hand[n++]);
    }
    return n;
}

/* ---- waiting ------------------------------------------------------------------------------- */

/* Looks at the rings, some microseconds long each, before the processor is offered to others: that
 * takes a system call. */
#define N_QUICK_LOOKS 32

/* When somebody took it, that lasts longer than this. */
#define YIELD_NS 20000u

struct looks {
    unsigned n_vain;     /* one after another that found nothing */
    unsigned n_unbroken; /* since the processor was offered to others */
};

/*
 * Between two looks at the rings: lets the other threads of the processor's core, and those that
 * wait for the core lock, go ahead.  Before long it finds out whether somebody wants the
 * processor, perhaps the very client that is watched for: returns whether.  Then it is better to
 * sleep, since who wakes up goes before those who only work on, and who watches does not.
 *
 * The processor is offered as often to others where each look finds something that is done at once,
 * such as a tenant's no-ops without end.  Linux lets a thread that goes on keep the processor until
 * the next tick, up to 10 ms away, and other tenants' clients would wait as long.  But then the
 * worker does not sleep: it would be called at once.
 */
static bool pause_briefly(struct looks *looks)
{
    if (looks->n_vain > N_QUICK_LOOKS || looks->n_unbroken >= N_QUICK_LOOKS) {
        uint64_t since_ns = wharf_now_ns();
        looks->n_unbroken = 0;
        sched_yield();
        return looks->n_vain > N_QUICK_LOOKS && wharf_now_ns() - since_ns > YIELD_NS;
    }
    for (unsigned i = 0; i < 8; i++)
        wharf_relax();
    return false;
}

/* Whether a worker with nothing to do looks at the rings itself.  Where a GPU's thread does so too
 * the two are only in each other's way, in a flood that is the GPU's; but a client of the CPU is
 * back before long. */
static bool may_look(const struct wharf_core *core, unsigned n_looks)
{
    return wharf_core_watches(core) && core->workers.n_awake == 1 &&
           (!core->fleet.gpus_looking || n_looks < N_QUICK_LOOKS);
}

/* ---- the thread ---------------------------------------------------------------------------- */

/* Until it is called.  Whoever calls it counts it as awake. */
static void sleep_until_called(struct wharf_cpu_worker *worker)
{
    struct wharf_cpu_backend *backend = worker->backend;
    struct wharf_core *core = backend->core;

    core->workers.n_awake--;
    core->workers.n_sleeping++;
    worker->next_sleeper = backend->sleeper;
    backend->sleeper = worker;
    wharf_core_leave(core);
    while (sem_wait(&worker->called) < 0)
        ;
    wharf_core_enter(core);
}

/* A stand-in that nobody needs any more, until it is needed again: whoever calls it counts it as a
 * worker, and as awake. */
static void stand_by(struct wharf_cpu_worker *worker)
{
    struct wharf_cpu_backend *backend = worker->backend;

    worker->next_sleeper = backend->spare;
    backend->spare = worker;
    wharf_core_leave(backend->core);
    while (sem_wait(&worker->called) < 0)
        ;
    wharf_core_enter(backend->core);
}

static void retire(struct wharf_cpu_worker *worker)
{
    struct wharf_cpu_backend *backend = worker->backend;

    backend->n_spares_at_work--;
    backend->core->workers.n_workers--;
    backend->core->workers.n_awake--;
    stand_by(worker);
}

/* Begins its work; false: it is to end instead. */
static bool begin(struct wharf_cpu_worker *worker)
{
    struct wharf_cpu_backend *backend = worker->backend;

    wharf_core_enter(backend->core);
    if (!worker->is_spare) {
        backend->core->workers.n_awake++;
        /* As whoever calls one: from now on it may block. */
        backend->core->wake_loop = true;
        return true;
    }
    if (backend->stop)
        return false;
    stand_by(worker);
    return true;
}

static void set_up(struct wharf_cpu_worker *worker)
{
    const struct wharf_cpu_backend *backend = worker->backend;

    worker->tid = gettid();
    if (sched_setaffinity(0, sizeof(backend->cpus), &backend->cpus) < 0)
        wharf_log(WHARF_LOG_WARNING, &(struct wharf_log_fields){.error = errno},
                  "cannot bind a worker to its processors");
    if (backend->nice && setpriority(PRIO_PROCESS, 0, backend->nice) < 0)
        wharf_log(WHARF_LOG_WARNING, &(struct wharf_log_fields){.error = errno},
                  "cannot set the workers' nice value");
    (void)wharf_slices_shorten(WHARF_SLICE_WORKER_NS);
}

/* Runs what there is to do; whether there was anything.  has_looked: in vain, since the last. */
static bool serve(struct wharf_cpu_worker *worker, bool has_looked)
{
    struct wharf_piece hand[MOST_IN_HAND];
    bool has_lease = take_lease(worker);
    unsigned n_in_hand = has_lease ? 0 : take_hand(worker->backend->core, hand);

    if (!has_lease && n_in_hand == 0)
        return false;
    if (has_looked || worker->time.base_ns == 0)
        wharf_cpu_time_rebase(&worker->time);
    if (has_lease)
        wharf_cpu_run_lease(worker);
    else
        wharf_cpu_run_pieces(worker, hand, n_in_hand);
    return true;
}

void *wharf_cpu_worker_run(void *data)
{
    struct wharf_cpu_worker *worker = data;
    struct wharf_cpu_backend *backend = worker->backend;
    struct wharf_core *core = backend->core;
    struct looks looks = {0};
    bool crowded = false; /* others want the processor */

    set_up(worker);
    if (!begin(worker)) {
        wharf_core_leave(core);
        return NULL;
    }
    for (;;) {
        if (wharf_core_poll_rings(core))
            looks.n_vain = 0;
        if (backend->stop)
            break;
        if (worker->is_spare && backend->n_spares_at_work > core->workers.n_blocked) {
            retire(worker);
        } else if (serve(worker, looks.n_vain > 0)) {
            looks.n_vain = 0;
        } else if (wharf_split_decode_help(core, worker)) {
            looks.n_vain = 0;
            worker->time.base_ns = 0;
        } else if (may_look(core, looks.n_vain) && !crowded) {
            wharf_core_leave(core);
            looks.n_vain++;
            looks.n_unbroken++;
            crowded = pause_briefly(&looks);
            wharf_core_enter(core);
        } else {
            if (worker->is_spare)
                retire(worker);
            else
                sleep_until_called(worker);
            worker->time.base_ns = 0;
            looks = (struct looks){0};
            crowded = false;
        }
    }
    core->workers.n_awake--;
    wharf_core_leave(core);
    for (unsigned i = 0; i < WHARF_CPU_MOST_DEEP; i++)
        wharf_cpu_buffer_deinit(&worker->buffers[i]);
    return NULL;
}
