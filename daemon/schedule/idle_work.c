/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle_work.c: counts who waits for background compression, and adapts how much of it may run.
 *
 * Multiplicative decrease, additive increase up to the number that is known to delay others.
 */
#include "daemon/schedule/idle_work.h"

#include "daemon/core/core.h"
#include "daemon/core/job.h"
#include "daemon/schedule/sched.h"

/* How many pieces without a delayed job add one to those allowed. */
#define CALM_PIECES 16

/* How many others must begin undelayed before one more is tried than delayed the last one: fewer
 * than one in a hundred shall wait, so that their 99th percentile stays.  And how many pieces
 * without any other job let go of that. */
#define UNDELAYED_JOBS 1000
#define ALONE_PIECES 4096

/*
 * Percent that chunks may take beside idle work of what they take alone.  Single chunks vary by
 * much more, so a mean of STRAIN_OF decides, in which one chunk counts as at most MOST_STRAIN: a
 * few that met something else, or times that scatter by a fifth, leave it below STRAIN.  Where all
 * take 15 % longer it is reached after 25 chunks.
 */
#define STRAIN 108
#define STRAIN_OF 32
#define MOST_STRAIN 150

static bool others_wait(const struct wharf_core *core, enum wharf_pool pool)
{
    for (unsigned lane = 0; lane < WHARF_LANE_IDLE; lane++)
        if (wharf_sched_n_tenants(&core->sched[pool], (enum wharf_lane)lane) > 0)
            return true;
    return false;
}

uint32_t wharf_idle_work_allowed(const struct wharf_idle_work *idle, uint32_t n_most)
{
    return n_most > idle->n_fewer + 1 ? n_most - idle->n_fewer : 1;
}

bool wharf_idle_work_may_begin(const struct wharf_core *core)
{
    return core->idle_work.n_running <
               wharf_idle_work_allowed(&core->idle_work, core->workers.n_workers) &&
           !others_wait(core, WHARF_POOL_CPU) && !others_wait(core, WHARF_POOL_ANY);
}

/* Idle work delayed something. */
static void throttle(struct wharf_idle_work *idle, uint32_t n_most)
{
    idle->n_fewer = n_most - wharf_idle_work_allowed(idle, n_most) / 2;
    idle->n_calm = 0;
    idle->n_throttled++;
}

/* Other work began, and waited or did not while idle work occupied workers. */
static void reserve(struct wharf_idle_work *idle, uint32_t n_most, bool was_delayed)
{
    idle->n_alone = 0;
    if (was_delayed) {
        uint32_t n_reserved = idle->n_running < n_most ? n_most - idle->n_running + 1 : 1;
        idle->n_reserved = n_reserved < n_most ? n_reserved : n_most - 1;
        idle->n_undelayed = 0;
        throttle(idle, n_most);
    } else if (idle->n_reserved > 0 && ++idle->n_undelayed == UNDELAYED_JOBS) {
        idle->n_reserved--;
        idle->n_undelayed = 0;
    }
}

/* Whether the piece is what its job waited for: not a later slice of a batch, and not the word of a
 * job that has ended. */
static bool is_first_of_job(const struct wharf_piece *piece)
{
    return piece->kind == WHARF_PIECE_CHUNK || piece->kind == WHARF_PIECE_OPEN;
}

void wharf_idle_work_begin(struct wharf_idle_work *idle, struct wharf_piece *piece)
{
    if (piece->job->lane != WHARF_LANE_IDLE)
        return;
    piece->idle = idle;
    idle->n_running++;
    idle->n_pieces++;
}

void wharf_idle_work_put_off(struct wharf_idle_work *idle, struct wharf_piece *piece)
{
    piece->idle = NULL;
    idle->n_running--;
    idle->n_withdrawn++;
}

void wharf_idle_work_taken(struct wharf_core *core, struct wharf_piece *piece, uint64_t now_ns)
{
    const struct wharf_job *job = piece->job;

    wharf_idle_work_begin(&core->idle_work, piece);
    if (!piece->idle && job->lane < WHARF_LANE_BACKGROUND && is_first_of_job(piece) &&
        core->idle_work.n_running > 0)
        reserve(&core->idle_work, core->workers.n_workers,
                now_ns - job->taken_ns > core->config.slice_ns);
}

void wharf_idle_work_compare(struct wharf_idle_work *idle, uint32_t n_most, uint64_t took_ns,
                             uint64_t alone_ns)
{
    uint64_t percent = took_ns / (alone_ns / 100 + 1);

    percent = percent < MOST_STRAIN ? percent : MOST_STRAIN;
    if (idle->strain == 0)
        idle->strain = 100 * STRAIN_OF;
    idle->strain += (uint32_t)percent - idle->strain / STRAIN_OF;
    if (idle->strain <= STRAIN * STRAIN_OF)
        return;
    idle->strain = 0;
    throttle(idle, n_most);
}

void wharf_idle_work_ended(struct wharf_core *core, struct wharf_piece *piece)
{
    struct wharf_idle_work *idle = piece->idle;

    if (!idle)
        return;
    piece->idle = NULL;
    idle->n_running--;
    idle->nbytes += piece->in_nbytes;
    core->nothing_fits = false;
    if (++idle->n_alone == ALONE_PIECES)
        idle->n_reserved = 0;
    if (++idle->n_calm < CALM_PIECES)
        return;
    idle->n_calm = 0;
    if (idle->n_fewer > idle->n_reserved)
        idle->n_fewer--;
}
