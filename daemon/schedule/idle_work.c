/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle_work.c: counts who waits for background compression, and adapts how much of it may run.
 *
 * Multiplicative decrease, additive increase: a job that had to wait halves the number of workers
 * that may take such work, and sixteen pieces without one add a worker again.
 */
#include "daemon/schedule/idle_work.h"

#include "daemon/core/core.h"
#include "daemon/core/job.h"
#include "daemon/schedule/sched.h"

/* How many pieces without a delayed job add a worker. */
#define CALM_PIECES 16

static bool others_wait(const struct wharf_core *core, enum wharf_pool pool)
{
    for (unsigned lane = 0; lane < WHARF_LANE_IDLE; lane++)
        if (wharf_sched_n_tenants(&core->sched[pool], (enum wharf_lane)lane) > 0)
            return true;
    return false;
}

uint32_t wharf_idle_work_allowed(const struct wharf_core *core)
{
    uint32_t n_workers = core->workers.n_workers, n_fewer = core->idle_work.n_fewer;

    return n_workers > n_fewer + 1 ? n_workers - n_fewer : 1;
}

bool wharf_idle_work_may_begin(const struct wharf_core *core)
{
    return core->idle_work.n_running < wharf_idle_work_allowed(core) &&
           !others_wait(core, WHARF_POOL_CPU) && !others_wait(core, WHARF_POOL_ANY);
}

/* A job had to wait while idle work ran. */
static void throttle(struct wharf_core *core)
{
    core->idle_work.n_fewer = core->workers.n_workers - wharf_idle_work_allowed(core) / 2;
    core->idle_work.n_calm = 0;
    core->idle_work.n_throttled++;
}

/* Whether the piece is what its job waited for: not a later slice of a batch, and not the word of a
 * job that has ended. */
static bool is_first_of_job(const struct wharf_piece *piece)
{
    return piece->kind == WHARF_PIECE_CHUNK || piece->kind == WHARF_PIECE_OPEN;
}

void wharf_idle_work_taken(struct wharf_core *core, struct wharf_piece *piece, uint64_t now_ns)
{
    const struct wharf_job *job = piece->job;

    piece->is_idle = job->lane == WHARF_LANE_IDLE;
    if (piece->is_idle) {
        core->idle_work.n_running++;
        core->idle_work.n_pieces++;
    } else if (job->lane < WHARF_LANE_BACKGROUND && is_first_of_job(piece) &&
               core->idle_work.n_running > 0 && now_ns - job->taken_ns > core->config.slice_ns) {
        throttle(core);
    }
}

void wharf_idle_work_ended(struct wharf_core *core, const struct wharf_piece *piece)
{
    if (!piece->is_idle)
        return;
    core->idle_work.n_running--;
    core->nothing_fits = false;
    if (++core->idle_work.n_calm < CALM_PIECES)
        return;
    core->idle_work.n_calm = 0;
    if (core->idle_work.n_fewer > 0)
        core->idle_work.n_fewer--;
}
