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
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/backend.h"
#include "daemon/cleanup.h"
#include "daemon/clock.h"
#include "daemon/cpu_run.h"
#include "daemon/cpu_set.h"
#include "daemon/front.h"
#include "daemon/lease.h"
#include "daemon/log.h"
#include "proto/relax.h"
#include "proto/wharf_job.h"

/* Pieces of a worker that are in the middle of each other. */
#define MOST_DEEP 4

struct worker {
    struct cpu_backend *backend;
    pthread_t thread;
    bool is_started;
    sem_t called;
    struct wharf_cpu_buffer buffers[MOST_DEEP];
    struct wharf_lease lease;
    /* At some moment since which the worker has neither slept nor yielded. */
    uint64_t base_ns;            /* the time */
    uint64_t base_cpu_ns;        /* what the thread had used of its processor */
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

/* ---- waiting and choosing ------------------------------------------------------------------ */

/* Looks at the rings, some microseconds long, before the processor is offered to others: that takes
 * a system call. */
#define N_QUICK_LOOKS 32

/* The least slice of a processor that can be asked for. */
#define SLICE_NS 100000u

/* When somebody took it, that lasts longer than this. */
#define YIELD_NS 20000u

/*
 * Between two looks at the rings: lets the other threads of the processor's core, and those that
 * wait for the front lock, go ahead.  Before long it finds out whether somebody wants the
 * processor, perhaps the very client that is watched for: returns whether.  Then it is better to
 * sleep, since who wakes up goes before those who only work on, and who watches does not.
 */
static bool pause_briefly(unsigned n_looks)
{
    if (n_looks > N_QUICK_LOOKS) {
        uint64_t since_ns = wharf_now_ns();
        sched_yield();
        return wharf_now_ns() - since_ns > YIELD_NS;
    }
    for (unsigned i = 0; i < 8; i++)
        wharf_relax();
    return false;
}

/* While all other workers are busy with long pieces, this one stays free for short ones. */
static uint64_t most_ns(const struct wharf_front *front)
{
    if (front->n_workers > 1 && front->n_long + 1 == front->n_workers)
        return front->config.long_ns;
    return WHARF_NEVER;
}

/* ---- time that others take ----------------------------------------------------------------- */

/* A piece that took twice as long as was expected, and so long at least, was perhaps interrupted by
 * other programs.  Shorter ones are not worth the system call. */
#define SUSPICIOUS_NS 50000u

static void rebase(struct worker *worker)
{
    struct timespec cpu;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    worker->base_cpu_ns = (uint64_t)cpu.tv_sec * WHARF_NS_PER_S + (uint64_t)cpu.tv_nsec;
    worker->base_ns = wharf_now_ns();
}

/*
 * For how long others have had the processor since the last such look.  A machine that is busy
 * with other things takes it for milliseconds at a time: charged to a job of microseconds, that
 * would be its tenant's share for long, and the price of all such jobs.
 */
static uint64_t stolen_ns(struct worker *worker)
{
    uint64_t before_ns = worker->base_ns, before_cpu_ns = worker->base_cpu_ns;

    rebase(worker);
    uint64_t passed_ns = worker->base_ns - before_ns;
    uint64_t used_ns = worker->base_cpu_ns - before_cpu_ns;
    return passed_ns > used_ns ? passed_ns - used_ns : 0;
}

/* Takes out of the piece's time up to now what others have had of it. */
static void leave_out_stolen(struct worker *worker, struct wharf_piece *piece, uint64_t now_ns)
{
    uint64_t own_ns = now_ns - piece->begun_ns - piece->others_ns;

    if (own_ns < SUSPICIOUS_NS || own_ns < 2 * piece->estimate_ns)
        return;
    uint64_t stolen = stolen_ns(worker);
    piece->others_ns += stolen < own_ns ? stolen : own_ns;
}

/* ---- a piece ------------------------------------------------------------------------------- */

/*
 * Short chunks that a worker takes at once where there are plenty: taking and handing back are done
 * under the front lock, which many workers with chunks of some ten microseconds would do nothing
 * but wait for.  They are one session's: if they take longer than estimated, others do not wait.
 */
#define MOST_IN_HAND 8
#define HAND_NS 100000u

/* Pieces that a worker runs: its own, or a short one in the middle of these, and so on. */
struct running {
    struct wharf_decode_poll poll;
    struct worker *worker;
    struct wharf_piece *piece;   /* at present */
    struct wharf_piece *back;    /* the first that was not handed back */
    struct wharf_piece *end;     /* behind the last one */
    struct wharf_lease *lease;   /* that the piece is of; NULL: of none */
    const struct running *outer; /* the one that it interrupts; NULL: none */
    unsigned depth;              /* how many it interrupts */
    bool is_long;
    bool is_brief;
    uint64_t look_at_ns; /* when it is time to see what else there is to do */
};

static void run(struct worker *worker, struct wharf_piece *pieces, unsigned n,
                const struct running *outer);

/* Leaves the lock to work on it, and comes back. */
static void begin_work(struct running *running)
{
    struct wharf_front *front = running->worker->backend->front;
    uint64_t now_ns = wharf_now_ns();

    front->n_awake--;
    ++*(running->is_long ? &front->n_long : &front->n_short);
    front->n_brief += running->is_brief;
    running->worker->busy_since_ns = now_ns;
    running->look_at_ns = now_ns + front->config.slice_ns;
    wharf_front_leave(front);
}

static void end_work(struct running *running)
{
    struct wharf_front *front = running->worker->backend->front;

    wharf_front_enter(front);
    running->worker->busy_since_ns = WHARF_NEVER;
    --*(running->is_long ? &front->n_long : &front->n_short);
    front->n_brief -= running->is_brief;
    front->n_awake++;
}

/*
 * Whether the job whose turn it is may interrupt.  A tenant that is in the middle of something may
 * not: so it occupies a worker once, however wrong the estimates of its jobs are.  But for the
 * interactive ones that it is allowed, which go before its own others.
 */
static bool may_interrupt(const struct running *running, const struct wharf_job *job)
{
    if (running->depth == 0 && job->lane == WHARF_LANE_INTERACTIVE)
        return true;
    for (; running; running = running->outer)
        if (running->piece->job->session->tenant == job->session->tenant)
            return false;
    return true;
}

/*
 * Others have their turn in the middle of a long piece, as if it were a batch: a slice each.  Only
 * with pieces that are short themselves, so that this one comes to its end.
 */
static void let_others(struct running *running)
{
    struct wharf_front *front = running->worker->backend->front;
    uint64_t n_slices = 1 + wharf_place_n_tenants(front);
    uint64_t until_ns = wharf_now_ns() + n_slices * front->config.slice_ns;
    const struct wharf_job *job;
    struct wharf_piece piece;

    while (front->n_sleeping == 0 && wharf_now_ns() < until_ns) {
        job = wharf_place_first_for_cpu(front, front->config.long_ns);
        if (!job || !may_interrupt(running, job) ||
            !wharf_front_next(front, front->config.long_ns, &piece))
            break;
        run(running->worker, &piece, 1, running);
        wharf_front_look(front);
    }
}

/* Those before the present one. */
static void hand_back(struct running *running)
{
    for (; running->back < running->piece; running->back++) {
        struct wharf_piece *piece = running->back;
        if (piece->kind == WHARF_PIECE_CHUNK)
            piece->job->begun_ns = piece->begun_ns;
        wharf_front_done(running->worker->backend->front, piece);
    }
}

/* Those behind the present one: others can have them, and deadlines and cancels concern them. */
static void put_back_rest(struct running *running)
{
    while (--running->end > running->piece)
        wharf_front_put_back(running->worker->backend->front, running->end);
    running->end = running->piece + 1;
}

static uint32_t stopped(const struct running *running)
{
    return __atomic_load_n(&running->piece->job->stopped, __ATOMIC_RELAXED);
}

/* In the middle of a piece that takes its time, whatever it was estimated to take: the front's work
 * goes on. */
static void look_around(struct running *running)
{
    struct wharf_front *front = running->worker->backend->front;
    uint64_t since_ns = wharf_now_ns();

    leave_out_stolen(running->worker, running->piece, since_ns);
    if (running->lease)
        wharf_lease_wake(running->lease);
    end_work(running);
    if (running->lease)
        wharf_lease_end(front, running->lease, running->piece);
    running->lease = NULL;
    running->is_brief = false;
    hand_back(running);
    put_back_rest(running);
    running->is_long |= since_ns - running->piece->begun_ns > front->config.long_ns;
    wharf_front_going_on(front, running->piece, since_ns);
    wharf_front_look(front);
    if (running->depth + 1 < MOST_DEEP && !running->worker->backend->stop && !stopped(running))
        let_others(running);
    running->piece->others_ns += wharf_now_ns() - since_ns;
    rebase(running->worker);
    begin_work(running);
}

static uint32_t ask(struct wharf_decode_poll *poll)
{
    struct running *running = (struct running *)poll;

    if (running->lease && wharf_lease_is_revoked(running->lease))
        look_around(running);
    if (!stopped(running) && wharf_now_ns() >= running->look_at_ns)
        look_around(running);
    return stopped(running);
}

/* Runs pieces without the lock, one after the other, and hands them back. */
static void run(struct worker *worker, struct wharf_piece *pieces, unsigned n,
                const struct running *outer)
{
    struct wharf_front *front = worker->backend->front;
    struct running running = {
        .poll.ask = ask,
        .worker = worker,
        .piece = pieces,
        .back = pieces,
        .end = pieces + n,
        .outer = outer,
        .depth = outer ? outer->depth + 1 : 0,
        .is_long = pieces->estimate_ns > front->config.long_ns,
        .is_brief = pieces->estimate_ns <= HAND_NS,
    };

    begin_work(&running);
    for (; running.piece < running.end; running.piece++) {
        if (running.piece->kind == WHARF_PIECE_OPEN)
            wharf_batch_open(front, running.piece);
        else
            wharf_cpu_run(front, &worker->buffers[running.depth], running.piece, &running.poll);
        leave_out_stolen(worker, running.piece, running.piece->ended_ns);
    }
    end_work(&running);
    if (running.is_long)
        front->nothing_fits = false;
    hand_back(&running);
}

/* Runs the jobs of a session that the worker has to itself. */
static void run_lease(struct worker *worker)
{
    struct wharf_front *front = worker->backend->front;
    struct wharf_piece piece;
    struct running running = {
        .poll.ask = ask,
        .worker = worker,
        .piece = &piece,
        .back = &piece,
        .end = &piece + 1,
        .lease = &worker->lease,
        .is_brief = true,
    };
    uint64_t now_ns = worker->lease.begun_ns;

    begin_work(&running);
    while (running.lease && wharf_lease_next(running.lease, now_ns, &piece)) {
        wharf_cpu_run(front, &worker->buffers[0], &piece, &running.poll);
        now_ns = piece.ended_ns;
        leave_out_stolen(worker, &piece, now_ns);
        if (running.lease)
            wharf_lease_done(running.lease, &piece);
    }
    if (running.lease) {
        wharf_lease_refill(running.lease, now_ns);
        wharf_lease_wake(running.lease);
    }
    end_work(&running);
    if (running.lease) {
        wharf_lease_end(front, running.lease, NULL);
        return;
    }
    if (running.is_long)
        front->nothing_fits = false;
    piece.job->begun_ns = piece.begun_ns;
    wharf_front_done(front, &piece);
}

/* Whether the session whose turn it is is the worker's alone now. */
static bool take_lease(struct worker *worker)
{
    struct wharf_front *front = worker->backend->front;

    if (wharf_place_n_for_cpu(front) == 0 || most_ns(front) != WHARF_NEVER)
        return false;
    wharf_front_age_background(front, wharf_now_ns());
    const struct wharf_job *job = wharf_place_first_for_cpu(front, WHARF_NEVER);
    return job && wharf_lease_begin(front, &worker->lease, job);
}

/* Fills the hand; returns how many pieces are in it, or 0: there is nothing to do. */
static unsigned take_hand(struct wharf_front *front, struct wharf_piece hand[MOST_IN_HAND])
{
    uint64_t left_ns = HAND_NS;
    unsigned n = 1;

    if (!wharf_front_next(front, most_ns(front), &hand[0]))
        return 0;
    const struct wharf_session *session = hand[0].job->session;
    /* Orphans cannot be put back, and come one by one. */
    while (n < MOST_IN_HAND && hand[n - 1].kind == WHARF_PIECE_CHUNK && front->n_orphans == 0 &&
           hand[n - 1].estimate_ns < left_ns && wharf_front_has_plenty(front)) {
        left_ns -= hand[n - 1].estimate_ns;
        const struct wharf_job *job = wharf_place_first_for_cpu(front, left_ns);
        if (!job || job->session != session || job->submission.opcode != WHARF_OP_DECODE ||
            !wharf_front_next(front, left_ns, &hand[n]))
            break;
        n++;
    }
    return n;
}

/* ---- a worker ------------------------------------------------------------------------------ */

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

/* Runs what there is to do; whether there was anything.  has_looked: in vain, since the last. */
static bool serve(struct worker *worker, bool has_looked)
{
    struct wharf_piece hand[MOST_IN_HAND];
    bool has_lease = take_lease(worker);
    unsigned n_in_hand = has_lease ? 0 : take_hand(worker->backend->front, hand);

    if (!has_lease && n_in_hand == 0)
        return false;
    if (has_looked || worker->base_ns == 0)
        rebase(worker);
    if (has_lease)
        run_lease(worker);
    else
        run(worker, hand, n_in_hand, NULL);
    return true;
}

/* Linux's struct sched_attr: its header and the C library's <sched.h> cannot be included together.
 */
struct scheduling {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns; /* of ordinary threads: the slice */
    uint64_t deadline_ns;
    uint64_t period_ns;
};

/*
 * Slices as short as Linux gives them, from 6.12 on: while every processor has a worker, whoever
 * wakes for a moment, an interactive client above all, waits for the rest of a slice, which is of
 * milliseconds by default.  Where it cannot be had, with older kernels and some filters of system
 * calls, that wait is all that is lost.
 */
static void ask_for_short_slices(void)
{
    struct scheduling attr = {.size = sizeof(attr)};

    if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0 ||
        (attr.policy != SCHED_OTHER && attr.policy != SCHED_BATCH))
        return;
    attr.runtime_ns = SLICE_NS;
    (void)syscall(SYS_sched_setattr, 0, &attr, 0);
}

static void *work(void *data)
{
    struct worker *worker = data;
    struct cpu_backend *backend = worker->backend;
    struct wharf_front *front = backend->front;
    unsigned n_looks = 0; /* with nothing found */
    bool crowded = false; /* others want the processor */

    if (sched_setaffinity(0, sizeof(backend->cpus), &backend->cpus) < 0)
        wharf_log(WHARF_LOG_WARNING, &(struct wharf_log_fields){.error = errno},
                  "cannot bind a worker to its processors");
    if (backend->nice && setpriority(PRIO_PROCESS, 0, backend->nice) < 0)
        wharf_log(WHARF_LOG_WARNING, &(struct wharf_log_fields){.error = errno},
                  "cannot set the workers' nice value");
    ask_for_short_slices();
    wharf_front_enter(front);
    front->n_awake++;
    for (;;) {
        if (wharf_front_look(front))
            n_looks = 0;
        if (backend->stop)
            break;
        if (serve(worker, n_looks > 0)) {
            n_looks = 0;
        } else if (wharf_front_watches(front) && front->n_awake == 1 && !crowded) {
            wharf_front_leave(front);
            crowded = pause_briefly(++n_looks);
            wharf_front_enter(front);
        } else {
            sleep_until_called(worker);
            worker->base_ns = 0;
            n_looks = 0;
            crowded = false;
        }
    }
    front->n_awake--;
    wharf_front_leave(front);
    for (unsigned i = 0; i < MOST_DEEP; i++)
        wharf_cpu_buffer_deinit(&worker->buffers[i]);
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
    wharf_front_enter(backend->front);
    for (uint32_t i = 0; i < backend->n_workers; i++)
        wharf_lease_forget(&backend->workers[i].lease);
    backend->front->backend = NULL;
    wharf_front_leave(backend->front);
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
