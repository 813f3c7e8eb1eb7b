/* SPDX-License-Identifier: Apache-2.0 */
/* front.c: the lock, the rings and the sessions. */
#include "daemon/front.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/cleanup.h"
#include "daemon/clock.h"
#include "daemon/lease.h"
#include "daemon/loop.h"
#include "proto/control.h"
#include "proto/relax.h"

/* What is done at most under one hold of the lock: each is some tens of nanoseconds to a
 * microsecond. */
#define MOST_RINGS 16
/* Where there is plenty to do, many workers come by: rings looked at by all of them, each once, and
 * at least by each. */
#define MOST_LOOKS 64
#define LEAST_RINGS 4
#define MOST_TAKEN 32
#define MOST_EXPIRED 16
/* If all but one of so many parts of the workers are at something brief, one of them looks before a
 * doorbell is heard. */
#define BRIEF_PARTS 4
/* A session is called active for so long after it was: clients of a flood have to do something with
 * what they have got before they submit more. */
#define STALE_NS ((uint64_t)WHARF_NS_PER_MS)
/* A client that is quiet for long is watched for this part of the longest time. */
#define LEAST_WATCH_PART 8
/* Sessions whose clients are woken after it; further ones are woken under it. */
#define MOST_WAKES 64
/* Jobs of a dead session that are forgotten under one hold. */
#define MOST_FORGOTTEN 256

int wharf_front_init(struct wharf_front *front, const struct wharf_config *config,
                     struct wharf_loop *loop)
{
    pthread_mutexattr_t attributes;

    memset(front, 0, sizeof(*front));
    front->loop = loop;
    front->config = *config;
    front->loop_wakes_at_ns = WHARF_NEVER;
    front->promise_fd = -1;
    front->gpu_wake_fd = -1;
    wharf_tenants_init(&front->tenants);
    wharf_list_init(&front->sessions);
    wharf_list_init(&front->watched);
    wharf_list_init(&front->unpublished);
    wharf_list_init(&front->stale);
    wharf_list_init(&front->leases);
    wharf_list_init(&front->events);
    wharf_list_init(&front->memories);
    wharf_list_init(&front->orphans);
    wharf_gpu_spares_init(&front->spares);
    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        wharf_sched_init(&front->sched[i], (enum wharf_pool)i, config->slice_ns);
    /* Holds are short: waiting awake for a while is cheaper than sleeping. */
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    int r = pthread_mutex_init(&front->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    if (r != 0)
        return -r;
    front->gpu_wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (front->gpu_wake_fd < 0)
        return -errno;
    if (getrandom(&front->generation, sizeof(front->generation), 0) != sizeof(front->generation))
        return -EIO;
    return 0;
}

void wharf_front_deinit(struct wharf_front *front)
{
    wharf_tenants_deinit(&front->tenants);
    wharf_close_fd(front->gpu_wake_fd);
    pthread_mutex_destroy(&front->lock);
}

/* ---- watching ------------------------------------------------------------------------------ */

static void count_active(struct wharf_front *front, struct wharf_session *session, bool is_active)
{
    struct wharf_tenant *tenant = session->tenant;

    if (is_active == session->is_active)
        return;
    session->is_active = is_active;
    if (is_active && tenant->n_active++ == 0) {
        tenant->active_weight = tenant->quota.weight;
        front->active_weight += tenant->active_weight;
    } else if (!is_active && --tenant->n_active == 0) {
        front->active_weight -= tenant->active_weight;
    }
}

void wharf_front_count_active(struct wharf_front *front, struct wharf_session *session)
{
    bool is_active = session->is_watched || session->lease || session->n_in_flight > 0;

    wharf_list_remove(&session->stale_link);
    if (session->state != WHARF_SESSION_LIVE)
        count_active(front, session, false);
    else if (is_active)
        count_active(front, session, true);
    else if (session->is_active)
        wharf_list_append(&front->stale, &session->stale_link);
}

void wharf_front_drop_stale(struct wharf_front *front, uint64_t now_ns)
{
    for (unsigned n = 0; n < MOST_EXPIRED; n++) {
        struct wharf_session *session =
            WHARF_LIST_FIRST(&front->stale, struct wharf_session, stale_link);
        if (!session || now_ns - session->active_ns < STALE_NS)
            return;
        wharf_list_remove(&session->stale_link);
        count_active(front, session, false);
    }
}

void wharf_front_watch(struct wharf_front *front, struct wharf_session *session, uint64_t now_ns)
{
    session->active_ns = now_ns;
    if (session->is_watched || session->state != WHARF_SESSION_LIVE)
        return;
    session->is_watched = true;
    wharf_list_append(&front->watched, &session->watch_link);
    wharf_ring_daemon_disarm(&session->ring);
    wharf_front_count_active(front, session);
}

/*
 * How long the ring is watched the next time: twice as long as the client was quiet before this
 * submission, if it was no longer quiet than watching may last.  If it was, watching would have
 * been in vain.  A shorter gap than before counts little by little, so that bursts do not hide the
 * gaps between them.
 */
static void learn_gap(struct wharf_front *front, struct wharf_session *session, uint64_t now_ns)
{
    uint64_t most_ns = front->config.spin_ns, least_ns = most_ns / LEAST_WATCH_PART;
    uint64_t gap_ns = now_ns - session->active_ns;
    uint64_t wanted_ns = gap_ns > most_ns ? least_ns : 2 * gap_ns;

    session->comes_back = gap_ns < most_ns;
    session->watch_ns -= session->watch_ns / 8;
    if (wanted_ns > session->watch_ns || gap_ns > most_ns)
        session->watch_ns = wanted_ns;
    if (session->watch_ns < least_ns)
        session->watch_ns = least_ns;
    if (session->watch_ns > most_ns)
        session->watch_ns = most_ns;
}

static void unwatch(struct wharf_front *front, struct wharf_session *session)
{
    session->is_watched = false;
    wharf_list_remove(&session->watch_link);
    wharf_front_count_active(front, session);
}

void wharf_front_set_broken(struct wharf_front *front, struct wharf_session *session)
{
    session->is_broken = true;
    session->state = WHARF_SESSION_DRAINING;
    wharf_list_remove(&session->publish_link);
    unwatch(front, session);
    wharf_front_tell_loop(front, session);
}

/* Takes submissions of one session, at most `budget`; returns how much of it was used. */
static uint32_t take(struct wharf_front *front, struct wharf_session *session, uint32_t budget,
                     uint64_t now_ns)
{
    struct wharf_submission submission;
    uint32_t left = budget;

    session->max_job_nbytes = session->tenant->quota.max_job_nbytes;
    while (left > 0) {
        if (session->cancel.is_under_way) {
            left = wharf_front_cancel_step(front, session, left, now_ns);
            continue;
        }
        int r = wharf_ring_take(&session->ring, &submission);
        if (r < 0) {
            wharf_front_set_broken(front, session);
            return budget;
        }
        if (r == 0)
            break;
        wharf_front_admit(front, session, &submission, now_ns);
        left--;
    }
    if (left < budget) {
        learn_gap(front, session, now_ns);
        wharf_front_watch(front, session, now_ns);
        wharf_ring_publish_taken(&session->ring);
    }
    return budget - left;
}

/*
 * From now on the client has to ring, unless there is something in its ring already; whether that
 * is so.  The session is then still watched.
 */
static bool arm(struct wharf_front *front, struct wharf_session *session)
{
    int r = wharf_ring_daemon_arm(&session->ring);

    if (r < 0) {
        wharf_front_set_broken(front, session);
        return false;
    }
    if (r > 0 || session->cancel.is_under_way)
        return true;
    unwatch(front, session);
    return false;
}

/* Looks at the next watched session; one that has been quiet for long enough is armed. */
static uint32_t look_at_next(struct wharf_front *front, uint32_t budget, uint64_t now_ns)
{
    struct wharf_session *session =
        WHARF_LIST_FIRST(&front->watched, struct wharf_session, watch_link);

    wharf_list_rotate(&front->watched);
    uint32_t used = take(front, session, budget, now_ns);
    if (used == 0 && now_ns - session->active_ns >= session->watch_ns)
        arm(front, session);
    return used;
}

bool wharf_front_has_plenty(const struct wharf_front *front)
{
    return front->n_sleeping == 0 && front->n_workers > 0 &&
           wharf_place_n_for_cpu(front) >= front->n_workers;
}

static bool look_at_rings(struct wharf_front *front, uint64_t now_ns)
{
    uint32_t budget = MOST_TAKEN;
    unsigned most = MOST_RINGS;

    if (wharf_front_has_plenty(front)) {
        most = MOST_LOOKS / front->n_workers;
        most = most < LEAST_RINGS ? LEAST_RINGS : most > MOST_RINGS ? MOST_RINGS : most;
    }
    for (unsigned n = 0; n < most && budget > 0 && wharf_front_watches(front); n++)
        budget -= look_at_next(front, budget, now_ns);
    return budget < MOST_TAKEN;
}

static void expire(struct wharf_front *front, uint64_t now_ns)
{
    for (unsigned n = 0; n < MOST_EXPIRED; n++) {
        struct wharf_heap_node *first = front->deadlines.root;
        if (!first || first->key > now_ns)
            return;
        wharf_front_stop_job(front, WHARF_LIST_ENTRY(first, struct wharf_job, deadline),
                             WHARF_DEADLINE, now_ns);
    }
}

bool wharf_front_look(struct wharf_front *front)
{
    uint64_t now_ns = wharf_now_ns();

    expire(front, now_ns);
    return look_at_rings(front, now_ns);
}

/* ---- who looks next ------------------------------------------------------------------------ */

/* Calls a sleeping thread of the engine, which counts as awake from now on. */
static bool call_worker(struct wharf_front *front)
{
    if (front->n_called == sizeof(front->called) / sizeof(front->called[0]))
        return false;
    void *called = front->backend ? front->backend->ops->call(front->backend) : NULL;
    if (!called)
        return false;
    front->called[front->n_called++] = called;
    return true;
}

/* Whether somebody looks at the rings before long. */
static bool somebody_looks(const struct wharf_front *front)
{
    return front->n_awake > 0 || front->gpu_view.looks ||
           (front->n_sleeping == 0 && front->n_short > 0) ||
           (front->n_brief > 0 &&
            BRIEF_PARTS * front->n_brief >= (BRIEF_PARTS - 1) * front->n_workers);
}

/* Arms all watched sessions.  If some cannot be because there is something in their rings, somebody
 * else has to look. */
static void arm_all(struct wharf_front *front, uint64_t now_ns)
{
    uint32_t budget = MOST_TAKEN;
    bool more = false;

    WHARF_LIST_FOR(link, &front->watched)
    {
        struct wharf_session *session = WHARF_LIST_ENTRY(link, struct wharf_session, watch_link);
        if (budget == 0) {
            more = true;
            break;
        }
        if (!arm(front, session))
            continue;
        budget -= take(front, session, budget, now_ns);
        if (session->is_watched && arm(front, session))
            more = true;
    }
    if (more && !call_worker(front))
        front->wake_loop = true;
}

/* Before the lock is given back: no ring is overlooked, no work waits while somebody sleeps. */
static void settle(struct wharf_front *front)
{
    if (wharf_front_watches(front) && !somebody_looks(front))
        arm_all(front, wharf_now_ns());
    while (wharf_place_n_for_cpu(front) > front->n_awake && !front->nothing_fits)
        if (!call_worker(front))
            break;
    if (front->gpu && !front->called_gpu && wharf_place_wants_gpu(front))
        front->called_gpu = front->gpu->ops->call(front->gpu);
    /* Jobs' deadlines are nobody else's business while all workers sleep or are busy. */
    if (front->deadlines.root && front->deadlines.root->key < front->loop_wakes_at_ns)
        front->wake_loop = true;
}

/* ---- the lock ------------------------------------------------------------------------------ */

struct wakes {
    struct {
        struct wharf_session *session;
        uint64_t kinds;
    } items[MOST_WAKES];
    uint32_t n;
    void *called[2];
    uint32_t n_called;
    void *gpu;
    bool loop;
};

void wharf_front_wake_client(struct wharf_session *session, uint64_t kinds)
{
    struct wharf_ring_d *d = session->ring.d;

    if (kinds & WHARF_WAIT_FUTEX)
        syscall(SYS_futex, &d->cq_tail, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    if (kinds & WHARF_WAIT_PACKET)
        wharf_control_wake(session->socket);
}

static void publish_all(struct wharf_front *front, struct wakes *wakes)
{
    WHARF_LIST_FOR(link, &front->unpublished)
    {
        struct wharf_session *session = WHARF_LIST_ENTRY(link, struct wharf_session, publish_link);
        wharf_list_remove(link);
        uint64_t kinds = wharf_ring_publish_completions(&session->ring);
        if (session->state == WHARF_SESSION_DRAINING && session->n_in_flight == 0)
            wharf_front_tell_loop(front, session);
        if (!kinds)
            continue;
        if (wakes->n == MOST_WAKES) {
            wharf_front_wake_client(session, kinds);
            continue;
        }
        session->n_pins++;
        wakes->items[wakes->n].session = session;
        wakes->items[wakes->n++].kinds = kinds;
    }
}

static void unlock(struct wharf_front *front, struct wakes *wakes)
{
    wakes->loop = front->wake_loop;
    front->wake_loop = false;
    wakes->n_called = front->n_called;
    memcpy(wakes->called, front->called, front->n_called * sizeof(front->called[0]));
    front->n_called = 0;
    wakes->gpu = front->called_gpu;
    front->called_gpu = NULL;
    pthread_mutex_unlock(&front->lock);
    /* One that rang, and sleeps until it is answered, before workers that may watch from now on. */
    if (wakes->n > 0)
        wharf_front_wake_client(wakes->items[0].session, wakes->items[0].kinds);
    for (uint32_t i = 0; i < wakes->n_called; i++)
        front->backend->ops->wake(wakes->called[i]);
    if (wakes->gpu)
        wharf_gpu_backend.wake(wakes->gpu);
    if (wakes->loop)
        wharf_loop_wake(front->loop);
}

/* Looks at the lock of the GPU's thread before it sleeps, and of others that let it go first: some
 * holds of the lock long. */
#define MOST_LOCK_LOOKS 400
#define MOST_POLITE_LOOKS 64

void wharf_front_enter(struct wharf_front *front)
{
    for (unsigned n = 0; n < MOST_POLITE_LOOKS; n++) {
        if (!__atomic_load_n(&front->gpu_is_coming, __ATOMIC_RELAXED))
            break;
        wharf_relax();
    }
    pthread_mutex_lock(&front->lock);
}

void wharf_front_enter_first(struct wharf_front *front)
{
    int r = EBUSY;

    __atomic_store_n(&front->gpu_is_coming, 1, __ATOMIC_RELAXED);
    for (unsigned n = 0; n < MOST_LOCK_LOOKS; n++) {
        r = pthread_mutex_trylock(&front->lock);
        if (r == 0)
            break;
        wharf_relax();
    }
    if (r != 0)
        pthread_mutex_lock(&front->lock);
    __atomic_store_n(&front->gpu_is_coming, 0, __ATOMIC_RELAXED);
}

void wharf_front_leave(struct wharf_front *front)
{
    struct wakes wakes;

    wakes.n = 0;
    settle(front);
    publish_all(front, &wakes);
    unlock(front, &wakes);
    if (wakes.n == 0)
        return;
    for (uint32_t i = 1; i < wakes.n; i++)
        wharf_front_wake_client(wakes.items[i].session, wakes.items[i].kinds);
    pthread_mutex_lock(&front->lock);
    for (uint32_t i = 0; i < wakes.n; i++) {
        wakes.items[i].session->n_pins--;
        wharf_front_release(front, wakes.items[i].session);
    }
    wakes.n = 0;
    unlock(front, &wakes);
}

/* ---- sessions ------------------------------------------------------------------------------ */

void wharf_front_add_session(struct wharf_front *front, struct wharf_session *session)
{
    wharf_list_append(&front->sessions, &session->session_link);
    session->tenant->stats.n_sessions++;
    wharf_front_tell_cpu_only(front, session);
}

void wharf_front_tell_cpu_only(struct wharf_front *front, struct wharf_session *session)
{
    const struct wharf_gpu_view *gpu = &front->gpu_view;
    bool has_gpu =
        gpu->is_up && (session->engine == WHARF_ENGINE_AUTO || session->engine == gpu->engine);

    session->ring_flags &= ~(uint32_t)WHARF_RING_CPU_ONLY;
    if (!has_gpu)
        session->ring_flags |= WHARF_RING_CPU_ONLY;
    wharf_ring_store_flags(&session->ring.d->flags, session->ring_flags);
}

bool wharf_front_rung(struct wharf_front *front, struct wharf_session *session, uint32_t n_packets)
{
    uint64_t now_ns = wharf_now_ns();

    session->tenant->stats.n_doorbells += n_packets;
    if (session->state != WHARF_SESSION_LIVE || session->is_watched)
        return false;
    /* A client that rings for nothing is not worth a thread's watch. */
    if (take(front, session, MOST_TAKEN, now_ns) == 0)
        return false;
    /* Worth a thread's watch if the client is about to come back; otherwise it rings again. */
    if (!session->is_broken && !somebody_looks(front) && session->comes_back)
        call_worker(front);
    return true;
}

void wharf_front_drain_session(struct wharf_front *front, struct wharf_session *session)
{
    if (session->state != WHARF_SESSION_LIVE)
        return;
    wharf_front_recall(front, session);
    wharf_front_let_go(session);
    if (session->state != WHARF_SESSION_LIVE)
        return;
    session->state = WHARF_SESSION_DRAINING;
    unwatch(front, session);
    session->ring_flags |= WHARF_RING_DRAINING;
    wharf_ring_store_flags(&session->ring.d->flags, session->ring_flags);
    /* All of it, since nobody looks at the ring any more. */
    if (session->cancel.is_under_way)
        wharf_front_cancel_step(front, session, session->ring.n_entries, wharf_now_ns());
    if (session->n_in_flight == 0)
        wharf_front_tell_loop(front, session);
}

void wharf_front_release(struct wharf_front *front, struct wharf_session *session)
{
    if (session->state == WHARF_SESSION_DEAD && session->n_pieces == 0 && session->n_pins == 0)
        wharf_front_tell_loop(front, session);
}

void wharf_front_forfeit_session(struct wharf_front *front, struct wharf_session *session)
{
    wharf_front_enter(front);
    session->ring_flags |= WHARF_RING_FORFEITED;
    wharf_ring_store_flags(&session->ring.d->flags, session->ring_flags);
    wharf_front_leave(front);
}

void wharf_front_recall(struct wharf_front *front, struct wharf_session *session)
{
    session->n_recalls++;
    while (session->lease) {
        wharf_lease_revoke(session->lease);
        wharf_front_leave(front);
        sched_yield();
        wharf_front_enter(front);
    }
}

void wharf_front_recall_all(struct wharf_front *front)
{
    /* Others may begin meanwhile. */
    for (uint32_t n = 0; n < front->n_workers; n++) {
        struct wharf_lease *lease = WHARF_LIST_FIRST(&front->leases, struct wharf_lease, link);
        if (!lease)
            return;
        struct wharf_session *session = lease->session;
        wharf_front_recall(front, session);
        wharf_front_let_go(session);
    }
}

void wharf_front_bury(struct wharf_front *front, struct wharf_session *session)
{
    if (session->home)
        wharf_lease_forget(session->home);
    wharf_list_remove(&session->publish_link);
    wharf_place_drop(front, session);
    front->nothing_fits = false;
    /* Keeps it from being released while its jobs are gone through. */
    session->n_pins++;
    for (uint32_t i = 0; i < session->ring.n_entries; i++) {
        wharf_front_forget_job(front, &session->jobs[i]);
        if (i % MOST_FORGOTTEN == MOST_FORGOTTEN - 1) {
            wharf_front_leave(front);
            wharf_front_enter(front);
        }
    }
    session->n_pins--;
    wharf_front_release(front, session);
}

void wharf_front_kill_session(struct wharf_front *front, struct wharf_session *session)
{
    wharf_front_enter(front);
    session->state = WHARF_SESSION_DEAD;
    unwatch(front, session);
    /* A worker that has it to itself does the rest, when it has ended the chunk that it is at. */
    if (session->lease)
        wharf_lease_revoke(session->lease);
    else
        wharf_front_bury(front, session);
    wharf_front_leave(front);
}

static bool is_news(struct wharf_session *session, enum wharf_session_news news)
{
    if (session->told & 1u << news)
        return false;
    switch (news) {
    case WHARF_SESSION_IS_BROKEN:
        return session->is_broken && session->state != WHARF_SESSION_DEAD;
    case WHARF_SESSION_IS_DRAINED:
        return session->state == WHARF_SESSION_DRAINING && !session->is_broken &&
               session->n_in_flight == 0;
    default:
        return session->state == WHARF_SESSION_DEAD && session->n_pieces == 0 &&
               session->n_pins == 0;
    }
}

struct wharf_session *wharf_front_next_news(struct wharf_front *front,
                                            enum wharf_session_news *ret_news)
{
    struct wharf_session *session;

    while ((session = WHARF_LIST_FIRST(&front->events, struct wharf_session, event_link))) {
        wharf_list_remove(&session->event_link);
        for (enum wharf_session_news news = 0; news <= WHARF_SESSION_IS_FREE; news++) {
            if (!is_news(session, news))
                continue;
            session->told |= (uint8_t)(1u << news);
            if (news == WHARF_SESSION_IS_FREE)
                wharf_list_remove(&session->session_link);
            *ret_news = news;
            return session;
        }
    }
    return NULL;
}

uint64_t wharf_front_serve(struct wharf_front *front)
{
    uint64_t next_ns;

    wharf_front_enter(front);
    wharf_front_look(front);
    next_ns = front->deadlines.root ? front->deadlines.root->key : WHARF_NEVER;
    front->loop_wakes_at_ns = next_ns;
    wharf_front_leave(front);
    return next_ns;
}
