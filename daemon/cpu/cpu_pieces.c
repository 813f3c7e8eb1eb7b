/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_pieces.c: runs a worker's pieces, and short pieces of other tenants in the middle of long
 * ones. */
#include "daemon/base/clock.h"
#include "daemon/core/core.h"
#include "daemon/core/done_word.h"
#include "daemon/core/job.h"
#include "daemon/core/queues.h"
#include "daemon/core/session_lease.h"
#include "daemon/cpu/cpu_run.h"
#include "daemon/cpu/cpu_state.h"
#include "daemon/cpu/cpu_time.h"
#include "daemon/cpu/lease.h"
#include "daemon/cpu/split_decode.h"
#include "daemon/dispatch/batch_open.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/intake.h"
#include "daemon/dispatch/job_pieces.h"
#include "daemon/placement/place.h"
#include "encoders/decode_poll.h"

/* The pieces that a worker runs: its own, or a short one that interrupts these, and so on. */
struct running {
    struct wharf_decode_poll poll;
    struct wharf_cpu_worker *worker;
    struct wharf_piece *piece;   /* at present */
    struct wharf_piece *back;    /* the first one not handed back */
    struct wharf_piece *end;     /* end of the pieces */
    struct wharf_lease *lease;   /* that the piece is of; NULL: of none */
    const struct running *outer; /* the one that it interrupts; NULL: none */
    unsigned depth;              /* how many it interrupts */
    bool is_long;
    bool is_brief;
    uint64_t look_at_ns; /* when the next slice ends */
};

static void run(struct wharf_cpu_worker *worker, struct wharf_piece *pieces, unsigned n,
                const struct running *outer);

/* Leaves the lock to run the piece, and takes it again. */
static void begin_work(struct running *running, const struct wharf_session *session)
{
    struct wharf_core *core = running->worker->backend->core;
    uint64_t now_ns =
        wharf_cpu_begin(running->worker, session->tenant, running->is_long, running->is_brief);

    running->look_at_ns = now_ns + core->config.slice_ns;
    wharf_core_leave(core);
}

static void end_work(struct running *running)
{
    wharf_core_enter(running->worker->backend->core);
    wharf_cpu_end(running->worker);
}

/* The tenant does not pay for time that other programs used, but does for the waits that its memory
 * caused. */
static void leave_out(struct wharf_cpu_worker *worker, struct wharf_piece *piece, uint64_t now_ns)
{
    if (!__atomic_load_n(&worker->is_blocked, __ATOMIC_RELAXED))
        wharf_cpu_time_leave_out(&worker->time, piece, now_ns);
}

/*
 * Whether the next job may interrupt.  A tenant whose piece is already interrupted may not, so it
 * occupies a worker once, however wrong its estimates are; except for its allowed interactive jobs,
 * which come before its others.
 */
static bool may_interrupt(const struct running *running, const struct wharf_job *job)
{
    if (job->lane == WHARF_LANE_IDLE)
        return false;
    if (running->depth == 0 && job->lane == WHARF_LANE_INTERACTIVE)
        return true;
    for (; running; running = running->outer)
        if (running->piece->job->session->tenant == job->session->tenant)
            return false;
    return true;
}

/*
 * Runs other tenants' pieces in the middle of a long one, a slice each, as if it were a batch. Only
 * short pieces, so that the long one makes progress.
 */
static void let_others(struct running *running)
{
    struct wharf_core *core = running->worker->backend->core;
    uint64_t n_slices = 1 + wharf_place_n_tenants(core);
    uint64_t until_ns = wharf_now_ns() + n_slices * core->config.slice_ns;
    struct wharf_piece piece;
    struct wharf_job *job;

    while (core->workers.n_sleeping == 0 && wharf_now_ns() < until_ns) {
        job = wharf_core_first(core, core->config.long_ns);
        if (!job || !may_interrupt(running, job))
            break;
        wharf_core_take(core, job, &piece);
        run(running->worker, &piece, 1, running);
        wharf_core_poll_rings(core);
    }
}

/* Those before the present one. */
static void hand_back(struct running *running)
{
    for (; running->back < running->piece; running->back++) {
        struct wharf_piece *piece = running->back;
        if (piece->kind == WHARF_PIECE_CHUNK)
            piece->job->begun_ns = piece->begun_ns;
        wharf_core_done(running->worker->backend->core, piece);
    }
}

/* The pieces after the current one go back, so that others can run them, and deadlines and cancels
 * apply. */
static void put_back_rest(struct running *running)
{
    while (--running->end > running->piece)
        wharf_core_put_back(running->worker->backend->core, running->end);
    running->end = running->piece + 1;
}

static uint32_t stopped(const struct running *running)
{
    return __atomic_load_n(&running->piece->job->stopped, __ATOMIC_RELAXED);
}

/* In the middle of a piece that takes long, whatever its estimate: does the core's work. */
static void look_around(struct running *running)
{
    struct wharf_core *core = running->worker->backend->core;
    uint64_t since_ns = wharf_now_ns();

    leave_out(running->worker, running->piece, since_ns);
    if (running->lease)
        wharf_lease_wake(running->lease);
    end_work(running);
    if (running->lease)
        wharf_lease_end(core, running->lease, running->piece);
    running->lease = NULL;
    running->is_brief = false;
    hand_back(running);
    put_back_rest(running);
    running->is_long |= since_ns - running->piece->begun_ns > core->config.long_ns;
    wharf_core_going_on(core, running->piece, since_ns);
    wharf_core_poll_rings(core);
    if (running->depth + 1 < WHARF_CPU_MOST_DEEP && !running->worker->backend->stop &&
        !stopped(running))
        let_others(running);
    running->piece->others_ns += wharf_now_ns() - since_ns;
    wharf_cpu_time_rebase(&running->worker->time);
    begin_work(running, running->piece->job->session);
}

/*
 * A client of an interactive job was woken, perhaps on this processor, where it would wait for the
 * next tick, up to 4 ms on many machines.  Yields to it.  Returns for how long.
 */
static uint64_t give_way(struct wharf_cpu_worker *worker)
{
    uint32_t n = __atomic_load_n(&worker->backend->core->n_urgent_wakes, __ATOMIC_RELAXED);

    if (n == worker->n_given_way)
        return 0;
    worker->n_given_way = n;
    uint64_t since_ns = wharf_now_ns();
    sched_yield();
    wharf_cpu_time_rebase(&worker->time);
    return wharf_now_ns() - since_ns;
}

static uint32_t ask(struct wharf_decode_poll *poll)
{
    struct running *running = (struct running *)poll;

    if (running->lease && wharf_lease_is_revoked(running->lease))
        look_around(running);
    if (!stopped(running) && wharf_now_ns() >= running->look_at_ns)
        look_around(running);
    running->piece->others_ns += give_way(running->worker);
    return stopped(running);
}

/* Idle workers may help with it. */
static void run_one(struct running *running)
{
    struct wharf_cpu_worker *worker = running->worker;
    struct wharf_core *core = worker->backend->core;
    struct wharf_split_decode split;
    struct wharf_cpu_others others = {&running->poll, &split.base, &worker->waits_for_file};

    wharf_split_decode_init(&split, core, running->piece, &running->poll);
    split.ret_waits = &worker->waits_for_helpers;
    wharf_cpu_run(core, &worker->buffers[running->depth], running->piece, &others);
    wharf_split_decode_deinit(&split);
    wharf_done_word_tell(running->piece);
}

static void write_word(struct wharf_piece *piece)
{
    piece->begun_ns = wharf_now_ns();
    wharf_done_word_tell(piece);
    piece->ended_ns = wharf_now_ns();
}

static void run(struct wharf_cpu_worker *worker, struct wharf_piece *pieces, unsigned n,
                const struct running *outer)
{
    struct wharf_core *core = worker->backend->core;
    struct running running = {
        .poll.ask = ask,
        .worker = worker,
        .piece = pieces,
        .back = pieces,
        .end = pieces + n,
        .outer = outer,
        .depth = outer ? outer->depth + 1 : 0,
        .is_long = pieces->estimate_ns > core->config.long_ns,
        .is_brief = pieces->estimate_ns <= WHARF_CPU_BRIEF_NS,
    };

    begin_work(&running, pieces->job->session);
    for (; running.piece < running.end; running.piece++) {
        give_way(worker);
        if (running.piece->kind == WHARF_PIECE_OPEN)
            wharf_batch_open(core, running.piece);
        else if (running.piece->kind == WHARF_PIECE_WORD)
            write_word(running.piece);
        else
            run_one(&running);
        leave_out(worker, running.piece, running.piece->ended_ns);
    }
    end_work(&running);
    if (running.is_long)
        core->nothing_fits = false;
    hand_back(&running);
}

void wharf_cpu_run_pieces(struct wharf_cpu_worker *worker, struct wharf_piece *pieces, unsigned n)
{
    run(worker, pieces, n, NULL);
}

void wharf_cpu_run_lease(struct wharf_cpu_worker *worker)
{
    struct wharf_core *core = worker->backend->core;
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

    begin_work(&running, worker->lease.session);
    while (running.lease && wharf_lease_next(running.lease, now_ns, &piece)) {
        give_way(worker);
        /* All others are busy. */
        wharf_cpu_run(core, &worker->buffers[0], &piece,
                      &(struct wharf_cpu_others){&running.poll, NULL, NULL});
        now_ns = piece.ended_ns;
        leave_out(worker, &piece, now_ns);
        if (running.lease)
            wharf_lease_done(running.lease, &piece);
    }
    if (running.lease) {
        wharf_lease_refill(running.lease, now_ns);
        wharf_lease_wake(running.lease);
    }
    end_work(&running);
    if (running.lease) {
        wharf_lease_end(core, running.lease, NULL);
        return;
    }
    if (running.is_long)
        core->nothing_fits = false;
    piece.job->begun_ns = piece.begun_ns;
    wharf_core_done(core, &piece);
}
