/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake.c: polls rings and hands submissions on.
 *
 * Idea: no thread is dedicated to the rings.  Whoever holds the core lock polls some of them, and
 * before each unlock wharf_core_before_unlock restores the invariant of DESIGN.md, "Polling rings":
 * while any session is watched, some worker is awake, or will poll soon.  Where that cannot be
 * ensured, all sessions are armed, so that their clients ring.
 *
 * Each hold of the lock does a bounded amount of work, since every thread of the daemon waits for
 * it.
 */
#include "daemon/dispatch/intake.h"

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/activity.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/session.h"
#include "daemon/core/session_events.h"
#include "daemon/dispatch/admit.h"
#include "daemon/dispatch/job_stop.h"
#include "daemon/dispatch/starts.h"
#include "daemon/placement/place.h"
#include "daemon/placement/place_pick.h"
#include "daemon/schedule/unqueued_work.h"

/* The most work under one hold of the lock: each unit takes from some tens of nanoseconds to a
 * microsecond. */
#define MOST_RINGS 16
#define MOST_TAKEN 32
#define MOST_EXPIRED 16
/* With plenty to do, many workers pass by: the total number of rings that they poll once each, and
 * the least number for each worker. */
#define MOST_LOOKS 64
#define LEAST_RINGS 4
/* If all but one of BRIEF_PARTS parts of the workers run brief pieces, one of them polls the rings
 * before a doorbell would be heard. */
#define BRIEF_PARTS 4
/* A client with long pauses is watched for this part of the longest time. */
#define LEAST_WATCH_PART 8
/* While all workers are busy, sessions with interactive jobs are watched longer: for this time, and
 * at most this many, since polling them delays others. */
#define LINGER_NS (10 * (uint64_t)WHARF_NS_PER_MS)
#define MOST_LINGERING 16

/*
 * Sets how long the ring is watched next time: twice the client's pause before this submission,
 * unless the pause exceeded the longest time; watching would not have helped then.  Shorter pauses
 * take effect gradually, so that bursts do not hide the pauses between them.
 */
static void learn_gap(struct wharf_core *core, struct wharf_session *session, uint64_t now_ns)
{
    uint64_t most_ns = core->config.spin_ns, least_ns = most_ns / LEAST_WATCH_PART;
    uint64_t gap_ns = now_ns - session->activity.active_ns;
    uint64_t wanted_ns = gap_ns > most_ns ? least_ns : 2 * gap_ns;

    session->activity.comes_back = gap_ns < most_ns;
    session->activity.watch_ns -= session->activity.watch_ns / 8;
    if (wanted_ns > session->activity.watch_ns || gap_ns > most_ns)
        session->activity.watch_ns = wanted_ns;
    if (session->activity.watch_ns < least_ns)
        session->activity.watch_ns = least_ns;
    if (session->activity.watch_ns > most_ns)
        session->activity.watch_ns = most_ns;
}

/* Jobs that ended before they started were unqueued work, and were taken at too low a price.
 * Subtracts that debt from the session's budget now.  Returns the part of `budget` that it
 * takes. */
static uint32_t pay(const struct wharf_core *core, struct wharf_session *session, uint32_t budget)
{
    if (!wharf_core_has_plenty(core))
        session->n_owed = 0;
    uint32_t paid = session->n_owed < budget ? session->n_owed : budget;

    session->n_owed -= paid;
    return paid;
}

/* Takes submissions of one session within `budget`; returns the used part. */
static uint32_t take(struct wharf_core *core, struct wharf_session *session, uint32_t budget,
                     uint64_t now_ns)
{
    struct wharf_submission submission;
    const uint32_t for_new = budget - pay(core, session, budget);
    uint32_t left = for_new;

    while (left > 0) {
        if (session->cancel.is_under_way) {
            left = wharf_core_cancel_step(core, session, left, now_ns);
            continue;
        }
        int r = wharf_ring_take(&session->ring, &submission);
        if (r < 0) {
            wharf_core_set_broken(core, session);
            return budget;
        }
        if (r == 0)
            break;
        bool is_job = wharf_core_enqueue(core, session, &submission, now_ns);
        uint32_t price = !is_job && wharf_core_has_plenty(core) ? WHARF_UNQUEUED_PRICE : 1;
        left -= left < price ? left : price;
    }
    if (left < for_new) {
        learn_gap(core, session, now_ns);
        wharf_core_watch(core, session, now_ns);
        wharf_ring_publish_taken(&session->ring);
    }
    return budget - left;
}

/*
 * Arms a session: from now on its client has to ring.  If the ring already has submissions, the
 * session stays watched; returns whether that is so.
 */
static bool arm(struct wharf_core *core, struct wharf_session *session)
{
    int r = wharf_ring_daemon_arm(&session->ring);

    if (r < 0) {
        wharf_core_set_broken(core, session);
        return false;
    }
    if (r > 0 || session->cancel.is_under_way)
        return true;
    wharf_core_unwatch(core, session);
    return false;
}

/*
 * Whether a session stays watched although its time is over.  While all workers are busy, they poll
 * the rings between two pieces anyway; and the loop thread, which hears doorbells, waits for a
 * processor, perhaps for milliseconds.
 */
static bool may_linger(const struct wharf_core *core, const struct wharf_session *session,
                       uint64_t now_ns)
{
    bool all_are_busy =
        core->workers.n_sleeping == 0 && wharf_place_n_for_cpu(core) > 0 && !core->nothing_fits;

    return session->activity.is_interactive && all_are_busy &&
           now_ns - session->activity.active_ns < LINGER_NS &&
           (session->activity.lingers || core->watching.n_lingering < MOST_LINGERING);
}

/* Polls the next watched session, or arms it if its time is over. */
static uint32_t look_at_next(struct wharf_core *core, uint32_t budget, uint64_t now_ns)
{
    struct wharf_session *session =
        WHARF_LIST_FIRST(&core->watching.watched, struct wharf_session, activity.watch_link);

    wharf_list_rotate(&core->watching.watched);
    uint32_t used = take(core, session, budget, now_ns);
    if (used > 0 || now_ns - session->activity.active_ns < session->activity.watch_ns)
        return used;
    if (may_linger(core, session, now_ns))
        wharf_core_set_lingers(core, session, true);
    else
        arm(core, session);
    return 0;
}

static bool look_at_rings(struct wharf_core *core, uint64_t now_ns)
{
    uint32_t budget = MOST_TAKEN;
    unsigned most = MOST_RINGS;

    if (wharf_core_has_plenty(core)) {
        most = MOST_LOOKS / core->workers.n_workers;
        most = most < LEAST_RINGS ? LEAST_RINGS : most > MOST_RINGS ? MOST_RINGS : most;
    }
    for (unsigned n = 0; n < most && budget > 0 && wharf_core_watches(core); n++)
        budget -= look_at_next(core, budget, now_ns);
    return budget < MOST_TAKEN;
}

static void expire(struct wharf_core *core, uint64_t now_ns)
{
    for (unsigned n = 0; n < MOST_EXPIRED; n++) {
        struct wharf_heap_node *first = core->deadlines.root;
        if (!first || first->key > now_ns)
            return;
        wharf_core_stop_job(core, WHARF_LIST_ENTRY(first, struct wharf_job, deadline),
                            WHARF_DEADLINE, now_ns);
    }
}

bool wharf_core_poll_rings(struct wharf_core *core)
{
    uint64_t now_ns = wharf_now_ns();

    expire(core, now_ns);
    bool found = look_at_rings(core, now_ns);
    return wharf_starts_look(core, now_ns) || found;
}

/* ---- who polls next ------------------------------------------------------------------------ */

bool wharf_core_call_worker(struct wharf_core *core)
{
    if (core->n_called == sizeof(core->called) / sizeof(core->called[0]))
        return false;
    void *called = core->backend ? core->backend->ops->call(core->backend) : NULL;
    if (!called)
        return false;
    core->called[core->n_called++] = called;
    /* From now on it may block. */
    if (!core->is_watched_over)
        core->wake_loop = true;
    return true;
}

/* Whether some thread polls the rings soon. */
static bool somebody_looks(const struct wharf_core *core)
{
    return core->workers.n_awake > 0 || core->fleet.gpus_looking ||
           (core->workers.n_sleeping == 0 && core->workers.n_short > 0) ||
           (core->workers.n_brief > 0 &&
            BRIEF_PARTS * core->workers.n_brief >= (BRIEF_PARTS - 1) * core->workers.n_workers);
}

/* Arms all watched sessions.  If some stay watched, because their rings have submissions, another
 * thread has to poll. */
static void arm_all(struct wharf_core *core, uint64_t now_ns)
{
    uint32_t budget = MOST_TAKEN;
    bool more = false;

    WHARF_LIST_FOR(link, &core->watching.watched)
    {
        struct wharf_session *session =
            WHARF_LIST_ENTRY(link, struct wharf_session, activity.watch_link);
        if (budget == 0) {
            more = true;
            break;
        }
        if (!arm(core, session))
            continue;
        budget -= take(core, session, budget, now_ns);
        if (session->activity.is_watched && arm(core, session))
            more = true;
    }
    if (more && !wharf_core_call_worker(core))
        core->wake_loop = true;
}

static bool has_more_than_are_awake(const struct wharf_core *core)
{
    return wharf_place_n_for_cpu(core) > core->workers.n_awake && !core->nothing_fits;
}

/*
 * Calls workers for queued jobs.  After a GPU has taken a job, another one is first.  If that is
 * the GPU's too, workers that came for it would only disturb the GPU's thread, under load after
 * every few chunks.  So the first job is examined before any worker is called.
 */
static void call_workers(struct wharf_core *core)
{
    if (has_more_than_are_awake(core) && core->workers.n_sleeping > 0 &&
        wharf_place_may_be_gpus(core))
        core->nothing_fits = !wharf_place_first_for_cpu(core, UINT64_MAX);
    while (has_more_than_are_awake(core))
        if (!wharf_core_call_worker(core))
            break;
}

void wharf_core_before_unlock(struct wharf_core *core)
{
    if (!wharf_list_is_empty(&core->due)) {
        wharf_place_due(core);
        /* At least the loop thread continues. */
        core->wake_loop |= !wharf_list_is_empty(&core->due);
    }
    if (wharf_core_watches(core) && !somebody_looks(core))
        arm_all(core, wharf_now_ns());
    call_workers(core);
    /* A wharf-gpu thread that is called will poll. */
    uint32_t called = core->fleet.gpus_asleep ? wharf_place_gpus_to_wake(core) : 0;
    core->fleet.gpus_asleep &= ~called;
    core->fleet.gpus_called |= called;
    /* While all workers sleep or are busy, only the loop thread watches deadlines. */
    if (core->deadlines.root && core->deadlines.root->key < core->loop_wakes_at_ns)
        core->wake_loop = true;
}

bool wharf_core_doorbell(struct wharf_core *core, struct wharf_session *session, uint32_t n_packets)
{
    uint64_t now_ns = wharf_now_ns();

    session->tenant->stats.n_doorbells += n_packets;
    if (session->state != WHARF_SESSION_LIVE || session->activity.is_watched)
        return false;
    /* A client that rings without submissions is not watched. */
    if (take(core, session, MOST_TAKEN, now_ns) == 0)
        return false;
    /* If it only paid its debt, its submissions are still in the ring. */
    if (!session->is_broken)
        wharf_core_watch(core, session, now_ns);
    /* Watch it if the client will come back soon, or its stream; otherwise it rings again. */
    if (!session->is_broken && !somebody_looks(core) &&
        (session->activity.comes_back || wharf_starts_is_young(core, session->tenant, now_ns)))
        wharf_core_call_worker(core);
    return true;
}
