/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_worker.c: the loop of a CPU worker.
 *
 * Take pieces or a lease under the core lock; run them without it; hand them back.  With nothing to
 * do, one worker watches the rings while sessions are watched, and all others sleep.  A thread that
 * calls a sleeping worker counts it as awake at once, under the lock, so the invariant of the rings
 * never has a gap.
 */
#include "daemon/base/log_level.h"
#include "daemon/cpu/cpu_state.h"

#include <stdio.h>
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
#include "daemon/dispatch/starts.h"
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
 * With many short chunks, a worker takes several at once.  Otherwise many workers with chunks of
 * about ten microseconds would mostly wait for the core lock.  All are of one session, so that
 * wrong estimates delay no other one.
 */
#define MOST_IN_HAND 8

/* Whether the worker has a lease of the next session now. */
static bool take_lease(struct wharf_cpu_worker *worker)
{
    struct wharf_core *core = worker->backend->core;

    /* Pieces of a dead GPU worker come first. */
    if (core->retries.n > 0 || most_ns(core) != WHARF_NEVER)
        return false;
    const struct wharf_job *job = wharf_core_first(core, WHARF_NEVER);
    return job && wharf_lease_begin(core, &worker->lease, job);
}

/* Fills the hand; returns its number of pieces, 0: there is nothing to do. */
static unsigned take_hand(struct wharf_core *core, struct wharf_piece hand[MOST_IN_HAND])
{
    uint64_t left_ns = WHARF_CPU_BRIEF_NS;
    unsigned n = 1;

    if (!wharf_core_next(core, most_ns(core), &hand[0]))
        return 0;
    const struct wharf_session *session = hand[0].job->session;
    /* Requeued pieces cannot be put back, so they come one by one; so do pieces that may delay
     * nobody. */
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

/* Polls of the rings, a few microseconds each, before the worker yields the processor, which takes
 * a system call. */
#define N_QUICK_LOOKS 32

/* A yield that lasts longer than this means that another thread wanted the processor. */
#define YIELD_NS 20000u

/* How long threads that sleep for the core lock are let go first: for some times as long as one
 * takes to wake up. */
#define MOST_PATIENCE_NS 200000u

struct looks {
    unsigned n_vain;     /* polls in a row that found nothing */
    unsigned n_unbroken; /* polls since the last yield */
};

/*
 * Between two polls: lets the core's other hardware threads, and threads that wait for the core
 * lock, go ahead.  Now and then yields the processor, and returns whether another thread wanted it,
 * perhaps the client that is watched for.  Then it is better to sleep: a thread that wakes up has
 * precedence over one that spins.
 *
 * It also yields when each poll finds only work that is done at once, such as endless no-ops of a
 * tenant.  Linux lets a running thread keep the processor until the next tick, up to 10 ms, and
 * other tenants' clients would wait that long.  But then the worker does not sleep, since it would
 * be called again at once.
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

/* Whether an idle worker polls the rings itself.  If a GPU's thread polls too, the two disturb each
 * other under a load that is the GPU's; but a client of the CPU will be back soon. */
static bool may_look(const struct wharf_core *core, unsigned n_looks)
{
    bool has_to_look = wharf_core_watches(core) || wharf_starts_are_young(core, wharf_now_ns());

    return has_to_look && core->workers.n_awake == 1 &&
           (!core->fleet.gpus_looking || n_looks < N_QUICK_LOOKS);
}

/* Lets others have the lock before the next poll; returns whether they want the processor. */
static bool look_again(struct wharf_core *core, struct looks *looks)
{
    bool is_for_words = !wharf_core_watches(core);
    uint64_t since_ns = wharf_now_ns();

    wharf_core_leave(core);
    looks->n_vain++;
    looks->n_unbroken++;
    bool crowded = pause_briefly(looks);
    wharf_core_enter_last(core, MOST_PATIENCE_NS);
    if (is_for_words)
        wharf_starts_spun(core, wharf_now_ns() - since_ns);
    return crowded;
}

/* ---- the thread ---------------------------------------------------------------------------- */

/* Sleeps until it is called.  The caller counts it as awake. */
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

/* A spare worker that is not needed sleeps until it is called.  The caller counts it as a worker,
 * and as awake. */
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

/* Starts its work; false: it has to end instead. */
static bool begin(struct wharf_cpu_worker *worker)
{
    struct wharf_cpu_backend *backend = worker->backend;

    wharf_core_enter(backend->core);
    if (!worker->is_spare) {
        backend->core->workers.n_awake++;
        /* Like a caller of a worker: from now on it may block. */
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
    char name[16];

    snprintf(name, sizeof(name), "wharf-cpu-%u", (unsigned)(worker - backend->workers) % 1000);
    pthread_setname_np(pthread_self(), name);
    worker->tid = gettid();
    if (sched_setaffinity(0, sizeof(backend->cpus), &backend->cpus) < 0)
        wharf_log(WHARF_LOG_WARNING, &(struct wharf_log_fields){.error = errno},
                  "cannot bind a worker to its processors");
    if (backend->nice && setpriority(PRIO_PROCESS, 0, backend->nice) < 0)
        wharf_log(WHARF_LOG_WARNING, &(struct wharf_log_fields){.error = errno},
                  "cannot set the workers' nice value");
    (void)wharf_slices_shorten(WHARF_SLICE_WORKER_NS);
}

/* Runs available work; returns whether there was any.  has_looked: polls since the last work found
 * none. */
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
            crowded = look_again(core, &looks);
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
