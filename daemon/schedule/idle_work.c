/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/schedule/idle_work.h"

#include "daemon/core/front.h"
#include "daemon/core/job.h"
#include "daemon/schedule/sched.h"

/* Pieces that nobody waited for, until one more worker may have some. */
#define CALM_PIECES 16

static bool others_wait(const struct wharf_front *front, enum wharf_pool pool)
{
    for (unsigned lane = 0; lane < WHARF_LANE_IDLE; lane++)
        if (wharf_sched_n_tenants(&front->sched[pool], (enum wharf_lane)lane) > 0)
            return true;
    return false;
}

uint32_t wharf_idle_work_allowed(const struct wharf_front *front)
{
    uint32_t n_workers = front->workers.n_workers, n_fewer = front->idle_work.n_fewer;

    return n_workers > n_fewer + 1 ? n_workers - n_fewer : 1;
}

bool wharf_idle_work_may_begin(const struct wharf_front *front)
{
    return front->idle_work.n_running < wharf_idle_work_allowed(front) &&
           !others_wait(front, WHARF_POOL_CPU) && !others_wait(front, WHARF_POOL_ANY);
}

/* Somebody waited while idle work ran. */
static void throttle(struct wharf_front *front)
{
    front->idle_work.n_fewer = front->workers.n_workers - wharf_idle_work_allowed(front) / 2;
    front->idle_work.n_calm = 0;
    front->idle_work.n_throttled++;
}

void wharf_idle_work_taken(struct wharf_front *front, const struct wharf_piece *piece,
                           uint64_t now_ns)
{
    const struct wharf_job *job = piece->job;

    if (job->lane == WHARF_LANE_IDLE) {
        front->idle_work.n_running++;
        front->idle_work.n_pieces++;
    } else if (job->lane < WHARF_LANE_BACKGROUND && piece->kind != WHARF_PIECE_SLICE &&
               front->idle_work.n_running > 0 && now_ns - job->taken_ns > front->config.slice_ns) {
        throttle(front);
    }
}

void wharf_idle_work_ended(struct wharf_front *front, const struct wharf_job *job)
{
    if (job->lane != WHARF_LANE_IDLE)
        return;
    front->idle_work.n_running--;
    front->nothing_fits = false;
    if (++front->idle_work.n_calm < CALM_PIECES)
        return;
    front->idle_work.n_calm = 0;
    if (front->idle_work.n_fewer > 0)
        front->idle_work.n_fewer--;
}
